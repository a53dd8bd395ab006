//! Overheard units, however many, do not evict requested ones.

use store::{Policy, Provenance};

use crate::common::name_number;
use crate::common::paper::PaperStore;

const POLICIES: [Policy; 2] = [Policy::S3Fifo, Policy::Lru];
const LENGTH: u32 = 8000;
const BUDGET: u64 = 4 << 20;
/// More units than the store can hold.
const FLOOD: u64 = 3000;
/// The first name of units that no client requests.
const HEARD: u64 = 1_000_000;

/// A store with this number of requested units, each used `uses` times after the first.
fn asked_for(policy: Policy, names: u64, uses: usize) -> PaperStore {
    let mut store = PaperStore::new(BUDGET, policy);
    for _ in 0..=uses {
        (0..names).for_each(|name| store.use_unit(name_number(name), LENGTH));
    }
    store
}

fn flood(store: &mut PaperStore, from: u64) {
    (from..from + FLOOD).for_each(|name| store.hear(name_number(name), LENGTH));
}

/// The number of requested units that are still stored.
fn left(store: &PaperStore, names: u64) -> u64 {
    (0..names).filter(|name| store.index.holds(&name_number(*name))).count() as u64
}

#[test]
fn a_flood_leaves_what_was_asked_for() {
    for policy in POLICIES {
        for uses in [0, 3] {
            let mut store = asked_for(policy, 300, uses);
            flood(&mut store, HEARD);
            assert_eq!(left(&store, 300), 300, "{policy:?}, {uses} uses");
            assert!(store.index.holds(&name_number(HEARD + FLOOD - 1)));
        }
    }
    let mut store = asked_for(Policy::Lru, 300, 0);
    (HEARD..HEARD + FLOOD).for_each(|name| store.use_unit(name_number(name), LENGTH));
    assert_eq!(left(&store, 300), 0, "the flood is one");
}

/// The overheard units take no more than the tenth that they may have.
#[test]
fn a_flood_takes_next_to_nothing_of_a_full_store() {
    for policy in POLICIES {
        let mut store = asked_for(policy, 2000, 0);
        let before = left(&store, 2000);
        assert!(before > 400 && before < 2000, "{before}");
        for _ in 0..5 {
            flood(&mut store, HEARD);
        }
        let after = left(&store, 2000);
        assert!(after * 10 >= before * 8, "{policy:?}: {after} of {before}");
    }
}

/// For LRU, units that are idle while others are in constant use are the oldest of all requested
/// ones.
#[test]
fn a_flood_leaves_what_is_idle() {
    let mut store = asked_for(Policy::Lru, 250, 0);
    for _ in 0..400 {
        (0..50).for_each(|name| store.use_unit(name_number(name), LENGTH));
    }
    flood(&mut store, HEARD);
    assert_eq!(left(&store, 250), 250);
}

#[test]
fn the_same_flood_again_and_again_earns_nothing() {
    for policy in POLICIES {
        let mut store = asked_for(policy, 300, 0);
        (0..10).for_each(|_| flood(&mut store, HEARD));
        assert_eq!(left(&store, 300), 300, "{policy:?}");
    }
}

#[test]
fn what_was_overheard_and_is_used_stays() {
    for policy in POLICIES {
        let mut store = asked_for(policy, 0, 0);
        let name = name_number(1);
        store.hear(name, LENGTH);
        store.use_unit(name, LENGTH);
        flood(&mut store, HEARD);
        assert_eq!(store.index.provenance(&name), Some(Provenance::Overheard), "{policy:?}");
        assert!(!store.index.holds(&name_number(HEARD + FLOOD / 2)));
    }
}

#[test]
fn what_was_overheard_fills_a_store_that_has_room_and_makes_room() {
    for policy in POLICIES {
        let mut store = asked_for(policy, 50, 0);
        (HEARD..HEARD + 300).for_each(|name| store.hear(name_number(name), LENGTH));
        assert!((HEARD..HEARD + 300).all(|name| store.index.holds(&name_number(name))));
        (0..350).for_each(|name| store.use_unit(name_number(name), LENGTH));
        assert_eq!(left(&store, 350), 350, "{policy:?}");
    }
}
