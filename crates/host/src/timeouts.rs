//! TCP's retransmission timeout towards peers (tcp(7), RFC 6298).
//!
//! *What this is:* one socket option that no library offers safely, hence `unsafe`. *Who calls it:*
//! the code that makes connections to peers. *What it never does:* fail; the setting is optional.
//! *Where to start:* [`shorten`].

#![allow(unsafe_code, reason = "an option of TCP sockets that no library knows yet")]

use std::ffi::c_int;
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd as _};
use std::ptr;
use std::time::Duration;

/// Linux's number of the option for the minimum of the retransmission timeout beyond the round-trip
/// time, in microseconds (since 6.15).
const TCP_RTO_MIN_US: c_int = 45;

/// If the only packet in flight is lost, it is sent again after one or two round trips plus this
/// time. Linux's default of 200 ms is several times what a transfer between routers takes. A peer
/// may delay an acknowledgement by 40 ms; this time is longer, so that no delayed acknowledgement
/// causes a retransmission.
const ABOVE_ROUND_TRIP: Duration = Duration::from_millis(50);

/// Linux's default, which is also the maximum.
const LINUX: Duration = Duration::from_millis(200);

/// Requests short timeouts for a socket, and for the connections that it accepts. To be called
/// before the connection is made; later it would take effect only after some round trips. Kernels
/// before 6.15 ignore it.
pub(crate) fn shorten(socket: &impl AsFd) {
    set(socket, ABOVE_ROUND_TRIP);
}

/// Restores Linux's default delay of acknowledgements. The retransmission timeout follows only if
/// the round-trip time varies more than before.
pub(crate) fn restore(socket: &impl AsFd) {
    set(socket, LINUX);
}

fn set(socket: &impl AsFd, above_round_trip: Duration) {
    let micros = above_round_trip.as_micros() as c_int;
    let (fd, value) = (socket.as_fd().as_raw_fd(), ptr::from_ref(&micros).cast());
    let length = size_of::<c_int>() as libc::socklen_t;
    // SAFETY: the kernel reads `length` bytes of `micros`, and changes no memory of this process.
    let _ = unsafe { libc::setsockopt(fd, libc::IPPROTO_TCP, TCP_RTO_MIN_US, value, length) };
}
