//! Units that are to be evicted last.

use store::Policy;

use crate::common::name_number;
use crate::common::paper::PaperStore;

const LENGTH: u32 = 8000;
const BUDGET: u64 = 4 << 20;

/// How many of these units are still stored.
fn left(store: &PaperStore, names: std::ops::Range<u64>) -> u64 {
    names.filter(|name| store.index.holds(&name_number(*name))).count() as u64
}

/// Each reclaiming frees a quarter of its segment, so that it makes progress even if all of its units are lasting: a
/// quarter is lost on the way to the main queue.
#[test]
fn lasting_units_outlive_ten_times_the_store_of_others() {
    let mut store = PaperStore::new(BUDGET, Policy::S3Fifo);
    for name in 0..100 {
        store.use_unit(name_number(name), LENGTH);
        store.index.make_lasting(&name_number(name));
    }
    (100..200).for_each(|name| store.use_unit(name_number(name), LENGTH));
    for name in 1000..6000 {
        store.use_unit(name_number(name), LENGTH);
    }
    assert!(left(&store, 0..100) >= 75, "{}", left(&store, 0..100));
    assert_eq!(left(&store, 100..200), 0, "units used once, of the same age");
}

/// More lasting units than fit do not stop the store.
#[test]
fn lasting_units_make_room_for_one_another() {
    let mut store = PaperStore::new(BUDGET, Policy::S3Fifo);
    for name in 0..3000 {
        store.use_unit(name_number(name), LENGTH);
        store.index.make_lasting(&name_number(name));
    }
    assert!(store.index.holds(&name_number(2999)));
    let kept = left(&store, 0..3000);
    assert!(kept > 200 && kept * u64::from(LENGTH) <= BUDGET, "{kept}");
}
