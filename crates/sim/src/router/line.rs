//! The connection of a pair: carries bytes between its socket and an engine, with little unsent in the socket,
//! so that what is urgent then goes first.

use bytes::Bytes;
use node::uplink::{Far, FarInput, Near, NearInput};
use wire::Instant;

use crate::hosts::read;
use crate::net::{Host, SocketId};

/// The socket takes more while less than this is unsent, in bytes, as in the daemon.
const UNSENT_BYTES: usize = 4 * 1024;
/// Bytes that are read at one time at most.
const READ_MAX: usize = 64 * 1024;

/// An engine, as its connection sees it.
pub(super) trait End {
    /// Bytes have arrived.
    fn receive(&mut self, now: Instant, bytes: Bytes);

    /// The next bytes to send.
    fn transmit(&mut self, now: Instant) -> Option<Bytes>;

    /// Whether bytes may be received now.
    fn may_receive(&self) -> bool;
}

/// One connection.
#[derive(Debug)]
pub(super) struct Line {
    pub socket: SocketId,
    /// It is made.
    is_open: bool,
    /// The other end has closed its side; data before that may still be unread.
    is_ended: bool,
    /// It must end once nothing is left to send.
    is_over: bool,
    unsent: Bytes,
}

/// What has happened on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Moved {
    Nothing,
    Something,
    /// It has ended.
    End,
}

impl Line {
    /// A connection that is being made, or that the other end has made.
    pub fn new(socket: SocketId, is_open: bool) -> Self {
        Self { socket, is_open, is_ended: false, is_over: false, unsent: Bytes::new() }
    }

    /// It is made.
    pub fn open(&mut self, host: &mut Host) {
        host.set_nodelay(self.socket, true);
        self.is_open = true;
    }

    /// The other end has closed its side.
    pub fn ended(&mut self) {
        self.is_ended = true;
    }

    /// The engine wants it to end.
    pub fn hang_up(&mut self) {
        self.is_over = true;
    }

    /// Sends what the socket takes, and reads once.
    pub fn flush(&mut self, now: Instant, host: &mut Host, end: &mut impl End) -> Moved {
        if !self.is_open {
            return Moved::Nothing;
        }
        let mut moved = self.send(now, host, end);
        if self.is_over && self.unsent.is_empty() {
            host.close(now, self.socket);
            return Moved::End;
        }
        if !self.is_over && end.may_receive() {
            if let Some(bytes) = read(now, host, self.socket, READ_MAX) {
                end.receive(now, bytes);
                moved = Moved::Something;
            } else if self.is_ended {
                host.close(now, self.socket);
                return Moved::End;
            }
        }
        moved
    }

    fn send(&mut self, now: Instant, host: &mut Host, end: &mut impl End) -> Moved {
        let mut moved = Moved::Nothing;
        loop {
            if self.unsent.is_empty() {
                if !host.wants_more(self.socket, UNSENT_BYTES) {
                    return moved;
                }
                let Some(bytes) = end.transmit(now) else { return moved };
                self.unsent = bytes;
                moved = Moved::Something;
            }
            host.write(now, self.socket, &mut self.unsent);
            if !self.unsent.is_empty() {
                return moved;
            }
        }
    }
}

impl End for Near {
    fn receive(&mut self, now: Instant, bytes: Bytes) {
        self.handle_input(now, NearInput::Received(bytes));
    }

    fn transmit(&mut self, now: Instant) -> Option<Bytes> {
        self.poll_transmit(now)
    }

    fn may_receive(&self) -> bool {
        Self::may_receive(self)
    }
}

impl End for Far {
    fn receive(&mut self, now: Instant, bytes: Bytes) {
        self.handle_input(now, FarInput::Received(bytes));
    }

    fn transmit(&mut self, now: Instant) -> Option<Bytes> {
        self.poll_transmit(now)
    }

    fn may_receive(&self) -> bool {
        Self::may_receive(self)
    }
}
