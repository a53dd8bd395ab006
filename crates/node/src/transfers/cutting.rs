//! Cuts an origin's content into units and lists them in a manifest. With a mesh key, units are
//! sealed here: only this file's tail, and bytes sent to clients, are in clear.

use super::check::Check;
use bytes::Bytes;
use content::{Cut, Cutter, Entry, Key, ManifestBuilder, Profile, Sealer, Segment};
use std::rc::Rc;
use wire::ChunkId;

/// Cuts content, seals units if there is a key, names and lists them.
#[derive(Debug)]
pub struct Cutting {
    profile: &'static Profile,
    cutter: Cutter,
    sealer: Option<Sealer>,
    builder: ManifestBuilder,
    /// Bytes after the last cut.
    tail: Vec<u8>,
    /// The number of bytes before the last cut.
    cut: u64,
    /// Hashes the body, if its digest is known.
    pub check: Option<Check>,
    /// The body pauses inside a unit.
    pub pauses: bool,
    /// The last reader has left, and the transfer waits for one to return.
    pub awaits_resume: bool,
}

/// A unit that was just cut.
#[derive(Debug)]
pub struct Fresh {
    pub id: ChunkId,
    /// Its bytes as stored: sealed or clear.
    pub bytes: Bytes,
    /// The key that opens it, if it was sealed here.
    pub key: Option<Key>,
    /// Its end in the object.
    pub end: u64,
    /// Whether the collected group is written with it.
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
            check: None,
            pauses: false,
            awaits_resume: false,
        }
    }

    /// Takes content; returns the units that it completes.
    pub fn take(&mut self, bytes: &Bytes) -> Vec<Fresh> {
        if let Some(check) = &mut self.check {
            check.take(bytes);
        }
        let (mut rest, mut fresh) = (&bytes[..], Vec::new());
        while let Some(cut) = self.cutter.cut(rest) {
            let (head, next) = rest.split_at(cut.consumed);
            fresh.push(self.complete(head, cut));
            rest = next;
        }
        self.tail.extend_from_slice(rest);
        fresh
    }

    /// The content has ended: returns the last unit.
    pub fn end(&mut self) -> Option<Fresh> {
        let cut = self.cutter.finish()?;
        Some(self.complete(&[], Cut { parent_end: true, ..cut }))
    }

    fn complete(&mut self, head: &[u8], cut: Cut) -> Fresh {
        // The only copy of received content: a unit outlives the buffer in which it arrived.
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

    /// Lists a unit in the manifest; returns the previous segment if that is full.
    pub fn list(&mut self, unit: &Fresh) -> Option<Segment> {
        let length = unit.bytes.len() as u32;
        self.builder.push(Entry { id: unit.id, length, parent_end: unit.parent_end, key: unit.key })
    }

    /// The number of units in the open segment.
    pub fn open_units(&self) -> usize {
        self.builder.open().entries.len()
    }

    /// Closes the open segment for peers that wait for it; `None` if it is empty.
    pub fn flush(&mut self) -> Option<Segment> {
        self.builder.flush()
    }

    /// Closes the manifest.
    pub fn close(&mut self) -> Segment {
        std::mem::replace(&mut self.builder, ManifestBuilder::new(self.profile)).close()
    }

    /// Bytes in complete units so far.
    pub fn cut_bytes(&self) -> u64 {
        self.cut
    }

    /// A copy of bytes that are in no complete unit yet.
    pub fn tail_from(&self, position: u64, count_max: usize) -> Bytes {
        let from = (position - self.cut) as usize;
        let to = self.tail.len().min(from.saturating_add(count_max));
        Bytes::copy_from_slice(&self.tail[from..to])
    }

    /// The open segment from a position on, if it covers that. A reader near the end copies few
    /// entries.
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
