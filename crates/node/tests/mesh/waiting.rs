//! Every wait ends: for a peer that falls silent, for a peer that got too little to continue, and for a slow origin.

use crate::net::{Call, Forged, Heard, Mesh, Pace, Page, Plan, Said, ask, author, noise};
use content::Segment;
use std::time::Duration;
use wire::peer::{Get, Message, Opaque, Outcome};

const URL: &str = "http://o.test/a";
const LENGTH: usize = 300_000;

/// 1 is a liar that answers 2 itself. No gateway's key is configured, so 2 cannot tell which signer to trust.
fn alone(play: impl FnMut(&node::testing::Peers, Message) -> Vec<Said> + 'static) -> Mesh {
    let mut mesh = Mesh::chain(3);
    mesh.start_liar(1, author(play));
    mesh.pass_seconds(40);
    mesh.origin.put(URL, Page::of(LENGTH).fresh(600));
    mesh
}

/// The response to the client of 2 was broken off in time, or came from another source.
fn ends_within(mut mesh: Mesh, seconds: u64) {
    let id = mesh.get(2, URL);
    assert!(mesh.client(id).is_broken() || mesh.client(id).is_ok(), "{:?}", mesh.client(id));
    assert!(mesh.took(id) < Duration::from_secs(seconds), "{:?}", mesh.took(id));
    mesh.kill(1);
    mesh.done();
}

#[test]
fn a_head_and_then_nothing_is_not_waited_for_without_an_end() {
    let body = noise(1, LENGTH);
    ends_within(
        alone(move |peers, message| match message {
            Message::Get(ask) => Forged::new(peers, URL, &body).told(ask.request)[..1].to_vec(),
            _ => Vec::new(),
        }),
        100,
    );
}

#[test]
fn a_manifest_that_stops_in_the_middle_is_not_waited_for_without_an_end() {
    let units: Vec<_> = (0..4).map(|number| (8_000, noise(number, 8_000))).collect();
    ends_within(
        alone(move |peers, message| {
            let forged = Forged::listing(peers, URL, &units);
            match message {
                // The head, two segments of five, and what they list.
                Message::Get(ask) => {
                    let mut all = forged.all(ask.request);
                    all.drain(3..6);
                    all.truncate(5);
                    all
                }
                Message::Want(_, wants) => forged.units(&wants),
                _ => Vec::new(),
            }
        }),
        100,
    );
}

#[test]
fn who_goes_on_and_never_delivers_is_given_up() {
    // There is no other way than by it.
    let body = noise(1, LENGTH);
    let mut mesh = alone(move |peers, message| match message {
        Message::Get(ask) if ask.resume.is_some() => {
            Forged::new(peers, URL, &body).told(ask.request)[..1].to_vec()
        }
        Message::Get(ask) => Forged::new(peers, URL, &body).told(ask.request),
        _ => Vec::new(),
    });
    mesh.power_off(0);
    ends_within(mesh, 60);
}

#[test]
fn who_lists_more_and_more_and_never_delivers_is_given_up() {
    // One more segment each time that it is asked again.
    let units: Vec<_> = (0..120).map(|number| (4_096, noise(number, 4_096))).collect();
    let mut mesh = alone(move |peers, message| match message {
        Message::Get(ask) => {
            let told = Forged::listing(peers, URL, &units).told(ask.request);
            let next = ask.resume.map_or(0, |resume| resume.segment as usize);
            vec![told[0].clone(), told[1 + next].clone()]
        }
        _ => Vec::new(),
    });
    mesh.power_off(0);
    ends_within(mesh, 100);
}

#[test]
fn however_much_is_asked_at_once_all_manifests_are_told() {
    const OBJECTS: u32 = 12;
    let mut plan = Plan::default();
    plan.node.store_bytes = 256 << 20;
    let mut mesh = Mesh::tree_of(&plan, &[0]);
    let page = Page::of(7_500_000).fresh(600);
    for number in 1..=OBJECTS {
        let url = format!("http://o.test/{number}");
        mesh.origin.put(&url, page.clone());
        mesh.get(0, &url);
    }
    let heard = Heard::default();
    mesh.start_liar(1, heard.play());
    let asks = (1..=OBJECTS).map(|number| {
        let all =
            Get { manifest_credit: u64::MAX, ..ask(number, &format!("http://o.test/{number}")) };
        Message::Get(Box::new(all))
    });
    mesh.liar_says(1, 0, asks.collect());
    mesh.pass_seconds(20);
    for number in 1..=OBJECTS {
        let closes = |message: &Message| match message {
            Message::Segment(_, _, bytes) => {
                Segment::decode(bytes).expect("a segment").closing.is_some()
            }
            _ => false,
        };
        assert!(heard.of(number).iter().any(closes), "object {number} was not told of to its end");
    }
    mesh.kill(1);
    mesh.done();
}

#[test]
fn a_second_head_ends_what_is_passed_on_honestly() {
    for twice in [1, 2] {
        let mut mesh = alone(move |_, message| match message {
            Message::Get(ask) => {
                let (status, fields, status_line) = (200, Vec::new(), String::new());
                let opaque = Opaque { status, fields, length: Some(100_000), status_line };
                let head = Message::Opaque(ask.request, Box::new(opaque));
                let bytes = Message::Bytes(ask.request, 0, vec![1; 5_000]);
                let mut said = vec![head.clone(), bytes];
                said.extend(vec![head; twice]);
                said.into_iter().map(Said::Message).collect()
            }
            _ => Vec::new(),
        });
        let id = mesh.get(2, URL);
        assert!(mesh.client(id).is_broken(), "{:?}", mesh.client(id).end);
        assert!(mesh.took(id) < Duration::from_secs(5), "{:?}", mesh.took(id));
        mesh.kill(1);
        mesh.done();
    }
}

#[test]
fn what_is_not_stored_is_asked_for_once_however_slowly_it_is_read() {
    let mut mesh = Mesh::chain(4);
    mesh.origin.put(URL, Page::of(12_000).with("cache-control", "private"));
    let id = mesh.call(3, Call::get(URL).pace(Pace::Slow(5)));
    mesh.finish();
    assert!(mesh.client(id).is_ok());
    assert!(mesh.took(id) > Duration::from_secs(2), "{:?}", mesh.took(id));
    assert_eq!(mesh.origin.askers(URL), [0]);
    mesh.done();
}

#[test]
fn an_origin_that_takes_long_is_asked_once() {
    for plan in [Plan::default(), Plan::thcp()] {
        for seconds in [7, 30] {
            let mut mesh = Mesh::chain_of(&plan, 4);
            let page = Page::of(LENGTH).fresh(600).waiting(Duration::from_secs(seconds));
            mesh.origin.put(URL, page);
            let id = mesh.get(3, URL);
            assert!(mesh.client(id).is_ok());
            assert!(mesh.took(id) < Duration::from_secs(seconds + 1), "{:?}", mesh.took(id));
            assert_eq!(mesh.origin.askers(URL), [0], "after {seconds} s");
            mesh.done();
        }
    }
}

#[test]
fn what_a_relay_says_of_a_failure_is_not_final() {
    for outcome in [
        Outcome::Complete,
        Outcome::Unresolved,
        Outcome::Forbidden,
        Outcome::Unreachable,
        Outcome::TimedOut,
        Outcome::Malformed,
        Outcome::Truncated,
        Outcome::Loop,
        Outcome::UnknownRecord,
        Outcome::Busy,
        Outcome::NotCached,
        Outcome::NotUnderstood,
        Outcome::Elsewhere(vec![]),
    ] {
        let said = outcome.clone();
        let mut mesh = alone(move |_, message| match message {
            Message::Get(ask) => vec![Said::Message(Message::End(ask.request, said.clone()))],
            _ => Vec::new(),
        });
        let id = mesh.get(2, URL);
        assert!(mesh.client(id).is_ok(), "{outcome:?}: {:?}", mesh.client(id).head);
        assert!(mesh.took(id) < Duration::from_secs(2), "{outcome:?}: {:?}", mesh.took(id));
        assert_eq!(mesh.origin.askers(URL), [0], "{outcome:?}");
        mesh.kill(1);
        mesh.done();
    }
}
