//! What was read from the disk for readers: segments of manifests, and units.

use super::Client;
use crate::context::Context;
use crate::events::Stale;
use crate::exchanges::exchange::{Exchange, Source, State};
use crate::input::Ticket;
use crate::{catalogue, named};
use ::http::HeaderMap;
use bytes::Bytes;
use std::rc::Rc;
use wire::{ChunkId, RecordId};

impl Client {
    /// A segment has been read; `None` if it is not stored any more.
    pub fn segment_read(
        &mut self,
        cx: &mut Context,
        record: RecordId,
        number: u32,
        bytes: Option<Vec<u8>>,
    ) {
        let at = (record, number);
        // A damaged segment counts as missing.
        let bytes = bytes.filter(|bytes| is_certified(cx, at, bytes));
        let (waiters, segment) = cx.manifests.handle_segment(at, bytes.as_deref());
        for id in waiters {
            let Some(exchange) = cx.exchanges.get_mut(&id) else {
                cx.events.stale(Stale::Segment);
                continue;
            };
            match (&mut exchange.state, &segment) {
                (State::Checking(..), segment) => self.checked(cx, id, segment.as_deref()),
                (State::ClientReader(client_reader), Some(segment)) => {
                    client_reader.waits = false;
                    let position = client_reader.position().unwrap_or_default();
                    // By the record's offsets the segment covers the position; else the record is
                    // damaged.
                    if client_reader.turn_to(Rc::clone(segment), position) {
                        cx.turns.ready(id);
                    } else {
                        self.abandon(cx, id);
                    }
                }
                // Without the segment the rest of the object has no order: the response ends here.
                (State::ClientReader(_), None) => self.abandon(cx, id),
                (State::PeerReader(peer_reader), Some(_)) => {
                    peer_reader.reading_segment = false;
                    cx.turns.ready(id);
                }
                (State::PeerReader(_), None) => self.abandon(cx, id),
                _ => {}
            }
        }
    }

    /// Units have been read from the disk.
    pub fn units_read(
        &mut self,
        cx: &mut Context,
        ticket: Ticket,
        units: Option<Vec<(ChunkId, Bytes)>>,
    ) {
        let doubt = cx.chunks.handle_doubt(ticket, units.as_deref(), &mut cx.ids, &mut cx.out);
        // The read was a check of doubtful units, not for a reader.
        if let Some(concerned) = doubt {
            cx.dirty();
            for fetch in concerned {
                cx.turns.dirty(fetch);
            }
            return;
        }
        let arrived = cx.chunks.handle_units(ticket, units, &mut cx.ids, &mut cx.out);
        let Some(arrived) = arrived else { return };
        for id in arrived.waiters {
            // The client has left while the disk read for it.
            let Some(exchange) = cx.exchanges.get_mut(&id) else {
                cx.events.stale(Stale::Chunks);
                continue;
            };
            let ahead = arrived.units.iter().cloned();
            match &mut exchange.state {
                State::ClientReader(client_reader) => {
                    client_reader.waits = false;
                    client_reader.ahead = ahead.collect();
                }
                State::PeerReader(peer_reader) => {
                    peer_reader.reading = false;
                    peer_reader.reserved = 0;
                    peer_reader.ahead = ahead.collect();
                    // A unit that the peer named with a wrong length could not be read: it is told
                    // so.
                    self.peer_readers.lose_unread(cx, id, arrived.unread);
                }
                _ => continue,
            }
            // What was reserved for the read is now held, or free.
            self.peer_readers.charge(cx, id);
            cx.turns.ready(id);
        }
    }
}

/// Whether a segment read from the catalogue is certified by the name that its readers asked for. A
/// unit's name vouches for its bytes; their order has only this check. A segment that no reader
/// waits for was read for the walk over published objects, which checks it itself.
fn is_certified(cx: &Context, at: (RecordId, u32), bytes: &[u8]) -> bool {
    let waiters = cx.manifests.waiters(&at);
    !waiters.is_empty()
        && waiters.iter().all(|waiter| {
            let Some(exchange) = cx.exchanges.get(waiter) else { return true };
            let Some(name) = exchange.ask.named else { return true };
            let root = headers_of(cx, exchange).and_then(|it| named::root_in(&name, it));
            root.is_some_and(|root| catalogue::certifies_kept(&root, bytes).is_some())
        })
}

/// The header fields of the record that an exchange reads or is about to read.
fn headers_of<'a>(cx: &'a Context, exchange: &'a Exchange) -> Option<&'a HeaderMap> {
    if let State::Checking(record, ..) = &exchange.state {
        return Some(&record.headers);
    }
    match exchange.source()? {
        Source::Closed(record) => Some(&record.headers),
        Source::Incoming(fetch) => Some(&cx.transfers.get(fetch)?.headers),
    }
}
