//! The two histories of a pair on disk: of what is sent and of what is received.

use crate::config::Place;
use crate::entropy;
use bytes::Bytes;
use node::uplink::{Span, Units};
use std::path::Path;
use std::sync::Arc;
use store::{
    Disk as Directory, Error, Files, History, HistoryOptions, HistoryReader, HistoryState, Mark,
    Memory, Ring,
};

/// The file of a published scheme's log.
const CHUNKS: &str = "ring";

/// One direction's history. If the disk fails, nothing more is kept, and nothing of it counts as held at the
/// next connection.
pub struct Kept {
    state: HistoryState,
    open: Option<(History, HistoryReader)>,
}

/// Both histories of one end.
pub struct Histories {
    /// Of what this end sends.
    pub out: Kept,
    /// Of what this end receives.
    pub within: Kept,
    /// The log of a published scheme, if one may be used, and how many chunks its tables have at most.
    pub chunks: Option<(Ring, usize)>,
}

impl Histories {
    /// Opens or creates both below `place`, with a budget for each. `key` enciphers them.
    pub fn open(
        place: &Place,
        (out_bytes, within_bytes): (u64, u64),
        key: Option<[u8; 32]>,
    ) -> Result<Self, Error> {
        let open = |name: &str, budget_bytes| {
            let files: Arc<dyn Files> = match place {
                Place::Memory => Arc::new(Memory::new()),
                Place::Dir(path) => Arc::new(Directory::open(path.join(name))?),
            };
            let options = HistoryOptions { budget_bytes, key };
            let (history, reader, state) = History::open(files, options, entropy::bytes())?;
            Ok(Kept { state, open: Some((history, reader)) })
        };
        let (out, within) = (open("sent", out_bytes)?, open("received", within_bytes)?);
        Ok(Self { out, within, chunks: None })
    }

    /// With an empty log of at most this many bytes, for a published scheme. Its key lasts as long as the process.
    ///
    /// # Errors
    /// If its file cannot be created.
    pub fn with_chunks(
        mut self,
        place: &Place,
        bytes: u64,
        entries_max: usize,
    ) -> Result<Self, Box<dyn std::error::Error>> {
        let files: Arc<dyn Files> = match place {
            Place::Memory => Arc::new(Memory::new()),
            Place::Dir(path) => Arc::new(Directory::open(path.join("chunks"))?),
        };
        if files.names()?.iter().any(|name| name == CHUNKS) {
            files.remove(CHUNKS)?;
        }
        let ring = Ring::new(files.create(CHUNKS)?, bytes, entropy::bytes())?;
        self.chunks = Some((ring, entries_max));
        Ok(self)
    }

    /// What both hold.
    pub fn held(&self) -> (HistoryState, HistoryState) {
        (self.out.held(), self.within.held())
    }

    /// The marks of what was sent, from the oldest on.
    pub fn marks(&self) -> Vec<Mark> {
        let HistoryState { first, end, .. } = self.out.held();
        let mut marks = Vec::new();
        if let Some((_, reader)) = &self.out.open
            && let Err(error) = reader.marks(first, end, |_, mark| marks.push(mark))
        {
            tracing::warn!(%error, "cannot read what has crossed before");
        }
        // A gap would shift all that follows.
        if marks.len() as u64 == end - first { marks } else { Vec::new() }
    }

    /// The directory of one gateway's histories at the far end.
    pub fn directory(place: &Place, name: &str) -> Place {
        match place {
            Place::Memory => Place::Memory,
            Place::Dir(path) => Place::Dir(Path::new(path).join(name)),
        }
    }
}

impl Kept {
    fn fails(&mut self, error: &Error) {
        tracing::warn!(%error, "cannot keep what crosses the uplink: from here on it is forgotten");
        self.open = None;
        let end = self.state.end;
        self.state = HistoryState { epoch: [0; 16], first: end, end };
    }

    /// Makes what was appended durable.
    pub fn sync(&mut self) {
        if let Some((history, _)) = &mut self.open
            && let Err(error) = history.sync()
        {
            self.fails(&error);
        }
    }

    fn update(&mut self, result: Result<(), Error>) {
        match (result, &self.open) {
            (Ok(()), Some((history, _))) => self.state = history.state(),
            (Ok(()), None) => {}
            (Err(error), _) => self.fails(&error),
        }
    }
}

impl Units for Kept {
    fn held(&self) -> HistoryState {
        self.state
    }

    fn read(&mut self, span: Span, out: &mut Vec<(Mark, Bytes)>) -> bool {
        let Some((_, reader)) = &self.open else { return false };
        match reader.read(span.first, span.count) {
            Ok(Some(units)) => {
                out.extend(units);
                true
            }
            Ok(None) => false,
            Err(error) => {
                tracing::debug!(%error, "cannot read what has crossed before");
                false
            }
        }
    }

    fn append(&mut self, units: &[(Mark, Bytes)]) {
        let end = self.state.end + units.len() as u64;
        let result = match &mut self.open {
            Some((history, _)) => history.append(self.state.end, units),
            None => Ok(()),
        };
        self.update(result);
        if self.open.is_none() {
            (self.state.first, self.state.end) = (end, end);
        }
    }

    fn truncate(&mut self, end: u64) {
        let result = match &mut self.open {
            Some((history, _)) => history.truncate(end),
            None => Ok(()),
        };
        self.update(result);
        if self.open.is_none() {
            (self.state.first, self.state.end) = (end, end);
        }
    }

    fn reset(&mut self, epoch: [u8; 16]) {
        if let Some((history, _)) = &mut self.open {
            let result = history.reset(epoch, 0);
            self.update(result);
        }
        if self.open.is_none() {
            // Within this connection positions count all the same.
            self.state = HistoryState::default();
        }
    }
}
