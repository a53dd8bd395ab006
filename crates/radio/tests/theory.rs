//! Comparison with closed forms: one saturated link, and saturated stations in range of each other.

use radio::theory;
use radio::{Config, Phy, Rate, Station};

use crate::common::{Flows, PAYLOAD, clique_at, kbps, off, row, seconds};

/// IP, UDP and payload, in bytes.
const PACKET: u32 = 1488;
/// The duration of each cell's run, in seconds: at least 4000 packets.
const DURATION_S: f64 = 12.0;

fn one_hop(config: &Config) -> f64 {
    let paths = vec![vec![Station(0), Station(1)]];
    let mut flows = Flows::new(config.clone(), row(2, 50.0), 1, paths);
    flows.run(seconds(60.0));
    kbps(flows.arrived[0], PAYLOAD, 60.0)
}

fn expected(config: &Config) -> f64 {
    theory::single_sender(config, PACKET) * f64::from(PAYLOAD) * 8.0 / 1000.0
}

/// Values computed by hand with the standard's numbers.
#[test]
fn udp_over_one_hop() {
    for (basic_rate, rts_threshold, known_kbps) in [
        (Rate::Mbps1, None, 5913.9),
        (Rate::Mbps1, Some(0), 4405.9),
        (Rate::Mbps2, None, 6086.5),
        (Rate::Mbps2, Some(0), 4749.9),
    ] {
        let config = Config { basic_rate, rts_threshold, ..Config::default() };
        let goodput_kbps = one_hop(&config);
        assert!(off(goodput_kbps, known_kbps).abs() < 0.003, "{goodput_kbps} to {known_kbps}");
    }
}

#[test]
fn every_phy_and_rate_has_its_closed_form() {
    for phy in [Phy::B, Phy::BShort, Phy::A, Phy::G] {
        for data_rate in Rate::ALL.into_iter().filter(|rate| phy.has(*rate)) {
            for rts_threshold in [None, Some(0)] {
                let basic_rate = if data_rate.is_ofdm() { Rate::Mbps6 } else { Rate::Mbps1 };
                let config =
                    Config { phy, data_rate, basic_rate, rts_threshold, ..Config::like_ns3() };
                let (goodput_kbps, known_kbps) = (one_hop(&config), expected(&config));
                assert!(
                    off(goodput_kbps, known_kbps).abs() < 0.003,
                    "{phy:?} {data_rate:?}: {goodput_kbps} to {known_kbps}"
                );
            }
        }
    }
    // By hand: 54 Mbit/s in 802.11a, ACK at 24 Mbit/s: 34 + 67.5 + 248 + 16 + 28 microseconds for
    // 1536 bytes.
    let (phy, data_rate, basic_rate) = (Phy::A, Rate::Mbps54, Rate::Mbps24);
    let config = Config { phy, data_rate, basic_rate, ..Config::default() };
    assert!((theory::single_sender(&config, 1500) * 393.5e-6 - 1.0).abs() < 1e-9);
}

/// The length of Jun's MSDU of 1500 bytes in one of our frames: the MSDU includes LLC and SNAP, and
/// our MAC header is six bytes shorter than his.
#[test]
fn theoretical_maximum_throughput() {
    let maximum_kbps = theory::maximum_of_jun(Rate::Mbps11, Rate::Mbps1, 1500) / 1000.0;
    assert!(off(maximum_kbps, 6055.6).abs() < 1e-4);
    let ours_kbps = theory::single_sender(&Config::default(), 1492) * 1500.0 * 8.0 / 1000.0;
    assert!(off(ours_kbps, maximum_kbps).abs() < 0.005, "{ours_kbps}");
}

#[test]
fn saturated_stations_in_range_of_each_other() {
    for base in [Config::default(), Config::like_ns3()] {
        for rts_threshold in [None, Some(0)] {
            let config = Config { rts_threshold, ..base.clone() };
            for stations in [1_u16, 2, 3, 5, 10, 20, 35, 50] {
                let saturation = theory::saturation(&config, u32::from(stations), PACKET);
                let next = |i: u16| Station((i + 1) % stations.max(2));
                let paths = (0..stations).map(|i| vec![Station(i), next(i)]).collect();
                let links = clique_at(stations.max(2), 1_000_000_000);
                let mut flows = Flows::new(config.clone(), links, 1, paths);
                flows.run(seconds(DURATION_S));
                let per_second = flows.arrived.iter().sum::<u64>() as f64 / DURATION_S;
                let total = flows.medium.total();
                let fails = (total.data_frames_failed + total.rts_frames_failed) as f64;
                let tries =
                    if rts_threshold.is_some() { total.rts_frames } else { total.data_frames };
                let (throughput_off, collisions) =
                    (off(per_second, saturation.packets_per_second), fails / tries as f64);
                println!(
                    "{stations:2} stations, rts {:5}, {:?}: {per_second:.1} to {:.1} packets/s \
                     ({:+.1} %), collided {collisions:.3} to {:.3}",
                    rts_threshold.is_some(),
                    config.dcf,
                    saturation.packets_per_second,
                    100.0 * throughput_off,
                    saturation.collision,
                );
                assert!(throughput_off.abs() < 0.03, "{throughput_off}");
                assert!((collisions - saturation.collision).abs() < 0.025, "{collisions}");
            }
        }
    }
}
