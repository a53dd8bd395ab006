//! Held against closed forms of one saturated link.

mod common;

use common::{Flows, PAYLOAD, clique, kbps, off, row, seconds};
use radio::{Config, Destination, Input, Medium, Output, Rate, Station};

/// Packets per second of one saturated link with its mean backoff and nobody else, by the standard's
/// numbers in microseconds.
fn packets_per_second(packet_bytes: u32, data_mbps: f64, basic_mbps: f64) -> f64 {
    let (difs, backoff, preamble, sifs) = (50.0, 31.0 / 2.0 * 20.0, 192.0, 10.0);
    let data = preamble + (f64::from(packet_bytes + 36) * 8.0 / data_mbps).ceil();
    let ack = preamble + 14.0 * 8.0 / basic_mbps;
    1e6 / (difs + backoff + data + sifs + ack)
}

fn one_hop(config: Config) -> f64 {
    let paths = vec![vec![Station(0), Station(1)]];
    let mut flows = Flows::new(config, row(2, 200.0), 1, paths);
    flows.run(seconds(60.0));
    kbps(flows.arrived[0], PAYLOAD, 60.0)
}

#[test]
fn udp_over_one_hop() {
    assert!(off(kbps(1, PAYLOAD, 1.0) * packets_per_second(1488, 11.0, 1.0), 5913.9).abs() < 1e-4);
    let goodput_kbps = one_hop(Config::default());
    assert!(off(goodput_kbps, 5913.9).abs() < 0.003, "{goodput_kbps}");
    let goodput_kbps = one_hop(Config { basic_rate: Rate::Mbps2, ..Config::default() });
    assert!(off(goodput_kbps, 6086.5).abs() < 0.003, "{goodput_kbps}");
}

#[test]
fn every_rate_has_its_closed_form() {
    for data_rate in Rate::ALL.into_iter().filter(|rate| !rate.is_ofdm()) {
        let mbps = data_rate.bits_per_second() as f64 / 1e6;
        let expected = kbps(1, PAYLOAD, 1.0) * packets_per_second(1488, mbps, 1.0);
        let goodput_kbps = one_hop(Config { data_rate, ..Config::default() });
        assert!(off(goodput_kbps, expected).abs() < 0.003, "{data_rate:?}: {goodput_kbps}");
    }
}

/// Jun, Peddabachagari, Sichitiu, "Theoretical maximum throughput of IEEE 802.11 and its
/// applications", 2003: 6055.6 kbit/s for MSDUs of 1500 bytes at 11 Mbit/s. Their MSDU is all that
/// follows the MAC header; ours has LLC and SNAP headers (8 bytes) in front of the packet, so the
/// packet has 1492 bytes; and they do not round times up to whole microseconds.
#[test]
fn theoretical_maximum_throughput() {
    const MSDU_BYTES: u32 = 1500;
    let mut medium = Medium::new(Config::default(), clique(2), 1);
    let (from, to) = (Station(0), Destination::Station(Station(1)));
    let send = || Input::Send { from, to, bytes: MSDU_BYTES - 8, payload: () };
    let (mut now, mut done) = (seconds(0.0), 0);
    medium.handle_input(now, send());
    while now < seconds(60.0) {
        now = medium.poll_timeout().expect("it is saturated");
        medium.handle_timeout(now);
        let mut more = false;
        while let Some(output) = medium.poll_output() {
            more |= matches!(output, Output::Done { .. });
        }
        if more {
            done += 1;
            medium.handle_input(now, send());
        }
    }
    let goodput_kbps = kbps(done, MSDU_BYTES, 60.0);
    assert!(off(goodput_kbps, 6055.6).abs() < 0.01, "{goodput_kbps}");
}
