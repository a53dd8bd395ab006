//! The corpus of the fuzz targets, run as plain tests.

use std::path::Path;

/// Runs a target. The names of files without effect (refused, unchanged, without promise) say so.
fn each(target: &str, has_effect: fn(&[u8]) -> bool) {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let (mut with, mut without) = (0, 0);
    for file in std::fs::read_dir(corpus).expect("the corpus is part of the repository") {
        let path = file.expect("a directory entry").path();
        let bytes = std::fs::read(&path).expect("a corpus file");
        let refused =
            path.file_name().is_some_and(|it| it.to_string_lossy().starts_with("refused-"));
        assert_eq!(has_effect(&bytes), !refused, "{}", path.display());
        if refused { without += 1 } else { with += 1 }
    }
    assert!(with > 0 && without > 0, "the corpus of {target} has both kinds");
}

#[test]
fn tables() {
    each("class_table", classes::testing::table);
}

#[test]
fn paths_of_the_mirror() {
    each("mirror_path", classes::testing::mirror);
}

#[test]
fn rewritten_indexes() {
    each("rewrite", classes::testing::rewrite);
}

#[test]
fn promises_of_indexes() {
    each("index", classes::testing::index);
}
