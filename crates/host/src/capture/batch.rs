//! From the frames of a block to the segments for the engine; each payload is copied once.

use std::net::IpAddr;

use bytes::BytesMut;
use node::Overheard;
use wire::capture::{Frame, Heard, Segment};

use super::counters::{Counters, Ignored, add};

/// Selects the segments for the engine.
#[derive(Debug)]
pub struct SegmentFilter {
    /// The peers' port.
    pub port: u16,
    /// This machine's addresses: segments from or to them are ignored.
    pub own: Vec<IpAddr>,
}

impl SegmentFilter {
    /// The segments in these frames; `room` is the greatest total length of their payloads.
    pub fn batch<'a>(
        &self,
        frames: impl Iterator<Item = Frame<'a>>,
        room: usize,
        counters: &Counters,
    ) -> Vec<Overheard> {
        let (mut batch, mut count) = (Vec::new(), 0);
        // All payloads of a block share one allocation.
        let mut memory = BytesMut::with_capacity(room);
        for frame in frames {
            count += 1;
            for segment in Heard::new(frame) {
                match segment.map(|segment| (segment, self.ignored(&segment))) {
                    Ok((segment, None)) => batch.push(overheard(&segment, &mut memory)),
                    Ok((_, Some(why))) => counters.ignore(why),
                    Err(why) => counters.refuse(why),
                }
            }
        }
        add(&counters.frames, count);
        batch
    }

    fn ignored(&self, segment: &Segment<'_>) -> Option<Ignored> {
        let is_empty = segment.payload.is_empty() && !(segment.syn | segment.fin | segment.rst);
        match () {
            () if segment.from.port() != self.port && segment.to.port() != self.port => {
                Some(Ignored::OtherPort)
            }
            () if is_empty => Some(Ignored::Empty),
            () if self.own.iter().any(|own| [segment.from.ip(), segment.to.ip()].contains(own)) => {
                Some(Ignored::Own)
            }
            () => None,
        }
    }
}

fn overheard(segment: &Segment<'_>, memory: &mut BytesMut) -> Overheard {
    memory.extend_from_slice(segment.payload);
    Overheard {
        from: segment.from,
        to: segment.to,
        seq: segment.seq,
        syn: segment.syn,
        fin: segment.fin,
        rst: segment.rst,
        payload: memory.split().freeze(),
    }
}

#[cfg(test)]
#[path = "batch_tests.rs"]
mod tests;
