//! Damaged segment files.

use std::path::Path;
use std::sync::Arc;

use proptest::prelude::*;
use store::{Files, Index, Log, LogOptions, Memory, Policy, Unit};

use crate::common::segment::open_segment;
use crate::common::unit;

const CORPUS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../fuzz/corpus/segment_recover");
const FILE: &str = "00000001.segment";
/// The salt that a seed of zero yields for the first segment does not matter: a copy keeps it.
const OPTIONS: LogOptions = LogOptions { segment_bytes: None, seed: 0 };

fn units() -> Vec<Unit> {
    (0..6).map(|n| unit(n, 20 + n as usize * 37)).collect()
}

/// A segment with six units, as a crash leaves it and as an orderly end does.
fn segments() -> [Vec<u8>; 2] {
    let memory = Memory::new();
    let mut index = Index::new(4 << 20, Policy::Lru);
    let (mut log, _) = Log::open(Arc::new(memory.clone()), OPTIONS, &mut index).unwrap();
    log.append(&units()).unwrap();
    log.sync().unwrap();
    let open = memory.bytes_of(FILE).unwrap();
    drop(log);
    [open, memory.bytes_of(FILE).unwrap()]
}

/// The number of the six units that are read back. None may be wrong.
fn found_in(bytes: Vec<u8>) -> (usize, store::Recovery) {
    let memory = Memory::new();
    memory.put("hearsay-store", b"hearsay-store 1\n".to_vec());
    memory.put(FILE, bytes);
    let files: Arc<dyn Files> = Arc::new(memory);
    let mut index = Index::new(4 << 20, Policy::Lru);
    let (log, recovery) = Log::open(files, OPTIONS, &mut index).unwrap();
    let is_found = |unit: &&Unit| {
        let length = [unit.bytes.len() as u32];
        let mut found = index.locate(&unit.id).filter_map(|at| log.reader().read(at, &length).ok());
        found.any(|found| found[0] == (unit.id, unit.bytes.clone()))
    };
    (units().iter().filter(is_found).count(), recovery)
}

#[test]
fn a_bad_unit_costs_no_other() {
    let [open, closed] = segments();
    assert_eq!(found_in(open.clone()).0, 6);
    assert_eq!(found_in(closed.clone()).0, 6);
    let whole = found_in(closed.clone()).1;
    assert_eq!((whole.units, whole.walked_segments, whole.dropped_bytes), (6, 0, 0));
    // Damage to the first unit's header, to its bytes, and to the segment's header.
    for at in [32 + 9, 32 + 50, 3] {
        let mut bytes = open.clone();
        bytes[at] ^= 4;
        let (found, recovery) = found_in(bytes);
        assert!(found == if at < 32 { 6 } else { 5 }, "{at}: {found}");
        assert_eq!(recovery.walked_segments, 1);
    }
}

#[test]
fn a_footer_that_lies_is_not_believed() {
    let [_, closed] = segments();
    for at in (closed.len() - 6 * 40 - 32)..closed.len() {
        let mut bytes = closed.clone();
        bytes[at] ^= 1;
        assert_eq!(found_in(bytes).0, 6, "{at}");
    }
}

#[test]
fn a_unit_that_looks_like_a_segment_is_still_a_unit() {
    let [_, closed] = segments();
    let memory = Memory::new();
    let files: Arc<dyn Files> = Arc::new(memory.clone());
    let (mut index, seed) = (Index::new(4 << 20, Policy::Lru), 99);
    let options = LogOptions { seed, ..OPTIONS };
    let (mut log, _) = Log::open(files, options, &mut index).unwrap();
    // A unit whose bytes are a whole footer for the very segment that it is written to. Only the
    // salt differs.
    let tail = closed[closed.len() - 6 * 40 - 32..].to_vec();
    let posing = Unit { bytes: tail.into(), ..unit(50, 0) };
    log.append(&[unit(51, 100), posing.clone()]).unwrap();
    log.sync().unwrap();
    let copy = Memory::new();
    copy.put(FILE, memory.bytes_of(FILE).unwrap());
    let mut index = Index::new(4 << 20, Policy::Lru);
    let (_, recovery) = Log::open(Arc::new(copy), options, &mut index).unwrap();
    assert_eq!((recovery.units, recovery.walked_segments), (2, 1));
    assert!(index.holds(&posing.id));
}

#[test]
fn the_corpus_of_the_fuzzer_passes() {
    let mut files = 0;
    for file in std::fs::read_dir(CORPUS).unwrap() {
        open_segment(&std::fs::read(file.unwrap().path()).unwrap());
        files += 1;
    }
    assert!(files >= 6, "{files}");
}

/// Run by hand when the format changes: `cargo test -p store-tests recover:: -- --ignored`.
#[test]
#[ignore = "writes the committed corpus"]
fn write_the_corpus() {
    let [open, closed] = segments();
    let mut torn = open.clone();
    torn[300..420].fill(0);
    let mut lying = closed.clone();
    let trailer = lying.len() - 32;
    lying[trailer + 16] = 0xff;
    let cases = [
        ("open", open.clone()),
        ("closed", closed),
        ("torn", torn),
        ("lying-footer", lying),
        ("cut", open[..open.len() - 20].to_vec()),
        ("header-only", open[..32].to_vec()),
        ("empty", Vec::new()),
    ];
    for (name, bytes) in cases {
        std::fs::write(Path::new(CORPUS).join(name), bytes).unwrap();
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..Default::default() })]

    #[test]
    fn arbitrary_bytes_do_no_harm(bytes in proptest::collection::vec(any::<u8>(), 0..3000)) {
        open_segment(&bytes);
    }

    #[test]
    fn arbitrary_damage_costs_only_what_it_hits(
        is_closed: bool,
        damage in proptest::collection::vec((0..2000usize, 1..=255u8), 0..12),
        length in 0..2500usize,
    ) {
        let mut bytes = segments()[usize::from(is_closed)].clone();
        for (at, with) in damage {
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= with;
            }
        }
        bytes.truncate(length);
        open_segment(&bytes);
        found_in(bytes);
    }
}
