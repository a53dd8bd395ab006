//! Properties of boundaries, and their frozen vectors.

use std::fmt::Write;

use proptest::prelude::*;

use super::*;
use crate::boundary::reference::{self, Chunk};
use crate::name::{name, names, parent_name};
use crate::tree::Tree;
use wire::ChunkId;

/// xorshift64* (Vigna, 2016), with each word's lowest byte first: the data of the vectors.
fn random_bytes(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed;
    let words = std::iter::repeat_with(|| {
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        state.wrapping_mul(0x2545_f491_4f6c_dd1d)
    });
    words.flat_map(u64::to_le_bytes).take(length).collect()
}

/// Cuts `object`, given in portions of these lengths, which are repeated.
fn cut_in_portions(object: &[u8], level: Level, parent: Level, portions: &[usize]) -> Vec<Chunk> {
    let mut cutter = Cutter::of_levels(level, parent);
    let (mut chunks, mut start, mut portions) = (Vec::new(), 0, portions.iter().cycle());
    let mut chunk = |cut: Cut, hash| {
        let end = chunks.last().map_or(0, |chunk: &Chunk| chunk.end) + cut.length as usize;
        chunks.push(Chunk { end, hash, parent_end: cut.parent_end });
    };
    while start < object.len() {
        let portion = *portions.next().unwrap_or(&object.len());
        let end = object.len().min(start + portion);
        while let Some(cut) = cutter.cut(&object[start..end]) {
            start += cut.consumed;
            chunk(cut, cutter.hash);
        }
        start = end;
    }
    let hash = cutter.hash;
    if let Some(cut) = cutter.finish() {
        chunk(cut, hash);
    }
    chunks
}

fn cut_at_once(object: &[u8]) -> Vec<Chunk> {
    cut_in_portions(object, Profile::DEFAULT.unit, Profile::DEFAULT.parent, &[usize::MAX >> 1])
}

/// The ends of chunks and parents, on which both chunkers must agree. (If an object ends with a
/// match, the fast chunker cannot know that the parent ends there as well.)
fn ends(chunks: &[Chunk], length: usize) -> Vec<(usize, bool)> {
    chunks.iter().map(|chunk| (chunk.end, chunk.parent_end || chunk.end == length)).collect()
}

/// Typical content: runs of noise, of one byte, and of a repeated phrase.
fn content(longest_stretch: usize) -> impl Strategy<Value = Vec<u8>> {
    let stretch = (0..4_u8, any::<u64>(), 1..longest_stretch).prop_map(|(kind, seed, length)| {
        let noise = random_bytes(seed | 1, length);
        match kind {
            0 | 1 => noise,
            2 => vec![seed as u8; length],
            _ => noise.iter().take(1 + seed as usize % 100).copied().cycle().take(length).collect(),
        }
    });
    prop::collection::vec(stretch, 0..6).prop_map(|stretches| stretches.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn fast_and_slow_agree(object in content(30_000)) {
        prop_assert_eq!(
            ends(&cut_at_once(&object), object.len()),
            ends(&reference::units(&object), object.len()),
        );
    }

    #[test]
    fn fast_and_slow_agree_inside_a_unit(unit in content(3_000)) {
        let tree = Tree::new(Profile::DEFAULT, &unit);
        let expected = reference::grains(&unit);
        let grains: Vec<usize> = tree.grains().map(|grain| grain.end).collect();
        let pieces: Vec<usize> = tree.pieces().map(|piece| piece.end).collect();
        let all = expected.iter().map(|grain| grain.end);
        let outer = expected.iter().filter(|grain| grain.parent_end).map(|grain| grain.end);
        prop_assert_eq!(grains, all.collect::<Vec<_>>());
        prop_assert_eq!(pieces, outer.collect::<Vec<_>>());
    }

    #[test]
    fn how_the_input_was_split_does_not_matter(
        object in content(60_000),
        portions in prop::collection::vec(1..20_000_usize, 1..8),
    ) {
        let (unit, parent) = (Profile::DEFAULT.unit, Profile::DEFAULT.parent);
        let portioned = cut_in_portions(&object, unit, parent, &portions);
        prop_assert_eq!(portioned, cut_at_once(&object));
    }

    #[test]
    fn units_are_the_object_and_keep_to_their_sizes(object in content(60_000)) {
        let (unit, parent) = (Profile::DEFAULT.unit, Profile::DEFAULT.parent);
        let chunks = cut_at_once(&object);
        prop_assert_eq!(chunks.last().map_or(0, |chunk| chunk.end), object.len());
        let (mut start, mut parent_start) = (0, 0);
        for chunk in &chunks {
            let last = chunk.end == object.len();
            let length = (chunk.end - start) as u32;
            prop_assert!(length <= unit.maximum && (last || length >= unit.minimum));
            start = chunk.end;
            if chunk.parent_end {
                let length = (chunk.end - parent_start) as u32;
                prop_assert!(length <= parent.maximum && (last || length >= parent.minimum));
                parent_start = chunk.end;
            }
        }
        prop_assert!((object.len() - parent_start) as u32 <= parent.maximum);
    }

    #[test]
    fn the_tree_is_the_unit_and_nests(unit in content(3_000)) {
        let tree = Tree::new(Profile::DEFAULT, &unit);
        let grains: Vec<_> = tree.grains().collect();
        let within: Vec<_> = tree.pieces().flat_map(|piece| tree.grains_of(piece)).collect();
        prop_assert_eq!(&grains, &within, "each grain is in one piece");
        let joined: Vec<u8> = grains.iter().flat_map(|grain| &unit[grain.clone()]).copied().collect();
        prop_assert_eq!(joined, &unit[..]);
        for (range, level) in tree.pieces().map(|piece| (piece, Profile::DEFAULT.piece))
            .chain(grains.iter().map(|grain| (grain.clone(), Profile::DEFAULT.grain)))
        {
            let (length, last) = (range.len() as u32, range.end == unit.len());
            prop_assert!(length <= level.maximum && (last || length >= level.minimum));
        }
    }
}

#[test]
fn runs_of_any_byte_are_cut_at_the_maximum() {
    let every = |chunks: &[Chunk], length: usize| {
        chunks.iter().enumerate().all(|(number, chunk)| chunk.end == (number + 1) * length)
    };
    for byte in 0..=255 {
        let run = vec![byte; 256 * 1024];
        let units = cut_at_once(&run);
        assert!(every(&units, 16 * 1024), "units of {byte:#04x}");
        let parents: Vec<bool> = units.iter().map(|unit| unit.parent_end).collect();
        assert_eq!(parents, [[false; 15].as_slice(), &[true]].concat(), "one parent, full");
        let tree = Tree::new(Profile::DEFAULT, &run[..16 * 1024]);
        assert!(tree.grains().all(|grain| grain.len() == 512), "grains of {byte:#04x}");
        assert!(tree.pieces().all(|piece| piece.len() == 4096), "pieces of {byte:#04x}");
    }
}

#[test]
fn nothing_has_no_units() {
    let mut cutter = Cutter::new(Profile::DEFAULT);
    assert_eq!(cutter.cut(&[]), None);
    assert_eq!(cutter.finish(), None);
    assert_eq!(Tree::new(Profile::DEFAULT, &[]).grains().count(), 0);
}

#[test]
fn a_finished_cutter_begins_anew() {
    let object = random_bytes(5, 100_000);
    let mut cutter = Cutter::new(Profile::DEFAULT);
    let first = cutter.cut(&object);
    cutter.cut(&object[50_000..]);
    cutter.finish();
    assert_eq!(cutter.cut(&object), first);
}

/// The lengths and names of an object's chunks at one level.
type Listing = Vec<(usize, ChunkId)>;

/// Parents, units, pieces and grains, with `units` and `grains` to cut them.
fn levels(
    object: &[u8],
    units: impl Fn(&[u8]) -> Vec<usize>,
    parent_ends: &[usize],
    tree: impl Fn(&[u8]) -> (Vec<usize>, Vec<usize>),
) -> [Listing; 4] {
    let [mut parents, mut all, mut pieces, mut grains] = [const { Vec::new() }; 4];
    let (mut start, mut parent_start, mut family) = (0, 0, Vec::new());
    for end in units(object) {
        let unit = &object[start..end];
        let id = name(unit);
        all.push((unit.len(), id));
        family.push(id);
        let (piece_ends, grain_ends) = tree(unit);
        list(unit, &piece_ends, &mut pieces);
        list(unit, &grain_ends, &mut grains);
        start = end;
        if parent_ends.contains(&end) || end == object.len() {
            parents.push((end - parent_start, parent_name(&family)));
            family.clear();
            parent_start = end;
        }
    }
    [parents, all, pieces, grains]
}

/// Appends the parts of `bytes` that end at `ends`, with their names.
fn list(bytes: &[u8], ends: &[usize], listing: &mut Listing) {
    let starts = std::iter::once(&0).chain(ends);
    let parts: Vec<&[u8]> = starts.zip(ends).map(|(&start, &end)| &bytes[start..end]).collect();
    let mut ids = Vec::new();
    names(&parts, &mut ids);
    listing.extend(parts.iter().map(|part| part.len()).zip(ids));
}

fn fast_levels(object: &[u8]) -> [Listing; 4] {
    let chunks = cut_at_once(object);
    let parent_ends = ends_where(&chunks, |chunk| chunk.parent_end);
    let tree = |unit: &[u8]| {
        let tree = Tree::new(Profile::DEFAULT, unit);
        (tree.pieces().map(|piece| piece.end).collect(), tree.grains().map(|it| it.end).collect())
    };
    levels(object, |_| ends_where(&chunks, |_| true), &parent_ends, tree)
}

fn slow_levels(object: &[u8]) -> [Listing; 4] {
    let chunks = reference::units(object);
    let parent_ends = ends_where(&chunks, |chunk| chunk.parent_end);
    let tree = |unit: &[u8]| {
        let grains = reference::grains(unit);
        (ends_where(&grains, |grain| grain.parent_end), ends_where(&grains, |_| true))
    };
    levels(object, |_| ends_where(&chunks, |_| true), &parent_ends, tree)
}

fn ends_where(chunks: &[Chunk], keep: impl Fn(&Chunk) -> bool) -> Vec<usize> {
    chunks.iter().filter(|chunk| keep(chunk)).map(|chunk| chunk.end).collect()
}

/// The text of `frozen.txt`: the first units one by one, then a digest of each level.
fn describe(chunks: &[Chunk], [parents, units, pieces, grains]: [Listing; 4]) -> String {
    let mut text = String::new();
    for (chunk, (length, id)) in chunks.iter().zip(&units).take(128) {
        let mark = if chunk.parent_end { "parent ends" } else { "-" };
        writeln!(text, "{length} {:016x} {id} {mark}", chunk.hash).expect("a string takes text");
    }
    let levels = [("parents", parents), ("units", units), ("pieces", pieces), ("grains", grains)];
    for (level, listing) in levels {
        let lines: String = listing.iter().map(|(length, id)| format!("{length} {id}\n")).collect();
        let digest = name(lines.as_bytes());
        writeln!(text, "{level} {} {digest}", listing.len()).expect("a string takes text");
    }
    text
}

const FROZEN: &str = include_str!("frozen.txt");
const FROZEN_SEED: u64 = 0x6865_6172_7361_7921;
const FROZEN_BYTES: usize = 8 << 20;

#[test]
fn the_vectors_are_those_of_the_slow_chunker() {
    let object = random_bytes(FROZEN_SEED, FROZEN_BYTES);
    let text = describe(&reference::units(&object), slow_levels(&object));
    assert_eq!(text, FROZEN, "the vectors must not change: was the profile changed?\n{text}");
}

#[test]
fn the_vectors_hold() {
    let object = random_bytes(FROZEN_SEED, FROZEN_BYTES);
    assert_eq!(describe(&cut_at_once(&object), fast_levels(&object)), FROZEN);
}

#[test]
fn averages_are_what_the_profile_says() {
    let object = random_bytes(7, 24 << 20);
    let Profile { parent, unit, piece, grain, .. } = *Profile::DEFAULT;
    for (level, listing) in [parent, unit, piece, grain].iter().zip(fast_levels(&object)) {
        let average = (object.len() / listing.len()) as u32;
        let off = average.abs_diff(level.average);
        assert!(off <= level.average / 20, "{average} instead of {} bytes", level.average);
    }
}

/// The same for the units and parents of the coarse profile.
#[test]
fn averages_of_coarse_chunks_are_what_their_profile_says() {
    let object = random_bytes(7, 24 << 20);
    let Profile { parent, unit, .. } = *Profile::COARSE;
    let chunks = cut_in_portions(&object, unit, parent, &[usize::MAX >> 1]);
    let parents = chunks.iter().filter(|chunk| chunk.parent_end).count();
    for (level, count) in [(unit, chunks.len()), (parent, parents)] {
        let average = (object.len() / count) as u32;
        let off = average.abs_diff(level.average);
        assert!(off <= level.average / 10, "{average} instead of {} bytes", level.average);
    }
    assert_eq!(Profile::from_id(Profile::COARSE.id), Some(Profile::COARSE));
}

#[test]
fn a_change_of_one_byte_changes_few_chunks() {
    let mut changed = [0; 4];
    const EDITS: usize = 40;
    for edit in 0..EDITS {
        let mut object = random_bytes(1 + edit as u64, 400_000);
        let before = fast_levels(&object);
        object[200_000 + 31 * edit] ^= 0x80;
        for ((count, before), after) in changed.iter_mut().zip(&before).zip(fast_levels(&object)) {
            *count += after.iter().filter(|chunk| !before.contains(chunk)).count();
        }
    }
    // The chunk itself, and sometimes the next ones until both divisions agree again; at a finer
    // level they may agree only at the end of the unit.
    for (count, most) in changed.iter().zip([2, 2, 3, 5]) {
        assert!(*count >= EDITS && *count <= EDITS * most, "{changed:?} in {EDITS} edits");
    }
}
