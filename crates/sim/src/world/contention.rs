//! Contention among stations that are a hop apart: cases with closed forms, or known from textbooks.

use std::time::Duration;

use radio::{Links, LossScope, Ranges};
use wire::Instant;

use super::flows::{Flow, Kind};
use super::{Routes, Setup};
use crate::net::tcp;
use crate::scenario::{Metric, Plane};

/// Distance between neighbours.
const NEAR_M: f64 = 200.0;
/// Carrier sense and interference reach the next neighbour and no farther.
const SENSE_SHORT_M: f64 = 300.0;
/// A receiver is disturbed by a sender that its own sender, on the other side, does not sense.
const SENSE_ASYMMETRIC_M: f64 = 440.0;
/// More than one hop carries, in bits per second.
const SATURATED: Kind = Kind::Udp { bits_per_second: 8_000_000 };

/// Stations and their flows.
#[derive(Clone, Debug)]
pub struct Case {
    /// The setup of the run.
    pub setup: Setup,
    /// Saturated UDP flows.
    pub flows: Vec<Flow>,
}

/// `senders` stations in range of each other, all sending to station 0 (Bianchi's model).
pub fn cell(radio: radio::Config, senders: usize, lasts: Duration) -> Case {
    // The senders stand on a ring, so that all are received equally strongly.
    let place = |number: usize| {
        let turn = 2.0 * std::f64::consts::PI * number as f64 / senders as f64;
        (libm::cos(turn), libm::sin(turn))
    };
    let places: Vec<_> = [(0.0, 0.0)].into_iter().chain((0..senders).map(place)).collect();
    let flows = (1..=senders).map(|from| (from, 0)).collect();
    case(radio, &places, Ranges::default(), flows, lasts)
}

/// Hidden terminals: stations 0 and 2 do not sense each other, and both send to station 1 between them.
pub fn hidden_pair(radio: radio::Config, lasts: Duration) -> Case {
    line(radio, 3, vec![(0, 1), (2, 1)], lasts)
}

/// Exposed terminals: stations 1 and 2 sense each other and send away from each other, to 0 and 3. Their
/// transmissions would not disturb each other.
pub fn exposed_pair(radio: radio::Config, lasts: Duration) -> Case {
    line(radio, 4, vec![(1, 0), (2, 3)], lasts)
}

/// Station 0 sends to 1, and station 2, which does not sense 0, sends to 3 on its far side. Receiver 1 is
/// `apart_m` from 2 (up to 440) and receives both senders; 3 receives its own sender alone.
pub fn asymmetric_pair(radio: radio::Config, apart_m: f64, lasts: Duration) -> Case {
    let places = [0.0, NEAR_M, NEAR_M + apart_m, 2.0 * NEAR_M + apart_m].map(|x_m| (x_m, 0.0));
    let ranges = Ranges { sense_m: SENSE_ASYMMETRIC_M, ..Ranges::default() };
    case(radio, &places, ranges, vec![(0, 1), (2, 3)], lasts)
}

fn line(
    radio: radio::Config,
    stations: usize,
    flows: Vec<(usize, usize)>,
    lasts: Duration,
) -> Case {
    let places: Vec<_> = (0..stations).map(|it| (it as f64 * NEAR_M, 0.0)).collect();
    let ranges = Ranges { sense_m: SENSE_SHORT_M, ..Ranges::default() };
    case(radio, &places, ranges, flows, lasts)
}

fn case(
    radio: radio::Config,
    places_m: &[(f64, f64)],
    ranges: Ranges,
    flows: Vec<(usize, usize)>,
    lasts: Duration,
) -> Case {
    let links = Links::by_distance(places_m, ranges, |_| 0.0);
    let setup = Setup {
        radio,
        routes: Routes::shortest(&links, Metric::Hops, LossScope::Data),
        links,
        changes: None,
        plane: Plane::default(),
        loss_above_mac: 0.0,
        tcp: tcp::Config::default(),
        names: (0..places_m.len()).map(|it| it.to_string()).collect(),
        lasts,
    };
    let starts = Instant::ZERO;
    let flow = |(from, to)| Flow { from, to, starts, ends: None, kind: SATURATED };
    Case { setup, flows: flows.into_iter().map(flow).collect() }
}
