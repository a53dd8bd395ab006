//! The fuzz targets' corpus, run as plain tests.

use std::path::Path;

use wire::peer::{ChunkHead, Introduction, Message, Preamble};

/// `again` is what was decoded, encoded again. What is to be refused is in files whose name says so.
fn each(target: &str, again: impl Fn(&[u8]) -> Option<Vec<u8>>) {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let (mut decoded, mut refused) = (0, 0);
    for file in std::fs::read_dir(corpus).expect("the corpus is part of the repository") {
        let path = file.expect("a directory entry").path();
        let bytes = std::fs::read(&path).expect("a corpus file");
        if path.file_name().is_some_and(|it| it.to_string_lossy().starts_with("refused-")) {
            assert_eq!(again(&bytes), None, "{}", path.display());
            refused += 1;
        } else {
            assert_eq!(again(&bytes), Some(bytes), "{}", path.display());
            decoded += 1;
        }
    }
    assert!(decoded > 0 && refused > 0, "the corpus of {target} has both kinds");
}

#[test]
fn messages() {
    each("peer_message", |bytes| Message::decode(bytes).ok()?.encode());
}

#[test]
fn introductions() {
    each("peer_introduction", |bytes| Introduction::decode(bytes).ok()?.encode());
}

#[test]
fn preambles_and_heads_of_chunks() {
    each("chunk_head", |bytes| {
        let head = || Some(ChunkHead::decode(bytes.try_into().ok()?).ok()?.encode().to_vec());
        let preamble = || Some(Preamble::decode(bytes.try_into().ok()?).ok()?.encode().to_vec());
        head().or_else(preamble)
    });
}
