//! What all stations of a channel have in common.

use crate::airtime::Timing;
use crate::phy::Phy;
use crate::rate::Rate;
use std::time::Duration;

/// Frames that wait at a station, unless said otherwise: ns-2's interface queue.
const QUEUE_FRAMES_MAX: usize = 50;
/// dot11ShortRetryLimit's default.
const SHORT_TRIES_MAX: u8 = 7;
/// dot11LongRetryLimit's default.
const LONG_TRIES_MAX: u8 = 4;
/// Of a receiver, in dB: ns-3's default.
const NOISE_FIGURE_DB: f64 = 7.0;

/// What decides whether a frame that a receiver follows arrives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Decoding {
    /// It does if it is 10 dB above all interference together at every moment, as in ns-2, but that
    /// there each interferer counts alone. There is no noise.
    #[default]
    Capture,
    /// Each bit is wrong with the probability that its modulation has at the ratio of signal to noise
    /// and interference of its moment (`error_rate.rs`), as in ns-3. And as there, a receiver finds a
    /// preamble only if it is 4 dB above noise and all else on the air.
    BitErrors,
}

/// What an idle receiver begins to follow, deaf for all that comes later.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Locking {
    /// The first signal that it senses, decodable or not: ns-2, and ns-3 unless told otherwise. If
    /// that signal is too weak to be decoded, the reception fails, and an EIFS follows.
    #[default]
    First,
    /// The first that is strong enough to be decoded; weaker ones only add interference, and keep the
    /// medium busy.
    Decodable,
}

/// Whose reading of the DCF stations follow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Dcf {
    /// The standard's.
    #[default]
    Standard,
    /// That of ns-3 3.37, for comparisons with it. It differs in seven points. A packet that comes
    /// while the medium is idle goes without a backoff even if the medium gets busy within the DIFS
    /// before: so a relay sends what it has just received directly after its ACK. That DIFS begins with the
    /// packet's arrival, however long the medium has been idle. Of a transmission that begins while a
    /// station receives another, its MAC learns only when the received packet has been handed up: so that
    /// packet finds the medium idle. And if that receiver cannot read the PHY header of what it follows, because
    /// another transmission began during its preamble, the MAC takes the medium for idle though both go on, until
    /// it is told of a third. After an ACK or a CTS that did not come, a DIFS passes before the
    /// backoff counts. An EIFS begins with the end of the frame that was not received, though the medium
    /// may still be busy. And a station whose RTS are not answered tries for ever.
    Ns3,
}

/// Which frames a link's [`loss`](crate::Link::loss) strikes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum LossScope {
    /// Data frames.
    #[default]
    Data,
    /// All: ACK, RTS and CTS as well.
    All,
}

/// What all stations of a channel have in common.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// The physical layer; it must have both rates.
    pub phy: Phy,
    /// For data frames to one station.
    pub data_rate: Rate,
    /// For broadcasts, and for ACK, RTS and CTS.
    pub basic_rate: Rate,
    /// Frames that may wait at a station, beside the one being sent; more are dropped as they come.
    pub queue_frames_max: usize,
    /// Data frames longer than this, in bytes with MAC header and FCS (dot11RTSThreshold), are announced
    /// by RTS and CTS: 0 announces all, `None` announces none.
    pub rts_threshold: Option<u32>,
    /// Tries of an RTS, or of a data frame without one, before its sender gives up; 0 counts as 1.
    pub short_tries_max: u8,
    /// Tries of a data frame with RTS before its sender gives up; 0 counts as 1.
    pub long_tries_max: u8,
    /// Which frames links lose.
    pub loss_scope: LossScope,
    /// Of a link's loss, the share that broadcasts suffer: they go at the basic rate, for which less
    /// signal is enough.
    pub broadcast_loss_share: f64,
    /// Where a link has a loss of its own for frames for others ([`Link::overheard_loss`](crate::Link)):
    /// how long it stays on average as it is for one observer of one sender, either all or nothing heard,
    /// before that is drawn anew. Zero: it is drawn for each frame.
    pub overhear_spell: Duration,
    /// What decides whether a frame arrives.
    pub decoding: Decoding,
    /// What a receiver begins to follow.
    pub locking: Locking,
    /// How much a receiver adds to thermal noise, in dB. Noise matters to [`Decoding::BitErrors`].
    pub noise_figure_db: f64,
    /// Whose reading of the DCF stations follow.
    pub dcf: Dcf,
}

impl Config {
    /// What ns-3 3.37 computes with, bit errors and its reading of the DCF, at 11 Mbit/s.
    pub fn like_ns3() -> Self {
        Self { decoding: Decoding::BitErrors, dcf: Dcf::Ns3, ..Self::default() }
    }

    /// What a data frame to one station reserves the medium for after its end: a SIFS and the ACK (the
    /// frame's Duration field).
    pub fn reserved_for_ack(&self) -> Duration {
        Timing::new(self).reserved_by_data()
    }
}

impl Default for Config {
    /// 802.11b at 11 Mbit/s, basic rate 1 Mbit/s, queues of 50, 7 tries, no RTS; 10 dB capture, the first
    /// signal holds the receiver; broadcasts are lost as data frames are.
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
