//! How a machine's TCP is set.

use std::time::Duration;

/// What a sender makes of losses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Recovery {
    /// As RFC 6582 says.
    #[default]
    Standard,
    /// As ns-3 3.37 without selective acknowledgements and with its classic recovery: by guesses which
    /// segments have arrived, and by what it sends again when a guess turns out wrong (`guesses.rs`).
    Ns3,
}

/// The settings of TCP on one machine.
///
/// The default is what ns-3 has where studies leave it alone, and what the RFCs say elsewhere.
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
    /// How often a SYN is sent again before nobody is believed to be there.
    pub syn_retries: u32,
    /// How often data or a probe is sent again without an answer before the peer is believed gone.
    /// With an RTO of 0.2 s, 9 of them take over 100 s (RFC 1122, section 4.2.3.5).
    pub retries: u32,
    /// After how many segments an acknowledgement is sent at once; 1: each is acknowledged at once.
    pub delayed_ack: u32,
    /// For how long an acknowledgement may be held back (RFC 1122: below 0.5 s).
    pub delayed_ack_timeout: Duration,
    /// What it makes of losses.
    pub recovery: Recovery,
    /// How much written data waits for being sent and acknowledged, bytes.
    pub send_buffer: u32,
    /// How much received data waits for being read, bytes: the largest window.
    pub receive_buffer: u32,
    /// Whether small segments go out at once, without Nagle's algorithm (RFC 1122, section 4.2.3.4).
    pub nodelay: bool,
    /// Whether a small segment waits, whatever `nodelay` says, while data of its connection is still in
    /// the machine's own queue: more may join it, and it would not go earlier (Linux: tcp_autocorking).
    pub cork: bool,
    /// For how long a closed connection answers a repeated FIN. Twice the time a segment may live in
    /// theory; what may live in a simulated mesh lives far shorter.
    pub time_wait: Duration,
    /// For how long a connection waits in silence for the peer's FIN, its own having been acknowledged.
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
            send_buffer: 131_072,
            receive_buffer: 131_072,
            nodelay: true,
            cork: false,
            time_wait: Duration::from_secs(1),
            fin_wait: Duration::from_secs(60),
        }
    }
}
