//! Checks the lengths that a peer claims for units against the manifest that it was sent.

use super::peer_readers::PeerReaders;
use crate::catalogue::Signed;
use crate::context::Context;
use crate::exchanges::exchange::State;
use crate::hasher::{Map, Set};
use crate::input::ExchangeId;
use std::rc::Rc;
use wire::ChunkId;
use wire::peer::{Message, Want};

/// A peer usually wants units of the latest segments: at most this many segments back are searched.
const SEGMENTS_MAX: u32 = 64;

impl PeerReaders {
    /// Drops wants whose length the manifest contradicts and tells the peer that it cannot have
    /// them. Marks those that no segment in memory lists.
    pub fn check_wants(&self, cx: &mut Context, id: ExchangeId, wants: Vec<Want>) -> Vec<Want> {
        let listed = self.listed_lengths(cx, id, &wants);
        let (wants, false_ones): (Vec<_>, Vec<_>) = wants
            .into_iter()
            .partition(|want| listed.get(&want.name).is_none_or(|length| *length == want.length));
        let Some(exchange) = cx.exchanges.get_mut(&id) else { return wants };
        let request = exchange.peer();
        if let State::PeerReader(peer_reader) = &mut exchange.state {
            let names = wants.iter().map(|want| want.name);
            peer_reader.unlisted.extend(names.filter(|name| !listed.contains_key(name)));
        }
        let lost: Vec<ChunkId> = false_ones.iter().map(|want| want.name).collect();
        if let Some((peer, request)) = request.filter(|_| !lost.is_empty()) {
            cx.say(peer, Message::DontHave(request, lost));
        }
        wants
    }

    /// The lengths of the wanted units in bytes, where a segment in memory lists them.
    fn listed_lengths(
        &self,
        cx: &mut Context,
        id: ExchangeId,
        wants: &[Want],
    ) -> Map<ChunkId, u32> {
        let mut listed = Map::default();
        let Some(peer_reader) = cx.exchanges.peer_reader(id) else { return listed };
        // Only segments that the peer was sent can list what it wants.
        let (told, latest) = (peer_reader.segment, peer_reader.claimed);
        let mut found = latest;
        let mut names: Set<ChunkId> = wants.iter().map(|want| want.name).collect();
        // Peers mostly want units in order, so the search begins at the segment that listed the
        // last one.
        let oldest = told.saturating_sub(SEGMENTS_MAX);
        let next = latest.clamp(oldest, told)..told;
        for number in next.chain((oldest..latest.clamp(oldest, told)).rev()) {
            if names.is_empty() {
                break;
            }
            let Some(signed) = self.told_segment(cx, id, number) else { continue };
            for entry in &signed.segment.entries {
                if names.remove(&entry.id) {
                    listed.insert(entry.id, entry.length);
                    found = number;
                }
            }
        }
        if let Some(peer_reader) = cx.exchanges.supplying_mut(id) {
            // The next wants are likely to be in the same segment.
            peer_reader.claimed = found;
        }
        listed
    }

    /// A segment that the peer was sent, if it is in memory.
    fn told_segment(&self, cx: &mut Context, id: ExchangeId, number: u32) -> Option<Rc<Signed>> {
        let peer_reader = cx.exchanges.peer_reader(id)?;
        let (record, incoming) = (peer_reader.record, peer_reader.source.incoming());
        let incoming = incoming.and_then(|fetch| cx.transfers.get(&fetch));
        let closed = incoming.and_then(|incoming| incoming.closed.get(&number).cloned());
        closed.or_else(|| cx.manifests.signed(record, number))
    }
}
