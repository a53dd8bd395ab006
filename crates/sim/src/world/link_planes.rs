//! The link planes of stations, between IP and the medium.
//!
//! *What this is:* [`LinkPlanes`], and how the world carries inputs to them and outputs from them. *Who calls
//! it:* `packets.rs`. *What it never does:* decide anything about a packet.

use std::collections::VecDeque;
use std::net::IpAddr;

use link::recover::Recover;
use link::{Frame, Layer, Next, Output, Verdict};
use radio::{Destination, Outcome, Station};
use wire::Instant;

use super::{AIR, Arrival, Program, World, address, machine};
use crate::net::Packet;
use crate::scenario::Plane;

/// The link planes of those stations that have one.
#[derive(Debug)]
pub(super) struct LinkPlanes {
    /// By station.
    layers: Vec<Option<Box<Layer<Packet>>>>,
    inputs: VecDeque<(usize, Input)>,
}

/// What the medium has for a link plane.
#[derive(Debug)]
enum Input {
    Received { from: usize, packet: Packet },
    Finished { to: usize, packet: Packet, verdict: Verdict },
}

impl LinkPlanes {
    /// No station has a link plane.
    pub fn new(stations: usize) -> Self {
        Self { layers: (0..stations).map(|_| None).collect(), inputs: VecDeque::new() }
    }

    /// Gives a station a link plane.
    pub fn set(
        &mut self,
        station: usize,
        pace: Option<link::pace::Config>,
        recover: Option<link::recover::Config>,
    ) {
        let config = link::Config { me: address(station).into(), pace, recover };
        self.layers[station] = Some(Box::new(Layer::new(config)));
    }

    /// Whether a station has one.
    pub fn has(&self, station: usize) -> bool {
        self.layers.get(station).is_some_and(Option::is_some)
    }

    /// When a machine's link plane, if it has one, is due next.
    pub fn due(&self, machine: usize) -> Option<Instant> {
        self.layer(machine)?.poll_timeout()
    }

    /// All link planes, by station.
    pub fn iter(&self) -> impl Iterator<Item = (usize, &Layer<Packet>)> {
        self.layers.iter().enumerate().filter_map(|(at, layer)| Some((at, layer.as_deref()?)))
    }

    /// A station with a link plane has received a packet.
    pub fn received(&mut self, station: usize, from: usize, packet: Packet) {
        self.inputs.push_back((station, Input::Received { from, packet }));
    }

    /// The medium has finished with a packet of a station. Broadcasts do not concern its link plane.
    pub fn finished(
        &mut self,
        station: usize,
        to: Destination,
        packet: Packet,
        outcome: Outcome,
        tries: u8,
    ) {
        let Destination::Station(Station(to)) = to else { return };
        let outcome = match outcome {
            Outcome::Acked | Outcome::Broadcast => link::Outcome::Acked,
            Outcome::GivenUp => link::Outcome::GivenUp,
            Outcome::QueueFull => link::Outcome::QueueFull,
        };
        if self.has(station) {
            let (to, verdict) = (usize::from(to), Verdict { outcome, tries });
            self.inputs.push_back((station, Input::Finished { to, packet, verdict }));
        }
    }

    fn layer(&self, machine: usize) -> Option<&Layer<Packet>> {
        self.layers.get(machine)?.as_deref()
    }

    fn layer_mut(&mut self, machine: usize) -> Option<&mut Layer<Packet>> {
        self.layers.get_mut(machine)?.as_deref_mut()
    }
}

impl<P: Program> World<P> {
    /// Gives stations the link planes of a scenario, before the world's first step.
    pub fn set_link_planes(&mut self, plane: &Plane) {
        for station in 0..self.stations {
            let (pace, recover) = plane.engines(station);
            if pace.is_some() || recover.is_some() {
                self.planes.set(station, pace, recover);
            }
        }
    }

    /// What the stations' link planes have counted.
    pub fn link_planes(&self) -> impl Iterator<Item = (usize, link::Counters)> {
        self.planes.iter().map(|(at, layer)| (at, layer.counters()))
    }

    /// The standard deviation of round trips to the receiver that is most hops away, as the stations' recovery knows it,
    /// in seconds.
    pub fn farthest_deviation(&self) -> Option<f64> {
        let engines = self.planes.iter().filter_map(|(_, layer)| layer.recover());
        let farthest = engines.flat_map(Recover::deviations).max_by_key(|(hops, _)| *hops);
        farthest.map(|(_, deviation)| deviation)
    }

    /// Gives a packet to a station's link plane, to go to one neighbour, or to another if that is gone.
    pub(super) fn pass_link_plane(
        &mut self,
        station: usize,
        next: usize,
        other: Option<usize>,
        packet: Packet,
    ) {
        if let Some(layer) = self.planes.layer_mut(station) {
            layer.send(self.now, packet, Next { hop: ip(next), other: other.map(ip) });
        }
        self.drain_link_plane(station);
    }

    /// A packet goes on by a wire: tells the station's link plane, and takes off its header.
    pub(super) fn leave_link_plane(&mut self, station: usize, packet: Packet) -> Packet {
        if let Some(layer) = self.planes.layer_mut(station) {
            layer.gone(self.now, &packet);
            self.drain_link_plane(station);
        }
        Packet { interlay: None, ..packet }
    }

    /// Gives one link plane one input of the medium. Returns whether there was any.
    pub(super) fn settle_link_plane(&mut self) -> bool {
        let Some((station, input)) = self.planes.inputs.pop_front() else { return false };
        let Some(layer) = self.planes.layer_mut(station) else { return true };
        match input {
            Input::Received { from, packet } => {
                layer.receive(self.now, framed(packet), ip(from));
            }
            Input::Finished { to, packet, verdict } => {
                layer.verdict(self.now, framed(packet), ip(to), verdict);
            }
        }
        self.drain_link_plane(station);
        true
    }

    /// Shows a packet for another station to a station's link plane.
    pub(super) fn overhear_below(&mut self, station: usize, from: usize, packet: &Packet) {
        if let Some(layer) = self.planes.layer_mut(station) {
            layer.overhear(self.now, packet, ip(from));
            self.drain_link_plane(station);
        }
    }

    /// Handles the timers of a machine's link plane.
    pub(super) fn wake_link_plane(&mut self, machine: usize) {
        let now = self.now;
        if let Some(layer) = self.planes.layer_mut(machine)
            && layer.poll_timeout().is_some_and(|at| at <= now)
        {
            layer.handle_timeout(now);
            self.drain_link_plane(machine);
        }
    }

    fn drain_link_plane(&mut self, station: usize) {
        while let Some(output) = self.planes.layer_mut(station).and_then(Layer::poll_output) {
            match output {
                Output::Transmit { frame, next } => {
                    if let Some(next) = station_at(next) {
                        let to = Destination::Station(Station(next as u16));
                        let Frame { interlay, packet } = frame;
                        self.transmit(station, to, Packet { interlay, ..packet });
                    } else if let Some(layer) = self.planes.layer_mut(station) {
                        // Every frame has a verdict, also one for nobody.
                        let verdict = Verdict { outcome: link::Outcome::GivenUp, tries: 0 };
                        layer.verdict(self.now, frame, next, verdict);
                    }
                }
                Output::Deliver(packet) => {
                    self.arrived.push_back(Arrival { machine: station, interface: AIR, packet });
                }
                Output::Originate { to, message } => {
                    if let Some(to) = station_at(to) {
                        self.send(
                            station,
                            Packet::of_link_plane(address(station), address(to), message),
                        );
                    }
                }
            }
        }
        self.set_timer(station);
    }
}

/// A packet as link planes exchange it: here it carries their header itself.
fn framed(packet: Packet) -> Frame<Packet> {
    Frame { interlay: packet.interlay, packet }
}

fn ip(station: usize) -> IpAddr {
    address(station).into()
}

fn station_at(address: IpAddr) -> Option<usize> {
    match address {
        IpAddr::V4(address) => machine(address),
        IpAddr::V6(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::scenario::Scenario;
    use crate::world::flows::{Flow, Kind, endpoints};
    use crate::world::world;

    /// Ten minutes after the last flow has ended, nothing waits anywhere, and no MAC has a frame.
    #[test]
    fn each_frame_comes_back_with_a_verdict_while_links_come_and_go() {
        let keys = [
            ("mobility", "waypoint"),
            ("speed_min_m_s", "20"),
            ("speed_max_m_s", "40"),
            ("cuts", "3@5 8:9@7"),
            ("pace", "on"),
            ("recover", "on"),
        ];
        let keys = keys.map(|(key, value)| (key.to_owned(), value.to_owned()));
        let scenario = Scenario::load("mesh50", &keys).expect("a scenario");
        let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
        let flow = |(place, to): (usize, &usize)| {
            let (starts, ends) = (at(0), Some(at(20)));
            let kind = match place % 2 {
                0 => Kind::Tcp,
                _ => Kind::Udp { bits_per_second: 200_000 },
            };
            Flow { from: scenario.gateway, to: *to, starts, ends, kind }
        };
        let flows: Vec<_> = scenario.receivers.iter().enumerate().map(flow).collect();
        let programs = endpoints(scenario.routers.len(), &flows, 1);
        let mut world = world(&scenario, 1, programs);
        world.run(at(20));
        let drops = world.counters().drops;
        assert!(drops.retries > 100, "{drops:?}");
        world.run(at(620));
        for (station, layer) in world.planes.iter() {
            let pace = layer.pace().expect("all pace");
            assert!(pace.counters().paced == 0 || pace.counters().probes_sent > 0);
            assert_eq!((pace.waiting(), pace.in_mac()), (0, 0), "station {station}");
        }
        let paced: u64 = world.planes.iter().map(|(_, it)| it.counters().pace.paced).sum();
        assert!(paced > 1_000, "{paced}");
    }
}
