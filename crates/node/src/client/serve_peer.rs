//! Serves peers: sends them heads, segments of manifests, and the units that they want.

use super::peer_readers::PeerReaders;
use super::{Client, Value, Values};
use crate::catalogue::Signed;
use crate::chunks::Unit;
use crate::context::Context;
use crate::events::RequestEnd;
use crate::exchanges::exchange::{ClientReader, Exchange, Piece, Source, State};
use crate::exchanges::peer_reader::{PEER_WANTS_MAX, PeerReader, WANTS_MAX, Wants};
use crate::hasher::Set;
use crate::http;
use crate::http::{Record, fields};
use crate::input::{ExchangeId, FetchId};
use crate::misbehaviour::Misbehaviour;
use crate::transfers::reader::{Joins, Reader};
use crate::transfers::unsolicited;
use ::http::{HeaderMap, StatusCode};
use bytes::Bytes;
use content::Segment;
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Duration;
use wire::peer::{ChunkHead, Message, Outcome, Want};
use wire::{ChunkId, NodeId, peer};

/// The most that one read of the disk fetches, in bytes.
const READ_BYTES: u64 = 64 * 1024;
/// One read of the disk covers at most this many wanted units.
const READ_UNITS: usize = 32;
/// One request sends this many bytes of units per turn while other requests of the peer wait: one
/// unit (decision 0014).
const TURN_BYTES: usize = 8 * 1024;

/// A peer's request is dropped after this time without a message about it. It is long because the
/// peer's client may have paused.
const IDLE_MAX: Duration = Duration::from_secs(600);

/// The result of trying to send a unit.
enum Sent {
    /// The connection took this many bytes.
    Sent(usize),
    /// Not yet: the unit has to be read or fetched, or the connection is full.
    Later,
}

impl Client {
    /// Tells a peer of a record that is stored whole.
    pub fn supply_closed(
        &mut self,
        cx: &mut Context,
        id: ExchangeId,
        record: &Rc<Record>,
        detail: &str,
    ) {
        let Some(exchange) = cx.exchanges.get(&id) else { return };
        let confirmed = exchange.ask.peer_hops.have == Some(record.id);
        let upstream = exchange.ask.peer_hops.upstream.clone();
        let length = Some(record.length);
        if !self.peer_readers.say_head(cx, id, record, length, confirmed, (detail, &upstream)) {
            // The head is larger than any message may be: the peer has to ask elsewhere.
            self.dismiss(cx, id, Outcome::Busy);
        } else if confirmed {
            self.dismiss(cx, id, Outcome::Complete);
        } else {
            self.peer_readers.begin(cx, id, Source::Closed(Rc::clone(record)), record.id);
        }
    }

    /// Tells a peer of an object that is still being fetched.
    pub fn supply_growing(
        &mut self,
        cx: &mut Context,
        id: ExchangeId,
        fetch_id: FetchId,
        detail: &str,
    ) {
        let miss = self.misses.get(&fetch_id);
        let upstream = miss.map(|miss| miss.status_line.clone()).unwrap_or_default();
        let Some(incoming) = cx.transfers.get(&fetch_id) else { return };
        let (record, length) = (incoming.so_far(), incoming.announced);
        if !self.peer_readers.say_head(cx, id, &record, length, false, (detail, &upstream)) {
            self.dismiss(cx, id, Outcome::Busy);
            return;
        }
        self.peer_readers.begin(cx, id, Source::Incoming(fetch_id), record.id);
        let manifest_credit =
            cx.exchanges.get(&id).map_or(0, |exchange| exchange.ask.peer_hops.manifest_credit);
        self.values.push_back(Value::Join(
            fetch_id,
            Reader::new(id, false, 0),
            Joins::Peer { manifest_credit },
        ));
    }

    /// A peer wants units. Those that are not stored are requested upstream at once.
    pub fn peer_wants(&mut self, cx: &mut Context, id: ExchangeId, wants: Vec<Want>) {
        let Some(peer_reader) = cx.exchanges.supplying_mut(id) else { return };
        let peer = peer_reader.peer;
        // After the loss of a data connection the peer repeats all wants that were not answered.
        let queued: Set<ChunkId> = peer_reader.wants.iter().map(|want| want.name).collect();
        peer_reader.unlisted.retain(|name| queued.contains(name));
        let wants: Vec<Want> = wants.into_iter().filter(|it| !queued.contains(&it.name)).collect();
        let wants = self.peer_readers.check_wants(cx, id, wants);
        let Some(peer_reader) = cx.exchanges.peer_reader(id) else { return };
        // Both limits are part of the protocol, so an honest peer never exceeds them.
        if peer_reader.wants.len() + wants.len() > WANTS_MAX
            || self.peer_readers.wants_of(cx, peer) > PEER_WANTS_MAX
        {
            return cx.expel(peer, Misbehaviour::Wants);
        }
        // If no other peer holds memory of the account, the wants are queued even without room:
        // their number is limited, and no other peer could give memory back.
        let has_room = self.has_room_for(cx, peer, wants.iter().map(Wants::cost).sum());
        if !has_room && !self.peer_readers.budget.holds_alone(peer) {
            return self.is_too_busy_for(cx, id);
        }
        let Some(peer_reader) = cx.exchanges.supplying_mut(id) else { return };
        peer_reader.moved = cx.now;
        peer_reader.wants.extend(wants.iter().cloned());
        let incoming = peer_reader.source.incoming();
        self.peer_readers.charge(cx, id);
        if let Some(fetch) = incoming {
            self.values.push_back(Value::Forward(id, fetch, wants));
        }
        cx.turns.ready(id);
    }

    /// A peer grants credit for bytes, for the manifest, or for both.
    pub fn peer_credit(
        &mut self,
        cx: &mut Context,
        id: ExchangeId,
        bytes: u32,
        manifest_credit: u64,
    ) {
        let Some(exchange) = cx.exchanges.get_mut(&id) else { return };
        let State::PeerReader(peer_reader) = &mut exchange.state else {
            // A peer that resumes a transfer may grant credit before it gets an answer.
            exchange.ask.peer_hops.manifest_credit =
                exchange.ask.peer_hops.manifest_credit.max(manifest_credit);
            return self.credit(cx, id, u64::from(bytes));
        };
        peer_reader.moved = cx.now;
        peer_reader.manifest_credit = peer_reader.manifest_credit.max(manifest_credit);
        let flow = peer_reader.flow;
        let (manifest_credit, incoming) =
            (peer_reader.manifest_credit, peer_reader.source.incoming());
        if let Some(fetch) = incoming {
            // The peer has already held this credit back until it was worth a message: pass it on
            // at once.
            self.values.push_back(Value::ManifestCredit(fetch, manifest_credit));
            cx.turns.dirty(fetch);
        }
        match flow.filter(|_| bytes > 0) {
            Some(flow) => self.credit(cx, flow, u64::from(bytes)),
            None => cx.turns.ready(id),
        }
    }

    /// Ends peers' requests that have been idle too long: some peers forget to cancel. A peer that
    /// still wants the object asks again.
    pub fn end_idle(&mut self, cx: &mut Context) {
        let idle = |id: &&ExchangeId| {
            cx.exchanges.peer_reader(**id).is_some_and(|it| cx.now - it.moved > IDLE_MAX)
        };
        let requests = self.peer_readers.requests.values();
        let mut idle: Vec<ExchangeId> = requests.filter(idle).copied().collect();
        idle.sort_unstable();
        for id in idle {
            self.dismiss(cx, id, Outcome::Busy);
        }
    }

    /// Ends a peer's request with this outcome; false if the exchange is a client's.
    pub fn dismiss(&mut self, cx: &mut Context, id: ExchangeId, outcome: Outcome) -> bool {
        let is_peer = self.peer_readers.end(cx, id, outcome);
        if is_peer {
            self.leave(cx, id, RequestEnd::Refused);
        }
        is_peer
    }
}

impl PeerReaders {
    /// Sends a peer the head of a response that is not stored; false if it is larger than any
    /// message may be.
    pub fn say_opaque(
        &self,
        cx: &mut Context,
        id: ExchangeId,
        status: StatusCode,
        headers: &HeaderMap,
        length: Option<u64>,
    ) -> bool {
        let Some((peer, request)) = cx.exchanges.get(&id).and_then(|it| it.peer()) else {
            return true;
        };
        let lines = headers.get_all("cache-status").iter();
        let lines: Vec<_> = lines.filter_map(|line| line.to_str().ok()).collect();
        let mut fields = fields(headers);
        fields.retain(|(name, _)| name != "cache-status" && name != "content-length");
        let status = status.as_u16();
        let status_line = status_line("", &lines.join(", "));
        let opaque = peer::Opaque { status, fields, length, status_line };
        cx.say(peer, Message::Opaque(request, Box::new(opaque)))
    }

    /// Sends a peer the head of a record; false if it is larger than any message may be.
    fn say_head(
        &self,
        cx: &mut Context,
        id: ExchangeId,
        record: &Record,
        length: Option<u64>,
        confirmed: bool,
        (detail, upstream): (&str, &str),
    ) -> bool {
        // A date from a wrong clock must not be compared with one from a right clock: then the age
        // is sent as unknown.
        let known = record.clocked == cx.clock_right();
        let age = if known { http::age(record, cx.date()) } else { u64::MAX };
        let exchange = cx.mesh.as_ref().zip(cx.exchanges.get(&id));
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
            status_line: status_line(upstream, &format!("{}; {detail}", cx.config.name)),
        };
        // Another node may have fetched the record from the origin: its signature is passed on.
        // Only a record without one is signed here.
        match &record.record_signature {
            Some(record_signature) => {
                (head.signer, head.signature) =
                    (record_signature.signer, record_signature.signature)
            }
            None => head.signature = mesh.peers.sign(&head.signed(&exchange.ask.key)),
        }
        cx.say(peer, Message::Head(request, Box::new(head)))
    }

    /// Sends a peer all segments, units and bytes that can be sent now.
    pub fn supply(&mut self, cx: &mut Context, id: ExchangeId, values: &mut Values) {
        while self.tell_segment(cx, id) {}
        while let Some(Sent::Sent(_)) = self.send_want(cx, id, values) {}
        self.flow(cx, id, values);
        self.charge(cx, id);
    }

    /// A peer can take more units: its requests take turns.
    pub fn supply_peer(&mut self, cx: &mut Context, peer: NodeId, values: &mut Values) {
        let mut turns: VecDeque<ExchangeId> = self.of(peer).collect();
        turns.make_contiguous().sort_unstable();
        // Begin after the request that was served last, so that none is always first.
        if let Some(first) = turns.iter().position(|id| *id > self.last_turn) {
            turns.rotate_left(first);
        }
        // Manifests first: they are small, and the peer can ask for units only after them.
        for id in &turns {
            while self.tell_segment(cx, *id) {}
        }
        while let Some(id) = turns.pop_front() {
            let mut sent = 0;
            while sent < TURN_BYTES {
                match self.send_want(cx, id, values) {
                    Some(Sent::Sent(bytes)) => sent += bytes,
                    _ => break,
                }
            }
            if sent > 0 {
                self.last_turn = id;
            }
            // It may have more: it goes to the end of the line.
            if sent >= TURN_BYTES {
                turns.push_back(id);
            } else {
                self.flow(cx, id, values);
                self.charge(cx, id);
            }
        }
    }

    /// Sends a peer the next segment of a manifest; false if none is left, or the peer's credit
    /// does not reach it.
    fn tell_segment(&self, cx: &mut Context, id: ExchangeId) -> bool {
        let Some(exchange) = cx.exchanges.get(&id) else { return false };
        let Some((peer, request)) = exchange.peer() else { return false };
        let State::PeerReader(peer_reader) = &exchange.state else { return false };
        let may_tell = cx.mesh.as_ref().is_some_and(|mesh| mesh.peers.may_tell(peer));
        // Loose bytes are not listed as well: they would be sent twice.
        let over = peer_reader.told || peer_reader.flow.is_some();
        if over || peer_reader.reading_segment || !may_tell {
            return false;
        }
        let Some(signed) = self.next_segment(cx, id) else { return false };
        let Some(mesh) = &cx.mesh else { return false };
        let bytes = signed.segment.encode();
        let digest = Segment::digest(&bytes);
        let Some(exchange) = cx.exchanges.get_mut(&id) else { return false };
        let State::PeerReader(peer_reader) = &mut exchange.state else { return false };
        // A segment that was cut here has no signature yet.
        let signature = signed.signature.unwrap_or_else(|| {
            mesh.peers.sign(&peer::segment_signed(&peer_reader.record, &digest))
        });
        peer_reader.segment += 1;
        peer_reader.told = signed.segment.closing.is_some();
        // A small object fits into one round trip: its first units are sent without a want.
        if signed.segment.number == 0 && !exchange.ask.peer_hops.sparing {
            let unsolicited = unsolicited(&signed.segment).into_iter();
            peer_reader.wants.extend(unsolicited.map(|(name, unit)| unit.want(name)));
        }
        cx.say(peer, Message::Segment(request, Box::new(signature), bytes));
        true
    }

    /// The next segment for a peer, if it is in memory and within the peer's manifest credit.
    /// Otherwise reads it.
    fn next_segment(&self, cx: &mut Context, id: ExchangeId) -> Option<Rc<Signed>> {
        let peer_reader = cx.exchanges.peer_reader(id)?;
        let (record, number, manifest_credit) =
            (peer_reader.record, peer_reader.segment, peer_reader.manifest_credit);
        let here = match &peer_reader.source {
            Source::Closed(closed) => {
                closed.offsets.get(number as usize).filter(|at| **at < manifest_credit)?;
                None
            }
            Source::Incoming(fetch) => {
                let incoming = cx.transfers.get(fetch)?;
                incoming.offset_of(number).filter(|at| *at < manifest_credit)?;
                incoming.closed.get(&number).cloned()
            }
        };
        let here = here.or_else(|| cx.manifests.signed(record, number));
        if here.is_none() {
            cx.exchanges.supplying_mut(id)?.reading_segment = true;
            cx.manifests.read((record, number), id, &mut cx.out);
        }
        here
    }

    /// Sends the first unit of a peer's wants. `None` if it wants none.
    fn send_want(&mut self, cx: &mut Context, id: ExchangeId, values: &mut Values) -> Option<Sent> {
        let peer_reader = cx.exchanges.peer_reader(id)?;
        let (peer, want) = (peer_reader.peer, peer_reader.wants.front()?);
        if cx.mesh.as_ref()?.peers.chunk_room(peer) == 0 {
            return Some(Sent::Later);
        }
        let want = want.clone();
        let ahead = peer_reader.ahead.iter().find(|(name, _)| *name == want.name);
        let held = ahead.map(|(_, bytes)| bytes.clone()).or_else(|| cx.chunks.give(&want.name));
        match held {
            Some(bytes) => Some(Sent::Sent(self.send_unit(cx, id, peer, &want, &bytes))),
            None => self.find_unit(cx, id, &want, values),
        }
    }

    fn send_unit(
        &self,
        cx: &mut Context,
        id: ExchangeId,
        peer: NodeId,
        want: &Want,
        bytes: &Bytes,
    ) -> usize {
        let class = cx.exchanges.get(&id).map(|exchange| exchange.ask.verdict.class);
        let Some(peer_reader) = cx.exchanges.supplying_mut(id) else { return 0 };
        peer_reader.wants.pop_front();
        peer_reader.ahead.retain(|(name, _)| *name != want.name);
        // The peer counts where its bytes come from, for its own report.
        let source = match peer_reader.source {
            Source::Closed(_) => peer::Source::Held,
            Source::Incoming(fetch) if cx.pursuits.is_at_origin(fetch) => peer::Source::Origin,
            Source::Incoming(_) => peer::Source::Relayed,
        };
        let total = bytes.len() as u32;
        // A want without ranges is for the whole unit.
        let whole = std::iter::once(0..total).filter(|_| want.missing.is_empty());
        let mut sent = 0;
        for range in whole.chain(want.missing.iter().cloned()) {
            let end = range.end.min(total);
            let Some(length) = end.checked_sub(range.start).filter(|length| *length > 0) else {
                continue;
            };
            let head = ChunkHead { name: want.name, total, offset: range.start, length, source };
            let part = bytes.slice(range.start as usize..end as usize);
            cx.report.peer_units_out_bytes += u64::from(length);
            cx.account.given_to_peer(class.unwrap_or_default(), length.into());
            sent += length as usize;
            if let Some(mesh) = &mut cx.mesh {
                mesh.peers.send_chunk(cx.now, peer, head, part);
            }
        }
        // A want that asked for nothing still takes its turn, so that the loop ends.
        sent.max(1)
    }

    /// Looks for a unit that is not in memory: waits for it if it is in flight, else reads it from
    /// the disk, else requests it. Other requests of the peer may be served meanwhile.
    fn find_unit(
        &mut self,
        cx: &mut Context,
        id: ExchangeId,
        want: &Want,
        values: &mut Values,
    ) -> Option<Sent> {
        // A read or an arriving unit will wake this request.
        if cx.exchanges.peer_reader(id)?.reading || cx.comes_by_flight(&want.name, id) {
            return Some(Sent::Later);
        }
        let peer_reader = cx.exchanges.peer_reader(id)?;
        let units = readable(peer_reader);
        let listed = !peer_reader.unlisted.contains(&want.name);
        // What a read brings is charged to the peer: without room, it waits for its turn.
        let Some(most) = self.room_to_read(cx, id, READ_BYTES) else {
            self.budget.wait(id);
            return Some(Sent::Later);
        };
        let wanted: u64 = units.iter().map(|(_, length)| u64::from(*length)).sum();
        let reading = cx.chunks.want(units.into_iter(), listed, most, id, &mut cx.ids, &mut cx.out);
        if reading {
            let peer_reader = cx.exchanges.supplying_mut(id)?;
            peer_reader.reading = true;
            peer_reader.reserved = wanted.min(most);
            self.charge(cx, id);
            return Some(Sent::Later);
        }
        values.push_back(Value::Missing(id, (want.name, Unit::wanted(want))));
        Some(Sent::Later)
    }

    /// Sends a peer the bytes that are in no unit yet, once it has all units before them.
    fn flow(&self, cx: &mut Context, id: ExchangeId, values: &mut Values) {
        let Some(exchange) = cx.exchanges.get(&id) else { return };
        let State::PeerReader(peer_reader) = &exchange.state else { return };
        let Some(fetch_id) = peer_reader.source.incoming() else { return };
        // Bytes without a unit come last: a peer that still wants units has not got to them.
        if peer_reader.flow.is_some() || !peer_reader.wants.is_empty() {
            return;
        }
        let Some(incoming) = cx.transfers.get(&fetch_id) else { return };
        // A peer that still has segments to come gets those bytes as units.
        let told = incoming.offset_of(peer_reader.segment).is_none();
        let Some(from) = incoming.loose_from().filter(|_| told) else { return };
        let end = incoming.announced.unwrap_or(u64::MAX);
        let pieces = [Piece::Object(from..end)].into();
        let client_reader = ClientReader::new(Source::Incoming(fetch_id), incoming.record, pieces);
        let mut ask = exchange.ask.clone();
        ask.peer_hops.given = from;
        let state = State::ClientReader(Box::new(client_reader));
        let Some(mesh) = &mut cx.mesh else { return };
        // The bytes are read like a client's body, by an exchange of their own.
        let flow = mesh.draw_exchange();
        let credit = ask.peer_hops.credit;
        cx.exchanges.insert(flow, Exchange { ask, credit, state });
        if let Some(peer_reader) = cx.exchanges.supplying_mut(id) {
            peer_reader.flow = Some(flow);
        }
        values.push_back(Value::Join(fetch_id, Reader::new(flow, false, 0), Joins::Flow));
        cx.turns.ready(flow);
    }
}

/// The units that one read of the disk may fetch for a peer. A unit whose length no segment
/// confirms is read by itself.
fn readable(peer_reader: &PeerReader) -> Vec<(ChunkId, u32)> {
    let is_listed = |want: &&Want| !peer_reader.unlisted.contains(&want.name);
    let listed = peer_reader.wants.iter().take(READ_UNITS).take_while(is_listed);
    let mut units: Vec<_> = listed.map(|want| (want.name, want.length)).collect();
    if units.is_empty() {
        units.extend(peer_reader.wants.front().map(|want| (want.name, want.length)));
    }
    units
}

/// `Cache-Status` with our member last. If it is too long, the oldest members are dropped.
fn status_line(upstream: &str, own: &str) -> String {
    let all = if upstream.is_empty() { own.to_owned() } else { format!("{upstream}, {own}") };
    let mut rest = &all[..];
    while rest.len() > Message::STATUS_LINE_MAX {
        rest = rest.split_once(", ").map_or("", |(_, rest)| rest);
    }
    rest.to_owned()
}
