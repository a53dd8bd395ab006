//! RTS and CTS, PHYs, bit errors, fading, losses of all frames, and links that change: the effect
//! of each on single frames, in virtual time.

use std::time::Duration;

use radio::{
    Config, Control, Decoding, Destination, Input, Link, Links, Locking, LossScope, Medium,
    Outcome, Phy, Propagation, Ranges, Rate, Station, Thresholds, power, propagation::Field,
};

use crate::common::{Event, Sending, clique, clique_at, frames, link, micros, outcomes, play, to};

/// A start long after time zero, when the medium has been idle for long.
const LATER_US: u64 = 5000;
/// -60 dBm.
const STRONG: u64 = 1_000_000_000;

fn one(from: u16, to: Destination) -> [Sending; 1] {
    [(micros(LATER_US), from, to, 1500)]
}

fn rts() -> Config {
    Config { rts_threshold: Some(0), ..Config::default() }
}

/// Links in both directions between these pairs.
fn pairs(stations: usize, pairs: &[(u16, u16)]) -> Links {
    let mut links = Links::new(stations);
    for (a, b) in pairs.iter().copied() {
        links.set(Station(a), Station(b), link(STRONG));
        links.set(Station(b), Station(a), link(STRONG));
    }
    links
}

/// Kind, sender and end of all frames; the kind is `None` for data.
fn on_air(events: &[Event]) -> Vec<(Option<Control>, u16, u64)> {
    let micros = |at: wire::Instant| at.as_nanos() / 1000;
    let of = |event: &Event| match event {
        Event::Heard { frame, .. } => Some((None, frame.from.0, micros(frame.ended))),
        Event::HeardControl { kind, from, at, .. } => Some((Some(*kind), from.0, micros(*at))),
        Event::Done { .. } => None,
    };
    events.iter().filter_map(of).collect()
}

#[test]
fn a_long_packet_is_announced() {
    // An RTS of 20 bytes, CTS and ACK of 14 bytes at 1 Mbit/s; 1536 bytes at 11 Mbit/s.
    let (rts_us, cts_us, data_us) = (352, 304, 192 + 1118);
    let mut medium = Medium::new(rts(), clique(2), 1);
    let events = play(&mut medium, &one(0, to(1)));
    let rts_ends = LATER_US + rts_us;
    let cts_ends = rts_ends + 10 + cts_us;
    let data_ends = cts_ends + 10 + data_us;
    let expected = [
        (Some(Control::Rts), 0, rts_ends),
        (Some(Control::Cts), 1, cts_ends),
        (None, 0, data_ends),
        (Some(Control::Ack), 1, data_ends + 10 + cts_us),
    ];
    assert_eq!(on_air(&events), expected);
    assert_eq!(outcomes(&events), [(Outcome::Acked, 1)]);
    let total = medium.total();
    assert_eq!((total.rts_frames, total.rts_frames_failed, total.control_frames), (1, 0, 3));
    assert_eq!(total.mac_bytes_sent, 20 + 14 + 1536 + 14);
    let busy_us = rts_us + cts_us + data_us + cts_us;
    assert_eq!(total.airtime, Duration::from_micros(busy_us));
}

#[test]
fn the_threshold_is_the_longest_frame_without_rts_and_broadcasts_have_none() {
    for (rts_threshold, to, announced) in [
        (Some(1535), to(1), 1),
        (Some(1536), to(1), 0),
        (None, to(1), 0),
        (Some(0), Destination::Broadcast, 0),
    ] {
        let mut medium = Medium::new(Config { rts_threshold, ..rts() }, clique(2), 1);
        play(&mut medium, &one(0, to));
        assert_eq!(medium.total().rts_frames, announced, "{rts_threshold:?} {to:?}");
    }
}

#[test]
fn who_hears_only_the_cts_waits_for_the_ack() {
    // 0 sends to 1; 2 senses 1 only, and wants to send during the data frame.
    let links = pairs(4, &[(0, 1), (1, 2), (2, 3)]);
    let sendings = [one(0, to(1))[0], (micros(LATER_US + 1200), 2, to(3), 500)];
    let mut medium = Medium::new(rts(), links.clone(), 1);
    let events = play(&mut medium, &sendings);
    let ends = on_air(&events);
    let ack = ends.iter().find(|it| it.0 == Some(Control::Ack)).unwrap();
    let later = ends.iter().find(|it| it.1 == 2).unwrap();
    assert!(later.2 >= ack.2 + 50 + 352, "{ends:?}");
    assert_eq!(outcomes(&events), [(Outcome::Acked, 1); 2]);
    // Without RTS, it collides with the data frame.
    let mut medium = Medium::new(Config::default(), links, 1);
    let events = play(&mut medium, &[one(0, to(1))[0], (micros(LATER_US + 900), 2, to(3), 500)]);
    assert!(outcomes(&events)[0].1 > 1, "{events:?}");
}

#[test]
fn a_station_for_which_the_medium_is_reserved_sends_no_cts() {
    // 2 receives the CTS of 1, and then an RTS of 3; 3 senses neither 0 nor 1.
    let links = pairs(4, &[(0, 1), (1, 2), (2, 3)]);
    let sendings = [one(0, to(1))[0], (micros(LATER_US + 800), 3, to(2), 500)];
    let events = play(&mut Medium::new(rts(), links, 1), &sendings);
    let first_of_3 = on_air(&events).iter().position(|it| it.1 == 3).unwrap();
    let ack_of_1 = on_air(&events).iter().position(|it| it.0 == Some(Control::Ack)).unwrap();
    let cts_of_2 =
        on_air(&events).iter().position(|it| (it.0, it.1) == (Some(Control::Cts), 2)).unwrap();
    assert!(first_of_3 < ack_of_1 && cts_of_2 > ack_of_1, "{events:?}");
}

#[test]
fn what_an_rts_reserved_lapses_if_no_cts_follows() {
    // 1 is out of range. 2 receives the RTS, and may send after the NAV timeout, long before the
    // end of the reservation.
    let mut links = Links::new(4);
    for (from, to) in [(0, 2), (2, 3), (3, 2)] {
        links.set(Station(from), Station(to), link(STRONG));
    }
    let config = Config { short_tries_max: 1, ..rts() };
    let sendings = [one(0, to(1))[0], (micros(LATER_US + 360), 2, to(3), 500)];
    let events = play(&mut Medium::new(config, links, 1), &sendings);
    let first = on_air(&events).into_iter().find(|it| it.1 == 2).unwrap();
    // RTS, NAV timeout (10 + 10 + 304 + 192 + 20 + 20), DIFS, at most 31 slots, the RTS of 2.
    let earliest = LATER_US + 352 + 556 + 50 + 352;
    assert!((earliest..=earliest + 31 * 20).contains(&first.2), "{events:?}");
}

#[test]
fn a_signal_whose_header_cannot_be_read_keeps_no_reservation() {
    // 2 receives the RTS; instead of a CTS it then senses a frame of 4.
    let mut links = Links::new(5);
    for (from, to) in [(0, 2), (2, 3), (3, 2)] {
        links.set(Station(from), Station(to), link(STRONG));
    }
    let rts_ends = LATER_US + 352;
    // A broadcast of 20 bytes at 1 Mbit/s.
    let weak_ends = rts_ends + 10 + 192 + (20 + 36) * 8;
    let sendings = [
        one(0, to(1))[0],
        (micros(LATER_US + 360), 2, to(3), 500),
        (micros(rts_ends + 10), 4, Destination::Broadcast, 20),
    ];
    // An EIFS or a DIFS, at most 31 slots, and the RTS of 2. With the reservation, CTS, data and
    // ACK would have followed the RTS of 0.
    let lapsed = weak_ends + 364 + 352;
    let kept = rts_ends + 10 + 304 + 10 + (192 + 1118) + 10 + 304 + 50 + 352;
    // With bit errors, the header of a weak frame can be read although its body cannot.
    for (decoding, decodable, earliest) in [
        (Decoding::Capture, false, lapsed),
        (Decoding::Capture, true, kept),
        (Decoding::BitErrors, false, kept),
    ] {
        links.set(Station(4), Station(2), Link { decodable, ..link(STRONG / 16) });
        let config = Config { decoding, short_tries_max: 1, ..rts() };
        let events = play(&mut Medium::new(config, links.clone(), 1), &sendings);
        let first = on_air(&events).into_iter().find(|it| it.1 == 2).unwrap().2;
        assert!((earliest..=earliest + 31 * 20).contains(&first), "{decoding:?}: {first}");
    }
}

#[test]
fn rts_and_data_have_their_own_limits() {
    let gone = Medium::new(rts(), Links::new(2), 1);
    // Only the ACKs are missing: the receiver's link loses every data frame.
    let mut deaf = clique(2);
    deaf.set(Station(0), Station(1), Link { loss: 1.0, ..link(1_000_000) });
    for (mut medium, rts_frames, data_frames) in [(gone, 7, 0), (Medium::new(rts(), deaf, 1), 4, 4)]
    {
        let events = play(&mut medium, &one(0, to(1)));
        assert_eq!(outcomes(&events), [(Outcome::GivenUp, data_frames as u8)]);
        let total = medium.total();
        assert_eq!((total.rts_frames, total.data_frames), (rts_frames, data_frames));
        assert_eq!(total.rts_frames_failed, rts_frames - data_frames);
        assert_eq!((total.data_frames_failed, total.given_up), (data_frames, 1));
    }
}

#[test]
fn phys_keep_their_times() {
    // Data, SIFS and ACK: 1536 bytes at 54 Mbit/s and 14 bytes at 24 Mbit/s.
    for (phy, data_us, gap_us) in [(Phy::A, 248, 16 + 28), (Phy::G, 254, 10 + 34)] {
        let (data_rate, basic_rate) = (Rate::Mbps54, Rate::Mbps24);
        let config = Config { phy, data_rate, basic_rate, ..Config::default() };
        let events = play(&mut Medium::new(config, clique(2), 1), &one(0, to(1)));
        let data_ends = LATER_US + data_us;
        let expected = [(None, 0, data_ends), (Some(Control::Ack), 1, data_ends + gap_us)];
        assert_eq!(on_air(&events), expected);
    }
}

#[test]
#[should_panic(expected = "no such rate")]
fn a_phy_without_the_rate_is_the_drivers_mistake() {
    let config = Config { data_rate: Rate::Mbps54, ..Config::default() };
    let _ = Medium::<u32>::new(config, Links::new(1), 1);
}

#[test]
fn receptions_know_power_and_noise() {
    let mut medium = Medium::new(Config::like_ns3(), clique_at(2, power::from_dbm(-70.0)), 1);
    let events = play(&mut medium, &one(0, to(1)));
    let by = frames(&events)[0].1[0];
    // A bandwidth of 22 MHz and a noise figure of 7 dB.
    assert!((by.power_dbm() + 70.0).abs() < 1e-6 && (by.noise_dbm() + 93.6).abs() < 0.1);
    assert!((by.snr_db() - 23.6).abs() < 0.1);
}

#[test]
fn noise_alone_loses_frames_at_the_edge() {
    // At 11 Mbit/s half of the frames of 1536 bytes are lost near 6.5 dB; ACKs are received.
    let lost_at = |snr_db: f64| {
        let power = power::from_dbm(-93.55 + snr_db);
        let config = Config { queue_frames_max: 1000, ..Config::like_ns3() };
        let mut medium = Medium::new(config, clique_at(2, power), 1);
        play(&mut medium, &one(0, to(1)).repeat(500));
        let total = medium.total();
        total.data_frames_failed as f64 / total.data_frames as f64
    };
    let shares = [5.0, 6.0, 6.5, 7.0, 9.0].map(lost_at);
    assert!(shares.is_sorted_by(|a, b| a > b), "{shares:?}");
    assert!(
        shares[0] > 0.99 && (0.15..0.85).contains(&shares[2]) && shares[4] < 0.01,
        "{shares:?}"
    );
}

#[test]
fn a_weak_frame_holds_the_receiver_or_not() {
    // 0 is weak at 1, and 2 does not sense it, so the frame of 2 begins after that of 0.
    let mut links = pairs(3, &[(1, 2)]);
    let weak = Link { decodable: false, ..link(STRONG / 16) };
    links.set(Station(0), Station(1), weak);
    let later = (micros(LATER_US + 300), 2, to(1), 500);
    for (locking, tries) in [(Locking::First, 2..=7), (Locking::Decodable, 1..=1)] {
        let config = Config { locking, ..Config::like_ns3() };
        let sendings = [one(0, Destination::Broadcast)[0], later];
        let events = play(&mut Medium::new(config, links.clone(), 1), &sendings);
        assert!(tries.contains(&outcomes(&events)[1].1), "{locking:?}: {:?}", outcomes(&events));
    }
}

#[test]
fn acks_are_lost_if_all_frames_are() {
    const PACKETS: usize = 4000;
    let share = |loss_scope: LossScope| {
        let mut links = clique(2);
        links.set(Station(1), Station(0), Link { loss: 0.2, ..link(1_000_000) });
        let config = Config { loss_scope, queue_frames_max: PACKETS, ..Config::default() };
        let mut medium = Medium::new(config, links, 3);
        play(&mut medium, &one(0, to(1)).repeat(PACKETS));
        let total = medium.total();
        total.data_frames_failed as f64 / total.data_frames as f64
    };
    assert_eq!(share(LossScope::Data), 0.0);
    // 0.2 ± four standard deviations.
    assert!((share(LossScope::All) - 0.2).abs() < 0.023, "{}", share(LossScope::All));
}

#[test]
fn fading_lets_through_what_exceeds_the_threshold() {
    const PACKETS: usize = 10_000;
    // The mean is twice the power needed: the share exp(-1/2) of the frames exceeds it.
    let thresholds = Thresholds { receive: STRONG / 2, sense: STRONG / 20 };
    let links = clique_at(2, STRONG).fading(thresholds);
    let config = Config { queue_frames_max: PACKETS, ..Config::default() };
    let mut medium = Medium::new(config, links, 5);
    let events = play(&mut medium, &one(0, Destination::Broadcast).repeat(PACKETS));
    let heard = frames(&events);
    let received: Vec<u64> = heard.iter().flat_map(|(_, by)| by).map(|it| it.power).collect();
    assert!(received.iter().all(|power| *power >= STRONG / 2));
    let share = received.len() as f64 / PACKETS as f64;
    assert!((share - 0.6065).abs() < 0.02, "four standard deviations: {share}");
    // The powers above a threshold exceed it by the mean, on average.
    let excess = received.iter().map(|it| (*it - STRONG / 2) as f64).sum::<f64>();
    assert!((excess / received.len() as f64 / STRONG as f64 - 1.0).abs() < 0.06);
    let again = play(
        &mut Medium::new(
            Config { queue_frames_max: PACKETS, ..Config::default() },
            clique_at(2, STRONG).fading(thresholds),
            5,
        ),
        &one(0, Destination::Broadcast).repeat(PACKETS),
    );
    assert!(again == events, "the same seed, the same fades");
}

#[test]
fn links_come_and_go_between_frames() {
    let (a, b) = (Station(0), Station(1));
    let mut medium: Medium<u32> = Medium::new(Config::default(), Links::new(2), 1);
    let drain = |medium: &mut Medium<u32>| while medium.poll_output().is_some() {};
    let set = |medium: &mut Medium<u32>, at, from, to, link| {
        medium.handle_input(at, Input::Link { from, to, link });
        drain(medium);
    };
    set(&mut medium, micros(0), a, b, Some(link(STRONG)));
    set(&mut medium, micros(0), b, a, Some(link(STRONG)));
    let events = play(&mut medium, &one(0, to(1)));
    assert_eq!(outcomes(&events), [(Outcome::Acked, 1)]);
    // The link is removed during a frame: that frame is still received, and its ACK too.
    let at = LATER_US + 10_000;
    let send = Input::Send { from: a, to: to(1), bytes: 1500, payload: 7 };
    medium.handle_input(micros(at), send);
    drain(&mut medium);
    medium.handle_timeout(micros(at));
    set(&mut medium, micros(at + 100), a, b, Some(Link { loss: 1.0, ..link(STRONG) }));
    set(&mut medium, micros(at + 200), a, b, None);
    let events = play(&mut medium, &[]);
    assert_eq!(outcomes(&events), [(Outcome::Acked, 1)]);
    let events = play(&mut medium, &[(micros(at + 50_000), 0, to(1), 1500)]);
    assert_eq!(outcomes(&events), [(Outcome::GivenUp, 7)]);
    assert_eq!(medium.report(b).packets_received, 2);
}

#[test]
fn stations_that_move_are_heard_where_they_are() {
    let propagation = Propagation::in_ranges(Ranges::default());
    let mut field = Field::new(propagation, &[(0.0, 0.0), (200.0, 0.0), (900.0, 0.0)]);
    let mut medium: Medium<u32> = Medium::new(Config::default(), field.links(|_| 0.0), 1);
    let sendings = |at_us| [(micros(at_us), 0, Destination::Broadcast, 100)];
    let heard = |medium: &mut Medium<u32>, at_us| {
        let by: Vec<u16> =
            frames(&play(medium, &sendings(at_us)))[0].1.iter().map(|it| it.by.0).collect();
        by
    };
    assert_eq!(heard(&mut medium, 1000), [1]);
    let mut moves = Vec::new();
    for (station, place) in [(1, (700.0, 0.0)), (2, (100.0, 100.0))] {
        field.move_to(
            Station(station),
            place,
            |_| 0.0,
            |from, to, link| {
                moves.push(Input::Link { from, to, link });
            },
        );
    }
    for change in moves {
        medium.handle_input(micros(9000), change);
        while medium.poll_output().is_some() {}
    }
    assert_eq!(heard(&mut medium, 10_000), [2]);
}
