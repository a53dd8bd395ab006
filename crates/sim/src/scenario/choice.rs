//! Keys whose value is one of a few words.

use crate::net::tcp::Recovery;
use radio::{Dcf, Decoding, Locking, LossScope, Phy, Rate};

/// A value that is one of a few words.
pub trait Choice: Copy + PartialEq + 'static {
    /// All values, with their words.
    const ALL: &'static [(Self, &'static str)];

    /// The word of a value.
    fn word(self) -> &'static str {
        let known = Self::ALL.iter().find(|(value, _)| *value == self);
        known.map_or("", |(_, word)| word)
    }
}

/// A field that holds a [`Choice`].
pub trait Word {
    /// All words that are allowed.
    fn words(&self) -> Vec<&'static str>;
    /// The word of the current value.
    fn word(&self) -> &'static str;
    /// Sets the value of this word; `None` if the word is unknown.
    fn take(&mut self, word: &str) -> Option<()>;
}

impl<T: Choice> Word for T {
    fn words(&self) -> Vec<&'static str> {
        T::ALL.iter().map(|(_, word)| *word).collect()
    }

    fn word(&self) -> &'static str {
        Choice::word(*self)
    }

    fn take(&mut self, word: &str) -> Option<()> {
        *self = T::ALL.iter().find(|(_, it)| *it == word)?.0;
        Some(())
    }
}

/// How signal power falls with distance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spreading {
    TwoRay,
    LogDistance,
}

/// Random fading, drawn for each frame at each receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fading {
    None,
    Rayleigh,
}

impl Choice for Spreading {
    const ALL: &'static [(Self, &'static str)] =
        &[(Self::TwoRay, "two-ray"), (Self::LogDistance, "log-distance")];
}

impl Choice for Fading {
    const ALL: &'static [(Self, &'static str)] =
        &[(Self::None, "none"), (Self::Rayleigh, "rayleigh")];
}

impl Choice for Locking {
    const ALL: &'static [(Self, &'static str)] =
        &[(Self::First, "lock"), (Self::Decodable, "nolock")];
}

impl Choice for Decoding {
    const ALL: &'static [(Self, &'static str)] =
        &[(Self::Capture, "capture"), (Self::BitErrors, "bit-error")];
}

impl Choice for Dcf {
    const ALL: &'static [(Self, &'static str)] =
        &[(Self::Standard, "standard"), (Self::Ns3, "ns3")];
}

impl Choice for Recovery {
    const ALL: &'static [(Self, &'static str)] = &[
        (Self::Standard, "standard"),
        (Self::Reno, "reno"),
        (Self::Sack, "sack"),
        (Self::Ns3, "ns3"),
    ];
}

impl Choice for LossScope {
    const ALL: &'static [(Self, &'static str)] = &[(Self::All, "all"), (Self::Data, "data")];
}

impl Choice for Phy {
    const ALL: &'static [(Self, &'static str)] =
        &[(Self::B, "b"), (Self::BShort, "b-short"), (Self::A, "a"), (Self::G, "g")];
}

/// A rate in Mbit/s.
pub fn mbps(rate: Rate) -> f64 {
    rate.mbps()
}

/// The rates for which `holds` is true, for error messages.
pub fn rates(holds: impl Fn(Rate) -> bool) -> String {
    let rates = Rate::ALL.into_iter().filter(|rate| holds(*rate));
    let rates: Vec<_> = rates.map(|rate| rate.mbps().to_string()).collect();
    match rates.split_last() {
        Some((last, others)) if !others.is_empty() => format!("{} or {last}", others.join(", ")),
        _ => rates.concat(),
    }
}
