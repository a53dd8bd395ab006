//! Files generated from a seed alone, the same as those of the lab's origin.

use blake3::OutputReader;

/// The purpose under which BLAKE3 derives the key. Changing it changes all files.
const PURPOSE: &str = "hearsay-lab 2026 content of files";

/// Bytes generated or compared at one time.
pub(crate) const BLOCK: usize = 8 * 1024;

/// The bytes of a file from its beginning, without end. They are BLAKE3's output under a key that is derived
/// from seed and file number, so no two files share a chunk.
pub fn stream(seed: u64, file: usize) -> OutputReader {
    blake3::Hasher::new_derive_key(PURPOSE)
        .update(&seed.to_le_bytes())
        .update(&(file as u64).to_le_bytes())
        .finalize_xof()
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
    stream: OutputReader,
    is_right: bool,
}

impl Check {
    /// A check that begins at the file's first byte.
    pub fn new(seed: u64, file: usize) -> Self {
        Self { stream: stream(seed, file), is_right: true }
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
