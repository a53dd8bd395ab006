//! Files in memory that are full, unreadable or failing when a test says so.

use std::io::{self, IoSlice};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use store::{File, Files, Memory};

/// Files in memory whose disk can be made to fail.
#[derive(Clone, Debug, Default)]
pub struct Faulty {
    pub memory: Memory,
    /// Bytes that may still be written.
    pub room: Arc<AtomicUsize>,
    pub fails_sync: Arc<AtomicBool>,
    /// Whether changes to the directory cannot be made durable.
    pub fails_names: Arc<AtomicBool>,
    pub fails_remove: Arc<AtomicBool>,
    /// The file that cannot be read.
    pub unreadable: Arc<Mutex<Option<&'static str>>>,
}

#[derive(Debug)]
struct FaultyFile {
    name: String,
    inner: Arc<dyn File>,
    disk: Faulty,
}

impl Faulty {
    /// A full disk with these files.
    pub fn full(memory: Memory) -> Self {
        Self { memory, ..Self::default() }
    }

    fn file(&self, name: &str, inner: Arc<dyn File>) -> Arc<dyn File> {
        Arc::new(FaultyFile { name: name.to_owned(), inner, disk: self.clone() })
    }

    pub fn set_unreadable(&self, name: Option<&'static str>) {
        *self.unreadable.lock().unwrap() = name;
    }

    pub fn set_room(&self, bytes: usize) {
        self.room.store(bytes, Ordering::Relaxed);
    }
}

impl Files for Faulty {
    fn names(&self) -> io::Result<Vec<String>> {
        self.memory.names()
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn File>> {
        if self.room.load(Ordering::Relaxed) == 0 {
            return Err(io::ErrorKind::StorageFull.into());
        }
        Ok(self.file(name, self.memory.create(name)?))
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn File>> {
        Ok(self.file(name, self.memory.open(name)?))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        if self.fails_remove.load(Ordering::Relaxed) {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        self.memory.remove(name)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.memory.rename(from, to)
    }

    fn sync_names(&self) -> io::Result<()> {
        if self.fails_names.load(Ordering::Relaxed) {
            return Err(io::Error::other("the device is gone"));
        }
        Ok(())
    }
}

impl File for FaultyFile {
    fn len(&self) -> io::Result<u64> {
        self.inner.len()
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<usize> {
        if self.disk.unreadable.lock().unwrap().is_some_and(|name| name == self.name) {
            return Err(io::Error::other("the device does not answer"));
        }
        self.inner.read_at(offset, out)
    }

    fn write_at(&self, offset: u64, parts: &mut [IoSlice<'_>]) -> io::Result<()> {
        let mut bytes: Vec<u8> = parts.iter().flat_map(|part| part.iter().copied()).collect();
        let room = self.disk.room.load(Ordering::Relaxed);
        let is_full = bytes.len() > room;
        bytes.truncate(room);
        self.disk.set_room(room - bytes.len());
        self.inner.write_at(offset, &mut [IoSlice::new(&bytes)])?;
        if is_full { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        if len > self.inner.len()? && self.disk.room.load(Ordering::Relaxed) == 0 {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.inner.set_len(len)
    }

    fn sync(&self) -> io::Result<()> {
        if self.disk.fails_sync.load(Ordering::Relaxed) {
            return Err(io::Error::other("the device is gone"));
        }
        Ok(())
    }
}
