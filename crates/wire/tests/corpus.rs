//! The corpus of the fuzz targets, run as plain tests.

use std::path::Path;

use wire::peer::{ChunkHead, Preamble};

use crate::common::{checks, peer};

/// Runs a target; `again` decodes its input and returns the result's encoding.
fn each(target: &str, again: impl Fn(&[u8]) -> Option<Vec<u8>>) {
    judge(target, |bytes| {
        let again = again(bytes);
        assert!(again.as_deref().is_none_or(|again| again == bytes), "another encoding");
        again.is_some()
    });
}

/// Runs a target. The names of files that must be refused say so.
fn judge(target: &str, accept: impl Fn(&[u8]) -> bool) {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../fuzz/corpus").join(target);
    let (mut decoded, mut refused) = (0, 0);
    for file in std::fs::read_dir(corpus).expect("the corpus is part of the repository") {
        let path = file.expect("a directory entry").path();
        let bytes = std::fs::read(&path).expect("a corpus file");
        let refuse =
            path.file_name().is_some_and(|it| it.to_string_lossy().starts_with("refused-"));
        assert_eq!(accept(&bytes), !refuse, "{}", path.display());
        if refuse { refused += 1 } else { decoded += 1 }
    }
    assert!(decoded > 0 && refused > 0, "the corpus of {target} has both kinds");
}

#[test]
fn messages() {
    judge("peer_message", peer::message);
}

#[test]
fn introductions() {
    judge("peer_introduction", peer::introduction);
}

#[test]
fn datagrams() {
    judge("datagram", peer::datagram);
}

#[test]
fn preambles_and_heads_of_chunks() {
    each("chunk_head", |bytes| {
        let head = || Some(ChunkHead::decode(bytes.try_into().ok()?).ok()?.encode().to_vec());
        let preamble = || Some(Preamble::decode(bytes.try_into().ok()?).ok()?.encode().to_vec());
        head().or_else(preamble)
    });
}

#[test]
fn captured_frames() {
    judge("frame", checks::frame);
}

#[test]
fn capture_files() {
    judge("pcap", checks::file);
}
