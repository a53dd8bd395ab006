use super::*;

#[test]
fn epochs_keep_their_order_when_numbers_run_out() {
    let mut lru = Lru::new(128 * 100);
    let mut oldest = lru.enter(100).0;
    let mut halved = 0;
    for _ in 0..1000 {
        let (now, halve) = lru.enter(100);
        if halve {
            oldest /= 2;
            halved += 1;
        }
        assert!(oldest <= now);
    }
    assert!(halved >= 6, "{halved}");
    assert_eq!(lru.ages.iter().sum::<u64>(), 1001 * 100);
    assert!(lru.cold() < lru.now);
}

/// A policy whose epochs end at 100 bytes.
fn lru() -> Lru {
    Lru::new(128 * 100)
}

/// The budget's 128th part ends an epoch, not a byte less; epoch 0 is for units that were never used.
#[test]
fn an_epoch_ends_once_it_holds_its_bytes() {
    let mut lru = lru();
    assert_eq!([99, 1, 1, 98, 1, 1].map(|bytes| lru.enter(bytes).0), [1, 1, 2, 2, 2, 3]);
    assert_eq!(lru.enter_cold(1000), 0);
    assert_eq!(lru.enter(0).0, 3);
    assert_eq!(lru.ages[..4], [1000, 100, 100, 1]);
    assert_eq!(Lru::new(0).enter(1).0, 1, "an empty epoch does not end");
}

#[test]
fn a_unit_that_leaves_takes_its_bytes_from_its_own_epoch() {
    let mut lru = lru();
    (0..3).for_each(|_| _ = lru.enter(100));
    lru.leave(2, 30);
    assert_eq!(lru.ages[..4], [0, 100, 70, 100]);
    lru.leave(2, 71);
    assert_eq!(lru.ages[..4], [0, 100, 0, 100]);
}

/// Numbers go to 255. Each two neighbours become one, so that the epoch after 255 is 127 + 1.
#[test]
fn the_epoch_after_the_last_number_is_the_middle_one() {
    let mut lru = lru();
    assert!((1..=255).all(|epoch| lru.enter(100) == (epoch, false)));
    assert_eq!(lru.enter(100), (128, true));
    assert_eq!(lru.halvings, 1);
    assert_eq!((lru.ages[0], lru.ages[1], lru.ages[127], lru.ages[128]), (100, 200, 200, 100));
    assert_eq!(lru.ages[129..], [0; 127]);
}

#[test]
fn cold_are_the_oldest_epochs_with_more_than_a_sixteenth_of_all_bytes() {
    let mut lru = lru();
    assert_eq!(lru.cold(), 0);
    (0..16).for_each(|_| _ = lru.enter(100));
    assert_eq!(lru.cold(), 2, "epoch 1 holds a sixteenth and no more");
    lru.leave(16, 1);
    lru.leave(15, 15);
    assert_eq!(lru.cold(), 1);
    lru.enter_cold(200);
    assert_eq!(lru.cold(), 0, "units on probation come first");
}

fn key(number: u32) -> Key {
    let mixed = u64::from(number).wrapping_mul(0xd6e8_feb8_6659_fd93);
    let mut name = [0; 32];
    name[..8].copy_from_slice(&(mixed ^ mixed >> 29).to_be_bytes());
    Key::of(&wire::ChunkId(name))
}

#[test]
fn a_unit_that_was_never_stored_has_no_ghost() {
    let mut s3 = S3Fifo::new(16 << 20);
    (0..5000).for_each(|number| s3.gone(key(number)));
    let strangers = (10_000..20_000).filter(|number| s3.enter(key(*number)) > 0).count();
    assert!(strangers < 20, "{strangers} false ghosts of 10,000");
}

#[test]
fn no_unit_has_the_fingerprint_of_a_free_slot() {
    let mut s3 = S3Fifo::new(0);
    // A fingerprint has 16 bits: without the mark, 7 or 8 of 500,000 units would have that of a free slot.
    assert!((0..500_000).all(|number| s3.enter(key(number)) == 0));
}

#[test]
fn a_ghost_returns_once() {
    let mut s3 = S3Fifo::new(1 << 20);
    let key = Key::of(&wire::ChunkId([7; 32]));
    assert_eq!(s3.enter(key), 0);
    s3.gone(key);
    assert!(usize::from(s3.enter(key)) >= S3Fifo::bar(true));
    assert_eq!(s3.enter(key), 0);
}

/// The numbers of the units that have a ghost, in the given order. Asking removes the ghost.
fn found(s3: &mut S3Fifo, numbers: impl IntoIterator<Item = u32>) -> Vec<bool> {
    numbers.into_iter().map(|number| s3.enter(key(number)) > 0).collect()
}

/// The ghosts are a FIFO queue (Yang et al., section 4.1), here one for each set.
#[test]
fn a_full_set_drops_its_oldest_ghost_and_no_other() {
    let mut s3 = S3Fifo::new(0);
    (0..8).for_each(|number| s3.gone(key(number)));
    s3.gone(key(8));
    assert_eq!(found(&mut s3, [8, 1]), [true; 2]);
    (9..12).for_each(|number| s3.gone(key(number)));
    let left: Vec<_> = (0..12).zip(found(&mut s3, 0..12)).filter(|(_, it)| *it).collect();
    // Numbers 9 and 10 took the places of those that were found.
    assert!(left.into_iter().map(|(number, _)| number).eq([3, 4, 5, 6, 7, 9, 10, 11]));
}

/// As many ghosts as the budget has units of the default size, in whole sets, and eight million at most.
#[test]
fn the_budget_bounds_the_ghosts() {
    for (kib, ghosts) in [
        (0, 8),
        (64, 8),
        (71, 8),
        (72, 16),
        (1 << 20, 1 << 17),
        (64 << 20, 8 << 20),
        (1 << 30, 8 << 20),
    ] {
        let evictor = Evictor::new(Policy::S3Fifo, kib << 10);
        assert_eq!(evictor.bytes(), ghosts * 2, "{kib} KiB");
    }
    assert_eq!(Evictor::new(Policy::Lru, 1 << 40).bytes(), 256 * 8);
}

#[test]
fn ghosts_of_many_units_spread_over_all_sets() {
    let mut s3 = S3Fifo::new(64 * 8 * BYTES_PER_GHOST);
    (0..128).for_each(|number| s3.gone(key(number)));
    let sets = s3.ghosts.chunks(GHOSTS_PER_SET);
    let used = sets.filter(|set| set.iter().any(|ghost| *ghost > 0)).count();
    // Chance leaves 64 · (1 − 1/64)¹²⁸ ≈ 8.5 of 64 sets free.
    assert!((48..=62).contains(&used), "{used}");
    assert!(found(&mut s3, 0..128).iter().all(|it| *it), "no set is full");
}

/// Yang et al., algorithm 1: `freq` is at most 3.
#[test]
fn uses_are_counted_up_to_three() {
    let lives = std::iter::successors(Some(0), |life| Some(S3Fifo::used(*life)));
    assert!(lives.take(6).eq([0, 1, 2, 3, 3, 3]));
    assert_eq!(S3Fifo::used(S3Fifo::lasting()), S3Fifo::lasting(), "no use makes it less");
}

/// Yang et al., algorithm 1: the small queue lets go on what has `freq > 1`, and clears it (section 4.1); each round
/// of the main queue costs one of `freq`, and what has none is evicted.
#[test]
fn a_unit_of_the_main_queue_stays_for_as_many_rounds_as_it_had_uses() {
    assert_eq!((S3Fifo::bar(true), S3Fifo::bar(false)), (2, 1));
    assert_eq!([2, 3].map(|life| S3Fifo::stayed(life, true)), [0, 0]);
    for uses in 0..=3_u8 {
        let next = |life: &u8| Some(S3Fifo::stayed(*life, false));
        let lives = std::iter::successors(Some(uses), next).take(10);
        let rounds = lives.take_while(|life| usize::from(*life) >= S3Fifo::bar(false)).count();
        assert_eq!(rounds, usize::from(uses));
    }
    assert_eq!(S3Fifo::stayed(0, false), 0, "kept for another reason");
}

#[test]
fn a_lasting_unit_begins_to_age_in_the_main_queue() {
    let lasting = S3Fifo::lasting();
    assert_eq!(S3Fifo::stayed(lasting, true), lasting);
    assert_eq!(S3Fifo::stayed(lasting, false), lasting - 1);
    assert_eq!(S3Fifo::stayed(USES_MAX + 1, true), USES_MAX + 1);
}
