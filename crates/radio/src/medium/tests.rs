//! Tests of private state.

use super::*;
use crate::output::Destination;
use crate::propagation::Ranges;
use std::time::Duration;

/// Each station sends to the next one. It begins with the packets in `done`, and sends a new packet
/// whenever one is done.
fn saturate(medium: &mut Medium<u16>, done: &mut Vec<u16>, from: Instant, until: Instant) {
    let count = medium.stations.len() as u16;
    let packet = |station: u16| Input::Send {
        from: Station(station),
        to: Destination::Station(Station((station + 1) % count)),
        bytes: 1500,
        payload: station,
    };
    let mut now = from;
    while now < until {
        for station in std::mem::take(done) {
            medium.handle_input(now, packet(station));
            drain(medium, done);
        }
        now = medium.poll_timeout().expect("a saturated medium has something to do");
        medium.handle_timeout(now);
        drain(medium, done);
    }
}

fn drain(medium: &mut Medium<u16>, done: &mut Vec<u16>) {
    while let Some(output) = medium.poll_output() {
        if let Output::Done { payload, .. } = output {
            done.push(payload);
        }
    }
}

#[test]
fn tables_stop_growing() {
    let positions: Vec<_> = (0..12).map(|i| (f64::from(i) * 120.0, 0.0)).collect();
    let links = Links::by_distance(&positions, Ranges::default(), |_| 0.1);
    let mut medium = Medium::new(Config::default(), links, 1);
    let capacity = |medium: &Medium<u16>| {
        let queues: usize = medium.stations.iter().map(Transceiver::capacity).sum();
        queues + medium.packets.capacity() + medium.outbox.capacity()
    };
    let mut done: Vec<u16> = (0..12).flat_map(|station| [station; 3]).collect();
    saturate(&mut medium, &mut done, Instant::ZERO, Instant::from_nanos(2_000_000_000));
    let warm = capacity(&medium);
    let now = medium.now;
    saturate(&mut medium, &mut done, now, now + Duration::from_secs(20));
    assert_eq!(capacity(&medium), warm);
    assert!(medium.total().data_frames > 20_000);
}
