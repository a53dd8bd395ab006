//! The queue of outputs. It does not allocate: packets and receptions stay in tables.

use crate::output::{ControlFrame, Frame, Outcome, Output, Reception};
use crate::packets::{Packet, PacketId, Packets};
use std::collections::VecDeque;
use std::ops::Range;
use wire::Instant;

/// Outputs in the order in which they were produced.
#[derive(Clone, Debug, Default)]
pub struct Outbox {
    ready: VecDeque<Ready>,
    /// The receptions of all outputs in `ready`.
    receptions: Vec<Reception>,
    /// The index of the first reception that belongs to no output yet.
    unclaimed: usize,
}

#[derive(Clone, Debug)]
enum Ready {
    Heard { frame: Frame, packet: PacketId, by: Range<usize> },
    HeardControl { frame: ControlFrame, by: Range<usize> },
    Done { packet: PacketId, at: Instant, outcome: Outcome, tries: u8 },
}

impl Outbox {
    pub fn is_empty(&self) -> bool {
        self.ready.is_empty()
    }

    /// Adds a station that received the transmission that is ending.
    pub fn reception(&mut self, reception: Reception) {
        self.receptions.push(reception);
    }

    /// A data frame ended; the receptions since the last output belong to it.
    pub fn heard(&mut self, frame: Frame, packet: PacketId) {
        let by = self.claim();
        self.ready.push_back(Ready::Heard { frame, packet, by });
    }

    /// A control frame ended; the receptions since the last output belong to it.
    pub fn heard_control(&mut self, frame: ControlFrame) {
        let by = self.claim();
        self.ready.push_back(Ready::HeardControl { frame, by });
    }

    /// A packet is done; it stays in its table until the driver takes the output.
    pub fn done(&mut self, packet: PacketId, at: Instant, outcome: Outcome, tries: u8) {
        self.ready.push_back(Ready::Done { packet, at, outcome, tries });
    }

    /// Takes the oldest output.
    pub fn poll<'a, F>(&'a mut self, packets: &'a mut Packets<F>) -> Option<Output<'a, F>> {
        let Some(ready) = self.ready.pop_front() else {
            self.receptions.clear();
            self.unclaimed = 0;
            return None;
        };
        Some(match ready {
            Ready::Heard { frame, packet, by } => {
                let payload = &packets.get(packet).payload;
                Output::Heard { frame, payload, by: &self.receptions[by] }
            }
            Ready::HeardControl { frame, by } => {
                Output::HeardControl { frame, by: &self.receptions[by] }
            }
            Ready::Done { packet, at, outcome, tries } => {
                let Packet { from, to, payload, .. } = packets.remove(packet);
                Output::Done { from, to, payload, at, outcome, tries }
            }
        })
    }

    fn claim(&mut self) -> Range<usize> {
        let start = std::mem::replace(&mut self.unclaimed, self.receptions.len());
        start..self.receptions.len()
    }

    #[cfg(test)]
    pub fn capacity(&self) -> usize {
        self.ready.capacity() + self.receptions.capacity()
    }
}
