//! The sending end of a flow.

use std::net::SocketAddrV4;

use bytes::Bytes;
use wire::Instant;

use super::shell::Typist;
use super::stamp::stamped;
use super::video::{self, Video};
use super::{DATAGRAM_BYTES, Flow, Kind, NOTHING, interval_nanos};
use crate::net::tcp::{Connection, End};
use crate::net::{Host, SocketId};
use crate::world::flow_outcome::Sending;

/// A TCP flow with an end has no more unsent bytes than these, so that little follows after its end.
const AHEAD_BYTES: usize = 32_768;

/// The sending end of a flow.
#[derive(Debug)]
pub struct Source {
    /// The flow's index in the list of flows.
    pub number: usize,
    /// How its connection ended, if it has.
    pub ended: Option<End>,
    /// Number of UDP packets sent; for TCP 1 once the connection has begun.
    pub sent: u64,
    to: SocketAddrV4,
    flow: Flow,
    socket: Option<SocketId>,
    /// What the connection did, once it has ended.
    did: Option<Sending>,
    /// Nothing is sent any more.
    closed: bool,
    /// Number of video frames sent.
    frames: u64,
    form: Form,
}

/// What a flow needs to know besides its kind.
#[derive(Debug)]
enum Form {
    Plain,
    Video(Video),
    Typed(Box<Typist>),
}

impl Source {
    /// The source of a flow to `to`; `seed` is the flow's.
    pub(super) fn new(number: usize, to: SocketAddrV4, flow: Flow, seed: u64) -> Self {
        let form = match flow.kind {
            Kind::Tcp | Kind::Udp { .. } | Kind::Cbr { .. } => Form::Plain,
            Kind::Vbr { bits_per_second, .. } => Form::Video(Video::new(bits_per_second, seed)),
            Kind::Ssh => Form::Typed(Box::new(Typist::new(seed))),
        };
        let (ended, socket, did) = (None, None, None);
        Self { number, ended, sent: 0, to, flow, socket, did, closed: false, frames: 0, form }
    }

    /// Whether this is its connection.
    pub(super) fn has(&self, id: SocketId) -> bool {
        self.socket == Some(id)
    }

    /// The person who types, if the flow is like ssh.
    pub(in crate::world) fn typist(&self) -> Option<&Typist> {
        match &self.form {
            Form::Typed(typist) => Some(typist),
            Form::Plain | Form::Video(_) => None,
        }
    }

    /// When it sends its next packet, opens its connection, or ends.
    pub(super) fn due(&self) -> Option<Instant> {
        let ends = self.flow.ends;
        if self.closed || self.ended.is_some() {
            return None;
        }
        let after_start = |nanos: u64| {
            // Times are computed from the flow's start, so that they do not drift.
            self.flow.starts.as_nanos().checked_add(nanos).map(Instant::from_nanos)
        };
        let due = match self.flow.kind {
            Kind::Tcp | Kind::Ssh if self.sent == 0 => Some(self.flow.starts),
            Kind::Tcp => ends,
            Kind::Ssh => self.typist().and_then(|it| it.next).into_iter().chain(ends).min(),
            Kind::Udp { bits_per_second } => {
                after_start(interval_nanos(self.sent, DATAGRAM_BYTES, bits_per_second)?)
            }
            Kind::Cbr { bits_per_second, bytes } => {
                after_start(interval_nanos(self.sent, bytes, bits_per_second)?)
            }
            Kind::Vbr { .. } => {
                after_start(self.frames.checked_mul(video::INTERVAL.as_nanos() as u64)?)
            }
        };
        due.filter(|at| self.is_reliable() || ends.is_none_or(|ends| *at < ends))
    }

    /// Does what is due.
    pub(super) fn handle_timeout(&mut self, now: Instant, host: &mut Host) {
        if self.is_reliable() {
            return self.keep_connection(now, host);
        }
        match (self.flow.kind, &mut self.form) {
            (Kind::Vbr { bytes, .. }, Form::Video(video)) => {
                let mut left = video.next_bytes() as usize;
                while left > 0 {
                    let piece = left.min(bytes);
                    let datagram = stamped(self.sent, now, piece);
                    host.send_datagram(now, self.to.port(), self.to, datagram);
                    self.sent += 1;
                    left -= piece;
                }
                self.frames += 1;
                return;
            }
            (Kind::Cbr { bytes, .. }, _) => {
                let datagram = stamped(self.sent, now, bytes);
                host.send_datagram(now, self.to.port(), self.to, datagram);
            }
            _ => {
                let payload = Bytes::from_static(&NOTHING[..DATAGRAM_BYTES]);
                host.send_datagram(now, self.to.port(), self.to, payload);
            }
        }
        self.sent += 1;
    }

    /// Opens the connection, types, or closes.
    fn keep_connection(&mut self, now: Instant, host: &mut Host) {
        if self.flow.ends.is_some_and(|ends| ends <= now) {
            self.closed = true;
            self.socket.into_iter().for_each(|id| host.close(now, id));
        } else if self.sent == 0 {
            self.socket = host.connect(now, self.to).ok();
            self.sent = 1;
        } else if let (Form::Typed(typist), Some(id)) = (&mut self.form, self.socket) {
            typist.strike(now, host, id);
        }
    }

    /// The connection is open.
    pub(super) fn begin(&mut self, now: Instant, host: &mut Host, id: SocketId) {
        match &mut self.form {
            Form::Typed(typist) => typist.begin(now, host, id),
            Form::Plain | Form::Video(_) => self.fill(now, host, id),
        }
    }

    /// Writes as much as fits, or as a flow with an end may have unsent.
    pub(super) fn fill(&self, now: Instant, host: &mut Host, id: SocketId) {
        if self.flow.kind != Kind::Tcp || self.closed {
            return;
        }
        let piece = || match self.flow.ends {
            None => Bytes::from_static(&NOTHING),
            Some(_) => Bytes::from_static(&NOTHING[..AHEAD_BYTES]),
        };
        let wants = |host: &mut Host| match self.flow.ends {
            None => true,
            Some(_) => host.wants_more(id, AHEAD_BYTES),
        };
        while wants(host) && host.write(now, id, &mut piece()) > 0 {}
    }

    /// Reads what the other end has sent back.
    pub(super) fn read(&mut self, now: Instant, host: &mut Host, id: SocketId) {
        if let Form::Typed(typist) = &mut self.form {
            typist.read(now, host, id);
        }
    }

    /// The connection has ended, and is about to be forgotten.
    pub(super) fn end(&mut self, now: Instant, host: &Host, why: End) {
        self.did = self.sending(now, host);
        self.ended = Some(why);
    }

    /// What its connection has done until `now`, or until its end; `None` if it has had none.
    pub(in crate::world) fn sending(&self, now: Instant, host: &Host) -> Option<Sending> {
        let figures = |it: &Connection| Sending::of(it.counters(), it.phase_times(now));
        self.did.or_else(|| host.ending(self.socket?).map(figures))
    }

    /// Whether it goes over TCP.
    fn is_reliable(&self) -> bool {
        matches!(self.flow.kind, Kind::Tcp | Kind::Ssh)
    }
}
