//! The committed inputs of the fuzz target `manifest_decode`, as plain tests.

use std::path::Path;

use content::Segment;

#[test]
fn the_corpus_of_manifests_decodes_or_is_refused() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/manifest_decode");
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
