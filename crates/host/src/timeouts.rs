//! What no library does safely with TCP sockets, hence `unsafe`: the retransmission timeout towards peers (RFC 6298), what
//! the kernel knows of a connection (`TCP_INFO`, tcp(7)), and the end of one that somebody else reads.
//!
//! *Who calls it:* the code that makes connections to peers, the uplink's pair, and `traffic.rs`. *What it never
//! does:* fail; a kernel that lacks an option ignores it. *Where to start:* [`shorten`], [`flight`], [`flow`].

#![allow(unsafe_code, reason = "options of TCP sockets that no library knows yet")]

use std::ffi::c_int;
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd as _, RawFd};
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
    let info = info::<INFO>(socket.as_fd().as_raw_fd())?;
    let (word, long) = (|at| word(&info, at), |at| long(&info, at));
    // The offsets of tcpi_snd_mss, tcpi_unacked, tcpi_notsent_bytes, tcpi_min_rtt and tcpi_delivery_rate.
    let (segment, unacked, unsent) =
        (u64::from(word(16)), u64::from(word(24)), u64::from(word(144)));
    Some(Flight {
        bytes: segment * unacked + unsent,
        rate: long(160),
        round_trip: Duration::from_micros(word(148).into()),
    })
}

/// What has crossed a connection since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Flow {
    /// Payload bytes sent; again, where they were sent again.
    pub sent: u64,
    /// Payload bytes received, each once.
    pub received: u64,
    /// Segments sent and received, pure acknowledgements included; the kernel counts them modulo 2^32.
    pub segments_out: u32,
    pub segments_in: u32,
    /// Bytes that wait to be sent.
    pub unsent: u64,
    /// The payload of a full segment.
    pub segment: u64,
    /// Whether segments carry timestamps (RFC 7323).
    pub has_timestamps: bool,
}

/// The length of `struct tcp_info` up to `tcpi_bytes_sent` (Linux 4.19).
const INFO_SENT: usize = 208;
/// `TCPI_OPT_TIMESTAMPS`.
const TIMESTAMPS: u8 = 1;

/// Reads [`Flow`] of an open socket; `None` on kernels that do not tell all of it, and of a closed one.
pub(crate) fn flow(fd: RawFd) -> Option<Flow> {
    let info = info::<INFO_SENT>(fd)?;
    // The offsets of tcpi_bytes_sent, tcpi_bytes_received, tcpi_segs_out, tcpi_segs_in, tcpi_notsent_bytes,
    // tcpi_snd_mss and tcpi_options.
    Some(Flow {
        sent: long(&info, 200),
        received: long(&info, 128),
        segments_out: word(&info, 136),
        segments_in: word(&info, 140),
        unsent: word(&info, 144).into(),
        segment: word(&info, 16).into(),
        has_timestamps: info[5] & TIMESTAMPS != 0,
    })
}

/// Ends the connection of an open socket for who reads and who writes it here (shutdown(2)).
pub(crate) fn end(fd: RawFd) {
    // SAFETY: no memory is involved. For a number that is no socket it fails.
    let _ = unsafe { libc::shutdown(fd, libc::SHUT_RDWR) };
}

/// The first bytes of `struct tcp_info`; `None` if the kernel gives fewer.
fn info<const LENGTH: usize>(fd: RawFd) -> Option<[u8; LENGTH]> {
    let mut info = [0u8; LENGTH];
    let mut length = LENGTH as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes to `info`, and how many they were to `length`. For a number that
    // is no TCP socket it writes nothing, and fails.
    let result = unsafe {
        let value = info.as_mut_ptr().cast();
        libc::getsockopt(fd, libc::IPPROTO_TCP, libc::TCP_INFO, value, &raw mut length)
    };
    (result == 0 && length as usize >= LENGTH).then_some(info)
}

fn word(info: &[u8], at: usize) -> u32 {
    info[at..at + 4].try_into().map(u32::from_ne_bytes).unwrap_or_default()
}

fn long(info: &[u8], at: usize) -> u64 {
    info[at..at + 8].try_into().map(u64::from_ne_bytes).unwrap_or_default()
}
