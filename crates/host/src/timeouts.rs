//! Two options of TCP sockets that no library offers safely, hence `unsafe`: the retransmission timeout
//! towards peers (RFC 6298), and what the kernel knows of a connection (`TCP_INFO`, tcp(7)).
//!
//! *Who calls it:* the code that makes connections to peers, and the uplink's pair. *What it never does:*
//! fail; a kernel that lacks an option ignores it. *Where to start:* [`shorten`], [`flight`].

#![allow(unsafe_code, reason = "options of TCP sockets that no library knows yet")]

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

/// What the kernel knows of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Flight {
    /// Bytes that are sent and not acknowledged, about, or not sent.
    pub bytes: u64,
    /// How fast bytes were acknowledged last, in bytes a second; zero if it is not known.
    pub rate: u64,
    /// The least round trip.
    pub round_trip: Duration,
}

/// The length of `struct tcp_info` up to `tcpi_delivery_rate` (Linux 4.9).
const INFO: usize = 168;

/// Reads [`Flight`]; `None` on kernels that do not tell all of it.
pub(crate) fn flight(socket: &impl AsFd) -> Option<Flight> {
    let mut info = [0u8; INFO];
    let mut length = INFO as libc::socklen_t;
    let fd = socket.as_fd().as_raw_fd();
    // SAFETY: the kernel writes at most `length` bytes to `info`, and how many they were to `length`.
    let result = unsafe {
        let value = info.as_mut_ptr().cast();
        libc::getsockopt(fd, libc::IPPROTO_TCP, libc::TCP_INFO, value, &raw mut length)
    };
    if result != 0 || (length as usize) < INFO {
        return None;
    }
    let word = |at: usize| info[at..at + 4].try_into().map(u32::from_ne_bytes).unwrap_or_default();
    let long = |at: usize| info[at..at + 8].try_into().map(u64::from_ne_bytes).unwrap_or_default();
    // The offsets of tcpi_snd_mss, tcpi_unacked, tcpi_notsent_bytes, tcpi_min_rtt and tcpi_delivery_rate.
    let (segment, unacked, unsent) =
        (u64::from(word(16)), u64::from(word(24)), u64::from(word(144)));
    Some(Flight {
        bytes: segment * unacked + unsent,
        rate: long(160),
        round_trip: Duration::from_micros(word(148).into()),
    })
}
