//! Content of an origin on its way to units and a manifest. Where there is a mesh key, units leave here
//! sealed: what is clear of an object is in this file's tail, and on its way to clients.

use bytes::Bytes;
use content::{Cut, Cutter, Entry, Key, ManifestBuilder, Profile, Sealer, Segment};
use std::rc::Rc;
use wire::ChunkId;

/// Cuts content, seals the units if that is wished, names them, and lists them.
#[derive(Debug)]
pub struct Cutting {
    profile: &'static Profile,
    cutter: Cutter,
    sealer: Option<Sealer>,
    builder: ManifestBuilder,
    /// Bytes behind the last cut.
    tail: Vec<u8>,
    /// Bytes before the last cut.
    cut: u64,
    /// The body pauses.
    pub pauses: bool,
    /// Nobody reads it any more, and it waits for somebody to come back.
    pub awaits_resume: bool,
}

/// A unit that was just cut.
#[derive(Debug)]
pub struct Fresh {
    pub id: ChunkId,
    /// As it is kept: sealed, or clear.
    pub bytes: Bytes,
    /// What opens it, if it was sealed here.
    pub key: Option<Key>,
    /// Where it ends in the object.
    pub end: u64,
    /// Whether what is collected is to be written with it.
    pub parent_end: bool,
}

impl Cutting {
    pub fn new(profile: &'static Profile, sealer: Option<Sealer>) -> Self {
        Self {
            profile,
            cutter: Cutter::new(profile),
            sealer,
            builder: ManifestBuilder::new(profile),
            tail: Vec::new(),
            cut: 0,
            pauses: false,
            awaits_resume: false,
        }
    }

    /// Takes in content, and gives out the units that it completes.
    pub fn take(&mut self, bytes: &Bytes) -> Vec<Fresh> {
        let (mut rest, mut fresh) = (&bytes[..], Vec::new());
        while let Some(cut) = self.cutter.cut(rest) {
            let (head, next) = rest.split_at(cut.consumed);
            fresh.push(self.complete(head, cut));
            rest = next;
        }
        self.tail.extend_from_slice(rest);
        fresh
    }

    /// The content has ended: gives out the last unit.
    pub fn end(&mut self) -> Option<Fresh> {
        let cut = self.cutter.finish()?;
        Some(self.complete(&[], Cut { parent_end: true, ..cut }))
    }

    fn complete(&mut self, head: &[u8], cut: Cut) -> Fresh {
        // The one copy on the way in: a unit outlives the buffer that it came in.
        let mut unit = if self.tail.is_empty() {
            head.to_vec()
        } else {
            self.tail.extend_from_slice(head);
            let whole = self.tail.clone();
            self.tail.clear();
            whole
        };
        let key = self.sealer.as_ref().map(|sealer| sealer.seal(&mut unit));
        self.cut += u64::from(cut.length);
        let (id, bytes) = (content::name(&unit), unit.into());
        Fresh { id, bytes, key, end: self.cut, parent_end: cut.parent_end }
    }

    /// Lists a unit in the manifest; gives out the segment that it did not fit into any more.
    pub fn list(&mut self, unit: &Fresh) -> Option<Segment> {
        let length = unit.bytes.len() as u32;
        self.builder.push(Entry { id: unit.id, length, parent_end: unit.parent_end, key: unit.key })
    }

    /// Units listed in the segment that is open.
    pub fn open_units(&self) -> usize {
        self.builder.open().entries.len()
    }

    /// Closes the open segment, for peers that wait for it; `None` if nothing is in it.
    pub fn flush(&mut self) -> Option<Segment> {
        self.builder.flush()
    }

    /// Closes the manifest.
    pub fn close(&mut self) -> Segment {
        std::mem::replace(&mut self.builder, ManifestBuilder::new(self.profile)).close()
    }

    /// Bytes in whole units so far.
    pub fn cut_bytes(&self) -> u64 {
        self.cut
    }

    /// A copy of bytes that are in no whole unit yet.
    pub fn tail_from(&self, position: u64, count_max: usize) -> Bytes {
        let from = (position - self.cut) as usize;
        let to = self.tail.len().min(from.saturating_add(count_max));
        Bytes::copy_from_slice(&self.tail[from..to])
    }

    /// The open segment from a position on, if it lists that: a reader close behind copies little.
    pub fn open_from(&self, position: u64) -> Option<Rc<Segment>> {
        let open = self.builder.open();
        if position < open.first_offset {
            return None;
        }
        let (mut first, mut offset) = (open.entries.len(), self.cut);
        while offset > position && first > 0 {
            first -= 1;
            offset -= u64::from(open.entries[first].length);
        }
        Some(Rc::new(Segment {
            profile: open.profile,
            number: open.number,
            first_offset: offset,
            first_unit: open.first_unit + first as u64,
            previous: open.previous,
            entries: open.entries[first..].to_vec(),
            closing: None,
        }))
    }
}
