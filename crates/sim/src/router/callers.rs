//! Clients' intercepted connections: reads requests, writes responses, and grants the engine credit as
//! responses leave.
//!
//! Requests with content and tunnels are aborted; no simulated client sends them.

#![deny(clippy::wildcard_enum_match_arm, reason = "no output may be overlooked")]

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderValue, Method, StatusCode, Version, header};
use node::driver::admission::{Admission, CONNECTIONS_MAX, Slot};
use node::driver::{ClientWindow, HEAD_READ_MAX, Network};
use node::{ClientInput, ClientOutput, Entrance, ExchangeId, Head, Input, Request};
use wire::{Date, Instant};

use super::date;
use crate::hosts::format_date;
use crate::hosts::http::{
    CHUNK_END, LAST_CHUNK, Part, Reader, RequestHead, chunk_size, keeps_alive, response,
};
use crate::net::{Host, SocketId};

/// All clients' connections.
#[derive(Debug)]
pub(super) struct Callers {
    admission: Admission,
    slots: BTreeMap<Slot, SocketId>,
    connections: BTreeMap<SocketId, Caller>,
    exchanges: BTreeMap<ExchangeId, SocketId>,
    /// Connections that have something to write.
    changed: BTreeSet<SocketId>,
    numbered: u64,
}

#[derive(Debug)]
struct Caller {
    slot: Slot,
    client: IpAddr,
    /// The address that the client dialled.
    dialled: SocketAddr,
    reader: Reader,
    /// Pipelined requests that wait for the current one to end.
    waiting: VecDeque<RequestHead>,
    turn: Option<Turn>,
    /// What to write: pieces, and how many bytes of each are content.
    queue: VecDeque<(Bytes, u64)>,
    /// The client has closed its side.
    is_ended: bool,
}

/// The request that is being answered.
#[derive(Debug)]
struct Turn {
    id: ExchangeId,
    version: Version,
    /// Whether the connection is kept for another request.
    keeps: bool,
    to_head: bool,
    is_chunked: bool,
    /// Credit for content, and how much of it was written.
    window: ClientWindow,
    is_answered: bool,
    is_over: bool,
}

impl Callers {
    /// No connections. `memory_bytes` is the engine's budget, which limits their number.
    pub fn new(memory_bytes: u64) -> Self {
        Self {
            admission: Admission::new(CONNECTIONS_MAX, memory_bytes),
            slots: BTreeMap::new(),
            connections: BTreeMap::new(),
            exchanges: BTreeMap::new(),
            changed: BTreeSet::new(),
            numbered: 0,
        }
    }

    /// Accepts an intercepted connection.
    pub fn accept(
        &mut self,
        now: Instant,
        host: &mut Host,
        socket: SocketId,
        client: SocketAddr,
        dialled: SocketAddr,
        inputs: &mut VecDeque<Input>,
    ) {
        let network = Network::of(client.ip());
        let Ok(slot) = self.admission.arrive(now, Some(network), Arc::default()) else {
            // A refused client cannot bypass the router here, so it must try again.
            return host.abort(now, socket);
        };
        self.slots.insert(slot, socket);
        let caller = Caller {
            slot,
            client: client.ip(),
            dialled,
            reader: Reader::new::<RequestHead>(),
            waiting: VecDeque::new(),
            turn: None,
            queue: VecDeque::new(),
            is_ended: false,
        };
        self.connections.insert(socket, caller);
        self.make_room(now, host, inputs);
    }

    /// Aborts connections that admission closes to make room for others.
    fn make_room(&mut self, now: Instant, host: &mut Host, inputs: &mut VecDeque<Input>) {
        while let Some((slot, _)) = self.admission.poll_closed() {
            if let Some(socket) = self.slots.get(&slot).copied() {
                self.leave(now, host, socket, inputs);
            }
        }
    }

    fn forget(&mut self, socket: SocketId) -> Option<Caller> {
        let caller = self.connections.remove(&socket)?;
        self.slots.remove(&caller.slot);
        self.admission.leave(caller.slot);
        Some(caller)
    }

    /// Whether this socket is a client's.
    pub fn has(&self, socket: SocketId) -> bool {
        self.connections.contains_key(&socket)
    }

    /// A client's connection can be read.
    pub fn readable(
        &mut self,
        now: Instant,
        host: &mut Host,
        socket: SocketId,
        inputs: &mut VecDeque<Input>,
    ) {
        let Some(caller) = self.connections.get_mut(&socket) else { return };
        // While a request is answered, the next one waits in the socket.
        while caller.turn.is_none()
            && caller.waiting.is_empty()
            && let Some(bytes) = host.read(now, socket, HEAD_READ_MAX)
        {
            caller.reader.push(bytes);
            loop {
                match caller.reader.poll::<RequestHead>() {
                    Ok(Some(Part::Head(head))) => caller.waiting.push_back(head),
                    Ok(Some(Part::End)) => {}
                    Ok(None) => break,
                    Ok(Some(Part::Body(_))) | Err(_) => {
                        return self.leave(now, host, socket, inputs);
                    }
                }
            }
        }
        self.begin(now, host, socket, inputs);
    }

    /// A client's connection can be written again.
    pub fn writable(&mut self, socket: SocketId) {
        self.changed.insert(socket);
    }

    /// A client has closed its side. As in the daemon, that cancels the current request.
    pub fn ended(
        &mut self,
        now: Instant,
        host: &mut Host,
        socket: SocketId,
        inputs: &mut VecDeque<Input>,
    ) {
        let Some(caller) = self.connections.get_mut(&socket) else { return };
        caller.is_ended = true;
        if caller.turn.is_some() {
            self.leave(now, host, socket, inputs);
        } else if caller.queue.is_empty() {
            self.forget(socket);
            host.close(now, socket);
        }
    }

    /// A connection has ended.
    pub fn closed(&mut self, socket: SocketId, inputs: &mut VecDeque<Input>) {
        self.changed.remove(&socket);
        let caller = self.forget(socket);
        if let Some(turn) = caller.and_then(|caller| caller.turn)
            && self.exchanges.remove(&turn.id).is_some()
        {
            inputs.push_back(Input::Client(ClientInput::Gone(turn.id)));
        }
    }

    /// Aborts a connection.
    fn leave(
        &mut self,
        now: Instant,
        host: &mut Host,
        socket: SocketId,
        inputs: &mut VecDeque<Input>,
    ) {
        self.closed(socket, inputs);
        host.abort(now, socket);
    }

    /// Starts the next request, unless one is being answered.
    fn begin(
        &mut self,
        now: Instant,
        host: &mut Host,
        socket: SocketId,
        inputs: &mut VecDeque<Input>,
    ) {
        let Some(caller) = self.connections.get_mut(&socket) else { return };
        if caller.turn.is_some() {
            return;
        }
        let Some(head) = caller.waiting.pop_front() else { return };
        // Without memory for another response the connection is closed.
        let Some(window) = self.admission.begin(now, caller.slot) else {
            return self.leave(now, host, socket, inputs);
        };
        self.numbered += 1;
        let id = ExchangeId(self.numbered);
        caller.turn = Some(Turn {
            id,
            version: head.version,
            keeps: keeps_alive(head.version, &head.headers),
            to_head: head.method == Method::HEAD,
            is_chunked: false,
            window: ClientWindow::new(window),
            is_answered: false,
            is_over: false,
        });
        let request = Request {
            method: head.method,
            uri: head.uri,
            version: head.version,
            headers: head.headers,
            has_body: false,
            client: caller.client,
            at_home: false,
            behind_uplink: false,
            entrance: Entrance::Intercepted(caller.dialled),
            expected: None,
            binding: None,
        };
        self.exchanges.insert(id, socket);
        inputs.push_back(Input::Client(ClientInput::Request(id, Box::new(request))));
        inputs.push_back(Input::Client(ClientInput::Credit(id, window)));
        // The new exchange takes memory, for which admission may close idle connections.
        self.make_room(now, host, inputs);
    }

    fn with_turn(&mut self, id: ExchangeId, what: impl FnOnce(&mut Turn, &mut Queue)) {
        let Some(socket) = self.exchanges.get(&id).copied() else { return };
        let Some(caller) = self.connections.get_mut(&socket) else { return };
        let Some(turn) = caller.turn.as_mut() else { return };
        what(turn, &mut caller.queue);
        self.changed.insert(socket);
    }

    /// Performs an output of the engine for a client.
    pub fn perform(&mut self, now: Instant, output: ClientOutput) {
        match output {
            ClientOutput::Respond(id, head) => self.respond(id, *head, date(now)),
            ClientOutput::Data(id, bytes) => self.give(id, bytes),
            ClientOutput::Finish(id) => self.end(id, true),
            ClientOutput::Abort(id) | ClientOutput::Tunnel(id, ..) | ClientOutput::Relay(id, _) => {
                self.end(id, false)
            }
            // In the simulator no file is published, and origins send no interim responses.
            ClientOutput::Published(..) | ClientOutput::Interim(..) => {}
        }
    }

    /// Queues a response's head.
    fn respond(&mut self, id: ExchangeId, head: Head, date: Date) {
        self.with_turn(id, |turn, queue| {
            let Head { status, mut headers, length } = head;
            let has_content = !turn.to_head && may_have_content(status);
            match length {
                _ if !has_content => {}
                Some(length) => {
                    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
                }
                None if turn.version >= Version::HTTP_11 => {
                    let chunked = HeaderValue::from_static("chunked");
                    headers.insert(header::TRANSFER_ENCODING, chunked);
                    turn.is_chunked = true;
                }
                None => turn.keeps = false,
            }
            if !headers.contains_key(header::DATE) {
                let value = HeaderValue::try_from(format_date(date));
                headers.extend(value.ok().map(|value| (header::DATE, value)));
            }
            turn.is_answered = true;
            queue.push_back((response(status, &headers), 0));
        });
    }

    /// Queues content.
    fn give(&mut self, id: ExchangeId, bytes: Bytes) {
        self.with_turn(id, |turn, queue| {
            let count = bytes.len() as u64;
            if turn.is_chunked {
                queue.push_back((chunk_size(bytes.len()), 0));
                queue.push_back((bytes, count));
                queue.push_back((CHUNK_END, 0));
            } else {
                queue.push_back((bytes, count));
            }
        });
    }

    /// Ends a response, complete or not.
    fn end(&mut self, id: ExchangeId, is_complete: bool) {
        self.with_turn(id, |turn, queue| {
            turn.is_over = true;
            if !turn.is_answered {
                // The engine gives a head before each end. Should it not, the client gets a 502.
                let length = (header::CONTENT_LENGTH, HeaderValue::from_static("0"));
                let head = response(StatusCode::BAD_GATEWAY, &[length].into_iter().collect());
                queue.push_back((head, 0));
            } else if !is_complete {
                turn.keeps = false;
            } else if turn.is_chunked {
                queue.push_back((LAST_CHUNK, 0));
            }
        });
        self.exchanges.remove(&id);
    }

    /// Writes as much as sockets take, and grants credit for what was written.
    pub fn flush(&mut self, now: Instant, host: &mut Host, inputs: &mut VecDeque<Input>) {
        while let Some(socket) = self.changed.pop_first() {
            let Some(caller) = self.connections.get_mut(&socket) else { continue };
            let written = caller.write(now, host, socket);
            let Some(turn) = &mut caller.turn else { continue };
            turn.window.took(written);
            let is_empty = caller.queue.is_empty();
            if !turn.is_over {
                let credit = turn.window.give_back(is_empty);
                inputs
                    .extend(credit.map(|bytes| Input::Client(ClientInput::Credit(turn.id, bytes))));
            } else if is_empty {
                let keeps = turn.keeps && !caller.is_ended;
                caller.turn = None;
                self.admission.end(now, caller.slot);
                if keeps {
                    self.begin(now, host, socket, inputs);
                    self.readable(now, host, socket, inputs);
                } else {
                    self.forget(socket);
                    host.close(now, socket);
                }
            }
        }
    }
}

type Queue = VecDeque<(Bytes, u64)>;

impl Caller {
    /// Writes as much as the socket takes. Returns how much of that was content.
    fn write(&mut self, now: Instant, host: &mut Host, socket: SocketId) -> u64 {
        let mut written = 0;
        while let Some((bytes, content)) = self.queue.front_mut() {
            let count = host.write(now, socket, bytes) as u64;
            if *content > 0 {
                *content -= count;
                written += count;
            }
            if !bytes.is_empty() {
                break;
            }
            self.queue.pop_front();
        }
        written
    }
}

fn may_have_content(status: StatusCode) -> bool {
    !status.is_informational() && !matches!(status.as_u16(), 204 | 304)
}
