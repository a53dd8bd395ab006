//! The root of a published object, from which its name follows.
//!
//! *What this is:* [`Root`]: an object's length, the digest of its bytes, and the digests of all
//! segments of its manifest. Its name, the object's [`Oid`], is the hash of its text. *Who calls
//! it:* `node`, which sends it to peers before the first segment; `hearsay get`, which checks a
//! received object against it. *What it never does:* say which nodes hold the object. *Source:* our
//! own (its role is that of DOT's OID); `docs/decisions/0013-put-and-get-by-name.md`.
//!
//! # Text of a root
//!
//! `1;LENGTH;CONTENT;SEGMENTS`: the version; the object's length in bytes, in decimal without
//! leading zeros; BLAKE3 of its bytes; the [`Segment::digest`](crate::Segment::digest) of each
//! segment, in order, without separators. Digests are 64 lower-case hexadecimal digits. It is a
//! text because it is sent and stored as a header field of the object. Every root has exactly one
//! text, and the decoder accepts no other.

use crate::{ManifestBuilder, Profile};
use std::fmt::Write as _;
use wire::Oid;

/// The root of a published object; see the module's documentation.
///
/// ```
/// use content::{ManifestBuilder, Profile, Root, Segment};
///
/// let empty = ManifestBuilder::new(Profile::DEFAULT).close();
/// let root = Root {
///     length: 0,
///     content: Root::digest(b""),
///     segments: vec![Segment::digest(&empty.encode())],
/// };
/// assert_eq!(Root::decode(&root.encode()), Some(root.clone()));
/// assert_eq!(Root::name_of(&root.encode()), root.name());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Root {
    /// The object's length in bytes.
    pub length: u64,
    /// BLAKE3 of the object's bytes.
    pub content: [u8; 32],
    /// The digest of each segment of its manifest: 1 to [`Root::SEGMENTS_MAX`].
    pub segments: Vec<[u8; 32]>,
}

const VERSION: &str = "1";
const NAME_CONTEXT: &str = "hearsay 2026-11 name of a published object";

impl Root {
    /// The greatest number of segments, so that a root fits into one message between peers.
    pub const SEGMENTS_MAX: usize = 900;

    /// The length in bytes of an object that is sure to fit into this number of segments: about 6
    /// GiB, half of that if sealed. A sixteenth is subtracted for content whose units are shorter
    /// than the profile's average.
    pub fn bytes_max(profile: &Profile, sealed: bool) -> u64 {
        let units = Self::SEGMENTS_MAX * ManifestBuilder::entries_min(profile, sealed);
        units as u64 * u64::from(profile.unit.average) / 16 * 15
    }

    /// The digest of an object's bytes, for a caller that has all of them in memory.
    pub fn digest(bytes: &[u8]) -> [u8; 32] {
        *blake3::hash(bytes).as_bytes()
    }

    /// The object's name.
    pub fn name(&self) -> Oid {
        Self::name_of(&self.encode())
    }

    /// The name of the root with this text.
    pub fn name_of(text: &str) -> Oid {
        Oid(blake3::derive_key(NAME_CONTEXT, text.as_bytes()))
    }

    /// Its text.
    pub fn encode(&self) -> String {
        let mut text = format!("{VERSION};{};", self.length);
        push_hex(&mut text, &self.content);
        text.push(';');
        self.segments.iter().for_each(|segment| push_hex(&mut text, segment));
        text
    }

    /// Decodes the result of [`encode`](Self::encode); `None` for any other text.
    pub fn decode(text: &str) -> Option<Self> {
        let mut fields = text.split(';');
        if fields.next()? != VERSION {
            return None;
        }
        let length = fields.next()?;
        let (content, segments) = (fields.next()?, fields.next()?);
        let is_plain = fields.next().is_none()
            && length.bytes().all(|byte| byte.is_ascii_digit())
            && (length == "0" || !length.starts_with('0'));
        let count = segments.len() / 64;
        if !is_plain || count == 0 || count > Self::SEGMENTS_MAX {
            return None;
        }
        let (digests, []) = segments.as_bytes().as_chunks::<64>() else { return None };
        Some(Self {
            length: length.parse().ok()?,
            content: read_hex(content.as_bytes().try_into().ok()?)?,
            segments: digests.iter().map(read_hex).collect::<Option<_>>()?,
        })
    }
}

fn push_hex(text: &mut String, digest: &[u8; 32]) {
    for byte in digest {
        let _ = write!(text, "{byte:02x}");
    }
}

fn read_hex(digits: &[u8; 64]) -> Option<[u8; 32]> {
    let mut digest = [0; 32];
    let (pairs, _) = digits.as_chunks::<2>();
    for (byte, [high, low]) in digest.iter_mut().zip(pairs) {
        *byte = value(*high)? << 4 | value(*low)?;
    }
    Some(digest)
}

fn value(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}
