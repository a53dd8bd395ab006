//! What holds for any small topology and any list of packets.

mod common;

use common::{Event, Sending, frames, micros, outcomes, play};
use proptest::prelude::*;
use radio::{Config, Destination, Link, Links, Medium, Outcome, Station};

const STATIONS: u16 = 6;

fn links() -> impl Strategy<Value = Links> {
    let link = (1_u64..2_000_000, any::<bool>(), 0.0..1.0_f64);
    let edge = (0..STATIONS, 0..STATIONS, link);
    prop::collection::vec(edge, 0..36).prop_map(|edges| {
        let mut links = Links::new(usize::from(STATIONS));
        for (from, to, (power, decodable, loss)) in edges {
            links.set(Station(from), Station(to), Link { power, decodable, loss });
        }
        links
    })
}

fn sendings() -> impl Strategy<Value = Vec<Sending>> {
    // On a coarse grid, so that many fall on one instant or on the edge of something.
    let at = (0_u64..400).prop_map(|step| micros(step * 10));
    let to = prop_oneof![
        4 => (0..STATIONS).prop_map(|to| Destination::Station(Station(to))),
        1 => Just(Destination::Broadcast),
    ];
    prop::collection::vec((at, 0..STATIONS, to, 0_u32..1500), 0..60).prop_map(|mut sendings| {
        sendings.sort_by_key(|(at, ..)| *at);
        sendings
    })
}

/// What receivers and senders may never do.
fn check_frames(events: &[Event], links: &Links) -> Result<(), TestCaseError> {
    let heard = frames(events);
    for (frame, by) in &heard {
        for reception in by {
            let link = links.get(frame.from, reception.by).expect("only hearers receive");
            prop_assert!(link.decodable && link.power == reception.power);
            let deaf = heard.iter().any(|(own, _)| {
                own.from == reception.by && own.began < frame.ended && frame.began < own.ended
            });
            prop_assert!(!deaf, "a station received while it transmitted");
        }
        prop_assert!(by.is_sorted_by_key(|reception| reception.by));
        let twice = heard.iter().filter(|(other, _)| {
            other.from == frame.from && other.began < frame.ended && frame.began < other.ended
        });
        prop_assert_eq!(twice.count(), 1, "a station sent two frames at a time");
    }
    Ok(())
}

proptest! {
    #[test]
    fn every_packet_comes_back_once_and_time_goes_on(
        links in links(), sendings in sendings(), seed: u64, queue_frames_max in 0_usize..8,
    ) {
        let config = Config { queue_frames_max, ..Config::default() };
        let mut medium = Medium::new(config.clone(), links.clone(), seed);
        let events = play(&mut medium, &sendings);
        let done = outcomes(&events);
        prop_assert_eq!(done.len(), sendings.len());
        for ((outcome, tries), (_, _, to, _)) in std::iter::zip(done, &sendings) {
            let tries_fit = match outcome {
                Outcome::QueueFull => tries == 0,
                Outcome::Broadcast => tries == 1 && *to == Destination::Broadcast,
                Outcome::GivenUp => tries == config.short_tries_max,
                Outcome::Acked => (1..=config.short_tries_max).contains(&tries),
            };
            prop_assert!(tries_fit, "{outcome:?} after {tries}");
        }
        prop_assert!(events.is_sorted_by_key(Event::at));
        prop_assert_eq!(medium.poll_timeout(), None);
        check_frames(&events, &links)?;
    }

    #[test]
    fn counts_agree_with_what_was_told(links in links(), sendings in sendings(), seed: u64) {
        let mut medium = Medium::new(Config::default(), links, seed);
        let events = play(&mut medium, &sendings);
        let (heard, total) = (frames(&events), medium.total());
        let acks = events.iter().filter(|event| matches!(event, Event::HeardControl { .. })).count();
        let new = |event: &&(Outcome, u8)| event.0 != Outcome::QueueFull;
        prop_assert_eq!(total.data_frames, heard.len() as u64);
        prop_assert_eq!(total.control_frames, acks as u64);
        prop_assert_eq!(total.packets_sent, outcomes(&events).iter().filter(new).count() as u64);
        let receptions: usize = heard.iter().map(|(_, by)| by.len()).sum();
        prop_assert_eq!(
            total.packets_received + total.duplicates + total.overheard,
            receptions as u64
        );
        prop_assert_eq!(total.data_frames, heard.iter().map(|(f, _)| u64::from(f.retry)).sum::<u64>()
            + total.packets_sent);
    }
}
