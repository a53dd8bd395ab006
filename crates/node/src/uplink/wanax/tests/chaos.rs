//! Whatever happens in whatever order, no byte is wrong.

use super::ends::Ends;
use super::{SCHEMES, changed, lines, noise};
use crate::uplink::sender::PAUSE;
use crate::uplink::wanax::UNACKED_MAX;
use proptest::prelude::*;
use std::collections::BTreeMap;

#[derive(Clone, Debug)]
enum Step {
    /// A flow begins with one of the bodies.
    Open(usize),
    /// Bytes of the body of one of the newest flows.
    Push(usize, usize),
    /// R passes on more.
    Grant(usize, u64),
    /// Nobody wants it any more.
    Cancel(usize),
    Pause,
    /// Records and messages, as many as these.
    Send(usize),
    Deliver(usize),
    Answer(usize),
    Settle,
    /// What R, or S, has stored is lost.
    LoseR,
    LoseS,
    /// The connection breaks.
    Cut,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0usize..6).prop_map(Step::Open),
        8 => (0usize..4, 1usize..400_000).prop_map(|(flow, bytes)| Step::Push(flow, bytes)),
        6 => (0usize..4, 1u64..2_000_000).prop_map(|(flow, bytes)| Step::Grant(flow, bytes)),
        1 => (0usize..4).prop_map(Step::Cancel),
        2 => Just(Step::Pause),
        4 => (1usize..30).prop_map(Step::Send),
        4 => (1usize..30).prop_map(Step::Deliver),
        3 => (1usize..30).prop_map(Step::Answer),
        3 => Just(Step::Settle),
        1 => Just(Step::LoseR),
        1 => Just(Step::LoseS),
        1 => Just(Step::Cut),
    ]
}

struct Chaos {
    ends: Ends,
    bodies: [Vec<u8>; 6],
    /// The flows, each with its body, and how much of it S was given.
    flows: BTreeMap<u64, (usize, usize)>,
    cancelled: Vec<u64>,
}

impl Chaos {
    fn take(&mut self, step: Step) {
        let nth = |flows: &BTreeMap<u64, _>, at| flows.keys().rev().nth(at).copied();
        match step {
            Step::Open(body) => {
                let flow = self.ends.open();
                self.flows.insert(flow, (body, 0));
            }
            Step::Push(at, bytes) => {
                let Some(flow) = nth(&self.flows, at) else { return };
                self.push(flow, bytes);
            }
            Step::Grant(at, bytes) => {
                if let Some(flow) = nth(&self.flows, at) {
                    self.ends.grant(flow, bytes);
                }
            }
            Step::Cancel(at) => {
                if let Some(flow) = nth(&self.flows, at) {
                    self.ends.receiver.cancel(flow);
                    self.cancelled.push(flow);
                }
            }
            Step::Pause => self.ends.wait(PAUSE),
            Step::Send(times) => (0..times).for_each(|_| _ = self.ends.send()),
            Step::Deliver(times) => (0..times).for_each(|_| _ = self.ends.deliver()),
            Step::Answer(times) => (0..times).for_each(|_| _ = self.ends.answer()),
            Step::Settle => self.ends.settle(),
            Step::LoseR => self.ends.r_cache.lose(),
            Step::LoseS => self.ends.s_cache.lose(),
            Step::Cut => {
                self.ends.cut();
                self.cancelled.extend(self.flows.keys());
                self.flows.clear();
            }
        }
        self.ends.hear_receiver().unwrap();
        assert!(self.ends.sender.unacked() <= UNACKED_MAX);
    }

    fn push(&mut self, flow: u64, bytes: usize) {
        let (body, given) = self.flows[&flow];
        let rest = &self.bodies[body][given..];
        let bytes = bytes.min(rest.len()).min(self.ends.sender.room(flow) as usize);
        self.ends.push(flow, &rest[..bytes]);
        self.flows.insert(flow, (body, given + bytes));
        if bytes == rest.len() {
            self.ends.sender.finish(flow, Ok(()));
        }
    }

    /// All flows come to their ends.
    fn settle(mut self) {
        self.ends.settle();
        let flows: Vec<_> = self.flows.keys().copied().collect();
        for flow in &flows {
            self.ends.grant(*flow, u64::MAX / 4);
            self.ends.settle();
            while !self.cancelled.contains(flow) && self.ends.passed[flow].end.is_none() {
                self.push(*flow, usize::MAX);
                self.ends.wait(PAUSE);
                self.ends.settle();
            }
        }
        for (flow, (body, _)) in &self.flows {
            let passed = &self.ends.passed[flow];
            let body = &self.bodies[*body];
            assert!(body.starts_with(&passed.bytes), "flow {flow} has wrong bytes");
            match passed.end {
                Some(Ok(())) => assert_eq!(passed.bytes.len(), body.len()),
                Some(Err(error)) => panic!("{flow}: {error:?}"),
                None => assert!(self.cancelled.contains(flow), "flow {flow} does not end"),
            }
        }
        assert_eq!((self.ends.sender.unacked(), self.ends.sender.waiting()), (0, 0));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, failure_persistence: None, ..Default::default() })]

    #[test]
    fn no_byte_is_wrong_and_every_flow_ends(
        steps in prop::collection::vec(step(), 1..60),
        scheme in 0..SCHEMES.len(),
        log in prop_oneof![Just(100_000u64), Just(700_000), Just(64 << 20)],
        entries in prop_oneof![Just(50usize), Just(3_000), Just(1 << 20)],
    ) {
        let base = noise(1, 150_000);
        let bodies = [
            base.clone(),
            changed(&base, 2),
            [&base[70_000..], &lines(3000)].concat(),
            lines(6_000),
            vec![],
            noise(9, 1_200_000),
        ];
        let ends = Ends::new(SCHEMES[scheme].parse().unwrap(), log, entries);
        let mut chaos = Chaos { ends, bodies, flows: BTreeMap::new(), cancelled: Vec::new() };
        steps.into_iter().for_each(|step| chaos.take(step));
        chaos.settle();
    }
}
