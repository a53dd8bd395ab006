//! The corpora of the fuzz targets `manifest_decode` and `root`, run as plain tests.

use std::path::Path;

use content::{Root, Segment};

#[test]
fn the_corpus_of_manifests_decodes_or_is_refused() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../fuzz/corpus/manifest_decode");
    let (mut decoded, mut refused) = (0, 0);
    for file in std::fs::read_dir(corpus).expect("the corpus is part of the repository") {
        let path = file.expect("a directory entry").path();
        let bytes = std::fs::read(&path).expect("a corpus file");
        match Segment::decode(&bytes) {
            Ok(segment) => {
                assert_eq!(segment.encode(), bytes, "{}", path.display());
                decoded += 1;
            }
            Err(_) => refused += 1,
        }
    }
    assert!(decoded > 0 && refused > 0, "the corpus has both kinds");
}

#[test]
fn the_corpus_of_roots_decodes_or_is_refused() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../fuzz/corpus/root");
    let (mut decoded, mut refused) = (0, 0);
    for file in std::fs::read_dir(corpus).expect("the corpus is part of the repository") {
        let path = file.expect("a directory entry").path();
        let text = std::fs::read_to_string(&path).expect("a corpus file");
        let refuse =
            path.file_name().is_some_and(|it| it.to_string_lossy().starts_with("refused-"));
        let root = Root::decode(&text);
        assert_eq!(root.is_none(), refuse, "{}", path.display());
        assert!(root.is_none_or(|root| root.encode() == text), "another encoding");
        if refuse { refused += 1 } else { decoded += 1 }
    }
    assert!(decoded > 0 && refused > 0, "the corpus has both kinds");
}
