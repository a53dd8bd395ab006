//! The rolling hash: a number that depends on the last 64 bytes, updated byte by byte.
//!
//! *What this is:* a gear hash. Every byte value has a fixed 64-bit word in [`GEAR`]. For each
//! byte, the hash is shifted left by one bit, and the byte's word is added. After [`WINDOW`]
//! further bytes a byte has been shifted out, so the hash is a function of exactly the last 64
//! bytes. *Who calls it:* `boundary`, for every level. *What it never does:* decide which match is a
//! boundary; it only compares the hash with a level's limit. *Where to start:* [`roll`], then
//! [`find`]. *Source:* the gear hash is that of Xia et al., "Ddelta" (Performance Evaluation 79,
//! 2014). Departures: first, a match is `hash < limit` instead of a mask. This tests the highest
//! bits, which depend on most of the window, and allows probabilities other than powers of two.
//! Second, the table is chosen so that runs of one byte value never match (see [`QUIET`]).
//!
//! *Cost:* two loads, one or two additions and one comparison per byte; the table (2 KiB) stays in
//! the first-level cache.

/// The number of bytes that the hash depends on.
pub(crate) const WINDOW: usize = 64;

/// No run of 64 equal bytes has a hash below this value, and no level's limit may be above it.
///
/// So padding and zeroed blocks match at no level: a run of equal bytes is cut into chunks of the maximum
/// length, and not into many chunks of the minimum length.
pub(crate) const QUIET: u64 = 1 << 60;

/// The word of each byte value. The table is part of the format, because boundaries depend on it.
pub(crate) static GEAR: [u64; 256] = table();

/// Generates the table: draws words until every byte value has a word with which a run of this byte
/// hashes to [`QUIET`] or more.
///
/// A run of byte `b` hashes to `GEAR[b] * (2^64 - 1)`, which is `-GEAR[b]` modulo 2^64.
const fn table() -> [u64; 256] {
    let mut table = [0; 256];
    let mut state = SEED;
    let mut byte = 0;
    while byte < table.len() {
        state = state.wrapping_add(STEP);
        let word = mix(state);
        if word.wrapping_neg() >= QUIET {
            table[byte] = word;
            byte += 1;
        }
    }
    table
}

/// The ASCII letters "hearsay!" as a big-endian number: a nothing-up-my-sleeve seed.
const SEED: u64 = u64::from_be_bytes(*b"hearsay!");

/// 2^64 divided by the golden ratio, made odd: SplitMix64's increment (Steele et al., OOPSLA 2014).
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// SplitMix64's output function.
const fn mix(state: u64) -> u64 {
    let a = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let b = (a ^ (a >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    b ^ (b >> 31)
}

/// The hash after one more byte. It depends on the last 64.
#[inline(always)]
pub fn roll(hash: u64, byte: u8) -> u64 {
    (hash << 1).wrapping_add(GEAR[byte as usize])
}

/// The hash after these bytes, without a search for a match.
pub(crate) fn roll_over(hash: u64, bytes: &[u8]) -> u64 {
    let (steps, tail) = bytes.as_chunks();
    let hash = steps.iter().fold(hash, |hash, step| roll_step(hash, step)[STEP_BYTES - 1]);
    tail.iter().fold(hash, |hash, &byte| roll(hash, byte))
}

/// Updates `hash` with `bytes`, up to the first byte after which the hash is below `limit`, and returns
/// the number of bytes used. Returns `None` if there is no such byte; then all bytes were used.
#[inline]
pub(crate) fn find(hash: &mut u64, bytes: &[u8], limit: u64) -> Option<usize> {
    let (steps, tail) = bytes.as_chunks::<STEP_BYTES>();
    for (number, step) in steps.iter().enumerate() {
        let hashes = roll_step(*hash, step);
        for (index, &after) in hashes.iter().enumerate() {
            if after < limit {
                *hash = after;
                return Some(number * STEP_BYTES + index + 1);
            }
        }
        *hash = hashes[STEP_BYTES - 1];
    }
    let at = find_bytewise(hash, tail, limit)?;
    Some(steps.len() * STEP_BYTES + at)
}

/// The number of bytes that [`find`] handles in each iteration. A larger number is not faster.
const STEP_BYTES: usize = 8;

/// The hash after each of the bytes.
///
/// If the hashes were computed one by one, each would depend on the previous one. Here, four words at a
/// time are added up first, and the hash is added last: one dependency for every four bytes.
#[inline(always)]
fn roll_step(hash: u64, step: &[u8; STEP_BYTES]) -> [u64; STEP_BYTES] {
    let word = step.map(|byte| GEAR[byte as usize]);
    let [a, b, c, d] = roll_four(hash, [word[0], word[1], word[2], word[3]]);
    let [e, f, g, h] = roll_four(d, [word[4], word[5], word[6], word[7]]);
    [a, b, c, d, e, f, g, h]
}

#[inline(always)]
fn roll_four(hash: u64, word: [u64; 4]) -> [u64; 4] {
    let one = word[0];
    let two = (one << 1).wrapping_add(word[1]);
    let three = (two << 1).wrapping_add(word[2]);
    let four = (three << 1).wrapping_add(word[3]);
    [
        (hash << 1).wrapping_add(one),
        (hash << 2).wrapping_add(two),
        (hash << 3).wrapping_add(three),
        (hash << 4).wrapping_add(four),
    ]
}

fn find_bytewise(hash: &mut u64, bytes: &[u8], limit: u64) -> Option<usize> {
    bytes
        .iter()
        .position(|&byte| {
            *hash = roll(*hash, byte);
            *hash < limit
        })
        .map(|index| index + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_forgets_what_left_its_window() {
        // Only the lowest bit of the oldest byte's word is still in the hash, so take a byte whose word
        // has this bit set.
        let oldest = (0..=255).find(|&byte| GEAR[byte as usize] & 1 == 1);
        let tail: Vec<u8> = oldest.into_iter().chain(1..WINDOW as u8).collect();
        let after = |head: &[u8]| head.iter().chain(&tail).fold(0, |hash, &byte| roll(hash, byte));
        assert_eq!(after(b""), after(b"bytes before the window"));
        assert_ne!(after(b""), roll_over(0, &tail[1..]));
    }

    #[test]
    fn a_run_of_any_byte_is_quiet() {
        for byte in 0..=255 {
            let hash = [byte; WINDOW].iter().fold(0, |hash, &byte| roll(hash, byte));
            assert_eq!(hash, GEAR[byte as usize].wrapping_neg());
            assert!(hash >= QUIET);
        }
    }

    #[test]
    fn the_table_is_frozen() {
        let bytes: Vec<u8> = GEAR.iter().flat_map(|word| word.to_le_bytes()).collect();
        assert_eq!(
            blake3::hash(&bytes).to_string(),
            "17d79a862e78eab2d1b81c7d58d7c6675e2a6250a6b81e035958905dbd5ec36e"
        );
    }
}
