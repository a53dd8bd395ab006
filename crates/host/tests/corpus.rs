//! The corpus of the fuzz targets, run as plain tests.

use std::path::Path;

fn each(target: &str, check: fn(&[u8])) {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let mut count = 0;
    for entry in std::fs::read_dir(corpus).unwrap() {
        check(&std::fs::read(entry.unwrap().path()).unwrap());
        count += 1;
    }
    assert!(count > 0, "the corpus of {target} is empty");
}

#[test]
fn what_babeld_says() {
    each("babeld", host::routing::checks::babeld);
}

#[test]
fn what_the_kernel_says() {
    each("netlink", host::routing::checks::netlink);
}
