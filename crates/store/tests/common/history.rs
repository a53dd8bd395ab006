//! Units of a history: their marks follow from a number.

use std::sync::Arc;

use bytes::Bytes;
use store::{Files, History, HistoryOptions, HistoryReader, Mark};

use super::{Random, unit};

pub type Unit = (Mark, Bytes);

/// A unit of this length, different for each seed.
pub fn entry(seed: u64, length: usize) -> Unit {
    let unit = unit(seed, length);
    let mut random = Random(seed);
    let mut name = [0; 16];
    name.copy_from_slice(&unit.id.as_bytes()[..16]);
    let features = [(); 4].map(|()| random.next() as u32);
    (Mark { name, features, url: random.next(), length: length as u32 }, unit.bytes)
}

/// `count` units of at most `longest` bytes.
pub fn entries(random: &mut Random, count: u64, longest: u64) -> Vec<Unit> {
    (0..count).map(|_| entry(random.next(), random.below(longest + 1) as usize)).collect()
}

pub const EPOCH: [u8; 16] = [0xe1; 16];

pub fn options(budget_bytes: u64, is_enciphered: bool) -> HistoryOptions {
    HistoryOptions { budget_bytes, key: is_enciphered.then_some([0x5e; 32]) }
}

pub fn open(files: Arc<dyn Files>, options: HistoryOptions) -> (History, HistoryReader) {
    let (history, reader, state) = History::open(files, options, EPOCH).unwrap();
    assert_eq!((state, state), (history.state(), reader.state()));
    (history, reader)
}

/// All units that are held, and the position of the first; `None` for one that is not read back.
pub fn held(reader: &HistoryReader) -> (u64, Vec<Option<Unit>>) {
    let state = reader.state();
    let read = |position| reader.read(position, 1).unwrap().and_then(|mut units| units.pop());
    (state.first, (state.first..state.end).map(read).collect())
}
