//! The cost of paths.

use radio::{Links, LossScope, Station};

use super::choice::Choice;

/// The cost of a hop without losses. Costs are whole numbers, so that sums are the same on every machine.
pub(crate) const HOP: u64 = 1 << 20;

/// The metric by which routes are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metric {
    /// The number of hops.
    Hops,
    /// The expected number of transmissions, counting a frame and its acknowledgement as one (De Couto et
    /// al., MobiCom 2003).
    Etx,
}

impl Metric {
    /// The cost of the hop `from` → `to`; `None` if frames cannot be received in both directions. `scope`
    /// says whether acknowledgements are lost too.
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
            // The lower bound keeps a path over the worst links possible, and sums of costs far below
            // overflow.
            Self::Etx => (HOP as f64 / succeeds.max(1e-6)) as u64,
        })
    }
}

impl Choice for Metric {
    const ALL: &'static [(Self, &'static str)] = &[(Self::Hops, "hops"), (Self::Etx, "etx")];
}
