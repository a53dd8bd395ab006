//! A circular log: the newest bytes that were written, up to a budget.
//!
//! *What this is:* one file that is written from its beginning to its end, and then from its beginning again. Each
//! write has a *position*, which counts from 0 on and never repeats. *Who calls it:* the uplink's published schemes,
//! for chunks that have crossed (Wanax §5 has HashCache in this place). *What it never does:* know what the bytes are,
//! or where something begins: its caller keeps positions and lengths. *What survives a crash:* nothing; a ring begins
//! empty.
//!
//! Bytes are enciphered with the key that it is given, so that what is left of them after the end of the process says
//! nothing to anyone who does not have it.

use std::io::{self, IoSlice};
use std::sync::Arc;

use bytes::Bytes;
use chacha20::ChaCha20;
use chacha20::cipher::{KeyIvInit as _, StreamCipher as _, StreamCipherSeek as _};

use crate::files::{File, read_exact};

/// A circular log; see the module's documentation.
#[derive(Debug)]
pub struct Ring {
    file: Arc<dyn File>,
    /// Of the file at most.
    bytes: u64,
    key: Key,
    /// The position of the next write at the least.
    end: u64,
}

impl Ring {
    /// An empty ring of at most this many bytes in a file, whose content is lost. `key` must be random, and for this
    /// ring alone.
    ///
    /// # Errors
    /// If the file cannot be truncated.
    pub fn new(file: Arc<dyn File>, bytes: u64, key: [u8; 32]) -> io::Result<Self> {
        file.set_len(0)?;
        Ok(Self { file, bytes, key: Key(key), end: 0 })
    }

    /// What lies before this position was overwritten.
    pub fn first(&self) -> u64 {
        self.end.saturating_sub(self.bytes)
    }

    /// Writes chunks one after another with one call, and returns the position of the first. They lie together: if
    /// there is no room before the end of the file, they begin anew at its beginning.
    ///
    /// # Errors
    /// If they exceed the budget, or the disk fails; then nothing of them is kept, and what they would have overwritten
    /// is lost.
    pub fn append(&mut self, chunks: &[Bytes]) -> io::Result<u64> {
        let length: u64 = chunks.iter().map(|chunk| chunk.len() as u64).sum();
        if length > self.bytes {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let offset = self.end % self.bytes.max(1);
        let rest = self.bytes - offset;
        let position = if length > rest { self.end + rest } else { self.end };
        self.end = position + length;
        let mut sealed = Vec::with_capacity(length as usize);
        for chunk in chunks {
            let (at, start) = (position + sealed.len() as u64, sealed.len());
            sealed.extend_from_slice(chunk);
            self.key.apply(at, &mut sealed[start..]);
        }
        let offset = position % self.bytes.max(1);
        self.file.write_at(offset, &mut [IoSlice::new(&sealed)])?;
        Ok(position)
    }

    /// Reads a chunk that was written at this position, or a part of it from `skipped` bytes on, with one call. `None`
    /// if it was overwritten or cannot be read. The caller checks that it is what it wanted.
    pub fn read(&self, position: u64, skipped: u32, length: u32) -> Option<Bytes> {
        let from = position.checked_add(skipped.into())?;
        let is_held = from >= self.first() && from.checked_add(length.into())? <= self.end;
        if !is_held {
            return None;
        }
        let offset = from % self.bytes.max(1);
        let mut bytes = read_exact(&*self.file, offset, length as usize).ok()??;
        self.key.apply_from(position, skipped, &mut bytes);
        Some(bytes.into())
    }
}

/// The key of ChaCha20 (RFC 8439). A position is the nonce: it is written once.
struct Key([u8; 32]);

impl Key {
    fn apply(&self, position: u64, bytes: &mut [u8]) {
        self.apply_from(position, 0, bytes);
    }

    fn apply_from(&self, position: u64, skipped: u32, bytes: &mut [u8]) {
        let mut nonce = [0; 12];
        nonce[..8].copy_from_slice(&position.to_le_bytes());
        let mut stream = ChaCha20::new(&self.0.into(), &nonce.into());
        stream.seek(skipped);
        stream.apply_keystream(bytes);
    }
}

/// Does not show the key.
impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Key(…)")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::files::{Files as _, Memory};

    fn ring(bytes: u64) -> (Ring, Memory) {
        let files = Memory::new();
        let file = files.create("ring").unwrap();
        (Ring::new(file, bytes, [7; 32]).unwrap(), files)
    }

    proptest! {
        #[test]
        fn what_was_written_reads_back_until_it_is_overwritten(
            writes in prop::collection::vec(prop::collection::vec(0usize..60, 1..5), 1..60),
        ) {
            let (mut ring, files) = ring(200);
            let mut written: Vec<(u64, Bytes)> = Vec::new();
            for (number, lengths) in writes.iter().enumerate() {
                let chunks: Vec<_> =
                    lengths.iter().map(|length| Bytes::from(vec![number as u8; *length])).collect();
                let total: usize = lengths.iter().sum();
                let Ok(mut at) = ring.append(&chunks) else {
                    prop_assert!(total > 200);
                    continue;
                };
                for chunk in chunks {
                    let next = at + chunk.len() as u64;
                    written.push((at, chunk));
                    at = next;
                }
                let newest = written.last().map_or(0, |(at, it)| at + it.len() as u64);
                for (at, chunk) in &written {
                    let read = ring.read(*at, 0, chunk.len() as u32);
                    prop_assert_eq!(read, (at + 200 >= newest).then(|| chunk.clone()));
                }
            }
            prop_assert!(files.bytes() <= 200);
        }
    }

    #[test]
    fn a_part_of_a_chunk_reads_as_that_part_and_the_file_does_not_show_it() {
        let (mut ring, files) = ring(1000);
        let chunk: Bytes = (0..=255).collect::<Vec<u8>>().into();
        ring.append(&[vec![1; 90].into()]).unwrap();
        let at = ring.append(std::slice::from_ref(&chunk)).unwrap();
        assert_eq!(ring.read(at, 70, 100), Some(chunk.slice(70..170)));
        let file = files.bytes_of("ring").unwrap();
        assert!(!file.windows(8).any(|it| chunk.windows(8).any(|part| part == it)));
        assert_eq!(ring.read(at, 0, 257), None, "nothing was written there");
    }
}
