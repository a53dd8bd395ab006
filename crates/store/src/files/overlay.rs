//! A read-only file with writes kept in memory.
//!
//! *Why:* redb writes to a file when it opens it, at least to mark it as open, and may truncate it.
//! Without an overlay, a catalogue on a disk that has become read-only could not be read.

use std::collections::BTreeMap;
use std::io::{self, IoSlice};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::File;

/// Length of a block in bytes.
const BLOCK: u64 = 4096;
/// Most blocks in memory, 16 MiB: an overlay serves for opening, not for long use.
const BLOCKS_MAX: usize = 4096;

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct Overlay {
    file: Arc<dyn File>,
    written: Mutex<Written>,
}

#[derive(Debug)]
struct Written {
    /// Whole blocks, by number.
    blocks: BTreeMap<u64, Vec<u8>>,
    length: u64,
    /// Bytes of the file that are still valid: truncation removes the others permanently.
    below: u64,
}

impl Written {
    fn cut(&mut self, len: u64) {
        drop(self.blocks.split_off(&len.div_ceil(BLOCK)));
        if let Some(block) = self.blocks.get_mut(&(len / BLOCK)) {
            block[(len % BLOCK) as usize..].fill(0);
        }
        self.below = self.below.min(len);
    }
}

impl Overlay {
    /// An overlay over this file, which is only read.
    pub fn new(file: Arc<dyn File>) -> io::Result<Self> {
        let length = file.len()?;
        let written = Written { blocks: BTreeMap::new(), length, below: length };
        Ok(Self { file, written: Mutex::new(written) })
    }

    // After a panic elsewhere the state is consistent: only complete blocks are inserted.
    fn written(&self) -> MutexGuard<'_, Written> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Fills `out` from the file; after its valid bytes with zeros.
    fn read_below(&self, below: u64, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let count = out.len().min(below.saturating_sub(offset) as usize);
        let got = self.file.read_at(offset, &mut out[..count])?;
        out[got..].fill(0);
        Ok(())
    }
}

impl File for Overlay {
    fn len(&self) -> io::Result<u64> {
        Ok(self.written().length)
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<usize> {
        let written = self.written();
        let count = out.len().min(written.length.saturating_sub(offset) as usize);
        let out = &mut out[..count];
        self.read_below(written.below, offset, out)?;
        let (first, last) = (offset / BLOCK, (offset + count as u64).div_ceil(BLOCK));
        for (number, block) in written.blocks.range(first..last) {
            let at = number * BLOCK;
            let from = offset.max(at);
            let to = (offset + count as u64).min(at + BLOCK);
            out[(from - offset) as usize..(to - offset) as usize]
                .copy_from_slice(&block[(from - at) as usize..(to - at) as usize]);
        }
        Ok(count)
    }

    fn write_at(&self, mut offset: u64, parts: &mut [IoSlice<'_>]) -> io::Result<()> {
        let mut written = self.written();
        for mut part in parts.iter().map(|part| &part[..]) {
            while !part.is_empty() {
                let (number, from) = (offset / BLOCK, (offset % BLOCK) as usize);
                let count = part.len().min(BLOCK as usize - from);
                // The first write to a block copies it from the file.
                if !written.blocks.contains_key(&number) {
                    if written.blocks.len() >= BLOCKS_MAX {
                        return Err(io::ErrorKind::ReadOnlyFilesystem.into());
                    }
                    let mut block = vec![0; BLOCK as usize];
                    self.read_below(written.below, number * BLOCK, &mut block)?;
                    written.blocks.insert(number, block);
                }
                if let Some(block) = written.blocks.get_mut(&number) {
                    block[from..from + count].copy_from_slice(&part[..count]);
                }
                part = &part[count..];
                offset += count as u64;
                written.length = written.length.max(offset);
            }
        }
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut written = self.written();
        if len < written.length {
            written.cut(len);
        }
        written.length = len;
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Files, Memory};
    use super::*;

    #[test]
    fn what_is_written_is_read_back_and_the_file_stays_as_it_is() {
        let memory = Memory::new();
        let before: Vec<u8> = (0..10_000).map(|byte| byte as u8).collect();
        memory.put("file", before.clone());
        let overlay = Overlay::new(memory.open("file").unwrap()).unwrap();
        let mut expected = before.clone();
        expected[4_000..9_000].fill(7);
        expected.resize(20_000, 0);
        expected[15_000..15_010].fill(9);
        overlay.write_at(4_000, &mut [IoSlice::new(&[7; 96]), IoSlice::new(&[7; 4_904])]).unwrap();
        overlay.set_len(20_000).unwrap();
        overlay.write_at(15_000, &mut [IoSlice::new(&[9; 10])]).unwrap();
        for (offset, length) in [(0, 20_000), (4_095, 2), (8_999, 7_000), (19_999, 50)] {
            let mut out = vec![1; length];
            let got = overlay.read_at(offset as u64, &mut out).unwrap();
            assert_eq!(out[..got], expected[offset..20_000.min(offset + length)]);
        }
        assert_eq!((overlay.len().unwrap(), memory.bytes_of("file").unwrap()), (20_000, before));
    }

    #[test]
    fn what_is_cut_off_comes_back_as_zeros_and_the_file_stays_as_it_is() {
        let memory = Memory::new();
        let before = vec![5; 20_000];
        memory.put("file", before.clone());
        let overlay = Overlay::new(memory.open("file").unwrap()).unwrap();
        // Both cuts are inside a block: the first block was written, the second was not.
        overlay.write_at(8_000, &mut [IoSlice::new(&[7; 6_000])]).unwrap();
        let mut expected = before.clone();
        expected[8_000..14_000].fill(7);
        for length in [9_000, 3_000] {
            overlay.set_len(length).unwrap();
            assert_eq!(overlay.len().unwrap(), length);
            expected[length as usize..].fill(0);
            overlay.set_len(20_000).unwrap();
            let mut out = vec![1; 20_000];
            assert_eq!(overlay.read_at(0, &mut out).unwrap(), 20_000);
            assert!(out == expected, "cut at {length}");
        }
        // After a write into a block that was cut off, the rest of the block is zeros.
        overlay.write_at(17_000, &mut [IoSlice::new(&[9; 10])]).unwrap();
        expected[17_000..17_010].fill(9);
        let mut out = vec![1; 20_000];
        overlay.read_at(0, &mut out).unwrap();
        assert!(out == expected && memory.bytes_of("file").unwrap() == before);
    }

    #[test]
    fn writes_are_limited() {
        let memory = Memory::new();
        memory.put("file", Vec::new());
        let overlay = Overlay::new(memory.open("file").unwrap()).unwrap();
        let block = [1; BLOCK as usize];
        let write = |number: u64| overlay.write_at(number * BLOCK, &mut [IoSlice::new(&block)]);
        assert!((0..BLOCKS_MAX as u64).all(|number| write(number).is_ok()));
        assert!(write(BLOCKS_MAX as u64).is_err() && write(0).is_ok());
    }
}
