//! Prefetching for several segments at a time. With many flows, a flow's state has left the processor's caches
//! when its next segment arrives. The lookup then waits for memory four times in a row: for the flow, its frames,
//! its chunk and the chunk's last bytes, each of which tells where the next is. The lookups of several segments
//! run side by side, so that their waits overlap.
//!
//! *Who calls it:* `handle_segments`. *What it never does:* change state, or decide. The engine looks everything up
//! again, since an earlier segment may have changed it.

use super::Overhear;
use super::flows::{Flow, Frame, Key};
use super::hearing::decode;
use super::table::Id;
use crate::heard::SEGMENTS_AT_ONCE;
use std::hint::black_box;
use wire::capture::Segment;

impl Overhear {
    /// Loads the state that the segments will need into the processor's caches. Returns each segment's flow, or `None`
    /// if the flow is not known yet.
    pub(super) fn look_ahead(&self, segments: &[Segment<'_>]) -> [Option<Id>; SEGMENTS_AT_ONCE] {
        let mut flows = [None; SEGMENTS_AT_ONCE];
        for (flow, segment) in flows.iter_mut().zip(segments) {
            *flow = self.flows.find(&Key::new(segment.from, segment.to));
        }
        let mut chunks = [None; SEGMENTS_AT_ONCE];
        for (chunk, flow) in chunks.iter_mut().zip(flows) {
            *chunk = flow.and_then(|id| self.flows.get(id)).and_then(Flow::last_chunk);
        }
        let tails = chunks.into_iter().flatten().filter_map(|id| self.shelf.tail(id));
        let tails = tails.fold(0, |all, tail| all ^ tail);
        let borders = flows.iter().zip(segments).map(|(flow, segment)| self.border(*flow, segment));
        let known = borders.flatten().fold(false, |all, known| all ^ known);
        // No caller uses these values; without `black_box` the compiler would remove the loads.
        black_box((tails, known));
        flows
    }

    /// Looks up the chunk that ends in a segment and the chunk that begins there. The result has no meaning; it only
    /// depends on both lookups, so that they are not optimised away.
    fn border(&self, flow: Option<Id>, segment: &Segment<'_>) -> Option<bool> {
        let (named, border) = self.flows.get(flow?)?.border(segment.seq, segment.payload.len())?;
        let next = segment.payload.get(border..).and_then(decode).map(|head| Frame::new(0, &head));
        let knows_next = next.is_some_and(|next| self.shelf.knows(&next.named));
        Some(self.shelf.knows(&named) ^ knows_next)
    }
}
