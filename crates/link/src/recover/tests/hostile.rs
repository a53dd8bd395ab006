//! Arbitrary headers, verdicts and notices: no panic, bounded memory, and no packet that was not given.

use std::time::Duration;

use proptest::prelude::*;
use wire::Instant;

use super::super::{Config, Output, Recover};
use super::{Plain, end, packet, router};
use crate::{Flags, Lost, Next, Notice, Outcome, Sack, Tcp, Verdict};

/// Numbers that lie close together, or anywhere, also around the wrap.
fn number() -> impl Strategy<Value = u32> {
    prop_oneof![
        (0_u32..12).prop_map(|it| it.wrapping_mul(500).wrapping_sub(3000)),
        any::<u32>(),
        Just(u32::MAX),
        (0_u32..4).prop_map(|it| it << 30),
    ]
}

fn tcp() -> impl Strategy<Value = Tcp> {
    let sack = prop::collection::vec((number(), number()), 0..5);
    let payload = prop_oneof![Just(0_u32), Just(1), Just(500), Just(1000), any::<u32>()];
    let flags = prop_oneof![4 => Just(Flags::ACK.0), 1 => any::<u8>()];
    let window = prop_oneof![4 => Just(1000_u32), 1 => 0_u32..3];
    (number(), number(), payload, flags, window, sack).prop_map(
        |(seq, ack, payload, flags, window, blocks)| {
            let mut sack = Sack::default();
            blocks.into_iter().for_each(|block| sack.push(block));
            let flags = Flags(flags);
            let (stamps, has_other_options) = (None, false);
            Tcp { seq, ack, payload, flags, window, sack, stamps, has_other_options }
        },
    )
}

#[derive(Clone, Debug)]
enum Input {
    Incoming(Plain),
    Outgoing(Plain, usize, bool),
    Verdict(Plain, usize, u8),
    /// The verdict that is owed for what came out.
    Done(u8),
    Overheard(Plain, usize),
    Notice(Notice),
    Wait(u64),
}

fn input() -> impl Strategy<Value = Input> {
    let plain = (0_usize..5, 0_usize..5, tcp(), any::<u8>(), any::<bool>()).prop_map(
        |(from, to, tcp, ttl, huge)| {
            let mut it = packet(end(from), end(to), tcp);
            it.0.ttl = ttl;
            it.0.bytes = if huge { tcp.payload } else { 40 + tcp.payload.min(1460) };
            it
        },
    );
    let plain = plain.boxed();
    let plain = || plain.clone();
    let lost = prop_oneof![number().prop_map(Lost::Data), number().prop_map(Lost::Ack)];
    prop_oneof![
        plain().prop_map(Input::Incoming),
        (plain(), 0_usize..5, any::<bool>()).prop_map(|(it, hop, o)| Input::Outgoing(it, hop, o)),
        (plain(), 0_usize..5, 0_u8..3).prop_map(|(it, hop, how)| Input::Verdict(it, hop, how)),
        (0_u8..3).prop_map(Input::Done),
        (plain(), 0_usize..5).prop_map(|(it, hop)| Input::Overheard(it, hop)),
        (0_usize..5, 0_usize..5, lost).prop_map(|(from, to, lost)| Input::Notice(Notice {
            from: end(from),
            to: end(to),
            lost
        })),
        (0_u64..3000).prop_map(Input::Wait),
    ]
}

fn verdict(how: u8) -> Verdict {
    let outcome = match how {
        0 => Outcome::Acked,
        1 => Outcome::GivenUp,
        _ => Outcome::QueueFull,
    };
    Verdict { outcome, tries: how * 100 }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn nothing_harms(inputs in prop::collection::vec(input(), 1..300), paper: bool, flows in 0_usize..6) {
        let base = if paper { Config::inpcm() } else { Config::default() };
        let config = Config { cache_bytes: 5000, flows_max: flows, ..base };
        let mut engine = Recover::new(router(2), config);
        let mut now = Instant::ZERO;
        let (mut given, mut on_air) = (Vec::new(), Vec::new());
        let (mut sent, mut passed) = (0_u64, 0_u64);
        for input in inputs {
            match input {
                Input::Incoming(it) => {
                    let pass = engine.incoming(now, &it.0);
                    let tcp = it.0.tcp().unwrap();
                    let special = Flags::SYN.0 | Flags::FIN.0 | Flags::RST.0 | Flags::ECE.0;
                    prop_assert!(pass || !tcp.flags.has_any(Flags(special)));
                }
                Input::Outgoing(it, hop, other) => {
                    given.push(it);
                    passed += 1;
                    let other = other.then(|| router(hop + 1));
                    engine.outgoing(now, &it.0, it, Next { hop: router(hop), other });
                }
                Input::Verdict(it, hop, how) => {
                    engine.verdict(now, &it.0, it, router(hop), verdict(how));
                }
                Input::Done(how) => {
                    if let Some((it, next)) = on_air.pop() {
                        let it: Plain = it;
                        engine.verdict(now, &it.0, it, next, verdict(how));
                    }
                }
                Input::Overheard(it, hop) => engine.overheard(now, &it.0, router(hop)),
                Input::Notice(notice) => engine.notice(now, &notice),
                Input::Wait(ms) => {
                    now = now + Duration::from_millis(ms);
                    engine.handle_timeout(now);
                    prop_assert!(engine.poll_timeout().is_none_or(|at| at > now));
                }
            }
            while let Some(output) = engine.poll_output() {
                if let Output::Send { packet, next } = output {
                    prop_assert!(given.contains(&packet), "never given: {packet:?}");
                    on_air.push((packet, next));
                    sent += 1;
                }
            }
            prop_assert!(engine.cached_bytes() <= 5000);
            prop_assert!(engine.flows() <= flows.max(2));
        }
        let it = engine.counters();
        prop_assert_eq!(it.sent + it.red_dropped, passed);
        prop_assert_eq!(sent, it.sent + it.data_resent() + it.acks_resent + it.acks_answered);
    }
}

#[test]
fn a_million_flows_take_no_more_room_than_the_limit() {
    let config = Config { flows_max: 16, ..Config::default() };
    let mut engine = Recover::new(router(2), config);
    let next = Next { hop: router(3), other: None };
    for number in 0..1_000_000_u32 {
        let from = (router((number >> 16) as usize), number as u16).into();
        let it = packet(from, end(9), super::segment(number, 1000, 0));
        engine.outgoing(Instant::ZERO, &it.0, it, next);
        while engine.poll_output().is_some() {}
    }
    assert_eq!(engine.flows(), 16);
    assert!(engine.cached_bytes() <= 16 * 1040);
}
