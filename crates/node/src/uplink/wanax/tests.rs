//! Both directions' engines and their caches, without a connection between them: what crosses is compared with the
//! paper's rules, worked out plainly, and whatever goes wrong, content arrives as it was.

mod chaos;
mod ends;
mod hostile;
mod plain;

use ends::Ends;
use plain::Plain;

/// Bytes that do not repeat, different for each seed.
fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    blake3::Hasher::new().update(&seed.to_le_bytes()).finalize_xof().fill(&mut bytes);
    bytes
}

/// The same with a few bytes replaced, put in and left out, about 7,000 bytes apart.
fn changed(old: &[u8], seed: u64) -> Vec<u8> {
    let chance = noise(seed, 3 * (old.len() / 100 + 1));
    let (mut new, mut at) = (Vec::new(), 0);
    for pick in chance.chunks(3) {
        let until = old.len().min(at + 1 + usize::from(u16::from_le_bytes([pick[0], pick[1]])) / 5);
        new.extend_from_slice(&old[at..until]);
        new.extend_from_slice(&pick[..usize::from(pick[2] % 3)]);
        at = old.len().min(until + usize::from(pick[2] / 3 % 2));
    }
    new
}

/// Lines that resemble each other, and a long run of one byte.
fn lines(rows: u32) -> Vec<u8> {
    let mut text: Vec<u8> =
        (0..rows).flat_map(|row| format!("<tr><td>{}\n", row / 7).into_bytes()).collect();
    text.extend_from_slice(&[0; 30_000]);
    text
}

const SCHEMES: [&str; 9] = [
    "mrc-2-32",
    "mrc-4-64",
    "mrc-8-128",
    "mrc-2-4096",
    "mrc-large-8-128",
    "mrc-large-2-64",
    "src-32",
    "src-1024",
    "src-65536",
];

#[test]
fn what_crosses_and_what_is_stored_is_what_the_paper_says() {
    let first = noise(1, 150_000);
    let versions = [
        first.clone(),
        first.clone(),
        changed(&first, 2),
        lines(2000),
        [&lines(1000)[..], &first[50_000..100_000], &lines(3000)].concat(),
        b"less than a window".to_vec(),
        noise(3, 1),
    ];
    for scheme in SCHEMES {
        let scheme = scheme.parse().unwrap();
        let (mut ends, mut plain) = (Ends::new(scheme, 64 << 20, 1 << 20), Plain::new(scheme));
        for (number, version) in versions.iter().enumerate() {
            let before = ends.sent();
            assert!(ends.cross(version) == *version, "{scheme} {number}");
            let sent = ends.sent();
            let expected = plain.cross(version);
            let crossed = [sent[0] - before[0], sent[1] - before[1]];
            assert_eq!(crossed, [expected.names, expected.content], "{scheme}, version {number}");
            let counts = ends.receiver.counts;
            assert_eq!(counts.reads, plain.reads, "{scheme}, version {number}");
            assert_eq!(counts.entries, plain.known.len() as u64, "{scheme}, version {number}");
        }
        assert_eq!(ends.receiver.wrong_hints, 0, "{scheme}");
        assert_eq!(ends.receiver.counts.written, plain.stored, "{scheme}");
    }
}

#[test]
fn a_second_time_one_name_crosses_for_each_root() {
    for scheme in ["mrc-2-32", "mrc-8-128", "mrc-large-8-128"] {
        let mut ends = Ends::new(scheme.parse().unwrap(), 64 << 20, 1 << 20);
        let content = noise(5, 1_000_000);
        ends.cross(&content);
        let before = ends.sent();
        let reads = ends.receiver.counts.reads;
        assert!(ends.cross(&content) == content);
        let [names, bytes] = ends.sent();
        let roots = ends.receiver.counts.reads - reads;
        assert_eq!(bytes, before[1], "{scheme}");
        assert!((5..60).contains(&roots), "{scheme}: {roots}");
        assert!(names - before[0] <= 23 * roots, "a name and a length each: {scheme}");
    }
}

#[test]
fn what_one_end_has_lost_crosses_again_once() {
    let mut ends = Ends::new("mrc-8-128".parse().unwrap(), 64 << 20, 1 << 20);
    let content = noise(7, 500_000);
    ends.cross(&content);
    ends.r_cache.lose();
    assert!(ends.cross(&content) == content);
    let wrong = ends.receiver.wrong_hints;
    assert!(wrong > 0, "S believed that R had it");
    assert!(ends.cross(&content) == content);
    assert_eq!(ends.receiver.wrong_hints, wrong, "and now it has");
}

#[test]
fn a_stale_hint_does_not_count() {
    let mut ends = Ends::new("mrc-8-128".parse().unwrap(), 64 << 20, 1 << 20);
    let content = noise(8, 300_000);
    ends.cross(&content);
    ends.now = ends.now + super::hints::STALE;
    let before = ends.sent()[1];
    assert!(ends.cross(&content) == content);
    assert_eq!(ends.sent()[1] - before, 300_000);
}

#[test]
fn what_pauses_is_not_held_back() {
    let mut ends = Ends::new("mrc-8-128".parse().unwrap(), 64 << 20, 1 << 20);
    let flow = ends.open();
    ends.grant(flow, u64::MAX / 4);
    ends.push(flow, b"a line");
    ends.settle();
    assert!(ends.received(flow).is_empty(), "more may follow at once");
    ends.wait(crate::uplink::sender::PAUSE);
    ends.settle();
    assert_eq!(ends.received(flow), b"a line");
}

#[test]
fn content_of_the_densest_chunks_is_listed_within_bounds() {
    // Two bytes by turns, of which every other ends a chunk of 32 bytes on average.
    let is_end = |pair: &[u8; 2]| {
        let hash = pair.repeat(32).iter().fold(0, |hash, byte| content::roll(hash, *byte));
        hash.leading_zeros() >= 5
    };
    let mut pairs = (0..=255u8).flat_map(|a| (0..=255u8).map(move |b| [a, b]));
    let content = pairs.find(is_end).unwrap().repeat(150_000);
    for scheme in ["src-32", "mrc-2-32"] {
        let mut ends = Ends::new(scheme.parse().unwrap(), 64 << 20, 1 << 20);
        assert!(ends.cross(&content) == content, "{scheme}");
        let [names, _] = ends.sent();
        assert!(names > 21 * 140_000 || scheme != "src-32", "too few names crossed: {names}");
        assert!(ends.cross(&content) == content, "{scheme}");
    }
}
