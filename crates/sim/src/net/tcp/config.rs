//! The settings of a machine's TCP.

use std::time::Duration;

/// How a sender recovers from losses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Recovery {
    /// NewReno, as RFC 6582 says: a partial acknowledgement sends the next missing segment again.
    #[default]
    Standard,
    /// Reno, as RFC 5681 says and ns-2's TCP/Reno does: the first acknowledgement of new data ends the recovery,
    /// also a partial one. As there by default (`bugFix_`), duplicates start no second recovery for what was in
    /// flight, so several losses in a window usually end in a timeout.
    Reno,
    /// By selective acknowledgements (RFC 2018, 2883 and 6675) where the peer permits them, otherwise as
    /// [`Standard`](Self::Standard). A D-SACK is only counted.
    Sack,
    /// As ns-3 3.37 with its classic recovery and without selective acknowledgements: the sender guesses
    /// which segments have arrived, and sends a segment again when a guess turns out wrong (`guesses.rs`).
    Ns3,
}

/// The settings of TCP on one machine.
///
/// The defaults are ns-3's where studies leave those unchanged, and the RFCs' elsewhere.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    /// Largest payload of a segment, bytes.
    pub mss: u16,
    /// How many segments may be sent before the first acknowledgement (RFC 5681: 2 to 4).
    pub initial_window: u32,
    /// Retransmission timeout before the first round trip is measured (RFC 6298: 1 s).
    pub rto_initial: Duration,
    /// Smallest retransmission timeout (RFC 6298 says 1 s, every stack takes less).
    pub rto_min: Duration,
    /// Largest retransmission timeout, however often it has been doubled.
    pub rto_max: Duration,
    /// How often a SYN is sent again before the peer counts as unreachable.
    pub syn_retries: u32,
    /// How often data or a probe is sent again without an answer before the peer counts as gone. With an RTO
    /// of 0.2 s, 9 retries take over 100 s (RFC 1122, section 4.2.3.5).
    pub retries: u32,
    /// An acknowledgement is sent at once after this many segments; 1 acknowledges each.
    pub delayed_ack: u32,
    /// How long an acknowledgement may be delayed (RFC 1122: below 0.5 s).
    pub delayed_ack_timeout: Duration,
    /// How it recovers from losses.
    pub recovery: Recovery,
    /// Whether it wants timestamps (RFC 7323). They take 12 bytes of each segment's payload.
    pub timestamps: bool,
    /// Size of the send buffer in bytes: data that waits to be sent or acknowledged.
    pub send_buffer: u32,
    /// Size of the receive buffer in bytes, and so the largest window.
    pub receive_buffer: u32,
    /// Whether small segments go out at once, without Nagle's algorithm (RFC 1122, section 4.2.3.4).
    pub nodelay: bool,
    /// Whether a small segment waits, even with `nodelay`, while data of its connection is still in the
    /// machine's own queue (Linux: tcp_autocorking). More data may join it, and it would not be sent earlier.
    pub cork: bool,
    /// How long a closed connection answers a repeated FIN. RFC 9293 says twice a segment's maximum lifetime,
    /// which is far shorter in a simulated mesh than on the Internet.
    pub time_wait: Duration,
    /// How long a connection waits in silence for the peer's FIN after its own FIN is acknowledged.
    pub fin_wait: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            mss: 1460,
            initial_window: 2,
            rto_initial: Duration::from_secs(1),
            rto_min: Duration::from_millis(200),
            rto_max: Duration::from_secs(60),
            syn_retries: 6,
            retries: 9,
            delayed_ack: 2,
            delayed_ack_timeout: Duration::from_millis(200),
            recovery: Recovery::Standard,
            timestamps: false,
            send_buffer: 131_072,
            receive_buffer: 131_072,
            nodelay: true,
            cork: false,
            time_wait: Duration::from_secs(1),
            fin_wait: Duration::from_secs(60),
        }
    }
}
