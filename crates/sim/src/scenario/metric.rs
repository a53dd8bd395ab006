//! What paths cost.

use radio::{Links, LossScope, Station};

use super::choice::Choice;

/// What a hop without losses costs; whole numbers, so that sums are the same on every machine.
pub(crate) const HOP: u64 = 1 << 20;

/// What makes a path short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metric {
    /// The number of its hops.
    Hops,
    /// The expected number of transmissions, a frame and its acknowledgement counted as one
    /// (De Couto et al., MobiCom 2003).
    Etx,
}

impl Metric {
    /// What the hop between two stations costs a frame from the first to the second; `None` if frames
    /// cannot be received both ways. `scope` says whether acknowledgements get lost too.
    pub fn cost(self, links: &Links, scope: LossScope, from: usize, to: usize) -> Option<u64> {
        let arrives = |from: usize, to: usize| {
            let link = links.get(Station(from as u16), Station(to as u16))?;
            link.decodable.then_some(1.0 - link.loss)
        };
        let (there, back) = (arrives(from, to)?, arrives(to, from)?);
        let succeeds = match scope {
            LossScope::Data => there,
            LossScope::All => there * back,
        };
        Some(match self {
            Self::Hops => HOP,
            // A path over the worst links is still a path, and sums stay far below the end of numbers.
            Self::Etx => (HOP as f64 / succeeds.max(1e-6)) as u64,
        })
    }
}

impl Choice for Metric {
    const ALL: &'static [(Self, &'static str)] = &[(Self::Hops, "hops"), (Self::Etx, "etx")];
}
