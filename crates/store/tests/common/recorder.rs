//! Files in memory that record every call, from which the outcomes of a power cut are derived.
//!
//! Data written before a file's last sync is there, whole. Of each later write all may be there,
//! nothing, some sectors, or a prefix of any length; the writes may have reached the disk in any
//! order; the file may have its full length in any case. Each creation, removal and renaming since
//! the names were last synced may or may not have happened.

use std::collections::BTreeMap;
use std::io::{self, IoSlice};
use std::sync::{Arc, Mutex};

use store::{File, Files, Memory};

use super::Random;

/// One call, or a mark that the test put between calls.
#[derive(Clone, Debug)]
pub enum Event<M> {
    Create { file: usize, name: String },
    Remove { name: String },
    Rename { from: String, to: String },
    SyncNames,
    Write { file: usize, offset: u64, bytes: Vec<u8> },
    SetLen { file: usize, len: u64 },
    Sync { file: usize },
    Mark(M),
}

type Trace<M> = Arc<Mutex<Vec<Event<M>>>>;

/// A directory that records all calls.
#[derive(Debug)]
pub struct Recorder<M> {
    memory: Memory,
    trace: Trace<M>,
    /// The file that has each name now, so that a reopened file keeps its number.
    numbers: Mutex<BTreeMap<String, usize>>,
}

impl<M: Clone> Recorder<M> {
    pub fn new() -> Self {
        Self { memory: Memory::new(), trace: Trace::default(), numbers: Mutex::default() }
    }

    pub fn mark(&self, mark: M) {
        self.trace.lock().unwrap().push(Event::Mark(mark));
    }

    pub fn trace(&self) -> Vec<Event<M>> {
        self.trace.lock().unwrap().clone()
    }

    fn record(&self, event: Event<M>) {
        self.trace.lock().unwrap().push(event);
    }
}

impl<M> Files for Recorder<M>
where
    M: Clone + Send + std::fmt::Debug + 'static,
{
    fn names(&self) -> io::Result<Vec<String>> {
        self.memory.names()
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn File>> {
        let inner = self.memory.create(name)?;
        let trace = self.trace.clone();
        let created = |event: &&Event<M>| matches!(event, Event::Create { .. });
        let number = trace.lock().unwrap().iter().filter(created).count();
        self.numbers.lock().unwrap().insert(name.to_owned(), number);
        self.record(Event::Create { file: number, name: name.to_owned() });
        Ok(Arc::new(Recorded { inner, number, trace }))
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn File>> {
        let inner = self.memory.open(name)?;
        let number = self.numbers.lock().unwrap()[name];
        Ok(Arc::new(Recorded { inner, number, trace: self.trace.clone() }))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.memory.remove(name)?;
        self.record(Event::Remove { name: name.to_owned() });
        Ok(())
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.memory.rename(from, to)?;
        let mut numbers = self.numbers.lock().unwrap();
        let number = numbers.remove(from).unwrap();
        numbers.insert(to.to_owned(), number);
        self.record(Event::Rename { from: from.to_owned(), to: to.to_owned() });
        Ok(())
    }

    fn sync_names(&self) -> io::Result<()> {
        self.record(Event::SyncNames);
        Ok(())
    }
}

#[derive(Debug)]
struct Recorded<M> {
    inner: Arc<dyn File>,
    number: usize,
    trace: Trace<M>,
}

impl<M: Send + std::fmt::Debug> File for Recorded<M> {
    fn len(&self) -> io::Result<u64> {
        self.inner.len()
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<usize> {
        self.inner.read_at(offset, out)
    }

    fn write_at(&self, offset: u64, parts: &mut [IoSlice<'_>]) -> io::Result<()> {
        let bytes: Vec<u8> = parts.iter().flat_map(|part| part.iter().copied()).collect();
        self.inner.write_at(offset, &mut [IoSlice::new(&bytes)])?;
        self.trace.lock().unwrap().push(Event::Write { file: self.number, offset, bytes });
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.inner.set_len(len)?;
        self.trace.lock().unwrap().push(Event::SetLen { file: self.number, len });
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        self.trace.lock().unwrap().push(Event::Sync { file: self.number });
        Ok(())
    }
}

/// The files after a power cut that follows these events; each seed is another outcome.
pub fn cut<M>(events: &[Event<M>], seed: u64) -> Memory {
    let mut random = Random(seed);
    let names = surviving_names(events, &mut random);
    let memory = Memory::new();
    for (name, file) in names {
        memory.put(&name, surviving_bytes(events, file, &mut random));
    }
    memory
}

fn surviving_names<M>(events: &[Event<M>], random: &mut Random) -> BTreeMap<String, usize> {
    let is_sync = |event: &Event<M>| matches!(event, Event::SyncNames);
    let synced = events.iter().rposition(is_sync).unwrap_or(0);
    let mut names = BTreeMap::new();
    let chance = random.below(5);
    for (at, event) in events.iter().enumerate() {
        let survives = at < synced || random.below(4) < chance;
        match event {
            Event::Create { file, name } if survives => {
                names.insert(name.clone(), *file);
            }
            Event::Remove { name } if survives => {
                names.remove(name);
            }
            Event::Rename { from, to } if survives => {
                let file = names.remove(from);
                file.map(|file| names.insert(to.clone(), file));
            }
            _ => {}
        }
    }
    names
}

fn surviving_bytes<M>(events: &[Event<M>], file: usize, random: &mut Random) -> Vec<u8> {
    let is_sync = |event: &Event<M>| matches!(event, Event::Sync { file: at } if *at == file);
    let synced = events.iter().rposition(is_sync).unwrap_or(0);
    let mut bytes = Vec::new();
    for event in &events[..synced] {
        apply(event, file, &mut bytes);
    }
    let is_change = |event: &&Event<M>| match event {
        Event::Write { file: at, .. } | Event::SetLen { file: at, .. } => *at == file,
        _ => false,
    };
    let mut rest: Vec<&Event<M>> = events[synced..].iter().filter(is_change).collect();
    if random.below(2) == 0 {
        for at in (1..rest.len()).rev() {
            rest.swap(at, random.below(at as u64 + 1) as usize);
        }
    }
    let fate = random.below(6);
    for event in rest {
        tear(event, fate, random, &mut bytes);
    }
    bytes
}

fn apply<M>(event: &Event<M>, file: usize, out: &mut Vec<u8>) {
    match event {
        Event::Write { file: at, offset, bytes } if *at == file => write(out, *offset, bytes),
        Event::SetLen { file: at, len } if *at == file => out.resize(*len as usize, 0),
        _ => {}
    }
}

fn write(out: &mut Vec<u8>, offset: u64, bytes: &[u8]) {
    let (start, end) = (offset as usize, offset as usize + bytes.len());
    if out.len() < end {
        out.resize(end, 0);
    }
    out[start..end].copy_from_slice(bytes);
}

/// Applies what is left of one unsynced change: nothing for a fate of 0, all for 1, otherwise a
/// random part.
fn tear<M>(event: &Event<M>, fate: u64, random: &mut Random, out: &mut Vec<u8>) {
    let choice = if fate < 2 { fate } else { random.below(5) };
    match event {
        Event::SetLen { len, .. } if choice % 2 == 1 => out.resize(*len as usize, 0),
        Event::Write { offset, bytes, .. } => match choice {
            0 => {}
            1 => write(out, *offset, bytes),
            2 => write(out, *offset, &bytes[..random.below(bytes.len() as u64 + 1) as usize]),
            3 => {
                for (at, sector) in bytes.chunks(512).enumerate() {
                    if random.below(2) == 0 {
                        write(out, offset + at as u64 * 512, sector);
                    }
                }
            }
            _ => {
                let end = *offset as usize + bytes.len();
                if out.len() < end {
                    out.resize(end, 0);
                }
            }
        },
        _ => {}
    }
}
