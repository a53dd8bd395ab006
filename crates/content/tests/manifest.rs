//! Manifests: their encoding, invalid ones, and their sizes.

use content::{
    ChunkId, Closing, Cutter, Entry, ManifestBuilder, ManifestError, Profile, SEGMENT_MAX, Segment,
    name,
};
use proptest::prelude::*;

fn entry(byte: u8, length: u32) -> Entry {
    Entry { id: ChunkId([byte; 32]), length, parent_end: false, key: None }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// All segments of an object with these entries.
fn build(entries: impl IntoIterator<Item = Entry>) -> Vec<Segment> {
    let mut builder = ManifestBuilder::new(Profile::DEFAULT);
    let mut segments: Vec<Segment> =
        entries.into_iter().filter_map(|entry| builder.push(entry)).collect();
    segments.push(builder.close());
    segments
}

/// A segment from the middle of a manifest, to be modified.
fn middle() -> Segment {
    Segment {
        profile: Profile::DEFAULT,
        number: 3,
        first_offset: 100_000,
        first_unit: 12,
        previous: [0x11; 32],
        entries: vec![
            Entry { parent_end: true, ..entry(0x22, 8_192) },
            Entry { key: Some([0x44; 32]), ..entry(0x33, 5) },
        ],
        closing: Some(Closing { length: 108_197, units: 14 }),
    }
}

#[test]
fn the_bytes_of_a_segment_are_frozen() {
    let expected = [
        "48534d46",       // HSMF
        "010101",         // version, profile, closing
        "03",             // number
        "a08d06",         // first offset: 100 000
        "0c",             // first unit
        &"11".repeat(32), // previous
        "02",             // two entries
        &"22".repeat(32), // a unit of
        "818002",         // 8 192 bytes in clear, ending a parent
        &"33".repeat(32), // a unit of
        "16",             // 5 bytes, keyed
        &"44".repeat(32), // its key
        "a5cd06",         // length: 108 197
        "0e",             // units
    ];
    let encoded = middle().encode();
    assert_eq!(hex(&encoded), expected.concat());
    assert_eq!(Segment::decode(&encoded), Ok(middle()));
    let digest = "9b4060f059e2cb879cf7c18f1ff6c45e44373e6b8832773017eabef5cc9e6226";
    assert_eq!(hex(&Segment::digest(&encoded)), digest);
}

#[test]
fn an_empty_object_has_a_manifest() {
    let segments = build([]);
    assert_eq!(segments.len(), 1);
    assert_eq!(segments[0].closing, Some(Closing { length: 0, units: 0 }));
    assert_eq!(Segment::decode(&segments[0].encode()), Ok(segments[0].clone()));
}

#[test]
fn what_is_no_segment_is_refused() {
    let with = |change: &dyn Fn(&mut Segment)| {
        let mut segment = middle();
        change(&mut segment);
        Segment::decode(&segment.encode()).map(|_| ())
    };
    assert_eq!(with(&|_| ()), Ok(()));
    assert_eq!(with(&|it| it.entries[0].length = 0), Err(ManifestError::Length(0)));
    assert_eq!(with(&|it| it.entries[1].length = 16_385), Err(ManifestError::Length(16_385)));
    assert_eq!(with(&|it| it.previous = [0; 32]), Err(ManifestError::Position));
    assert_eq!(with(&|it| it.number = 0), Err(ManifestError::Position));
    assert_eq!(with(&|it| it.number = 13), Err(ManifestError::Position), "empty segments before");
    assert_eq!(
        with(&|it| it.first_offset = 11),
        Err(ManifestError::Position),
        "empty units before"
    );
    assert_eq!(with(&|it| it.first_offset = 12 * 16_384 + 1), Err(ManifestError::Position));
    assert_eq!(with(&|it| it.first_unit = u64::MAX - 1), Err(ManifestError::Position));
    assert_eq!(
        with(&|it| it.closing = Some(Closing { length: 1, units: 14 })),
        Err(ManifestError::Totals)
    );
    assert_eq!(
        with(&|it| it.closing = Some(Closing { length: 108_197, units: 2 })),
        Err(ManifestError::Totals)
    );
    let empty = |it: &mut Segment| (it.entries, it.closing) = (Vec::new(), None);
    assert_eq!(with(&empty), Err(ManifestError::Empty));
}

#[test]
fn bytes_that_are_no_segment_are_refused() {
    let good = middle().encode();
    let with = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = good.clone();
        change(&mut bytes);
        Segment::decode(&bytes).map(|_| ())
    };
    assert_eq!(with(&|it| it[0] = b'X'), Err(ManifestError::Magic));
    assert_eq!(with(&|it| it[4] = 2), Err(ManifestError::Version(2)));
    assert_eq!(with(&|it| it[5] = 0), Err(ManifestError::Profile(0)));
    assert_eq!(with(&|it| it[6] = 3), Err(ManifestError::Flags(3)));
    assert_eq!(with(&|it| it.push(0)), Err(ManifestError::Trailing(1)));
    assert_eq!(
        with(&|it| it.resize(SEGMENT_MAX + 1, 0)),
        Err(ManifestError::TooLong(SEGMENT_MAX + 1))
    );
    assert_eq!(
        with(&|it| {
            it.splice(7..8, [0x83, 0x00]);
        }),
        Err(ManifestError::Number),
        "3 in two bytes"
    );
    assert_eq!(with(&|it| it[44] = 0x7f), Err(ManifestError::Truncated), "more entries than bytes");
    for length in 0..good.len() {
        assert!(Segment::decode(&good[..length]).is_err(), "cut short at {length}");
    }
}

#[test]
fn segments_form_one_chain() {
    let segments = build((0..3_000).map(|number| entry(number as u8, 8_192)));
    assert_eq!(segments.len(), 4);
    for pair in segments.windows(2) {
        assert_eq!(pair[1].follows(&pair[0]), Ok(()));
        assert_eq!(pair[0].follows(&pair[1]), Err(ManifestError::Chain));
        let other = Segment { profile: Profile::DEFAULT, previous: [9; 32], ..pair[1].clone() };
        assert_eq!(other.follows(&pair[0]), Err(ManifestError::Chain));
    }
    assert_eq!(segments[2].follows(&segments[0]), Err(ManifestError::Chain));
    let last = &segments[3];
    assert_eq!(last.closing, Some(Closing { length: 3_000 * 8_192, units: 3_000 }));
}

#[test]
fn what_waits_can_be_flushed() {
    let mut builder = ManifestBuilder::new(Profile::DEFAULT);
    assert_eq!(builder.flush(), None);
    assert_eq!(builder.push(entry(1, 5_000)), None);
    let first = builder.flush().expect("there is an entry");
    assert_eq!(builder.flush(), None, "nothing new");
    let last = builder.close();
    assert_eq!(last.follows(&first), Ok(()));
    assert_eq!((last.entries.len(), last.closing), (0, Some(Closing { length: 5_000, units: 1 })));
    assert_eq!(Segment::decode(&last.encode()), Ok(last));
}

/// The high bytes of a linear congruential generator: content without structure.
fn noise(length: usize) -> Vec<u8> {
    let mut state = 1_u64;
    let step = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    std::iter::repeat_with(step).take(length).collect()
}

/// The length of the manifest of `object` in bytes, with keys for all entries or for none.
fn manifest_bytes(object: &[u8], key: Option<[u8; 32]>) -> usize {
    let mut cutter = Cutter::new(Profile::DEFAULT);
    let (mut rest, mut entries) = (object, Vec::new());
    while let Some(cut) = cutter.cut(rest).or_else(|| cutter.finish()) {
        let length = if cut.consumed == 0 { rest.len() } else { cut.consumed };
        let (unit, after) = rest.split_at(length);
        let parent_end = cut.parent_end;
        entries.push(Entry { id: name(unit), length: cut.length, parent_end, key });
        rest = after;
    }
    build(entries).iter().map(|segment| segment.encode().len()).sum()
}

#[test]
fn manifests_stay_below_one_per_cent() {
    for length in [128 * 1024, 1 << 20, 16 << 20] {
        let object = noise(length);
        assert!(manifest_bytes(&object, None) * 100 < length, "{length} bytes in clear");
        assert!(manifest_bytes(&object, Some([7; 32])) * 100 < length, "{length} bytes sealed");
    }
    // The worst case for the list's size: all units have the minimum length, without keys.
    let units = (0..10_000).map(|_| entry(1, Profile::DEFAULT.unit.minimum));
    let bytes: usize = build(units).iter().map(|segment| segment.encode().len()).sum();
    assert!(bytes * 100 < 10_000 * Profile::DEFAULT.unit.minimum as usize);
}

fn any_entry() -> impl Strategy<Value = Entry> {
    let length = 1..=Profile::DEFAULT.unit.maximum;
    (any::<[u8; 32]>(), length, any::<bool>(), any::<Option<[u8; 32]>>()).prop_map(
        |(id, length, parent_end, key)| Entry { id: ChunkId(id), length, parent_end, key },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn segments_decode_to_themselves(entries in prop::collection::vec(any_entry(), 0..1_500)) {
        let segments = build(entries.iter().copied());
        for segment in &segments {
            let encoded = segment.encode();
            prop_assert!(encoded.len() <= SEGMENT_MAX);
            prop_assert_eq!(&Segment::decode(&encoded), &Ok(segment.clone()));
        }
        let decoded: Vec<Entry> = segments.into_iter().flat_map(|it| it.entries).collect();
        prop_assert_eq!(decoded, entries);
    }

    #[test]
    fn whatever_decodes_has_no_other_bytes(
        entries in prop::collection::vec(any_entry(), 0..4),
        spoilt in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..3),
        noise in prop::collection::vec(any::<u8>(), 0..100),
    ) {
        let mut bytes = build(entries)[0].encode();
        for (place, byte) in spoilt {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        for bytes in [bytes, noise] {
            if let Ok(segment) = Segment::decode(&bytes) {
                prop_assert_eq!(segment.encode(), bytes);
            }
        }
    }
}
