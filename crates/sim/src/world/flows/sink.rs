//! The receiving end of a flow.

use bytes::Bytes;
use wire::Instant;

use super::shell::Shell;
use super::{Flow, Kind, stamp};
use crate::net::{Host, SocketId};
use crate::world::arrivals::Arrivals;
use crate::world::times::Times;

/// The receiving end of a flow.
#[derive(Debug)]
pub struct Sink {
    /// The flow's index in the list of flows.
    pub number: usize,
    /// Bytes of payload received.
    pub bytes: u64,
    /// Of these, those that arrived before the flow's end.
    pub bytes_in_time: u64,
    /// Number of UDP packets received.
    pub packets: u64,
    /// Arrival times; none of a flow like ssh, where they follow the typing.
    pub arrivals: Arrivals,
    /// One-way delays of numbered UDP packets.
    pub delays: Times,
    pub(super) port: u16,
    socket: Option<SocketId>,
    kind: Kind,
    ends: Option<Instant>,
    shell: Option<Shell>,
}

impl Sink {
    /// The sink of a flow at a port; `seed` is the flow's.
    pub(super) fn new(number: usize, port: u16, flow: &Flow, seed: u64) -> Self {
        Self {
            number,
            bytes: 0,
            bytes_in_time: 0,
            packets: 0,
            arrivals: Arrivals::default(),
            delays: Times::default(),
            port,
            socket: None,
            kind: flow.kind,
            ends: flow.ends,
            shell: (flow.kind == Kind::Ssh).then(|| Shell::new(seed)),
        }
    }

    /// Whether this is its connection.
    pub(super) fn has(&self, id: SocketId) -> bool {
        self.socket == Some(id)
    }

    /// Waits for the flow.
    pub(super) fn listen(&self, host: &mut Host) {
        match self.kind {
            Kind::Tcp | Kind::Ssh => host.listen(self.port),
            Kind::Udp { .. } | Kind::Cbr { .. } | Kind::Vbr { .. } => {
                host.listen_datagrams(self.port);
            }
        }
    }

    /// The flow's connection has been opened.
    pub(super) fn accept(&mut self, host: &mut Host, id: SocketId) {
        self.socket = Some(id);
        if self.shell.is_some() {
            host.set_nodelay(id, true);
        }
    }

    /// Reads what the connection has received.
    pub(super) fn read(&mut self, now: Instant, host: &mut Host, id: SocketId) {
        let before = self.bytes;
        while let Some(data) = host.read(now, id, usize::MAX) {
            self.count(now, data.len() as u64);
        }
        match &mut self.shell {
            Some(shell) => shell.take(now, host, id, self.bytes - before),
            None if self.bytes > before => self.arrivals.add(now),
            None => {}
        }
    }

    /// There is room to write.
    pub(super) fn write(&mut self, now: Instant, host: &mut Host, id: SocketId) {
        self.shell.iter_mut().for_each(|it| it.write(now, host, id));
    }

    /// The source has closed.
    pub(super) fn end(&mut self, now: Instant, host: &mut Host, id: SocketId) {
        match &mut self.shell {
            Some(shell) => shell.end(now, host, id),
            None => host.close(now, id),
        }
    }

    /// A datagram has arrived.
    pub(super) fn receive(&mut self, now: Instant, datagram: &Bytes) {
        self.count(now, datagram.len() as u64);
        self.packets += 1;
        self.arrivals.add(now);
        if let Kind::Cbr { .. } | Kind::Vbr { .. } = self.kind
            && let Some(sent) = stamp::sent(datagram)
        {
            self.delays.record(now - sent);
        }
    }

    fn count(&mut self, now: Instant, bytes: u64) {
        self.bytes += bytes;
        if self.ends.is_none_or(|ends| now <= ends) {
            self.bytes_in_time += bytes;
        }
    }
}
