//! The corpus of the fuzz target `interference`, run as a plain test.

use std::path::Path;

#[test]
fn matrices_of_the_corpus_are_read_or_refused_as_their_names_say() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/interference");
    let mut counts = [0, 0];
    for file in std::fs::read_dir(corpus).expect("the corpus is part of the repository") {
        let path = file.expect("a directory entry").path();
        let name = path.file_name().expect("a file").to_string_lossy().into_owned();
        let bytes = std::fs::read(&path).expect("a corpus file");
        let was_read = plan::testing::matrix_text(&bytes);
        assert_eq!(was_read, !name.starts_with("refused-"), "{name}");
        counts[usize::from(was_read)] += 1;
    }
    assert!(counts.iter().all(|count| *count > 0), "the corpus has both kinds: {counts:?}");
}
