//! The common settings of all stations of a channel.

use crate::airtime::Timing;
use crate::phy::Phy;
use crate::rate::Rate;
use std::time::Duration;

/// The default queue length of a station: that of ns-2's interface queue.
const QUEUE_FRAMES_MAX: usize = 50;
/// dot11ShortRetryLimit's default.
const SHORT_TRIES_MAX: u8 = 7;
/// dot11LongRetryLimit's default.
const LONG_TRIES_MAX: u8 = 4;
/// The noise figure of a receiver, in dB: ns-3's default.
const NOISE_FIGURE_DB: f64 = 7.0;

/// How the reception of a frame is decided.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Decoding {
    /// It is received if at every moment it is 10 dB above all interference together. ns-2 has the
    /// same rule, but compares with each interferer alone. There is no noise.
    #[default]
    Capture,
    /// Each bit is wrong with the probability that its modulation has at the current ratio of
    /// signal to noise and interference (`error_rate.rs`), as in ns-3. And as there, a receiver
    /// detects a preamble only if it is 4 dB above noise and all other signals.
    BitErrors,
}

/// Which signal an idle receiver locks onto; it then ignores later ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Locking {
    /// The first one that it senses, decodable or not: as in ns-2, and in ns-3 by default. If that
    /// signal is too weak to be decoded, the reception fails, and an EIFS follows.
    #[default]
    First,
    /// The first one that is strong enough to be decoded. Weaker ones only interfere, and keep the
    /// medium busy.
    Decodable,
}

/// Which interpretation of the DCF stations use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Dcf {
    /// The standard.
    #[default]
    Standard,
    /// ns-3 3.37, for comparisons with it. It differs from the standard in seven points:
    ///
    /// - If a packet arrives while the medium is idle, it is sent without a backoff, even if the
    ///   medium becomes busy during the DIFS before its transmission. A relay therefore forwards a
    ///   packet directly after its ACK.
    /// - That DIFS begins with the packet's arrival, however long the medium has been idle.
    /// - If a transmission begins during a reception, the MAC learns of it only after the received
    ///   packet was passed up. That packet therefore finds the medium idle.
    /// - If the receiver then cannot read the PHY header of its frame, because another transmission
    ///   began during the preamble, the MAC considers the medium idle while both go on, until a
    ///   third is reported.
    /// - After a missing ACK or CTS, a DIFS passes before the backoff counts.
    /// - An EIFS begins at the end of the frame that was not received, even if the medium is still
    ///   busy.
    /// - A station whose RTS are not answered tries without limit.
    Ns3,
}

/// Which frames a link's [`loss`](crate::Link::loss) applies to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum LossScope {
    /// Data frames.
    #[default]
    Data,
    /// All frames, including ACK, RTS and CTS.
    All,
}

/// The common settings of all stations of a channel.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// The physical layer; it must support both rates.
    pub phy: Phy,
    /// The rate of data frames to one station.
    pub data_rate: Rate,
    /// The rate of broadcasts, and of ACK, RTS and CTS.
    pub basic_rate: Rate,
    /// The queue length of a station, besides the frame being sent; further packets are dropped.
    pub queue_frames_max: usize,
    /// RTS and CTS precede data frames longer than this, in bytes with MAC header and FCS
    /// (dot11RTSThreshold): 0 for all frames, `None` for no frame.
    pub rts_threshold: Option<u32>,
    /// The retry limit of an RTS, or of a data frame without RTS; 0 counts as 1.
    pub short_tries_max: u8,
    /// The retry limit of a data frame with RTS; 0 counts as 1.
    pub long_tries_max: u8,
    /// Which frames are subject to losses of links.
    pub loss_scope: LossScope,
    /// The share of a link's loss that applies to broadcasts: they are sent at the basic rate,
    /// which needs less signal.
    pub broadcast_loss_share: f64,
    /// The mean time for which the state of a link towards an overhearing station lasts, if the
    /// link has its own loss for overheard frames ([`Link::overheard_loss`](crate::Link)). In each
    /// state, either all such frames are received or none. Zero: each frame is drawn separately.
    pub overhear_spell: Duration,
    /// How the reception of a frame is decided.
    pub decoding: Decoding,
    /// Which signal a receiver locks onto.
    pub locking: Locking,
    /// The noise figure of a receiver, in dB. Noise matters only to [`Decoding::BitErrors`].
    pub noise_figure_db: f64,
    /// Which interpretation of the DCF stations use.
    pub dcf: Dcf,
}

impl Config {
    /// The model of ns-3 3.37: bit errors and its interpretation of the DCF, at 11 Mbit/s.
    pub fn like_ns3() -> Self {
        Self { decoding: Decoding::BitErrors, dcf: Dcf::Ns3, ..Self::default() }
    }

    /// How long a data frame to one station reserves the medium after its end: a SIFS and the ACK
    /// (the frame's Duration field).
    pub fn reserved_for_ack(&self) -> Duration {
        Timing::new(self).reserved_by_data()
    }
}

impl Default for Config {
    /// 802.11b at 11 Mbit/s, basic rate 1 Mbit/s, queues of 50, 7 tries, no RTS; 10 dB capture, and
    /// receivers lock onto the first signal; broadcasts have the same loss as data frames.
    fn default() -> Self {
        Self {
            phy: Phy::B,
            data_rate: Rate::Mbps11,
            basic_rate: Rate::Mbps1,
            queue_frames_max: QUEUE_FRAMES_MAX,
            rts_threshold: None,
            short_tries_max: SHORT_TRIES_MAX,
            long_tries_max: LONG_TRIES_MAX,
            loss_scope: LossScope::Data,
            broadcast_loss_share: 1.0,
            overhear_spell: Duration::ZERO,
            decoding: Decoding::Capture,
            locking: Locking::First,
            noise_figure_db: NOISE_FIGURE_DB,
            dcf: Dcf::Standard,
        }
    }
}
