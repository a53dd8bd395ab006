//! Files generated from a seed alone, the same as those of the lab's origin. They have nothing in common, or each
//! is a version of the one before.

use blake3::OutputReader;

/// The purpose under which BLAKE3 derives the key. Changing it changes all files.
const PURPOSE: &str = "hearsay-lab 2026 content of files";

/// The purpose of the draws that say which pieces of a file are its own.
const CHANGES: &str = "hearsay-lab 2026 changes from file to file";
/// The length of such a piece, in bytes: a block of BLAKE3's output.
const PIECE: u64 = 64;
/// The length of a draw, in bytes.
const DRAW: usize = 8;

/// Bytes generated or compared at one time.
pub(crate) const BLOCK: usize = 8 * 1024;

/// What all files are generated from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Source {
    seed: u64,
    /// A piece of a file is its own if its draw is below this, else that of the file before. `None`: all are.
    own_below: Option<u64>,
}

impl From<u64> for Source {
    /// Files that have nothing in common.
    fn from(seed: u64) -> Self {
        Self { seed, own_below: None }
    }
}

impl Source {
    /// The same, but each file equals the one before except in this share of pieces of 64 bytes; 1 changes all.
    #[must_use]
    pub fn with_changed(self, share: f64) -> Self {
        let below = (share < 1.0).then_some((share * u64::MAX as f64) as u64);
        Self { own_below: below, ..self }
    }

    /// The seed.
    pub fn seed(self) -> u64 {
        self.seed
    }

    fn output(self, purpose: &str, file: usize) -> OutputReader {
        blake3::Hasher::new_derive_key(purpose)
            .update(&self.seed.to_le_bytes())
            .update(&(file as u64).to_le_bytes())
            .finalize_xof()
    }
}

/// The bytes of a file from its beginning, without end. They are BLAKE3's output under a key that is derived
/// from seed and file number, so no two files share a chunk unless one is a version of the other.
pub fn stream(source: impl Into<Source>, file: usize) -> Stream {
    let source = source.into();
    let Some(own_below) = source.own_below else {
        return Stream::Own(source.output(PURPOSE, file));
    };
    let version = |file| Version {
        content: source.output(PURPOSE, file),
        draws: source.output(CHANGES, file),
    };
    Stream::Mixed { own_below, versions: (0..=file).map(version).collect(), at: 0 }
}

/// The bytes of a file, from any place on.
#[derive(Clone, Debug)]
pub enum Stream {
    /// It has nothing in common with others.
    Own(OutputReader),
    /// It is a version of the files before.
    Mixed {
        /// See [`Source`].
        own_below: u64,
        /// All files up to this one.
        versions: Vec<Version>,
        /// The place of the next byte.
        at: u64,
    },
}

/// What a file would be if all its pieces were its own, and which are.
#[derive(Clone, Debug)]
pub struct Version {
    content: OutputReader,
    draws: OutputReader,
}

impl Stream {
    /// The next bytes.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        let (own_below, versions, at) = match self {
            Self::Own(output) => return output.fill(bytes),
            Self::Mixed { own_below, versions, at } => (*own_below, versions, at),
        };
        let mut left = bytes;
        while !left.is_empty() {
            let length = (PIECE - *at % PIECE).min(left.len() as u64);
            let (piece, rest) = left.split_at_mut(length as usize);
            let newest = versions.iter_mut().rposition(|it| it.draw(*at / PIECE) < own_below);
            let content = &mut versions[newest.unwrap_or(0)].content;
            content.set_position(*at);
            content.fill(piece);
            *at += length;
            left = rest;
        }
    }

    /// Goes to a place.
    pub fn set_position(&mut self, place: u64) {
        match self {
            Self::Own(output) => output.set_position(place),
            Self::Mixed { at, .. } => *at = place,
        }
    }
}

impl Version {
    fn draw(&mut self, piece: u64) -> u64 {
        let mut draw = [0; DRAW];
        self.draws.set_position(piece * DRAW as u64);
        self.draws.fill(&mut draw);
        u64::from_le_bytes(draw)
    }
}

/// A file's path at the origin.
pub fn path(file: usize) -> String {
    format!("/file-{}.bin", file + 1)
}

/// The file with this path.
pub fn file(path: &str) -> Option<usize> {
    let number = path.strip_prefix("/file-")?.strip_suffix(".bin")?;
    if number.starts_with(['0', '+']) {
        return None;
    }
    number.parse::<usize>().ok()?.checked_sub(1)
}

/// Compares bytes with those of a file as they arrive.
#[derive(Debug)]
pub struct Check {
    stream: Stream,
    is_right: bool,
}

impl Check {
    /// A check that begins at the file's first byte.
    pub fn new(source: impl Into<Source>, file: usize) -> Self {
        Self { stream: stream(source, file), is_right: true }
    }

    /// Compares the next bytes of what should be the file.
    pub fn take(&mut self, bytes: &[u8]) {
        let mut block = [0; BLOCK];
        for piece in bytes.chunks(BLOCK) {
            if !self.is_right {
                return;
            }
            let expected = &mut block[..piece.len()];
            self.stream.fill(expected);
            self.is_right = expected == piece;
        }
    }

    /// Whether all bytes so far were right.
    pub fn is_right(&self) -> bool {
        self.is_right
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_lead_back_to_their_files() {
        for number in [0, 1, 9, 999] {
            assert_eq!(file(&path(number)), Some(number));
        }
        for path in ["/", "/file-0.bin", "/file-01.bin", "/file-+1.bin", "/file-x.bin", "/file-1"] {
            assert_eq!(file(path), None, "{path}");
        }
    }

    fn bytes(source: Source, file: usize, from: u64, length: usize) -> Vec<u8> {
        let (mut stream, mut bytes) = (stream(source, file), vec![0; length]);
        stream.set_position(from);
        stream.fill(&mut bytes);
        bytes
    }

    #[test]
    fn a_version_differs_in_its_share_of_pieces() {
        let source = Source::from(7).with_changed(0.1);
        let files = [0, 1, 2].map(|file| bytes(source, file, 0, 640_000));
        // 10,000 pieces; three standard deviations are 90.
        let differ =
            |a: &[u8], b: &[u8]| a.chunks(64).zip(b.chunks(64)).filter(|it| it.0 != it.1).count();
        assert!((910..1_090).contains(&differ(&files[0], &files[1])));
        assert!((910..1_090).contains(&differ(&files[1], &files[2])));
        assert!((1_780..2_020).contains(&differ(&files[0], &files[2])));
        // The first is what it is without versions, and any part of a file is the same.
        assert_eq!(files[0], bytes(7.into(), 0, 0, 640_000));
        assert_eq!(files[2][1_000..3_001], bytes(source, 2, 1_000, 2_001));
        assert_eq!(bytes(Source::from(7).with_changed(1.0), 1, 0, 99), bytes(7.into(), 1, 0, 99));
        assert_eq!(bytes(Source::from(7).with_changed(0.0), 1, 0, 99), bytes(7.into(), 0, 0, 99));
    }

    #[test]
    fn a_check_sees_one_wrong_byte_and_takes_any_pieces() {
        let mut bytes = vec![0; 3 * BLOCK + 7];
        stream(3, 4).fill(&mut bytes);
        let check = |bytes: &[u8], piece: usize| {
            let mut check = Check::new(3, 4);
            bytes.chunks(piece).for_each(|piece| check.take(piece));
            check.is_right()
        };
        assert!(check(&bytes, 1) && check(&bytes, 1460) && check(&bytes, bytes.len()));
        let last = bytes.len() - 1;
        bytes[last] ^= 1;
        assert!(!check(&bytes, 1460));
        let mut other = Check::new(3, 5);
        other.take(&bytes[..4]);
        assert!(!other.is_right());
    }
}
