//! Bodies that pause inside a unit. Peers get the bytes that are in no unit yet as they are, so
//! that no client waits for the unit's end (docs/protocol.md, "Messages"). This file
//! decides who gets such loose bytes; `client` sends them.
//!
//! The router that dialled the origin continues to cut and stores the object. Routers behind it get
//! bytes that they do not store.

use super::{Broken, Objects, Value};
use crate::context::Context;
use crate::input::FetchId;
use crate::misbehaviour::Misbehaviour;
use crate::request::CREDIT;
use crate::transfers::incoming::Incoming;
use crate::transfers::transfer::Transfer;
use bytes::Bytes;
use std::time::Duration;
use wire::NodeId;
use wire::peer::Request;

/// A body of unknown length pauses if nothing arrives for this time: it may be a stream whose
/// client waits for each word.
const PAUSE: Duration = Duration::from_millis(200);
/// A body of known length is a download. A lost packet on the uplink, or a satellite's first round
/// trips, must not prevent the routers on its path from storing it.
const DOWNLOAD_PAUSE: Duration = Duration::from_secs(2);
/// Loose bytes that may be in flight or kept for the slowest reader.
const LOOSE_MAX: u32 = 64 * 1024;

impl Objects {
    /// Content has arrived, or credit was granted: restarts the timer for a pause, if peers read
    /// the body.
    pub fn watch(&mut self, cx: &mut Context, id: FetchId) {
        let read_by_peers = cx.is_read_by_peers(id);
        let Some(incoming) = cx.transfers.get_mut(&id) else {
            return;
        };
        if let Some(cutting) = incoming.cutting() {
            cutting.pauses = false;
        }
        if let Some(at) = incoming.pause_at.take() {
            self.pauses.remove(&(at, id));
        }
        if read_by_peers && !incoming.is_ended() {
            let pause = if incoming.announced.is_some() { DOWNLOAD_PAUSE } else { PAUSE };
            let at = cx.now + pause;
            incoming.pause_at = Some(at);
            self.pauses.insert((at, id));
        }
    }

    /// Nothing of a body has arrived for a while.
    pub fn paused(&mut self, cx: &mut Context, id: FetchId) {
        let Some(incoming) = cx.transfers.get_mut(&id) else { return };
        // An origin without credit waits for this node, and does not pause.
        let owes = incoming.granted > incoming.received_bytes;
        incoming.pause_at = None;
        if let Some(cutting) = incoming.cutting() {
            cutting.pauses = owes;
        }
        self.list_open(cx, id);
        cx.turns.all_ready(cx.transfers.readers(id));
    }

    /// A peer sends loose bytes: the object is not stored here.
    pub fn loose_bytes(
        &mut self,
        cx: &mut Context,
        id: FetchId,
        (peer, request): (NodeId, Request),
        offset: u64,
        bytes: Bytes,
    ) {
        if cx.transfers.get(&id).is_some_and(|incoming| incoming.root.is_some()) {
            return cx.expel(peer, Misbehaviour::UncertifiedBytes);
        }
        let off_the_way = cx.pursuits.get(&id).is_some_and(|it| it.towards.is_some());
        if off_the_way || !cx.takes_unsigned(id, peer) {
            // Without a signature such bytes count only from a configured gateway (decision 0023), and from no router
            // off the way (0033).
            return self.says(Value::TurnToGateway(id, (peer, request)));
        }
        // What is not stored cannot be joined later.
        self.says(Value::Retire(id));
        cx.pursuits.came(id, cx.now);
        let first = !cx.transfers.get(&id).is_some_and(Incoming::is_loose);
        let fits = match cx.transfers.get_mut(&id).map(|incoming| &mut incoming.transfer) {
            Some(Transfer::Listing(it)) => it.take_loose(offset, bytes, u64::from(LOOSE_MAX)),
            Some(Transfer::Filling(_)) => false,
            Some(Transfer::Cutting(_) | Transfer::Closed(_)) | None => return,
        };
        if !fits {
            return cx.expel(peer, Misbehaviour::OutOfPlace);
        }
        // The request granted the first part of the credit for loose bytes; the rest follows.
        if first {
            self.says(Value::Credit(id, LOOSE_MAX - CREDIT));
        }
        cx.turns.all_ready(cx.transfers.readers(id));
        cx.turns.dirty(id);
    }

    /// A peer says that a response is complete.
    pub fn all_came(&mut self, cx: &mut Context, id: FetchId) {
        let Some(incoming) = cx.transfers.get_mut(&id) else { return };
        let length = incoming.frontier();
        if !incoming.is_loose() || incoming.announced.is_some_and(|announced| announced != length) {
            return self.broken(cx, id, Broken::False);
        }
        incoming.announced = Some(length);
        if let Some(listing) = incoming.listing() {
            listing.ended = true;
        }
        for reader in incoming.reader_ids() {
            self.says(Value::Ends(reader, length));
            cx.turns.ready(reader);
        }
    }
}
