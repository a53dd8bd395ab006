//! The strength of signals between two places, from a scenario's keys.

use radio::propagation::{self, Field, PathLoss};
use radio::{Link, Links, Propagation, Ranges, Station};

use super::choice::{Fading, Spreading};
use super::key::Settings;

/// Path loss at 1 m in the 2.4 GHz band, in dB (free space).
const LOSS_1M_DB: f64 = 40.0;

/// How signals spread, and the frame loss of links.
#[derive(Clone, Debug)]
pub(crate) struct Signals {
    propagation: Propagation,
    fades: bool,
    range_m: f64,
    loss: f64,
    loss_exponent: f64,
    /// Loss on a link of any length.
    per: f64,
    /// The distance in metres from which frames for others are always lost, and the exponent of their loss.
    overhear: Option<(f64, f64)>,
}

impl Signals {
    /// Takes the keys' values; the seed draws shadowing.
    pub fn new(settings: &Settings, seed: u64) -> Self {
        let overhears = settings.overhear_m > 0.0;
        Self {
            propagation: propagation(settings, seed),
            fades: settings.fading != Fading::None,
            range_m: settings.range_m,
            loss: settings.loss,
            loss_exponent: settings.loss_exponent,
            per: settings.per,
            overhear: overhears.then_some((settings.overhear_m, settings.overhear_exponent)),
        }
    }

    pub fn propagation(&self) -> &Propagation {
        &self.propagation
    }

    /// The links between routers at these places.
    pub fn links(&self, places_m: &[(f64, f64)]) -> Links {
        let field = Field::new(self.propagation.clone(), places_m);
        let mut links = field.links(|m| self.loss(m));
        if self.overhear.is_some() {
            let stations = || (0..places_m.len()).map(|it| Station(it as u16));
            for (from, to) in stations().flat_map(|from| stations().map(move |to| (from, to))) {
                let Some(link) = links.get(from, to).copied() else { continue };
                let place_m = |station: Station| places_m[usize::from(station.0)];
                links.set(from, to, self.overheard(link, distance_m(place_m(from), place_m(to))));
            }
        }
        links
    }

    /// The loss of a link of this length, without interference. It uses `libm`, so that it is the same on
    /// every machine.
    pub fn loss(&self, m: f64) -> f64 {
        let share = libm::pow(m / self.range_m, self.loss_exponent);
        1.0 - (1.0 - (self.loss * share).min(1.0)) * (1.0 - self.per)
    }

    /// A link with its loss of frames for others. They may be received farther than routes go, or less far.
    pub fn overheard(&self, link: Link, m: f64) -> Link {
        let Some((overhear_m, exponent)) = self.overhear else { return link };
        let lost = libm::pow(m / overhear_m, exponent).min(1.0);
        let matters = link.decodable || lost < 1.0 && !self.fades;
        if matters { Link { overheard_loss: Some(lost), ..link } } else { link }
    }
}

/// A distance in metres.
pub(crate) fn distance_m(a: (f64, f64), b: (f64, f64)) -> f64 {
    let (dx, dy) = (a.0 - b.0, a.1 - b.1);
    (dx * dx + dy * dy).sqrt()
}

/// The propagation model. Before shadowing and fading, signals at the ends of the ranges are just strong
/// enough.
fn propagation(settings: &Settings, seed: u64) -> Propagation {
    let propagation = match settings.spreading {
        Spreading::TwoRay => Propagation::in_ranges(Ranges {
            receive_m: settings.range_m,
            sense_m: settings.carrier_sense_m,
        }),
        Spreading::LogDistance => {
            let (exponent, shadowing_db) = (settings.path_exponent, settings.shadowing_db);
            let loss_1m_db = LOSS_1M_DB;
            let path_loss = PathLoss::LogDistance { loss_1m_db, exponent, shadowing_db, seed };
            let dbm =
                |m: f64| propagation::TRANSMIT_DBM - loss_1m_db - 10.0 * exponent * libm::log10(m);
            let (receive_dbm, sense_dbm) = (dbm(settings.range_m), dbm(settings.carrier_sense_m));
            Propagation::by_power(path_loss, propagation::TRANSMIT_DBM, receive_dbm, sense_dbm)
        }
    };
    match settings.fading {
        Fading::None => propagation,
        Fading::Rayleigh => propagation.fading(),
    }
}
