//! The eviction policies, as arithmetic on one byte of state per unit (its *life*).
//!
//! *What this is:* [`Lru`], which keeps a coarse age in that byte, and [`S3Fifo`], which keeps a
//! count of uses and a list of ghosts. *Who calls it:* `index.rs`. *What it never does:* see names,
//! locations or files; measure time, except in bytes used.

use crate::table::Key;

/// Which units are evicted first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// The least recently used.
    Lru,
    /// S3-FIFO (Yang et al., SOSP 2023): a unit that is not used again soon after it was stored is
    /// evicted early, so a scan does not evict units in frequent use.
    S3Fifo,
}

/// A policy and its state.
#[derive(Debug)]
pub(crate) enum Evictor {
    Lru(Lru),
    S3Fifo(S3Fifo),
}

impl Evictor {
    pub fn new(policy: Policy, budget_bytes: u64) -> Self {
        match policy {
            Policy::Lru => Self::Lru(Lru::new(budget_bytes)),
            Policy::S3Fifo => Self::S3Fifo(S3Fifo::new(budget_bytes)),
        }
    }

    /// Bytes of memory.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Lru(_) => EPOCHS * size_of::<u64>(),
            Self::S3Fifo(s3) => s3.ghosts.len() * size_of::<u16>(),
        }
    }
}

/// The number of values that a life can have.
pub(crate) const EPOCHS: usize = 256;

/// Least recently used, with the precision of an epoch.
///
/// The life of a unit is the epoch of its last use. A new epoch begins when the current one holds
/// 1/128 of the budget; repeated uses of recently used units therefore do not advance it. When the
/// numbers run out, all are halved, so that each two neighbouring epochs become one. Old epochs
/// grow wide in this way, but the order is kept. The table applies a halving shard by shard
/// ([`crate::table::Table::settle`]).
#[derive(Debug)]
pub(crate) struct Lru {
    now: u8,
    /// The number of halvings so far.
    pub halvings: u32,
    /// Bytes whose last use was in each epoch.
    ages: Box<[u64; EPOCHS]>,
    epoch_bytes: u64,
}

/// The oldest sixteenth of all bytes counts as cold: then some segment consists mostly of cold
/// units, and reclaiming it rewrites little. With a larger share there would be fewer writes, but
/// the order would differ more from exact LRU.
const COLD_SHARE: u64 = 16;

impl Lru {
    fn new(budget_bytes: u64) -> Self {
        let epoch_bytes = (budget_bytes / 128).max(1);
        // Epoch 0 is for units that were never used.
        Self { now: 1, halvings: 0, ages: Box::new([0; EPOCHS]), epoch_bytes }
    }

    /// Counts a use of a unit of this length. Returns the current epoch, and whether all numbers
    /// were just halved.
    ///
    /// The returned epoch is already in the new numbers.
    pub fn enter(&mut self, bytes: u32) -> (u8, bool) {
        let mut halved = false;
        if self.ages[usize::from(self.now)] >= self.epoch_bytes {
            if self.now == u8::MAX {
                self.halve();
                halved = true;
            }
            self.now += 1;
        }
        self.ages[usize::from(self.now)] += u64::from(bytes);
        (self.now, halved)
    }

    /// The epoch of a unit on probation: the oldest, so it is evicted before any used unit.
    pub fn enter_cold(&mut self, bytes: u32) -> u8 {
        self.ages[0] += u64::from(bytes);
        0
    }

    /// Subtracts a unit's bytes from its epoch.
    pub fn leave(&mut self, epoch: u8, bytes: u32) {
        let age = &mut self.ages[usize::from(epoch)];
        *age = age.saturating_sub(u64::from(bytes));
    }

    fn halve(&mut self) {
        self.halvings = self.halvings.wrapping_add(1);
        self.now = u8::MAX / 2;
        halve(self.ages.as_mut_slice());
    }

    /// The youngest epoch that counts as cold: with it the oldest epochs hold more than the cold share.
    pub fn cold(&self) -> u8 {
        let wanted = self.ages.iter().sum::<u64>() / COLD_SHARE;
        let mut seen = 0;
        let cold = self.ages.iter().position(|bytes| {
            seen += bytes;
            seen > wanted
        });
        cold.unwrap_or(0) as u8
    }
}

/// Adds up neighbouring counts, two by two, and stores the sums in the lower half.
pub(crate) fn halve<T: Copy + Default + std::ops::Add<Output = T>>(counts: &mut [T]) {
    for at in 0..counts.len() / 2 {
        counts[at] = counts[2 * at] + counts[2 * at + 1];
    }
    counts[EPOCHS / 2..].fill(T::default());
}

/// S3-FIFO on a log: segments of fresh units are its small queue, segments of kept units its main
/// queue. Units on probation have a queue of their own, which is reclaimed first while it is longer
/// than the small queue may be. One use moves such a unit to the main queue; an evicted one leaves
/// no ghost.
///
/// The life of a unit is its count of uses, at most three. There are two deviations from the paper,
/// both because a unit is given its segment before the policy sees it. A unit whose ghost is found
/// enters the small queue with two uses, which move it to the main queue when its segment is
/// reclaimed. And each reclaiming frees at least a quarter of its segment, for any counts.
#[derive(Debug)]
pub(crate) struct S3Fifo {
    /// Fingerprints of units evicted unused from the small queue, in sets; a full set drops its
    /// oldest.
    ghosts: Box<[u16]>,
}

const USES_MAX: u8 = 3;
/// The life of a unit that is to be evicted last: it survives as many rounds of the main queue unused as other units
/// need uses for.
const USES_OF_LASTING: u8 = 64;
/// The uses that move a unit from the small queue to the main one (`freq > 1` in the paper).
const USES_TO_MOVE_ON: u8 = 2;
const GHOSTS_PER_SET: usize = 8;
/// One ghost for each unit of the default size that the budget can hold, as in the paper.
const BYTES_PER_GHOST: u64 = 8 << 10;
const GHOSTS_MAX: u64 = 8 << 20;
/// The small queue's share of all bytes (10 % in the paper); units on probation have the same
/// share.
pub(crate) const SMALL_SHARE: u64 = 10;

impl S3Fifo {
    fn new(budget_bytes: u64) -> Self {
        let ghosts = (budget_bytes / BYTES_PER_GHOST).min(GHOSTS_MAX) as usize;
        let sets = ghosts.div_ceil(GHOSTS_PER_SET).max(1);
        Self { ghosts: vec![0; sets * GHOSTS_PER_SET].into_boxed_slice() }
    }

    /// The life of a newly stored unit.
    pub fn enter(&mut self, key: Key) -> u8 {
        let (set, print) = self.ghost(key);
        let known = set.iter().position(|ghost| *ghost == print);
        known.map_or(0, |at| {
            // Free slots stay at the end: the next ghost takes one, and drops none.
            set[at..].rotate_left(1);
            set[GHOSTS_PER_SET - 1] = 0;
            USES_TO_MOVE_ON
        })
    }

    /// The life of a unit after a use.
    pub fn used(life: u8) -> u8 {
        if life >= USES_MAX { life } else { life + 1 }
    }

    /// The life of a unit that is evicted after all others.
    pub fn lasting() -> u8 {
        USES_OF_LASTING
    }

    /// The life that a unit needs to survive the reclaiming of its segment. A unit on probation
    /// needs one use: its first request corresponds to the insertion of other units.
    pub fn bar(is_small: bool) -> usize {
        if is_small { usize::from(USES_TO_MOVE_ON) } else { 1 }
    }

    /// The life of a unit that has survived, at its new location.
    pub fn stayed(life: u8, is_small: bool) -> u8 {
        match is_small {
            // Its life counts rounds of the main queue, and has not begun.
            true if life > USES_MAX => life,
            true => 0,
            false => life.saturating_sub(1),
        }
    }

    /// Adds the ghost of a unit evicted from the small queue.
    pub fn gone(&mut self, key: Key) {
        let (set, print) = self.ghost(key);
        set.rotate_right(1);
        set[0] = print;
    }

    fn ghost(&mut self, key: Key) -> (&mut [u16], u16) {
        let sets = (self.ghosts.len() / GHOSTS_PER_SET) as u64;
        // The upper 20 of 36 bits choose the set, of at most a million. The fingerprint comes from
        // lower bits; it is never zero, which marks a free slot. The lowest 28 bits of a key are
        // zero, and so are those of its product.
        let bits = key.bits().wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let set = ((bits >> 32) * sets) >> 32;
        let start = set as usize * GHOSTS_PER_SET;
        let print = (bits >> 28) as u16 | 1;
        (&mut self.ghosts[start..start + GHOSTS_PER_SET], print)
    }
}

#[cfg(test)]
mod tests {
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
    fn a_ghost_returns_once() {
        let mut s3 = S3Fifo::new(1 << 20);
        let key = Key::of(&wire::ChunkId([7; 32]));
        assert_eq!(s3.enter(key), 0);
        s3.gone(key);
        assert!(usize::from(s3.enter(key)) >= S3Fifo::bar(true));
        assert_eq!(s3.enter(key), 0);
    }

    /// Which of these are known, in this order. A ghost that was found is gone.
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
}
