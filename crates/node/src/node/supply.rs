//! Peers that ask: telling them of an object, and sending the units that they want.

use super::Node;
use super::listing::unasked;
use crate::catalogue::Signed;
use crate::chunks::Unit;
use crate::client::exchange::{Source, State};
use crate::client::supplying::{PEER_WANTS_MAX, Supplying, WANTS_MAX, Wants, requests_of};
use crate::hasher::Set;
use crate::http::{self, Record, fields};
use crate::input::{ExchangeId, FetchError, FetchId};
use crate::object::fetch::{self, Fetch};
use crate::object::storing::Inflow;
use ::http::{HeaderMap, StatusCode};
use bytes::Bytes;
use content::Segment;
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Duration;
use wire::peer::{self, ChunkHead, Message, Outcome, Want};
use wire::{ChunkId, NodeId};

/// One read of the disk, at most, in bytes.
const READ_BYTES: u64 = 64 * 1024;
/// Units that are looked at for one read.
const READ_UNITS: usize = 32;
/// Bytes of units that one request sends in its turn, while others wait for theirs.
const TURN_BYTES: usize = 8 * 1024;

/// A request of a peer is given up if nothing is said of it for so long: a client may have paused.
const IDLE_MAX: Duration = Duration::from_secs(600);

/// What came of trying to send a unit.
enum Sent {
    /// It was given to the connection.
    Sent(usize),
    /// It will be here, or there will be room.
    Later,
}

impl Node {
    /// Tells a peer of a record that is closed.
    pub(super) fn supply_closed(&mut self, id: ExchangeId, record: &Rc<Record>, detail: &str) {
        let Some(exchange) = self.client.exchanges.get(&id) else { return };
        let confirmed = exchange.ask.trail.have == Some(record.id);
        let upstream = exchange.ask.trail.upstream.clone();
        if !self.say_head(id, record, Some(record.length), confirmed, detail, &upstream) {
            return;
        }
        if confirmed {
            self.client.end_supply(&mut self.cx, id, Outcome::Complete);
            return self.leave(id);
        }
        self.client.begin_supply(&mut self.cx, id, Source::Closed(Rc::clone(record)), record.id);
    }

    /// Tells a peer of an object that is coming.
    pub(super) fn supply_growing(&mut self, id: ExchangeId, fetch_id: FetchId, detail: &str) {
        let Some(fetch) = self.object.fetches.get_mut(&fetch_id) else { return };
        let (requested, upstream) = (fetch.requested, fetch.status_line.clone());
        let Some(storing) = fetch.storing() else { return };
        let (record, length) = (storing.so_far(requested), storing.announced);
        if !self.say_head(id, &record, length, false, detail, &upstream) {
            return;
        }
        if let Some(storing) = self.object.fetches.get_mut(&fetch_id).and_then(Fetch::storing) {
            storing.readers.push(id);
        }
        self.client.begin_supply(&mut self.cx, id, Source::Growing(fetch_id), record.id);
        let cover = self.client.exchanges.get(&id).map_or(0, |exchange| exchange.ask.trail.cover);
        self.welcome(fetch_id, cover, 0);
        self.list_for_peers(fetch_id);
        self.watch(fetch_id);
        self.cx.turns.dirty(fetch_id);
    }

    fn say_head(
        &mut self,
        id: ExchangeId,
        record: &Record,
        length: Option<u64>,
        confirmed: bool,
        detail: &str,
        upstream: &str,
    ) -> bool {
        // What one clock says is not to be held against another that is wrong: then nobody knows its age.
        let known = record.clocked == self.cx.clock_right();
        let age = if known { http::age(record, self.cx.date()) } else { u64::MAX };
        let exchange = self.cx.mesh.as_ref().zip(self.client.exchanges.get(&id));
        let Some((mesh, exchange)) = exchange else { return false };
        let Some((peer, request)) = exchange.peer() else { return false };
        let name = |(n, value): &(::http::HeaderName, Option<Vec<u8>>)| {
            (n.as_str().to_owned(), value.clone())
        };
        let mut head = peer::Head {
            confirmed,
            record: record.id,
            status: record.status.as_u16(),
            fields: fields(&record.headers),
            selecting: record.selecting.iter().map(name).collect(),
            signer: mesh.peers.own_key(),
            signature: wire::Signature([0; 64]),
            age: u32::try_from(age).unwrap_or(u32::MAX),
            length,
            status_line: status_line(upstream, &format!("{}; {detail}", self.cx.config.name)),
        };
        match &record.voucher {
            Some(voucher) => (head.signer, head.signature) = (voucher.signer, voucher.signature),
            None => head.signature = mesh.peers.sign(&head.signed(&exchange.ask.key)),
        }
        let said = self.cx.say(peer, Message::Head(request, Box::new(head)));
        if !said {
            // Larger than any message: it is for the asker to get it elsewhere.
            self.client.end_supply(&mut self.cx, id, Outcome::Busy);
            self.leave(id);
        }
        said
    }

    /// Tells and sends a peer what can be told and sent now.
    pub(super) fn supply(&mut self, id: ExchangeId) {
        while self.tell_segment(id) {}
        while let Some(Sent::Sent(_)) = self.send_want(id) {}
        self.flow(id);
        self.charge(id);
    }

    /// A peer can take more units: each of its requests gets a turn.
    pub(super) fn supply_peer(&mut self, peer: NodeId) {
        let mut turns: VecDeque<ExchangeId> = requests_of(&self.client.supplied, peer).collect();
        turns.make_contiguous().sort_unstable();
        if let Some(first) = turns.iter().position(|id| *id > self.client.last_turn) {
            turns.rotate_left(first);
        }
        for id in &turns {
            while self.tell_segment(*id) {}
        }
        while let Some(id) = turns.pop_front() {
            let mut sent = 0;
            while sent < TURN_BYTES {
                match self.send_want(id) {
                    Some(Sent::Sent(bytes)) => sent += bytes,
                    _ => break,
                }
            }
            if sent > 0 {
                self.client.last_turn = id;
            }
            if sent >= TURN_BYTES {
                turns.push_back(id);
            } else {
                self.flow(id);
                self.charge(id);
            }
        }
    }

    /// Tells a peer the next segment of a manifest; false if there is none that it welcomes.
    fn tell_segment(&mut self, id: ExchangeId) -> bool {
        let Some(exchange) = self.client.exchanges.get(&id) else { return false };
        let Some((peer, request)) = exchange.peer() else { return false };
        let State::Supplying(supplying) = &exchange.state else { return false };
        let may_tell = self.cx.mesh.as_ref().is_some_and(|mesh| mesh.peers.may_tell(peer));
        // What flows is not listed too: it would cross twice.
        let over = supplying.told || supplying.flow.is_some();
        if over || supplying.turning || !may_tell {
            return false;
        }
        let Some(signed) = self.next_segment(id) else { return false };
        let Some(mesh) = &self.cx.mesh else { return false };
        let bytes = signed.segment.encode();
        let digest = Segment::digest(&bytes);
        let Some(exchange) = self.client.exchanges.get_mut(&id) else { return false };
        let State::Supplying(supplying) = &mut exchange.state else { return false };
        let signature = signed
            .signature
            .unwrap_or_else(|| mesh.peers.sign(&peer::segment_signed(&supplying.record, &digest)));
        supplying.segment += 1;
        supplying.told = signed.segment.closing.is_some();
        if signed.segment.number == 0 && !exchange.ask.trail.sparing {
            let unasked = unasked(&signed.segment).into_iter();
            supplying.wants.extend(unasked.map(|(name, unit)| unit.want(name)));
        }
        self.cx.say(peer, Message::Segment(request, Box::new(signature), bytes));
        true
    }

    /// The next segment that a peer is to be told, if it is here and welcome; it may have to be read.
    fn next_segment(&mut self, id: ExchangeId) -> Option<Rc<Signed>> {
        let State::Supplying(supplying) = &self.client.exchanges.get(&id)?.state else {
            return None;
        };
        let (record, number, cover) = (supplying.record, supplying.segment, supplying.cover);
        let here = match &supplying.source {
            Source::Closed(closed) => {
                closed.offsets.get(number as usize).filter(|at| **at < cover)?;
                None
            }
            Source::Growing(fetch) => {
                let storing = self.object.fetches.get_mut(fetch)?.storing()?;
                storing.offset_of(number).filter(|at| *at < cover)?;
                storing.closed.get(&number).cloned()
            }
        };
        let here = here.or_else(|| self.cx.manifests.signed(record, number));
        if here.is_none() {
            let State::Supplying(supplying) = &mut self.client.exchanges.get_mut(&id)?.state else {
                return None;
            };
            supplying.turning = true;
            self.cx.manifests.read((record, number), id, &mut self.cx.out);
        }
        here
    }

    /// Sends the next unit that a peer wants, if it is here; `None` if it wants none, or one that is
    /// not here yet.
    fn send_want(&mut self, id: ExchangeId) -> Option<Sent> {
        let exchange = self.client.exchanges.get(&id)?;
        let State::Supplying(supplying) = &exchange.state else { return None };
        let (peer, want) = (supplying.peer, supplying.wants.front()?);
        if self.cx.mesh.as_ref()?.peers.chunk_room(peer) == 0 {
            return Some(Sent::Later);
        }
        let want = want.clone();
        let ahead = supplying.ahead.iter().find(|(name, _)| *name == want.name);
        let held =
            ahead.map(|(_, bytes)| bytes.clone()).or_else(|| self.cx.chunks.give(&want.name));
        match held {
            Some(bytes) => Some(Sent::Sent(self.send_unit(id, peer, &want, &bytes))),
            None => self.find_unit(id, &want),
        }
    }

    fn send_unit(&mut self, id: ExchangeId, peer: NodeId, want: &Want, bytes: &Bytes) -> usize {
        let State::Supplying(supplying) =
            &mut self.client.exchanges.get_mut(&id).expect("it wants").state
        else {
            return 0;
        };
        supplying.wants.pop_front();
        supplying.ahead.retain(|(name, _)| *name != want.name);
        let source = match supplying.source {
            Source::Closed(_) => peer::Source::Held,
            Source::Growing(fetch) if self.source.is_at_origin(fetch) => peer::Source::Origin,
            Source::Growing(_) => peer::Source::Relayed,
        };
        let total = bytes.len() as u32;
        let whole = std::iter::once(0..total).filter(|_| want.missing.is_empty());
        let mut sent = 0;
        for range in whole.chain(want.missing.iter().cloned()) {
            let end = range.end.min(total);
            let Some(length) = end.checked_sub(range.start).filter(|length| *length > 0) else {
                continue;
            };
            let head = ChunkHead { name: want.name, total, offset: range.start, length, source };
            let part = bytes.slice(range.start as usize..end as usize);
            self.cx.report.peer_units_out_bytes += u64::from(length);
            sent += length as usize;
            if let Some(mesh) = &mut self.cx.mesh {
                mesh.peers.send_chunk(self.cx.now, peer, head, part);
            }
        }
        sent.max(1)
    }

    /// A unit that memory does not have is read, or waited for, or lost; others may go first meanwhile.
    fn find_unit(&mut self, id: ExchangeId, want: &Want) -> Option<Sent> {
        let State::Supplying(supplying) = &self.client.exchanges.get(&id)?.state else {
            return None;
        };
        if supplying.reading {
            return Some(Sent::Later);
        }
        let fetch = supplying.source.growing();
        if self.cx.comes_by_flight(&want.name, id) {
            return Some(Sent::Later);
        }
        let State::Supplying(supplying) = &self.client.exchanges.get(&id)?.state else {
            return None;
        };
        let units = readable(supplying);
        let listed = !supplying.unlisted.contains(&want.name);
        let Some(most) = self.client.room_to_read(id, READ_BYTES) else {
            self.client.budget.wait(id);
            return Some(Sent::Later);
        };
        let wanted: u64 = units.iter().map(|(_, length)| u64::from(*length)).sum();
        let reading = self.cx.chunks.want(
            units.into_iter(),
            listed,
            most,
            id,
            &mut self.cx.tickets,
            &mut self.cx.out,
        );
        if reading {
            if let State::Supplying(supplying) = &mut self.client.exchanges.get_mut(&id)?.state {
                supplying.reading = true;
                supplying.reserved = wanted.min(most);
            }
            self.charge(id);
            return Some(Sent::Later);
        }
        let unit = Unit::wanted(want);
        let fetch = fetch.or_else(|| self.reopen(id));
        let comes = fetch.is_some_and(|fetch| self.await_unit(id, fetch, want.name, unit));
        if comes {
            return Some(Sent::Later);
        }
        self.client.lose_first(&mut self.cx, id);
        Some(Sent::Sent(1))
    }

    /// A peer wants units: those that are not here are wanted of the next one at once.
    pub(super) fn peer_wants(&mut self, id: ExchangeId, wants: Vec<Want>) {
        let Some(exchange) = self.client.exchanges.get_mut(&id) else { return };
        let State::Supplying(supplying) = &mut exchange.state else { return };
        let peer = supplying.peer;
        // Who has lost a data connection wants all again that has not come.
        let queued: Set<ChunkId> = supplying.wants.iter().map(|want| want.name).collect();
        supplying.unlisted.retain(|name| queued.contains(name));
        let wants: Vec<Want> = wants.into_iter().filter(|it| !queued.contains(&it.name)).collect();
        let wants = self.check_wants(id, wants);
        let Some(State::Supplying(supplying)) = self.client.exchanges.get(&id).map(|it| &it.state)
        else {
            return;
        };
        if supplying.wants.len() + wants.len() > WANTS_MAX
            || self.client.wants_of(peer) > PEER_WANTS_MAX
        {
            return self.cx.expel(peer, "it wants more units than it can have on their way");
        }
        if !self.has_room_for_wants(peer, wants.iter().map(Wants::cost).sum()) {
            return self.is_too_busy_for(id);
        }
        let Some(exchange) = self.client.exchanges.get_mut(&id) else { return };
        let State::Supplying(supplying) = &mut exchange.state else { return };
        supplying.moved = self.cx.now;
        supplying.wants.extend(wants.iter().cloned());
        let growing = supplying.source.growing();
        self.charge(id);
        if let Some(fetch) = growing {
            self.forward(id, fetch, &wants);
        }
        self.cx.turns.ready(id);
    }

    /// Wants of a peer that are not here go on to the next one, all at once.
    fn forward(&mut self, id: ExchangeId, fetch: FetchId, wants: &[Want]) {
        let storing = self.object.fetches.get(&fetch).map(|fetch| &fetch.state);
        let Some(fetch::State::Storing(storing)) = storing else { return };
        let Inflow::Listed(listed) = &storing.inflow else { return };
        let missing =
            |want: &&Want| self.cx.is_missing(&want.name) && !listed.lost.contains(&want.name);
        let units = wants.iter().filter(missing).map(|want| (want.name, Unit::wanted(want)));
        let units = units.collect();
        self.want(fetch, units);
        for want in wants {
            self.cx.flights.wait_for(&want.name, id);
        }
    }

    /// A peer can take more.
    pub(super) fn peer_credit(&mut self, id: ExchangeId, bytes: u32, cover: u64) {
        let Some(exchange) = self.client.exchanges.get_mut(&id) else { return };
        let State::Supplying(supplying) = &mut exchange.state else {
            // Who takes a transfer up again may read on before it is answered.
            exchange.ask.trail.cover = exchange.ask.trail.cover.max(cover);
            return self.credit(id, u64::from(bytes));
        };
        supplying.moved = self.cx.now;
        supplying.cover = supplying.cover.max(cover);
        let flow = supplying.flow;
        let (cover, growing) = (supplying.cover, supplying.source.growing());
        if let Some(fetch) = growing {
            // It has waited until it was worth a message already.
            self.welcome(fetch, cover, 0);
            self.cx.turns.dirty(fetch);
        }
        match flow.filter(|_| bytes > 0) {
            Some(flow) => self.credit(flow, u64::from(bytes)),
            None => self.cx.turns.ready(id),
        }
    }

    /// The head of a response for a peer that is not stored.
    pub(super) fn supply_opaque(
        &mut self,
        id: ExchangeId,
        status: StatusCode,
        headers: &HeaderMap,
        length: Option<u64>,
    ) {
        let Some((peer, request)) = self.client.exchanges.get(&id).and_then(|it| it.peer()) else {
            return;
        };
        let lines = headers.get_all("cache-status").iter();
        let lines: Vec<_> = lines.filter_map(|line| line.to_str().ok()).collect();
        let mut fields = fields(headers);
        fields.retain(|(name, _)| name != "cache-status" && name != "content-length");
        let status = status.as_u16();
        let status_line = status_line("", &lines.join(", "));
        let opaque = peer::Opaque { status, fields, length, status_line };
        if !self.cx.say(peer, Message::Opaque(request, Box::new(opaque))) {
            self.client.end_supply(&mut self.cx, id, Outcome::Busy);
            self.leave(id);
        }
    }

    /// Peers that have not said anything of a request for very long are told to ask anew if they still
    /// want it: some forget to cancel.
    pub(super) fn end_idle(&mut self) {
        let idle = |id: &&ExchangeId| match self.client.exchanges.get(*id).map(|it| &it.state) {
            Some(State::Supplying(supplying)) => self.cx.now - supplying.moved > IDLE_MAX,
            _ => false,
        };
        let mut idle: Vec<ExchangeId> =
            self.client.supplied.values().filter(idle).copied().collect();
        idle.sort_unstable();
        for id in idle {
            self.client.end_supply(&mut self.cx, id, Outcome::Busy);
            self.leave(id);
        }
    }
}

/// The units that one read may give a peer. One whose length only the peer says is read by itself.
fn readable(supplying: &Supplying) -> Vec<(ChunkId, u32)> {
    let is_listed = |want: &&Want| !supplying.unlisted.contains(&want.name);
    let listed = supplying.wants.iter().take(READ_UNITS).take_while(is_listed);
    let mut units: Vec<_> = listed.map(|want| (want.name, want.length)).collect();
    if units.is_empty() {
        units.extend(supplying.wants.front().map(|want| (want.name, want.length)));
    }
    units
}

/// `Cache-Status` with our member last; where that is too long, without the oldest members.
fn status_line(upstream: &str, own: &str) -> String {
    let all = if upstream.is_empty() { own.to_owned() } else { format!("{upstream}, {own}") };
    let mut rest = &all[..];
    while rest.len() > Message::STATUS_LINE_MAX {
        rest = rest.split_once(", ").map_or("", |(_, rest)| rest);
    }
    rest.to_owned()
}

/// What a peer is told of a failure.
pub(super) fn outcome(error: Option<FetchError>) -> Outcome {
    match error {
        Some(FetchError::Unresolved) => Outcome::Unresolved,
        Some(FetchError::Forbidden(_)) => Outcome::Forbidden,
        Some(FetchError::Unreachable) => Outcome::Unreachable,
        Some(FetchError::TimedOut) => Outcome::TimedOut,
        Some(FetchError::Malformed) => Outcome::Malformed,
        Some(FetchError::NoRoute) => Outcome::Busy,
        Some(FetchError::NoHolder) => Outcome::NotCached,
        // Of a peer no content comes.
        Some(FetchError::Truncated | FetchError::Unsent) | None => Outcome::Truncated,
    }
}
