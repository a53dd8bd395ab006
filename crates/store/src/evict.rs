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
#[path = "evict_tests.rs"]
mod tests;
