//! The text and the name of a published object's root.

use content::{Entry, ManifestBuilder, Profile, Root};
use proptest::prelude::*;

fn root(length: u64, segments: usize) -> Root {
    Root { length, content: [0xab; 32], segments: vec![[0x0f; 32]; segments] }
}

/// Frozen: a node that names an object differently cannot find it. The text is written out by hand;
/// the name is the output of `b3sum --derive-key "hearsay 2026-11 name of a published object"` for
/// it.
#[test]
fn the_text_and_the_name_are_frozen() {
    let text = format!("1;1234;{};{}{}", "ab".repeat(32), "0f".repeat(32), "0f".repeat(32));
    assert_eq!(root(1234, 2).encode(), text);
    assert_eq!(Root::decode(&text), Some(root(1234, 2)));
    assert_eq!(root(1234, 2).name().to_string(), NAME);
}

const NAME: &str = "a899564c4a98d03acd199ebb9af0ac88d1cecd42072befe89d7ab2e8c72f676b";

#[test]
fn another_spelling_is_no_root() {
    let (content, segment) = ("ab".repeat(32), "0f".repeat(32));
    for text in [
        format!("2;1;{content};{segment}"),
        format!("1;01;{content};{segment}"),
        format!("1;+1;{content};{segment}"),
        format!("1;;{content};{segment}"),
        format!("1;18446744073709551616;{content};{segment}"),
        format!("1;1;{content};"),
        format!("1;1;{content};{segment}0"),
        format!("1;1;{content};{segment};"),
        format!("1;1;{content};{}", segment.to_uppercase()),
        format!("1;1;{};{segment}", &content[1..]),
        format!("1;1;{content}"),
        format!("1;1;{content};{}", segment.repeat(Root::SEGMENTS_MAX + 1)),
        String::new(),
    ] {
        assert_eq!(Root::decode(&text), None, "{text}");
    }
    assert!(Root::decode(&root(1, Root::SEGMENTS_MAX).encode()).is_some());
}

proptest! {
    #[test]
    fn any_root_comes_back_under_its_own_name(
        length: u64,
        content: [u8; 32],
        segments in prop::collection::vec(any::<[u8; 32]>(), 1..5),
        at: prop::sample::Index,
        to in "[0-9a-f;]",
    ) {
        let root = Root { length, content, segments };
        let text = root.encode();
        prop_assert_eq!(Root::decode(&text), Some(root.clone()));
        let mut other = text.clone();
        let at = at.index(other.len());
        other.replace_range(at..=at, &to);
        prop_assume!(other != text);
        prop_assert_ne!(Root::name_of(&other), root.name());
        if let Some(decoded) = Root::decode(&other) {
            prop_assert_eq!(decoded.encode(), other);
        }
    }
}

/// Segments are filled exactly to their limit.
#[test]
fn as_many_bytes_as_are_promised_fit() {
    for (sealed, gib) in [(false, 5.5..6.5), (true, 2.75..3.25)] {
        let profile = Profile::DEFAULT;
        let key = sealed.then_some([1; 32]);
        let mut builder = ManifestBuilder::new(profile);
        let entry = Entry { id: content::name(b"x"), length: 8192, parent_end: false, key };
        let listed = std::iter::from_fn(|| Some(builder.push(entry))).take_while(Option::is_none);
        let listed = listed.count();
        assert_eq!(ManifestBuilder::entries_min(profile, sealed), listed);
        let bytes_max = Root::bytes_max(profile, sealed);
        assert!(bytes_max < (listed * 8192 * Root::SEGMENTS_MAX) as u64);
        assert!(gib.contains(&(bytes_max as f64 / f64::from(1 << 30))), "{bytes_max}");
    }
}
