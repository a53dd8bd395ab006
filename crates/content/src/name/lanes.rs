//! BLAKE3 of many short inputs, sixteen at a time.
//!
//! *What this is:* the compression function for [`LANES`] independent states at once, in plain
//! arithmetic that the compiler turns into vector instructions. The blake3 crate does the same for
//! the chunks of one long input. A short input has too few chunks for that, and is hashed at a
//! quarter of the speed. *Who calls it:* `name::names`. *What it never does:* hash long inputs
//! (above [`SHORT_MAX`] the blake3 crate is as fast), use keys, or give more than 32 bytes of
//! output. *Where to start:* [`hash_all`]. *Source:* the BLAKE3 paper, sections 2.2 to 2.5; the
//! constants have its names.
//!
//! *Cost:* a group of sixteen takes as long as its longest input, so inputs with the same number of
//! blocks are grouped.

use multiversion::multiversion;
use wire::ChunkId;

/// The longest input that is hashed here, in bytes.
const SHORT_MAX: usize = 4 * CHUNK_LEN;
/// The number of inputs hashed at a time: the number of 32-bit words in a 512-bit register.
const LANES: usize = 16;

const BLOCK_LEN: usize = 64;
const CHUNK_LEN: usize = 1024;
const CHUNK_BLOCKS: usize = CHUNK_LEN / BLOCK_LEN;
const CHUNK_START: u32 = 1 << 0;
const CHUNK_END: u32 = 1 << 1;
const PARENT: u32 = 1 << 2;
const ROOT: u32 = 1 << 3;
const IV: [u32; 8] = [
    0x6a09_e667,
    0xbb67_ae85,
    0x3c6e_f372,
    0xa54f_f53a,
    0x510e_527f,
    0x9b05_688c,
    0x1f83_d9ab,
    0x5be0_cd19,
];

/// A chaining value: the result of a chunk or a parent node.
type Value = [u32; 8];
/// The same word of every lane.
type Word = [u32; LANES];

/// Appends the hashes of `inputs` to `out`, in their order.
pub(super) fn hash_all(inputs: &[&[u8]], out: &mut Vec<ChunkId>) {
    let mut chunks = Vec::with_capacity(inputs.len());
    for input in inputs.iter().filter(|input| input.len() <= SHORT_MAX) {
        push_chunks(input, &mut chunks);
    }
    let mut values = chunk_values(&chunks).into_iter();
    out.extend(inputs.iter().map(|input| match input.len() {
        0..=SHORT_MAX => {
            let count = input.len().div_ceil(CHUNK_LEN).max(1);
            root(values.by_ref().take(count))
        }
        _ => super::name(input),
    }));
}

/// The hash of an input from the chaining values of its chunks, at most four.
fn root(mut values: impl Iterator<Item = Value>) -> ChunkId {
    let value = match [values.next(), values.next(), values.next(), values.next()] {
        [Some(a), Some(b), None, None] => parent(a, b, ROOT),
        [Some(a), Some(b), Some(c), None] => parent(parent(a, b, 0), c, ROOT),
        [Some(a), Some(b), Some(c), Some(d)] => parent(parent(a, b, 0), parent(c, d, 0), ROOT),
        [alone, ..] => alone.unwrap_or(IV),
    };
    let mut bytes = [0; 32];
    for (bytes, word) in bytes.as_chunks_mut::<4>().0.iter_mut().zip(value) {
        *bytes = word.to_le_bytes();
    }
    ChunkId(bytes)
}

/// The chaining value of the parent of two nodes.
fn parent(left: Value, right: Value, flags: u32) -> Value {
    let mut block = [[0]; 16];
    for (to, from) in block.iter_mut().zip(left.into_iter().chain(right)) {
        *to = [from];
    }
    let mut value = IV.map(|word| [word]);
    let tail = Tail { counter: [0], length: [BLOCK_LEN as u32], flags: [PARENT | flags] };
    compress(&mut value, &block, &tail);
    value.map(|[word]| word)
}

/// A chunk of BLAKE3: at most 1 KiB of an input.
#[derive(Clone, Copy)]
struct Chunk<'a> {
    bytes: &'a [u8],
    /// The number of chunks of the same input before it.
    counter: u32,
    /// [`ROOT`] if it is the whole input.
    flags: u32,
}

impl Chunk<'_> {
    /// The number of blocks: an empty chunk has one.
    fn blocks(&self) -> usize {
        self.bytes.len().div_ceil(BLOCK_LEN).max(1)
    }

    /// The words of a block, padded with zeros, and its length in bytes.
    #[inline(always)]
    fn block(&self, number: usize) -> ([u32; 16], u32) {
        let rest = self.bytes.get(number * BLOCK_LEN..).unwrap_or(&[]);
        match rest.first_chunk() {
            Some(whole) => (words(whole), BLOCK_LEN as u32),
            None => {
                let mut padded = [0; BLOCK_LEN];
                padded[..rest.len()].copy_from_slice(rest);
                (words(&padded), rest.len() as u32)
            }
        }
    }
}

#[inline(always)]
fn words(block: &[u8; BLOCK_LEN]) -> [u32; 16] {
    let (words, _) = block.as_chunks::<4>();
    std::array::from_fn(|index| u32::from_le_bytes(words[index]))
}

fn push_chunks<'a>(input: &'a [u8], chunks: &mut Vec<Chunk<'a>>) {
    if input.len() <= CHUNK_LEN {
        chunks.push(Chunk { bytes: input, counter: 0, flags: ROOT });
        return;
    }
    let parts = input.chunks(CHUNK_LEN).zip(0..);
    chunks.extend(parts.map(|(bytes, counter)| Chunk { bytes, counter, flags: 0 }));
}

/// The chaining value of each chunk.
fn chunk_values(chunks: &[Chunk<'_>]) -> Vec<Value> {
    let mut values = vec![IV; chunks.len()];
    for group in by_blocks(chunks).chunks(LANES) {
        hash_group(chunks, group, &mut values);
    }
    values
}

/// The indices of the chunks, ordered by their number of blocks (a counting sort).
fn by_blocks(chunks: &[Chunk<'_>]) -> Vec<u32> {
    let mut places = [0; CHUNK_BLOCKS + 1];
    for chunk in chunks {
        places[chunk.blocks()] += 1;
    }
    let mut before = 0;
    for place in &mut places {
        before += std::mem::replace(place, before);
    }
    let mut order = vec![0; chunks.len()];
    for (index, chunk) in chunks.iter().enumerate() {
        let place = &mut places[chunk.blocks()];
        order[*place] = index as u32;
        *place += 1;
    }
    order
}

/// The inputs of the compression function besides a block's words.
struct Tail<const N: usize> {
    counter: [u32; N],
    length: [u32; N],
    flags: [u32; N],
}

/// Hashes the chunks of `group`, which is sorted by length, into their places in `values`.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512vl", "x86_64+avx2", "x86_64+sse4.1+ssse3",))]
fn hash_group(chunks: &[Chunk<'_>], group: &[u32], values: &mut [Value]) {
    hash_lanes(chunks, group, values);
}

/// Separate from [`hash_group`], because closures cannot be used across different instruction sets.
#[inline(always)]
fn hash_lanes(chunks: &[Chunk<'_>], group: &[u32], values: &mut [Value]) {
    let mut state: [Word; 8] = IV.map(|word| [word; LANES]);
    let mut block: [Word; 16] = [[0; LANES]; 16];
    let mut tail = Tail { counter: [0; LANES], length: [0; LANES], flags: [0; LANES] };
    let most = group.last().map_or(0, |&index| chunks[index as usize].blocks());
    for number in 0..most {
        for (lane, &index) in group.iter().enumerate().take(LANES) {
            let chunk = &chunks[index as usize];
            let (words, length) = chunk.block(number);
            for (lanes, word) in block.iter_mut().zip(words) {
                lanes[lane] = word;
            }
            let start = if number == 0 { CHUNK_START } else { 0 };
            let end = if number + 1 == chunk.blocks() { CHUNK_END | chunk.flags } else { 0 };
            tail.counter[lane] = chunk.counter;
            tail.length[lane] = length;
            tail.flags[lane] = start | end;
        }
        compress(&mut state, &block, &tail);
        for (lane, &index) in group.iter().enumerate().take(LANES) {
            if chunks[index as usize].blocks() == number + 1 {
                values[index as usize] = state.map(|word| word[lane]);
            }
        }
    }
}

/// The compression function in every lane.
///
/// The loop over the lanes is the outermost, and its body has no branches: in this form the
/// compiler keeps the whole state in vector registers.
#[inline(always)]
fn compress<const N: usize>(state: &mut [[u32; N]; 8], block: &[[u32; N]; 16], tail: &Tail<N>) {
    for lane in 0..N {
        let mut m = [0; 16];
        for word in 0..16 {
            m[word] = block[word][lane];
        }
        let mut v = [0; 16];
        for word in 0..8 {
            v[word] = state[word][lane];
        }
        v[8..12].copy_from_slice(&IV[..4]);
        v[12] = tail.counter[lane];
        v[14] = tail.length[lane];
        v[15] = tail.flags[lane];
        round(&mut v, &m);
        // The other six rounds are written out: a loop here would prevent the vectorisation of the
        // outer one.
        m = permute(&m);
        round(&mut v, &m);
        m = permute(&m);
        round(&mut v, &m);
        m = permute(&m);
        round(&mut v, &m);
        m = permute(&m);
        round(&mut v, &m);
        m = permute(&m);
        round(&mut v, &m);
        m = permute(&m);
        round(&mut v, &m);
        for word in 0..8 {
            state[word][lane] = v[word] ^ v[word + 8];
        }
    }
}

#[inline(always)]
fn round(v: &mut [u32; 16], m: &[u32; 16]) {
    mix(v, [0, 4, 8, 12], m[0], m[1]);
    mix(v, [1, 5, 9, 13], m[2], m[3]);
    mix(v, [2, 6, 10, 14], m[4], m[5]);
    mix(v, [3, 7, 11, 15], m[6], m[7]);
    mix(v, [0, 5, 10, 15], m[8], m[9]);
    mix(v, [1, 6, 11, 12], m[10], m[11]);
    mix(v, [2, 7, 8, 13], m[12], m[13]);
    mix(v, [3, 4, 9, 14], m[14], m[15]);
}

/// The quarter-round G.
#[inline(always)]
fn mix(v: &mut [u32; 16], [a, b, c, d]: [usize; 4], x: u32, y: u32) {
    v[a] = v[a].wrapping_add(v[b]).wrapping_add(x);
    v[d] = (v[d] ^ v[a]).rotate_right(16);
    v[c] = v[c].wrapping_add(v[d]);
    v[b] = (v[b] ^ v[c]).rotate_right(12);
    v[a] = v[a].wrapping_add(v[b]).wrapping_add(y);
    v[d] = (v[d] ^ v[a]).rotate_right(8);
    v[c] = v[c].wrapping_add(v[d]);
    v[b] = (v[b] ^ v[c]).rotate_right(7);
}

#[inline(always)]
fn permute(m: &[u32; 16]) -> [u32; 16] {
    [
        m[2], m[6], m[3], m[10], m[7], m[0], m[4], m[13], m[1], m[11], m[12], m[5], m[9], m[14],
        m[15], m[8],
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_hashes_as_it_does_alone() {
        let bytes: Vec<u8> = (0..SHORT_MAX + 70).map(|index| (index % 251) as u8).collect();
        let inputs: Vec<&[u8]> = (0..=bytes.len()).rev().map(|length| &bytes[..length]).collect();
        let mut hashes = Vec::new();
        hash_all(&inputs, &mut hashes);
        for (input, hash) in inputs.iter().zip(&hashes) {
            assert_eq!(*hash, super::super::name(input), "{} bytes", input.len());
        }
    }
}
