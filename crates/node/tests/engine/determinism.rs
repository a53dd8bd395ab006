//! The same seed gives the same run, output for output.

use crate::torture;

#[test]
fn a_busy_run_with_the_same_seed_is_the_same_run() {
    let once = torture::run(4, 150).trace.finish();
    let again = torture::run(4, 150).trace.finish();
    let other = torture::run(5, 150).trace.finish();
    assert_eq!(once, again);
    assert_ne!(once, other);
}
