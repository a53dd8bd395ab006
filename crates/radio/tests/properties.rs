//! Properties for any small topology and any list of packets.

use std::time::Duration;

use proptest::prelude::*;
use radio::{
    Config, Control, Dcf, Decoding, Destination, Link, Links, Locking, LossScope, Medium, Outcome,
    Phy, Rate, Station, Thresholds,
};

use crate::common::{Event, Sending, frames, micros, outcomes, play};

const STATIONS: u16 = 6;

fn links() -> impl Strategy<Value = Links> {
    let overheard_loss = prop::option::of(0.0..1.0_f64);
    let link = (1_u64..2_000_000, any::<bool>(), 0.0..1.0_f64, overheard_loss);
    let edge = (0..STATIONS, 0..STATIONS, link);
    prop::collection::vec(edge, 0..36).prop_map(|edges| {
        let mut links = Links::new(usize::from(STATIONS));
        for (from, to, (power, decodable, loss, overheard_loss)) in edges {
            let link = Link { power, decodable, loss, overheard_loss };
            links.set(Station(from), Station(to), link);
        }
        links
    })
}

fn sendings() -> impl Strategy<Value = Vec<Sending>> {
    // Times are on a coarse grid, so that many packets coincide with each other or with other
    // events.
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

/// Rules that senders and receivers must never break.
fn check_frames(events: &[Event], links: &Links) -> Result<(), TestCaseError> {
    let heard = frames(events);
    for (frame, by) in &heard {
        for reception in by {
            let link = links.get(frame.from, reception.by).expect("only hearers receive");
            let is_for_other = matches!(frame.to, Destination::Station(to) if to != reception.by);
            let arrives = match link.overheard_loss {
                Some(loss) if is_for_other => loss < 1.0,
                _ => link.decodable,
            };
            prop_assert!(arrives && link.power == reception.power);
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

/// Any valid configuration.
fn configs() -> impl Strategy<Value = Config> {
    let phys = prop_oneof![Just(Phy::B), Just(Phy::BShort), Just(Phy::A), Just(Phy::G)];
    let decoding = prop_oneof![Just(Decoding::Capture), Just(Decoding::BitErrors)];
    let locking = prop_oneof![Just(Locking::First), Just(Locking::Decodable)];
    let dcf = prop_oneof![Just(Dcf::Standard), Just(Dcf::Ns3)];
    let scope = prop_oneof![Just(LossScope::Data), Just(LossScope::All)];
    let rts = prop_oneof![Just(None), (0_u32..1500).prop_map(Some)];
    (phys, decoding, locking, dcf, scope, rts, 0_usize..8).prop_map(
        |(phy, decoding, locking, dcf, loss_scope, rts_threshold, queue_frames_max)| {
            let (data_rate, basic_rate) = match phy {
                Phy::B | Phy::BShort => (Rate::Mbps11, Rate::Mbps2),
                Phy::A | Phy::G => (Rate::Mbps54, Rate::Mbps6),
            };
            let rates = Config { phy, data_rate, basic_rate, ..Config::default() };
            Config { decoding, locking, dcf, loss_scope, rts_threshold, queue_frames_max, ..rates }
        },
    )
}

proptest! {
    #[test]
    fn every_choice_ends_well_and_the_air_is_accounted_for(
        links in links(), sendings in sendings(), seed: u64, config in configs(), fades: bool,
        spell_us in 0_u64..5_000,
    ) {
        let config = Config { overhear_spell: Duration::from_micros(spell_us), ..config };
        // With ns-3's DCF, a station whose RTS is not answered never gives up, and the run would
        // not end.
        let config = match config.rts_threshold {
            Some(_) => Config { dcf: Dcf::Standard, ..config },
            None => config,
        };
        let thresholds = Thresholds { receive: 1_000_000, sense: 100_000 };
        let links = if fades { links.fading(thresholds) } else { links };
        let mut medium = Medium::new(config.clone(), links.clone(), seed);
        let events = play(&mut medium, &sendings);
        prop_assert_eq!(outcomes(&events).len(), sendings.len());
        prop_assert!(events.is_sorted_by_key(Event::at));
        let airtime: Duration = events.iter().map(|event| match event {
            Event::Heard { frame, .. } => frame.ended - frame.began,
            Event::HeardControl { kind: Control::Rts, .. } => config.phy.airtime(20, config.basic_rate),
            Event::HeardControl { .. } => config.phy.airtime(14, config.basic_rate),
            Event::Done { .. } => Duration::ZERO,
        }).sum();
        prop_assert_eq!(medium.total().airtime, airtime);
        let again = play(&mut Medium::new(config, links, seed), &sendings);
        prop_assert!(again == events, "the same seed gave another run");
    }

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
