//! The behaviour of stations: what they send and receive, in virtual time.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use radio::{
    Config, Destination, Frame, Input, Link, Links, Medium, Outcome, Rate, Reception, Station,
};

use crate::common::{
    Event, Sending, clique, frames, link, micros, outcomes, play, row, seconds, to,
};

/// 1500 bytes at 11 Mbit/s: 192 microseconds for preamble and header, then 1536 bytes at 11 Mbit/s,
/// rounded up.
const DATA: Duration = Duration::from_micros(192 + 1118);
const ACK: Duration = Duration::from_micros(304);
const SIFS: Duration = Duration::from_micros(10);
const DIFS: Duration = Duration::from_micros(50);
/// A start long after time zero, when the medium has been idle for long.
const LATER_US: u64 = 5000;

fn medium(links: Links) -> Medium<u32> {
    Medium::new(Config::default(), links, 1)
}

fn one(from: u16, to: Destination) -> [Sending; 1] {
    [(micros(LATER_US), from, to, 1500)]
}

fn stations(by: &[Reception]) -> Vec<u16> {
    by.iter().map(|reception| reception.by.0).collect()
}

#[test]
fn a_lone_packet_goes_at_once_and_is_acknowledged() {
    let mut medium = medium(clique(3));
    let events = play(&mut medium, &one(0, to(1)));
    let began = micros(LATER_US);
    let ended = began + DATA;
    let [Event::Heard { frame, by, .. }, Event::HeardControl { from, at, by: ack_by, .. }, done] =
        &events[..]
    else {
        panic!("{events:?}")
    };
    let (rate, bytes, sequence) = (Rate::Mbps11, 1500, 1);
    let (from_0, to_1) = (Station(0), to(1));
    assert_eq!(
        *frame,
        Frame { from: from_0, to: to_1, bytes, rate, sequence, retry: false, began, ended }
    );
    assert_eq!(stations(by), [1, 2]);
    assert_eq!((*from, *at, stations(ack_by)), (Station(1), ended + SIFS + ACK, vec![0, 2]));
    assert!(matches!(done, Event::Done { outcome: Outcome::Acked, tries: 1, .. }));
    let total = medium.total();
    assert_eq!((total.packets_sent, total.packet_bytes_sent, total.data_frames), (1, 1500, 1));
    assert_eq!(total.mac_bytes_sent, 1500 + 8 + 24 + 4 + 14);
    assert_eq!((total.control_frames, total.airtime), (1, DATA + ACK));
    assert_eq!((total.packets_received, total.overheard), (1, 1));
    assert_eq!((medium.report(Station(1)).airtime, medium.poll_timeout()), (ACK, None));
}

#[test]
fn a_broadcast_is_sent_once_slowly_and_nobody_acknowledges_it() {
    let mut links = clique(4);
    links.set(Station(0), Station(2), Link { loss: 1.0, ..link(1_000_000) });
    let mut medium = medium(links);
    let events = play(&mut medium, &one(0, Destination::Broadcast));
    let heard = frames(&events);
    assert_eq!(heard.len(), 1);
    assert_eq!((heard[0].0.rate, stations(&heard[0].1)), (Rate::Mbps1, vec![1, 3]));
    assert_eq!(heard[0].0.ended - heard[0].0.began, Duration::from_micros(192 + 1536 * 8));
    assert_eq!(outcomes(&events), [(Outcome::Broadcast, 1)]);
    let total = medium.total();
    assert_eq!((total.control_frames, total.lost, total.packets_received), (0, 1, 2));
}

#[test]
fn a_backoff_comes_between_two_packets_of_a_station() {
    let gaps = (0..200).map(|seed| {
        let mut medium = Medium::new(Config::default(), clique(2), seed);
        let heard = frames(&play(&mut medium, &[one(0, to(1)), one(0, to(1))].concat()));
        let gap = heard[1].0.began - heard[0].0.ended - (SIFS + ACK + DIFS);
        assert_eq!(gap.as_micros() % 20, 0);
        gap.as_micros() / 20
    });
    let slots: std::collections::BTreeSet<u128> = gaps.collect();
    assert_eq!((slots.first(), slots.last()), (Some(&0), Some(&31)));
}

#[test]
fn a_sender_that_nobody_answers_gives_up_after_so_many_tries() {
    for tries_max in [1, 4, 7] {
        let config = Config { short_tries_max: tries_max, ..Config::default() };
        let mut medium = Medium::new(config, Links::new(2), 1);
        let events = play(&mut medium, &one(0, to(1)));
        assert_eq!(outcomes(&events), [(Outcome::GivenUp, tries_max)]);
        let heard = frames(&events);
        assert!(heard.iter().all(|(frame, by)| by.is_empty() && frame.sequence == 1));
        let retries: Vec<bool> = heard.iter().map(|(frame, _)| frame.retry).collect();
        assert!(!retries[0] && retries[1..].iter().all(|retry| *retry));
        for (try_, next) in std::iter::zip(&heard, &heard[1..]) {
            let gap = next.0.began - try_.0.ended;
            assert!(
                gap >= Duration::from_micros(10 + 20 + 192),
                "waits for the ACK first: {gap:?}"
            );
        }
        let report = medium.report(Station(0));
        assert_eq!((report.given_up, report.packets_sent), (1, 1));
        assert_eq!(report.data_frames, u64::from(tries_max));
        assert_eq!(report.data_frames_failed, u64::from(tries_max));
    }
}

#[test]
fn who_got_an_earlier_try_is_told_that_it_is_not_new() {
    // The sender does not receive the addressee's ACKs; the third station receives half of the
    // tries.
    let mut links = Links::new(3);
    links.set(Station(0), Station(1), link(1_000_000));
    links.set(Station(0), Station(2), Link { loss: 0.5, ..link(1_000_000) });
    let mut medium = medium(links);
    let events = play(&mut medium, &one(0, to(1)).repeat(20));
    let heard = frames(&events);
    assert_eq!(heard.len(), 20 * 7);
    for station in [1, 2] {
        for packet in heard.chunks(7) {
            let got = packet.iter().flat_map(|(_, by)| by).filter(|r| r.by == Station(station));
            let new: Vec<bool> = got.map(|reception| reception.is_new).collect();
            let first_only: Vec<bool> = (0..new.len()).map(|i| i == 0).collect();
            assert_eq!(new, first_only);
        }
    }
    // A try that begins while the addressee still sends the ACK of the previous one is not
    // received.
    let report = medium.report(Station(1));
    assert_eq!(report.packets_received, 20);
    assert!((100..=120).contains(&report.duplicates), "{}", report.duplicates);
    assert_eq!(report.control_frames, 20 + report.duplicates);
}

#[test]
fn a_full_queue_drops_what_comes_last() {
    let config = Config { queue_frames_max: 3, ..Config::default() };
    let mut medium = Medium::new(config, clique(2), 1);
    let events = play(&mut medium, &one(0, to(1)).repeat(6));
    let acked = (Outcome::Acked, 1);
    let full = (Outcome::QueueFull, 0);
    // One is being sent, three wait.
    assert_eq!(outcomes(&events), [acked, acked, acked, acked, full, full]);
    let sequences: Vec<u16> = frames(&events).iter().map(|(frame, _)| frame.sequence).collect();
    assert_eq!((sequences, medium.total().queue_full), (vec![1, 2, 3, 4], 2));
}

#[test]
fn losses_are_as_frequent_as_the_link_says_and_independent_among_hearers() {
    const PACKETS: usize = 20_000;
    let mut links = Links::new(3);
    for (hearer, loss) in [(1, 0.3), (2, 0.2)] {
        links.set(Station(0), Station(hearer), Link { loss, ..link(1_000_000) });
    }
    let config = Config { queue_frames_max: PACKETS, ..Config::default() };
    let mut medium = Medium::new(config, links, 7);
    let events = play(&mut medium, &one(0, Destination::Broadcast).repeat(PACKETS));
    let heard = frames(&events);
    let share = |missing: &dyn Fn(&[u16]) -> bool| {
        let missed = heard.iter().filter(|(_, by)| missing(&stations(by))).count();
        missed as f64 / PACKETS as f64
    };
    // Four standard deviations each: 0.013, 0.0113, 0.0067.
    let (one, two) = (share(&|by| !by.contains(&1)), share(&|by| !by.contains(&2)));
    assert!((one - 0.3).abs() < 0.013 && (two - 0.2).abs() < 0.0113, "{one} {two}");
    let both = share(&|by| by.is_empty());
    assert!((both - 0.06).abs() < 0.0067, "{both}");
}

#[test]
fn broadcasts_suffer_a_share_of_their_links_losses() {
    const PACKETS: usize = 10_000;
    let mut links = Links::new(2);
    links.set(Station(0), Station(1), Link { loss: 0.8, ..link(1_000_000) });
    let config =
        Config { queue_frames_max: PACKETS, broadcast_loss_share: 0.25, ..Config::default() };
    let mut medium = Medium::new(config, links, 7);
    play(&mut medium, &one(0, Destination::Broadcast).repeat(PACKETS));
    let lost = medium.report(Station(1)).lost as f64 / PACKETS as f64;
    assert!((lost - 0.2).abs() < 0.016, "four standard deviations around 0.2: {lost}");
}

#[test]
fn stations_that_begin_at_one_instant_collide() {
    let mut medium = medium(clique(3));
    let events = play(&mut medium, &[one(0, to(2)), one(1, to(2))].concat());
    let heard = frames(&events);
    assert_eq!((heard[0].0.began, heard[1].0.began), (micros(LATER_US), micros(LATER_US)));
    assert!(heard[0].1.is_empty() && heard[1].1.is_empty());
    assert_eq!(medium.report(Station(2)).disturbed, 1);
    // The next tries do not overlap, and both are received.
    assert!(
        outcomes(&events).iter().all(|(outcome, tries)| *outcome == Outcome::Acked && *tries > 1)
    );
}

#[test]
fn a_station_defers_to_one_that_began_before() {
    let sendings = [one(0, to(2))[0], (micros(LATER_US + 1), 1, to(2), 1500)];
    let mut medium = medium(clique(3));
    let events = play(&mut medium, &sendings);
    assert_eq!(outcomes(&events), [(Outcome::Acked, 1); 2]);
    let heard = frames(&events);
    assert!(heard[1].0.began >= heard[0].0.ended + SIFS + ACK + DIFS);
}

#[test]
fn a_station_that_overheard_leaves_the_medium_for_an_ack_that_it_cannot_hear() {
    // 0 sends to 1; 2 receives 0, but not 1.
    let mut links = Links::new(3);
    for (from, to) in [(0, 1), (1, 0), (0, 2), (2, 0)] {
        links.set(Station(from), Station(to), link(1_000_000));
    }
    let sendings = [one(0, to(1))[0], (micros(LATER_US + 1), 2, to(0), 1500)];
    let heard = frames(&play(&mut medium(links), &sendings));
    assert!(heard[1].0.began >= heard[0].0.ended + SIFS + ACK + DIFS);
}

#[test]
fn signals_disturb_beyond_the_range_of_reception() {
    // 0 and 3 are 600 m apart and do not sense each other; 1 is 400 m from 3, and 200 m from 0.
    let sendings = |first: u16, second: u16| {
        let to_of = |from: u16| if from == 0 { to(1) } else { to(4) };
        [
            (micros(LATER_US), first, to_of(first), 1500),
            (micros(LATER_US + 100), second, to_of(second), 1500),
        ]
    };
    let mut early = medium(row(5, 200.0));
    let heard = frames(&play(&mut early, &sendings(0, 3)));
    assert!(stations(&heard[0].1).contains(&1), "12 dB stronger than the later one: captured");
    let mut late = medium(row(5, 200.0));
    let heard = frames(&play(&mut late, &sendings(3, 0)));
    assert_eq!(heard[1].0.from, Station(0));
    assert!(
        !stations(&heard[1].1).contains(&1),
        "the receiver stays with the one it cannot decode"
    );
    // At 220 and 380 m the margin is 9.5 dB, and capture fails.
    let positions = [0.0, 220.0, 420.0, 600.0, 800.0].map(|x| (x, 0.0));
    let links = Links::by_distance(&positions, radio::Ranges::default(), |_| 0.0);
    let mut near = medium(links);
    let heard = frames(&play(&mut near, &sendings(0, 3)));
    assert!(!stations(&heard[0].1).contains(&1));
    assert_eq!(near.report(Station(1)).disturbed, 1);
}

#[test]
fn the_same_seed_gives_the_same_run_and_another_does_not() {
    let trace = |seed: u64| {
        let mut medium = Medium::new(Config::default(), row(6, 150.0), seed);
        let sendings: Vec<Sending> = (0..300)
            .map(|i| (micros(900 * i), (i % 6) as u16, to(((i + 1) % 6) as u16), 700))
            .collect();
        let mut hasher = DefaultHasher::new();
        play(&mut medium, &sendings).hash(&mut hasher);
        hasher.finish()
    };
    assert_eq!(trace(1), trace(1));
    assert_ne!(trace(1), trace(2));
}

#[test]
fn a_late_driver_sees_what_a_punctual_one_sees() {
    let sendings = [one(0, to(1)), one(2, to(1)), one(1, to(0))].concat();
    let punctual = play(&mut medium(clique(3)), &sendings);
    let mut late = medium(clique(3));
    let mut at = 0;
    for (payload, (when, from, to, bytes)) in sendings.iter().enumerate() {
        let (from, payload) = (Station(*from), payload as u32);
        late.handle_input(*when, Input::Send { from, to: *to, bytes: *bytes, payload });
        while late.poll_output().is_some() {}
    }
    late.handle_timeout(seconds(1.0));
    while late.poll_output().is_some() {
        at += 1;
    }
    assert_eq!((at, late.poll_timeout()), (punctual.len(), None));
}

#[test]
#[should_panic(expected = "no such station")]
fn a_station_that_is_not_there_is_the_drivers_mistake() {
    play(&mut medium(clique(2)), &one(0, to(2)));
}

/// Overheard frames have their own loss: they may be received where frames for the station itself
/// are lost, and the reverse.
#[test]
fn what_is_lost_of_frames_for_others_is_a_matter_of_its_own() {
    let mut links = clique(4);
    let deaf = Link { overheard_loss: Some(1.0), ..link(1_000_000) };
    let far = Link { decodable: false, overheard_loss: Some(0.0), ..link(1_000_000) };
    links.set(Station(0), Station(2), deaf);
    links.set(Station(0), Station(3), far);
    let by = |destination| {
        let events = play(&mut medium(links.clone()), &one(0, destination));
        frames(&events).iter().flat_map(|(_, by)| stations(by)).collect::<Vec<_>>()
    };
    assert_eq!(by(to(1)), [1, 3]);
    assert_eq!(by(to(2)), [1, 2, 3]);
    assert_eq!(by(Destination::Broadcast), [1, 2]);
    // 3 receives no frame for itself, however often 0 tries.
    assert!(!by(to(3)).contains(&3));
}

/// Station 1 receives all frames of 0; 2 overhears half of them.
fn overheard(spell: Duration, seed: u64) -> Vec<bool> {
    let mut links = clique(3);
    let half = Link { overheard_loss: Some(0.5), ..link(1_000_000) };
    links.set(Station(0), Station(2), half);
    let config = Config { overhear_spell: spell, ..Config::default() };
    let mut medium = Medium::new(config, links, seed);
    let sendings: Vec<Sending> = (0..2000).map(|it| (micros(it * 2000), 0, to(1), 500)).collect();
    let events = play(&mut medium, &sendings);
    let frames = frames(&events);
    assert!(frames.iter().all(|(_, by)| stations(by).contains(&1)));
    frames.iter().map(|(_, by)| stations(by).contains(&2)).collect()
}

#[test]
fn what_an_observer_hears_stays_so_for_a_spell_and_what_is_for_oneself_is_not_lost_in_it() {
    let changes = |heard: &[bool]| heard.windows(2).filter(|it| it[0] != it[1]).count();
    // If each frame is drawn alone, reception changes at every other frame. Spells of 20 ms are ten
    // frames long: between two frames the state is drawn again with probability 1 - exp(-0.1), and
    // then changes in half of the cases.
    let (alone, spells) = (overheard(Duration::ZERO, 1), overheard(Duration::from_millis(20), 1));
    assert!((900..1100).contains(&changes(&alone)), "{}", changes(&alone));
    assert!((55..135).contains(&changes(&spells)), "{}", changes(&spells));
    assert_eq!(spells, overheard(Duration::from_millis(20), 1));
    assert_ne!(spells, overheard(Duration::from_millis(20), 2));
}
