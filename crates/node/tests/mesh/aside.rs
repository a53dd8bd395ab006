//! What was half heard and is asked for of a peer counts towards the budget of overhearing until it is whole,
//! however many wait for it.

use crate::net::{Call, Forged, Mesh, Page, Plan, Said, Stranger, author, cut, noise};
use bytes::Bytes;
use wire::peer::Message;

const LENGTH: usize = 200_000;
const OBJECTS: usize = 40;
/// What [`Plan::listening`] gives a node.
const BUDGET: u64 = 2 << 20;

fn url(number: usize) -> String {
    format!("http://o.test/{number}")
}

fn body(number: usize) -> Bytes {
    noise(number as u64, LENGTH)
}

/// 0 tells of each object, and sends no unit of any.
fn with_a_giver_that_sends_nothing() -> Mesh {
    let mut mesh = Mesh::tree_of(&Plan::listening(), &[0]);
    let play = author(|peers, message| match message {
        Message::Get(ask) => {
            let number = ask.uri.rsplit('/').next().and_then(|it| it.parse().ok());
            let number = number.expect("one of these objects");
            let told = Forged::new(peers, &url(number), &body(number)).told(ask.request);
            told.into_iter().filter(|said| matches!(said, Said::Message(_))).collect()
        }
        _ => Vec::new(),
    });
    mesh.start_liar(0, play);
    mesh.pass_seconds(40);
    mesh
}

#[test]
fn many_readers_of_half_heard_objects_keep_to_the_budget() {
    let mut mesh = with_a_giver_that_sends_nothing();
    let (mut most, mut stranger) = (0, Stranger::new(9));
    for number in 0..OBJECTS {
        mesh.origin.put(&url(number), Page::new(body(number)).fresh(600));
        for (name, unit) in cut(&body(number)).1 {
            let said = stranger.say(name, &unit, 0..unit.len() / 2);
            mesh.hear(1, said);
        }
        mesh.call(1, Call::get(&url(number)));
        mesh.pass_millis(500);
        let heard = mesh.report(1).overheard;
        assert!(heard.heard.memory_bytes <= BUDGET, "{}", heard.heard.memory_bytes);
        assert!(heard.aside_bytes <= BUDGET / 2, "{}", heard.aside_bytes);
        most = most.max(heard.aside_bytes);
    }
    // It was worth it as long as there was room.
    assert!(most > BUDGET / 4, "{most}");
    // When no client waits any more, all of it is free again.
    for id in 0..mesh.clients().len() {
        mesh.leave(id);
    }
    mesh.kill(0);
    mesh.pass_seconds(120);
    mesh.hear(1, stranger.say(wire::ChunkId([7; 32]), &Bytes::from(vec![7; 1000]), 0..10));
    assert_eq!(mesh.report(1).overheard.aside_bytes, 0);
}
