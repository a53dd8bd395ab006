//! What pacing drops, recovery does not wait for.

use std::net::SocketAddr;
use std::time::Duration;

use link::{Config, Flags, Header, Kind, Layer, Next, Output, Sack, Tcp, pace, recover};

use crate::common::{Packet, at, ip};

const ME: usize = 1;
const MSS: u32 = 1000;

fn segment(number: u32) -> Packet {
    let tcp = Tcp {
        seq: number * MSS,
        ack: 1,
        payload: MSS,
        flags: Flags::ACK,
        window: 1000,
        sack: Sack::default(),
        stamps: None,
        has_other_options: false,
    };
    let socket = |node| SocketAddr::new(ip(node), 80);
    let kind = Kind::Tcp(tcp);
    let header = Header { bytes: 40 + MSS, ttl: 60, from: socket(0), to: socket(9), kind };
    Packet { number: number.into(), header, interlay: None }
}

/// The sender's packet comes, and goes on if the layer lets it. Returns whether it did.
fn forward(layer: &mut Layer<Packet>, seconds: f64, packet: Packet) -> bool {
    let frame = link::Frame { interlay: None, packet };
    layer.receive(at(seconds), frame, ip(0));
    let mut passed = Vec::new();
    while let Some(output) = layer.poll_output() {
        if let Output::Deliver(packet) = output {
            passed.push(packet);
        }
    }
    let is_passed = !passed.is_empty();
    for packet in passed {
        layer.send(at(seconds), packet, Next { hop: ip(2), other: None });
        while layer.poll_output().is_some() {}
    }
    is_passed
}

#[test]
fn a_copy_of_what_pacing_dropped_goes_on() {
    let pace = pace::Config { active_packets_max: 1, ..pace::Config::default() };
    let recover = recover::Config::default();
    let mut layer = Layer::new(Config { me: ip(ME), pace: Some(pace), recover: Some(recover) });
    // The first is at the MAC, the second waits, and there is no room for the third.
    for number in 0..3 {
        assert!(forward(&mut layer, 1.0, segment(number)));
    }
    assert_eq!(layer.counters().pace.dropped_active, 1);
    // Its sender repeats it. A copy of the second, which still waits here, would be needless.
    let later = Duration::from_millis(300).as_secs_f64();
    assert!(forward(&mut layer, 1.0 + later, segment(2)), "nothing of it is under way");
    assert!(!forward(&mut layer, 1.0 + later, segment(1)), "this one is still to go");
}
