//! Whatever happens in whatever order, no byte is wrong.

use crate::bytes::{edited, noise, page};
use crate::calls::Calls;
use crate::net::{Link, Net};
use node::FetchError;
use proptest::prelude::*;
use std::time::Duration;

#[derive(Clone, Debug)]
enum Step {
    /// Request this body, and read this much of it.
    Get(usize, u64),
    /// Read more of this request.
    Allow(usize, u64),
    Cancel(usize),
    /// A client dials a server of TCP; what they say to each other.
    Dial(usize, usize),
    /// One of the latest ends at its client, or at its server, well or not.
    EndClient(usize, bool),
    EndServer(usize, bool),
    Run(u64),
    Cut,
    Silence,
    Mend,
    /// Start an end again, with its history or without.
    RestartFar(bool),
    RestartNear(bool),
}

fn step() -> impl Strategy<Value = Step> {
    let bytes = prop_oneof![Just(0), 1..5000u64, 5000..400_000u64, Just(u64::MAX / 4)];
    prop_oneof![
        8 => (0..BODIES, bytes.clone()).prop_map(|(body, bytes)| Step::Get(body, bytes)),
        4 => (0..32usize, bytes).prop_map(|(which, bytes)| Step::Allow(which, bytes)),
        2 => (0..32usize).prop_map(Step::Cancel),
        8 => (0..BODIES, 0..BODIES).prop_map(|(asks, answers)| Step::Dial(asks, answers)),
        4 => (0..8usize, ends_well()).prop_map(|(which, well)| Step::EndClient(which, well)),
        4 => (0..8usize, ends_well()).prop_map(|(which, well)| Step::EndServer(which, well)),
        12 => (1..3000u64).prop_map(Step::Run),
        1 => Just(Step::Cut),
        1 => Just(Step::Silence),
        2 => Just(Step::Mend),
        1 => any::<bool>().prop_map(Step::RestartFar),
        1 => any::<bool>().prop_map(Step::RestartNear),
    ]
}

fn ends_well() -> impl Strategy<Value = bool> {
    prop_oneof![3 => Just(true), 1 => Just(false)]
}

fn end(well: bool) -> Result<(), FetchError> {
    if well { Ok(()) } else { Err(FetchError::Truncated) }
}

/// Units that each end remembers. What both forget soon cannot be asked for again.
fn histories() -> impl Strategy<Value = (usize, usize)> {
    let all = 100_000;
    prop_oneof![
        Just((all, all)),
        (10..200usize).prop_map(move |near| (near, all)),
        (10..200usize).prop_map(move |far| (all, far)),
        (10..200usize).prop_map(|near| (near, near + 400)),
    ]
}

const BODIES: usize = 8;

/// Variants of a few bodies.
fn bodies() -> [Vec<u8>; BODIES] {
    let (large, text) = (noise(1, 300_000), page(2, 6000));
    let [second, third] = [edited(&large, 20, 3), edited(&large, 3, 4)];
    let joined = [&large[..100_000], &text, &second[100_000..150_000]].concat();
    let twice = [&text[..], &text].concat();
    [large, second, third, joined, twice, text, vec![0; 200_000], vec![7; 3]]
}

struct Chaos {
    net: Net,
    bodies: [Vec<u8>; BODIES],
    /// Requests, each with its body, and whether it was cancelled.
    asked: Vec<(u64, usize, bool)>,
    calls: Calls,
}

impl Chaos {
    fn new(mut net: Net) -> Self {
        let bodies = bodies();
        for (at, body) in bodies.iter().enumerate() {
            net.origin(&format!("/{at}"), body.clone());
        }
        net.grant = 0;
        Self { net, bodies, asked: Vec::new(), calls: Calls::default() }
    }

    fn take(&mut self, step: Step) {
        match step {
            Step::Get(body, bytes) if self.net.near.is_up() => {
                let id = self.net.get(&format!("/{body}"));
                self.asked.push((id, body, false));
                self.net.allow(id, bytes);
            }
            Step::Get(..) => {}
            Step::Allow(which, bytes) => {
                if let Some((id, ..)) = self.asked.iter().rev().nth(which) {
                    self.net.allow(*id, bytes);
                }
            }
            Step::Cancel(which) => {
                if let Some((id, _, is_cancelled)) = self.asked.iter_mut().rev().nth(which) {
                    *is_cancelled = true;
                    self.net.cancel(*id);
                }
            }
            Step::Dial(asks, answers) => {
                self.calls.dial(&mut self.net, &self.bodies[asks], &self.bodies[answers]);
            }
            Step::EndClient(which, well) => self.calls.end_client(&mut self.net, which, end(well)),
            Step::EndServer(which, well) => self.calls.end_server(&mut self.net, which, end(well)),
            Step::Run(millis) => self.net.run_for(Duration::from_millis(millis)),
            Step::Cut => self.net.cut(),
            Step::Silence => {
                self.net.silence();
                // The near end notices; the far end may not have by then.
                self.net.run_for(Duration::from_secs(20));
            }
            Step::Mend => self.net.mend(),
            Step::RestartFar(keeps) => self.net.restart_far(keeps),
            Step::RestartNear(keeps) => {
                // The requests of the one before are nobody's.
                self.asked.iter_mut().for_each(|(_, _, is_cancelled)| *is_cancelled = true);
                self.calls.orphan();
                self.net.restart_near(keeps);
            }
        }
        self.calls.serve(&mut self.net);
        self.check();
    }

    /// What was delivered is a part of what the origin sends, and all of it if it has ended well.
    fn check(&self) {
        self.calls.check(&self.net);
        for (id, body, _) in &self.asked {
            let (answer, body) = (&self.net.answers[id], &self.bodies[*body]);
            assert!(body.starts_with(&answer.body), "request {id} has wrong bytes");
            match answer.end {
                Some(Ok(())) => assert_eq!(answer.body.len(), body.len(), "request {id} is cut"),
                Some(Err(error)) => assert_eq!(error, FetchError::Truncated),
                None => {}
            }
        }
    }

    /// Everything comes to an end once the link is good again.
    fn settle(mut self) {
        self.net.mend();
        self.net.run_for(Duration::from_secs(120));
        self.net.until(Net::is_up);
        let ids: Vec<_> = self.asked.iter().map(|(id, ..)| *id).collect();
        ids.iter().for_each(|id| self.net.allow(*id, u64::MAX / 4));
        self.calls.serve(&mut self.net);
        self.net.run_for(Duration::from_secs(5));
        self.calls.serve(&mut self.net);
        self.calls.end_all(&mut self.net);
        self.net.run_for(Duration::from_secs(600));
        self.check();
        self.calls.check_ends(&self.net);
        for (id, _, is_cancelled) in &self.asked {
            let has_ended = self.net.answers[id].end.is_some();
            let is_past = self.net.past.iter().any(|past| past.0 == *id);
            assert!(has_ended || is_past || *is_cancelled, "request {id} does not end");
        }
        assert!(self.net.is_up());
        self.net.grant = u64::MAX / 4;
        for at in 0..BODIES {
            assert!(self.net.get_all(&format!("/{at}")).0 == self.bodies[at], "body {at}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, failure_persistence: None, ..Default::default() })]

    #[test]
    fn no_byte_is_wrong_and_every_request_ends(
        steps in proptest::collection::vec(step(), 1..50),
        (near_units, far_units) in histories(),
        is_slow: bool,
    ) {
        let link = if is_slow { Link::SLOW } else { Link::FAST };
        let mut chaos = Chaos::new(Net::with_histories(link, near_units, far_units));
        steps.into_iter().for_each(|step| chaos.take(step));
        chaos.settle();
    }

    #[test]
    fn nor_is_one_by_the_published_schemes(
        steps in proptest::collection::vec(step(), 1..50),
        scheme in prop_oneof![Just("mrc-8-128"), Just("mrc-large-2-64"), Just("src-1024")],
        log in prop_oneof![Just(300_000), Just(64 << 20)],
        is_slow: bool,
    ) {
        let link = if is_slow { Link::SLOW } else { Link::FAST };
        let mut chaos = Chaos::new(Net::published(link, scheme, log));
        steps.into_iter().for_each(|step| chaos.take(step));
        chaos.settle();
    }
}
