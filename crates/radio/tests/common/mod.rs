//! Two small drivers: one with static routes and saturated sources, one that sends a list of
//! packets.

#![allow(dead_code, reason = "each test binary uses its part")]

use radio::{
    Config, Control, ControlFrame, Destination, Frame, Input, Link, Links, Medium, Outcome, Output,
    Ranges, Reception, Station,
};
use std::time::Duration;
use wire::Instant;

/// IP and UDP headers, in bytes.
pub const HEADERS: u32 = 28;
/// UDP payload of the reference runs, in bytes.
pub const PAYLOAD: u32 = 1460;
/// Packets that a source keeps at its station. With more than queue and service can hold, some
/// would be dropped.
const BACKLOG: usize = 40;

/// Stations in a row, `spacing_m` metres apart, with the usual ranges.
pub fn row(stations: usize, spacing_m: f64) -> Links {
    let positions: Vec<_> = (0..stations).map(|i| (i as f64 * spacing_m, 0.0)).collect();
    Links::by_distance(&positions, Ranges::default(), |_| 0.0)
}

/// The same, with this loss on each link.
pub fn row_losing(stations: usize, spacing_m: f64, loss: f64) -> Links {
    let positions: Vec<_> = (0..stations).map(|i| (i as f64 * spacing_m, 0.0)).collect();
    Links::by_distance(&positions, Ranges::default(), |_| loss)
}

/// Stations in range of each other, with equal power.
pub fn clique(stations: u16) -> Links {
    clique_at(stations, 1_000_000)
}

/// The same, with this power in attowatts.
pub fn clique_at(stations: u16, power: u64) -> Links {
    let mut links = Links::new(usize::from(stations));
    for (from, to) in (0..stations).flat_map(|a| (0..stations).map(move |b| (a, b))) {
        links.set(Station(from), Station(to), link(power));
    }
    links
}

/// A link without losses.
pub fn link(power: u64) -> Link {
    Link { power, decodable: true, loss: 0.0, overheard_loss: None }
}

pub fn seconds(seconds: f64) -> Instant {
    Instant::ZERO + Duration::from_secs_f64(seconds)
}

pub fn micros(micros: u64) -> Instant {
    Instant::from_nanos(micros * 1000)
}

/// One flow of packets along a path of stations.
#[derive(Clone, Copy, Debug)]
pub struct Hop {
    pub flow: usize,
    pub hop: usize,
}

/// Saturated UDP flows over a medium.
#[derive(Clone)]
pub struct Flows {
    pub medium: Medium<Hop>,
    paths: Vec<Vec<Station>>,
    /// Packets of each flow that reached the end of its path.
    pub arrived: Vec<u64>,
    /// Packets that relays dropped because the queue was full.
    pub relay_drops: u64,
    now: Instant,
    todo: Vec<Hop>,
}

impl Flows {
    pub fn new(config: Config, links: Links, seed: u64, paths: Vec<Vec<Station>>) -> Self {
        let arrived = vec![0; paths.len()];
        let medium = Medium::new(config, links, seed);
        let backlog = |flow| [Hop { flow, hop: 0 }; BACKLOG];
        let todo = (0..paths.len()).flat_map(backlog).collect();
        Self { medium, paths, arrived, relay_drops: 0, now: Instant::ZERO, todo }
    }

    pub fn run(&mut self, until: Instant) {
        while self.now < until {
            while let Some(Hop { flow, hop }) = self.todo.pop() {
                let (from, to) = (self.paths[flow][hop], self.paths[flow][hop + 1]);
                let (to, bytes) = (Destination::Station(to), PAYLOAD + HEADERS);
                let payload = Hop { flow, hop };
                self.medium.handle_input(self.now, Input::Send { from, to, bytes, payload });
                self.drain();
            }
            self.now = self.medium.poll_timeout().expect("sources never run dry");
            self.medium.handle_timeout(self.now);
            self.drain();
        }
    }

    fn drain(&mut self) {
        while let Some(output) = self.medium.poll_output() {
            match output {
                Output::Heard { frame, payload: Hop { flow, hop }, by } => {
                    let next = |r: &&Reception| Destination::Station(r.by) == frame.to;
                    if by.iter().find(next).is_some_and(|r| r.is_new) {
                        if hop + 2 == self.paths[*flow].len() {
                            self.arrived[*flow] += 1;
                        } else {
                            self.todo.push(Hop { flow: *flow, hop: hop + 1 });
                        }
                    }
                }
                Output::HeardControl { .. } => {}
                Output::Done { payload, outcome, .. } if payload.hop == 0 => {
                    assert_ne!(outcome, Outcome::QueueFull, "sources stay below the queue's limit");
                    self.todo.push(payload);
                }
                Output::Done { outcome, .. } => {
                    self.relay_drops += u64::from(outcome == Outcome::QueueFull);
                }
            }
        }
    }
}

/// A copy of an output.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    Heard { frame: Frame, payload: u32, by: Vec<Reception> },
    HeardControl { kind: Control, from: Station, to: Station, at: Instant, by: Vec<Reception> },
    Done { payload: u32, at: Instant, outcome: Outcome, tries: u8 },
}

impl Event {
    /// The time of the event.
    pub fn at(&self) -> Instant {
        match self {
            Self::Heard { frame, .. } => frame.ended,
            Self::HeardControl { at, .. } | Self::Done { at, .. } => *at,
        }
    }
}

/// A packet to send: time, sender, addressee, length.
pub type Sending = (Instant, u16, Destination, u32);

pub fn to(station: u16) -> Destination {
    Destination::Station(Station(station))
}

/// Sends packets, with their index in the list as payload, and runs until nothing is due.
pub fn play(medium: &mut Medium<u32>, sendings: &[Sending]) -> Vec<Event> {
    let mut events = Vec::new();
    for (payload, (at, from, to, bytes)) in sendings.iter().enumerate() {
        while let Some(due) = medium.poll_timeout().filter(|due| due < at) {
            medium.handle_timeout(due);
            keep(medium, &mut events);
        }
        let (from, payload) = (Station(*from), payload as u32);
        medium.handle_input(*at, Input::Send { from, to: *to, bytes: *bytes, payload });
        keep(medium, &mut events);
    }
    while let Some(due) = medium.poll_timeout() {
        medium.handle_timeout(due);
        keep(medium, &mut events);
    }
    events
}

fn keep(medium: &mut Medium<u32>, events: &mut Vec<Event>) {
    while let Some(output) = medium.poll_output() {
        events.push(match output {
            Output::Heard { frame, payload, by } => {
                Event::Heard { frame, payload: *payload, by: by.to_vec() }
            }
            Output::HeardControl { frame: ControlFrame { kind, from, to, ended: at, .. }, by } => {
                Event::HeardControl { kind, from, to, at, by: by.to_vec() }
            }
            Output::Done { payload, at, outcome, tries, .. } => {
                Event::Done { payload, at, outcome, tries }
            }
        });
    }
}

/// The outcome of each packet, by index.
pub fn outcomes(events: &[Event]) -> Vec<(Outcome, u8)> {
    let done = |event: &Event| match event {
        Event::Done { payload, outcome, tries, .. } => Some((*payload, (*outcome, *tries))),
        _ => None,
    };
    let mut done: Vec<_> = events.iter().filter_map(done).collect();
    done.sort_by_key(|(payload, _)| *payload);
    done.into_iter().map(|(_, how)| how).collect()
}

/// All transmissions of data, with the stations that received each.
pub fn frames(events: &[Event]) -> Vec<(Frame, Vec<Reception>)> {
    let heard = |event: &Event| match event {
        Event::Heard { frame, by, .. } => Some((*frame, by.clone())),
        _ => None,
    };
    events.iter().filter_map(heard).collect()
}

/// The rate of this number of packets in this number of seconds, in kbit/s of payload.
pub fn kbps(packets: u64, payload_bytes: u32, seconds: f64) -> f64 {
    packets as f64 * f64::from(payload_bytes) * 8.0 / seconds / 1000.0
}

pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The deviation of a value from another, relative to the other.
pub fn off(value: f64, reference: f64) -> f64 {
    value / reference - 1.0
}
