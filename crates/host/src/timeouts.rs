//! How soon the kernel sends again what a peer has not acknowledged (tcp(7), RFC 6298).
//!
//! *What this is:* one option of TCP sockets that no library offers safely, hence `unsafe`. *Who calls
//! it:* what makes connections with peers. *What it never does:* fail; it is a wish. *Where to start:*
//! [`shorten`].

#![allow(unsafe_code, reason = "an option of TCP sockets that no library knows yet")]

use std::ffi::c_int;
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd as _};
use std::ptr;
use std::time::Duration;

/// Linux's number for the least that a retransmission timeout lies above the round trip, in microseconds
/// (since 6.15).
const TCP_RTO_MIN_US: c_int = 45;

/// A packet that is alone on its way and is lost is sent again after a round trip or two and so long. Linux's own
/// 200 ms are several times what a transfer between routers takes. Above the 40 ms for which a peer may keep an
/// acknowledgement to itself, so that nothing is sent twice for that.
const ABOVE_ROUND_TRIP: Duration = Duration::from_millis(50);

/// Linux's own; no more can be set.
const LINUX: Duration = Duration::from_millis(200);

/// Wishes for short timeouts on a socket and on what it will accept. To be said before there is a connection: later
/// it would show only after some round trips. Kernels before 6.15 go on as ever.
pub(crate) fn shorten(socket: &impl AsFd) {
    set(socket, ABOVE_ROUND_TRIP);
}

/// Goes back to keeping acknowledgements for as long as Linux does. Timeouts follow only as far as round trips vary more
/// than they did.
pub(crate) fn restore(socket: &impl AsFd) {
    set(socket, LINUX);
}

fn set(socket: &impl AsFd, above_round_trip: Duration) {
    let micros = above_round_trip.as_micros() as c_int;
    let (fd, value) = (socket.as_fd().as_raw_fd(), ptr::from_ref(&micros).cast());
    let length = size_of::<c_int>() as libc::socklen_t;
    // SAFETY: the kernel reads `length` bytes of `micros`, and nothing of the socket's is ours.
    let _ = unsafe { libc::setsockopt(fd, libc::IPPROTO_TCP, TCP_RTO_MIN_US, value, length) };
}
