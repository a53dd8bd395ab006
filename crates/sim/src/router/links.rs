//! Connections with peers: performs the engine's outputs on sockets, and gives their events to the engine,
//! with the daemon's limits and timeouts.

#![deny(clippy::wildcard_enum_match_arm, reason = "no output may be overlooked")]

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::{IpAddr, SocketAddr};

use node::driver::LinkBuffer;
use node::driver::links::{DIAL, Farewells, LINGER, LinkSlot, LinkSlots, room};
use node::{Input, LinkId, LinkInput, LinkOutput};
use wire::Instant;

use crate::hosts::{discard, read};
use crate::net::{Host, SocketId};

/// All connections with peers.
#[derive(Debug, Default)]
pub(super) struct Links {
    slots: LinkSlots,
    links: BTreeMap<LinkId, LinkState>,
    ids: BTreeMap<SocketId, LinkId>,
    /// Connections that are hung up but not closed.
    parting: BTreeMap<SocketId, Parting>,
    farewells: Farewells<SocketId>,
    /// Connections that the engine has written to or wants to read from.
    changed: BTreeSet<LinkId>,
    /// When each unanswered dial times out. All have the same timeout, so they are in order.
    dials: VecDeque<(Instant, LinkId)>,
    accepted: u64,
}

#[derive(Debug)]
struct LinkState {
    slot: LinkSlot,
    socket: SocketId,
    buffer: LinkBuffer,
    is_open: bool,
    /// Data may be waiting in the socket.
    is_readable: bool,
    /// The peer has closed its side; data before that may still be unread.
    is_ended: bool,
}

#[derive(Debug)]
struct Parting {
    slot: LinkSlot,
    buffer: LinkBuffer,
    /// The peer has closed its side.
    is_ended: bool,
    until: Instant,
}

impl Links {
    /// Performs an output of the engine. [`flush`](Self::flush) writes and reads.
    pub fn perform(
        &mut self,
        now: Instant,
        host: &mut Host,
        output: LinkOutput,
        inputs: &mut VecDeque<Input>,
    ) {
        match output {
            LinkOutput::Connect(id, to) => {
                if !self.dial(now, host, id, to) {
                    inputs.push_back(Input::Link(LinkInput::Closed(id)));
                }
            }
            LinkOutput::Hangup(id) => self.hang_up(now, host, id, output),
            LinkOutput::Write(id, _)
            | LinkOutput::Receive(id, _)
            | LinkOutput::ReadThreshold(id, _)
            | LinkOutput::BulkData(id) => {
                if self.links.get_mut(&id).is_some_and(|link| link.buffer.take(output)) {
                    self.changed.insert(id);
                }
            }
        }
    }

    fn dial(&mut self, now: Instant, host: &mut Host, id: LinkId, to: SocketAddr) -> bool {
        let SocketAddr::V4(to) = to else { return false };
        if !self.slots.take(LinkSlot::Dialled) {
            return false;
        }
        let Ok(socket) = host.connect(now, to) else {
            self.slots.release(LinkSlot::Dialled);
            return false;
        };
        self.add(id, socket, LinkSlot::Dialled, false);
        self.dials.push_back((now + DIAL, id));
        true
    }

    fn add(&mut self, id: LinkId, socket: SocketId, slot: LinkSlot, is_open: bool) {
        let link = LinkState {
            slot,
            socket,
            buffer: LinkBuffer::default(),
            is_open,
            is_readable: false,
            is_ended: false,
        };
        self.links.insert(id, link);
        self.ids.insert(socket, id);
    }

    /// A peer has connected.
    pub fn accept(
        &mut self,
        now: Instant,
        host: &mut Host,
        socket: SocketId,
        from: SocketAddr,
        inputs: &mut VecDeque<Input>,
    ) {
        let slot = LinkSlot::Accepted(from.ip());
        if !self.slots.take(slot) {
            // A simulated host accepts at once, so a connection cannot wait for a slot.
            return host.abort(now, socket);
        }
        let id = LinkId::accepted(self.accepted);
        self.accepted += 1;
        self.add(id, socket, slot, true);
        inputs.push_back(Input::Link(LinkInput::Accepted(id, from)));
        inputs.push_back(Input::Link(LinkInput::Room(id, room(self.links.len()))));
    }

    /// Whether this socket is a peer's connection, open or hung up.
    pub fn has(&self, socket: SocketId) -> bool {
        self.ids.contains_key(&socket) || self.parting.contains_key(&socket)
    }

    /// A dial to a peer has succeeded.
    pub fn connected(&mut self, socket: SocketId, inputs: &mut VecDeque<Input>) {
        let Some(id) = self.ids.get(&socket) else { return };
        if let Some(link) = self.links.get_mut(id) {
            link.is_open = true;
            inputs.push_back(Input::Link(LinkInput::Connected(*id)));
            inputs.push_back(Input::Link(LinkInput::Room(*id, room(self.links.len()))));
        }
    }

    /// A socket can be read (`is_readable`) or written.
    pub fn ready(&mut self, now: Instant, host: &mut Host, socket: SocketId, is_readable: bool) {
        if let Some(id) = self.ids.get(&socket)
            && let Some(link) = self.links.get_mut(id)
        {
            link.is_readable |= is_readable;
            self.changed.insert(*id);
        } else {
            self.part(now, host, socket);
        }
    }

    /// A peer has closed its side.
    pub fn ended(&mut self, now: Instant, host: &mut Host, socket: SocketId) {
        if let Some(link) = self.ids.get(&socket).and_then(|id| self.links.get_mut(id)) {
            link.is_ended = true;
        } else if let Some(parting) = self.parting.get_mut(&socket) {
            parting.is_ended = true;
        }
        self.ready(now, host, socket, true);
    }

    /// A connection has ended.
    pub fn closed(&mut self, socket: SocketId, inputs: &mut VecDeque<Input>) {
        self.forget_parting(socket);
        if let Some(id) = self.ids.remove(&socket) {
            if let Some(link) = self.links.remove(&id) {
                self.slots.release(link.slot);
            }
            inputs.push_back(Input::Link(LinkInput::Closed(id)));
        }
    }

    /// Writes and reads as much as possible.
    pub fn flush(&mut self, now: Instant, host: &mut Host, inputs: &mut VecDeque<Input>) {
        while let Some(id) = self.changed.pop_first() {
            let Some(link) = self.links.get_mut(&id).filter(|link| link.is_open) else { continue };
            if link.buffer.turns_bulk() {
                // Units are not multiples of a packet: with Nagle's algorithm the rest of one goes with the
                // next.
                host.set_nodelay(link.socket, false);
            }
            let written = write(now, host, link.socket, &mut link.buffer);
            if written > 0 {
                inputs.push_back(Input::Link(LinkInput::Room(id, written)));
            }
            let most = link.buffer.most() as usize;
            if !link.is_readable || most == 0 || link.leaves(now, host) {
                continue;
            }
            let bytes = read(now, host, link.socket, most);
            link.buffer.received(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64));
            link.is_readable = bytes.is_some();
            if let Some(bytes) = bytes {
                inputs.push_back(Input::Link(LinkInput::Received(id, bytes)));
                // The engine takes this input before more is read, and other connections get their turn.
                self.changed.insert(id);
                return;
            }
            if link.is_ended {
                let socket = link.socket;
                host.close(now, socket);
                self.closed(socket, inputs);
            }
        }
    }

    /// Sends what was written, then closes the connection.
    fn hang_up(&mut self, now: Instant, host: &mut Host, id: LinkId, output: LinkOutput) {
        let Some(mut link) = self.links.remove(&id) else { return };
        link.buffer.take(output);
        self.ids.remove(&link.socket);
        if !link.is_open {
            self.slots.release(link.slot);
            return host.abort(now, link.socket);
        }
        let LinkState { slot, buffer, is_ended, .. } = link;
        let parting = Parting { slot, buffer, is_ended, until: now + LINGER };
        self.parting.insert(link.socket, parting);
        if let Some(oldest) = self.farewells.begin(link.socket) {
            host.abort(now, oldest);
            self.forget_parting(oldest);
        }
        self.part(now, host, link.socket);
    }

    /// Continues a hang-up.
    fn part(&mut self, now: Instant, host: &mut Host, socket: SocketId) {
        let Some(parting) = self.parting.get_mut(&socket) else { return };
        write(now, host, socket, &mut parting.buffer);
        if parting.buffer.is_parting() {
            let is_ended = parting.is_ended;
            host.close(now, socket);
            discard(now, host, socket);
            if is_ended {
                self.forget_parting(socket);
            }
        }
    }

    /// When the next dial or hang-up times out.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let dial = self.dials.front().map(|(until, _)| *until);
        let parting = self.parting.values().map(|it| it.until).min();
        let gathering = self.links.values().filter_map(|link| link.buffer.poll_timeout()).min();
        [dial, parting, gathering].into_iter().flatten().min()
    }

    /// Ends dials and hang-ups that have timed out.
    pub fn handle_timeout(&mut self, now: Instant, host: &mut Host, inputs: &mut VecDeque<Input>) {
        while let Some((until, id)) = self.dials.front().copied()
            && until <= now
        {
            self.dials.pop_front();
            if let Some(link) = self.links.get(&id).filter(|link| !link.is_open) {
                let socket = link.socket;
                host.abort(now, socket);
                self.closed(socket, inputs);
            }
        }
        for (id, link) in &mut self.links {
            if link.buffer.poll_timeout().is_some_and(|until| until <= now) {
                link.is_readable = true;
                self.changed.insert(*id);
            }
        }
        let late = self.parting.iter().filter(|(_, it)| it.until <= now);
        let late: Vec<_> = late.map(|(socket, _)| *socket).collect();
        for socket in late {
            // The daemon's kernel may still send data of a socket that is dropped; here the connection ends
            // at once.
            host.abort(now, socket);
            self.forget_parting(socket);
        }
    }

    fn forget_parting(&mut self, socket: SocketId) {
        if let Some(parting) = self.parting.remove(&socket) {
            self.slots.release(parting.slot);
        }
        self.farewells.end(|other| *other == socket);
    }
}

impl LinkState {
    /// Whether received data stays in the socket for now.
    fn leaves(&mut self, now: Instant, host: &mut Host) -> bool {
        let unread = host.readable(self.socket);
        let is_left = self.buffer.leaves(now, unread as u64, self.is_ended);
        if is_left {
            self.is_readable = false;
            if unread > 0 {
                host.gather(self.socket, self.buffer.least() as usize);
            }
        }
        is_left
    }
}

/// Writes as much as the socket takes. Returns how much that was.
fn write(now: Instant, host: &mut Host, socket: SocketId, buffer: &mut LinkBuffer) -> u64 {
    let mut written = 0;
    loop {
        let Some(mut front) = buffer.pieces().next().cloned() else { return written };
        let count = host.write(now, socket, &mut front);
        buffer.wrote(count);
        written += count as u64;
        if !front.is_empty() {
            return written;
        }
    }
}

/// A peer's address as the engine has it.
pub(super) fn plain(address: std::net::SocketAddrV4) -> SocketAddr {
    SocketAddr::new(IpAddr::V4(*address.ip()), address.port())
}
