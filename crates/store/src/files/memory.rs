//! Files in memory: for the simulator, for tests, and for a node without a disk.

use std::collections::BTreeMap;
use std::io::{self, IoSlice};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use super::{File, Files};

/// A directory in memory. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    files: Arc<Mutex<BTreeMap<String, Arc<MemoryFile>>>>,
}

impl Memory {
    /// An empty directory.
    pub fn new() -> Self {
        Self::default()
    }

    /// The total length of the directory's files, in bytes.
    pub fn bytes(&self) -> u64 {
        self.lock().values().map(|file| file.read().len() as u64).sum()
    }

    /// Creates or replaces a file.
    pub fn put(&self, name: &str, bytes: Vec<u8>) {
        self.lock().insert(name.to_owned(), Arc::new(MemoryFile(RwLock::new(bytes))));
    }

    /// A copy of a file's bytes.
    pub fn bytes_of(&self, name: &str) -> Option<Vec<u8>> {
        self.lock().get(name).map(|file| file.read().clone())
    }

    // After a panic elsewhere the map is still consistent: each change is a single call.
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Arc<MemoryFile>>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Files for Memory {
    fn names(&self) -> io::Result<Vec<String>> {
        Ok(self.lock().keys().cloned().collect())
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn File>> {
        let mut files = self.lock();
        if files.contains_key(name) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let file = Arc::new(MemoryFile::default());
        files.insert(name.to_owned(), file.clone());
        Ok(file)
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn File>> {
        let file = self.lock().get(name).cloned().ok_or(io::ErrorKind::NotFound)?;
        Ok(file)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.lock().remove(name).map(drop).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut files = self.lock();
        let file = files.remove(from).ok_or(io::ErrorKind::NotFound)?;
        files.insert(to.to_owned(), file);
        Ok(())
    }

    fn sync_names(&self) -> io::Result<()> {
        Ok(())
    }
}

#[derive(Debug, Default)]
struct MemoryFile(RwLock<Vec<u8>>);

impl MemoryFile {
    fn read(&self) -> std::sync::RwLockReadGuard<'_, Vec<u8>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> std::sync::RwLockWriteGuard<'_, Vec<u8>> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl File for MemoryFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.read().len() as u64)
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<usize> {
        let bytes = self.read();
        let start = bytes.len().min(usize::try_from(offset).unwrap_or(usize::MAX));
        let length = out.len().min(bytes.len() - start);
        out[..length].copy_from_slice(&bytes[start..start + length]);
        Ok(length)
    }

    fn try_read_at(&self, offset: u64, out: &mut [u8]) -> Option<io::Result<usize>> {
        Some(self.read_at(offset, out))
    }

    fn write_at(&self, offset: u64, parts: &mut [IoSlice<'_>]) -> io::Result<()> {
        let mut at = usize::try_from(offset).map_err(|_| io::ErrorKind::FileTooLarge)?;
        let mut bytes = self.write();
        let end = at + parts.iter().map(|part| part.len()).sum::<usize>();
        if bytes.len() < end {
            bytes.resize(end, 0);
        }
        for part in parts {
            bytes[at..at + part.len()].copy_from_slice(part);
            at += part.len();
        }
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let len = usize::try_from(len).map_err(|_| io::ErrorKind::FileTooLarge)?;
        self.write().resize(len, 0);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}
