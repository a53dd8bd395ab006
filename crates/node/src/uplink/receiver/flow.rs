//! What of one flow has come to the receiver and was not passed on.

use super::BATCH_COST;
use crate::crossed::Crossed;
use crate::input::FetchError;
use crate::uplink::WINDOW;
use crate::uplink::messages::Batch;
use crate::uplink::tcp::TCP_WINDOW;
use bytes::Bytes;
use std::collections::VecDeque;

/// The next part of a flow.
pub enum Part {
    /// Units, and how they crossed.
    Batch(Batch, Crossed),
    /// Uncut bytes.
    Uncut(Bytes),
    /// Uncut bytes that are the payload of this number.
    Coming(u64),
}

/// One flow, as far as it has come.
pub struct Flow {
    pub parts: VecDeque<Part>,
    /// It is a TCP flow.
    pub is_tcp: bool,
    /// Uncut bytes among the parts.
    pub uncut: usize,
    /// The first batch is being read.
    pub is_reading: bool,
    /// Content that is checked and not passed on, and its bytes.
    pub ready: VecDeque<Bytes>,
    pub ready_bytes: usize,
    /// Bytes at the end of `ready` that were read before there was credit for them.
    pub early: usize,
    /// The position of a unit that its first batch waits for.
    pub lacks: Option<u64>,
    /// What its parts name is about to be removed: it is read before there is credit for it.
    pub is_hurried: bool,
    /// The lowest position that its parts name.
    pub lowest: u64,
    /// How many more bytes may be passed on; negative if the last piece was larger.
    pub granted: i64,
    /// Bytes that have crossed and were not passed on.
    pub held: u64,
    /// Bytes that were passed on since the last credit was said.
    pub unsaid: u64,
    pub ended: Option<Result<(), FetchError>>,
}

impl Flow {
    pub fn new(is_tcp: bool) -> Self {
        Self {
            parts: VecDeque::new(),
            is_tcp,
            uncut: 0,
            is_reading: false,
            ready: VecDeque::new(),
            ready_bytes: 0,
            early: 0,
            lacks: None,
            is_hurried: false,
            lowest: u64::MAX,
            granted: 0,
            held: 0,
            unsaid: 0,
            ended: None,
        }
    }

    /// Bytes that the sender may be ahead.
    pub fn window(&self) -> u64 {
        if self.is_tcp { TCP_WINDOW } else { WINDOW }
    }

    /// What its parts take, in spans.
    pub fn cost(&self) -> usize {
        self.parts.iter().map(Part::cost).sum()
    }
}

impl Part {
    /// The lowest position that it names.
    pub fn lowest(&self) -> u64 {
        match self {
            Self::Batch(batch, _) => batch.spans.iter().map(|span| span.first).min(),
            Self::Uncut(_) | Self::Coming(_) => None,
        }
        .unwrap_or(u64::MAX)
    }

    /// What it takes until it is passed on, in spans.
    pub fn cost(&self) -> usize {
        match self {
            Self::Batch(batch, _) => BATCH_COST + batch.spans.len(),
            Self::Uncut(_) | Self::Coming(_) => BATCH_COST,
        }
    }
}
