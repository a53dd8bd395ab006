//! The fuzz targets' corpus, run as plain tests.

use std::path::Path;

fn each(target: &str, check: fn(&[u8])) {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../fuzz/corpus").join(target);
    let mut count = 0;
    for entry in std::fs::read_dir(corpus).unwrap() {
        check(&std::fs::read(entry.unwrap().path()).unwrap());
        count += 1;
    }
    assert!(count > 0, "the corpus of {target} is empty");
}

#[test]
fn raw_http() {
    each("screen", node::testing::screen);
}

#[test]
fn header_fields() {
    each("fields", node::testing::fields);
}

#[test]
fn rows_of_the_catalogue() {
    each("row", node::testing::row);
}

#[test]
fn what_is_overheard() {
    each("overhear", node::testing::overheard);
}

#[test]
fn the_good_rows_of_the_corpus_are_good() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../fuzz/corpus/row");
    for name in ["plain", "varied", "empty"] {
        let bytes = std::fs::read(corpus.join(name)).unwrap();
        let row = node::Row::decode(&bytes).expect(name);
        assert_eq!(row.encode(), bytes, "{name}");
    }
}
