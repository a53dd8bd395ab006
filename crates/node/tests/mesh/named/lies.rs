//! Peers that lie about published objects: the client gets the right bytes from another or an honest end.

use super::{branches, fetch, miss};
use crate::net::{Call, Forged, Mesh, Page, Plan, Play, Said, author, chunk, noise};
use bytes::Bytes;
use node::{OPEN_KEY, named};
use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;
use wire::peer::{Message, Opaque, Outcome, Preamble, Request};
use wire::{Hint, Oid, RecordId, Token};

const LENGTH: usize = 300_000;

/// The short name of an object in a mesh without a key.
fn short(name: &Oid) -> Hint {
    named::hint(name, &named::hint_key(&OPEN_KEY))
}

/// 3 publishes an object, and 4, which claims to have it too, lies; 0 asks for it.
fn rivals(name: Oid, play: Play) -> Mesh {
    let mut mesh = branches(&Plan::default());
    mesh.start_liar(4, play);
    // First come, first asked.
    mesh.liar_says(4, 0, vec![Message::Have(vec![short(&name)])]);
    mesh.pass_seconds(1);
    assert_eq!(mesh.report(0).hints, 1);
    mesh
}

/// A liar that answers as it is told: with a head, a manifest and units that may have been changed.
fn liar(body: Bytes, change: impl Fn(&mut Forged) + 'static) -> Play {
    author(move |_, message| {
        let (_, mut forged) = Forged::named(&body);
        change(&mut forged);
        match message {
            Message::Get(ask) => forged.told(ask.request),
            Message::Want(_, wants) => forged.units(&wants),
            _ => Vec::new(),
        }
    })
}

fn served_all_the_same(change: impl Fn(&mut Forged) + 'static) -> Mesh {
    let body = noise(1, LENGTH);
    let (name, _) = Forged::named(&body);
    let mut mesh = rivals(name, liar(body.clone(), change));
    assert_eq!(mesh.publish(3, Page::new(body.clone())), name);
    let id = fetch(&mut mesh, 0, &name, &body);
    assert!(mesh.took(id) < Duration::from_secs(30), "{:?}", mesh.took(id));
    mesh.kill(4);
    mesh.done();
    mesh
}

#[test]
fn an_honest_holder_of_this_make_serves() {
    let mesh = served_all_the_same(|_| {});
    assert!(!mesh.has_expelled(0, 4));
    assert!(mesh.data(4, 0) > LENGTH as u64 / 2, "{} {}", mesh.data(4, 0), mesh.cache(0));
}

#[test]
fn a_head_that_the_name_does_not_certify_is_not_believed() {
    type Bend = fn(&mut Forged);
    let bends: [Bend; 6] = [
        |forged| forged.head.fields.clear(),
        |forged| forged.head.fields[0].1[2] = b'9',
        |forged| forged.head = Forged::named(&noise(2, LENGTH)).1.head,
        |forged| forged.head.record = RecordId([5; 16]),
        |forged| forged.head.status = 404,
        |forged| forged.head.confirmed = true,
    ];
    for bend in bends {
        let mesh = served_all_the_same(bend);
        assert!(mesh.has_expelled(0, 4));
        // Its own connection for units, and none of them.
        assert_eq!(mesh.data(4, 0), (Preamble::LENGTH + Token::LEN) as u64);
    }
}

#[test]
fn a_manifest_that_the_root_does_not_certify_is_not_believed() {
    type Bend = fn(&mut Forged);
    let bends: [Bend; 4] = [
        |forged| *forged.segments[0].1.last_mut().expect("bytes") ^= 1,
        |forged| forged.segments = Forged::named(&noise(2, LENGTH)).1.segments,
        |forged| forged.segments.insert(0, forged.segments[0].clone()),
        // Cut short, as if it ended earlier.
        |forged| forged.segments = Forged::named(&noise(1, LENGTH / 2)).1.segments,
    ];
    for bend in bends {
        let mesh = served_all_the_same(bend);
        assert!(mesh.has_expelled(0, 4));
    }
}

#[test]
fn what_is_in_no_unit_is_not_believed() {
    type Answer = fn(Request, &Forged) -> Vec<Message>;
    let answers: [Answer; 2] = [
        |request, _| {
            let (status, fields, status_line) = (200, Vec::new(), String::new());
            let opaque = Opaque { status, fields, length: Some(5), status_line };
            let bytes = Message::Bytes(request, 0, b"false".to_vec());
            vec![Message::Opaque(request, Box::new(opaque)), bytes]
        },
        |request, forged| {
            let head = Message::Head(request, Box::new(forged.head.clone()));
            vec![head, Message::Bytes(request, 0, b"false".to_vec())]
        },
    ];
    for answer in answers {
        let body = noise(1, LENGTH);
        let (name, forged) = Forged::named(&body);
        let play = author(move |_, message| match message {
            Message::Get(ask) => {
                answer(ask.request, &forged).into_iter().map(Said::Message).collect()
            }
            _ => Vec::new(),
        });
        let mut mesh = rivals(name, play);
        assert_eq!(mesh.publish(3, Page::new(body.clone())), name);
        fetch(&mut mesh, 0, &name, &body);
        assert!(mesh.has_expelled(0, 4));
        mesh.kill(4);
        mesh.done();
    }
}

#[test]
fn false_units_are_asked_for_elsewhere() {
    let mesh = served_all_the_same(|forged| {
        for (_, bytes) in &mut forged.units {
            let mut other = bytes.to_vec();
            other[0] ^= 1;
            *bytes = other.into();
        }
    });
    assert!(mesh.report(0).units_false >= 1 && mesh.has_expelled(0, 4));
}

#[test]
fn what_else_a_head_says_does_not_reach_anybody() {
    let mesh = served_all_the_same(|forged| {
        forged.head.fields.push(("set-cookie".into(), b"a=b".to_vec()));
        forged.head.fields.push(("cache-control".into(), b"no-store".to_vec()));
    });
    let head = mesh.client(0).head.as_ref().expect("it was answered");
    assert!(!head.headers.contains_key("set-cookie"));
    assert!(mesh.client(0).header("cache-control").contains("immutable"));
}

#[test]
fn a_peer_that_lacks_what_it_claimed_is_not_asked_again() {
    let body = noise(1, LENGTH);
    let (name, _) = Forged::named(&body);
    let mut mesh = rivals(
        name,
        author(|_, message| match message {
            Message::Get(ask) => {
                vec![Said::Message(Message::End(ask.request, Outcome::NotCached))]
            }
            _ => Vec::new(),
        }),
    );
    miss(&mut mesh, 0, &name);
    assert_eq!(mesh.report(0).hints, 0);
    assert_eq!(mesh.publish(3, Page::new(body.clone())), name);
    fetch(&mut mesh, 0, &name, &body);
    mesh.kill(4);
    mesh.done();
}

#[test]
fn a_peer_that_claims_and_is_silent_costs_seconds() {
    let body = noise(1, LENGTH);
    let (name, _) = Forged::named(&body);
    let mut mesh = rivals(name, author(|_, _| Vec::new()));
    assert_eq!(mesh.publish(3, Page::new(body.clone())), name);
    let id = fetch(&mut mesh, 0, &name, &body);
    assert!(mesh.took(id) < Duration::from_secs(10), "{:?}", mesh.took(id));
    mesh.kill(4);
    mesh.done();
}

#[test]
fn a_flood_of_hints_is_bounded_and_leaves_the_others_theirs() {
    let mut mesh = branches(&Plan::default());
    let body = noise(1, LENGTH);
    let name = mesh.publish(3, Page::new(body.clone()));
    mesh.start_liar(4, author(|_, _| Vec::new()));
    let some = |from: usize| {
        let name = |number: usize| Hint((number as u64).to_be_bytes());
        Message::Have((from..from + Message::HELD_MAX).map(name).collect())
    };
    for hundred in 0..10 {
        let from = hundred * 10 * Message::HELD_MAX;
        mesh.liar_says(4, 0, (0..10).map(|it| some(from + it * Message::HELD_MAX)).collect());
        mesh.pass_seconds(1);
    }
    let report = mesh.report(0);
    // Half of all, and one that the other said.
    assert_eq!(report.hints, 4096 + 1);
    assert_eq!(report.hints_evicted, 100 * Message::HELD_MAX as u64 - 4096);
    fetch(&mut mesh, 0, &name, &body);
    mesh.kill(4);
    mesh.pass_seconds(60);
    assert_eq!(mesh.report(0).hints, 1);
    mesh.done();
}

#[test]
fn two_that_lead_to_each_other_lead_nowhere_and_that_is_said() {
    let mut mesh = branches(&Plan::default());
    let name = Oid([7; 32]);
    // 4 announces that it leads to the object, and answers each request by sending the same request back.
    mesh.start_liar(
        4,
        author(move |peers, message| match message {
            Message::Get(mut ask) => {
                ask.visited.push(peers.own_id());
                vec![Said::Message(Message::Get(ask))]
            }
            _ => Vec::new(),
        }),
    );
    mesh.liar_says(4, 0, vec![Message::Have(vec![short(&name)])]);
    mesh.pass_seconds(1);
    let id = mesh.get(2, &named::uri(&name));
    assert_eq!(mesh.client(id).status(), 504);
    mesh.kill(4);
    mesh.done();
}

/// Five that claim two objects, and answer as they are told; then 1 publishes both. How often the liars were
/// asked for each, as the gateway fetches one after the other.
fn crowd(answer: fn(Request) -> Vec<Said>) -> [u32; 2] {
    let mut mesh = Mesh::tree_of(&Plan::default(), &[0; 6]);
    let bodies = [1, 2].map(|it| noise(it, LENGTH));
    let names = [0, 1].map(|it| Forged::named(&bodies[it]).0);
    let asked = Rc::new(Cell::new(0));
    for liar in 2..=6 {
        let asked = Rc::clone(&asked);
        let play = author(move |_, message| match message {
            Message::Get(ask) => {
                asked.set(asked.get() + 1);
                answer(ask.request)
            }
            _ => Vec::new(),
        });
        mesh.start_liar(liar, play);
        mesh.liar_says(liar, 0, vec![Message::Have(names.iter().map(short).collect())]);
    }
    mesh.pass_seconds(1);
    assert_eq!(mesh.report(0).hints, 10);
    for (body, name) in bodies.iter().zip(names) {
        assert_eq!(mesh.publish(1, Page::new(body.clone())), name);
    }
    let times = [0, 1].map(|it| {
        let before = asked.get();
        fetch(&mut mesh, 0, &names[it], &bodies[it]);
        asked.get() - before
    });
    (2..=6).for_each(|liar| mesh.kill(liar));
    mesh.done();
    times
}

#[test]
fn any_number_that_claim_an_object_shut_nobody_out_and_cost_one_try_each() {
    type Answer = fn(Request) -> Vec<Said>;
    let answers: [Answer; 3] = [
        |request| vec![Said::Message(Message::End(request, Outcome::NotCached))],
        |request| vec![Said::Message(Message::End(request, Outcome::Busy))],
        |_| Vec::new(),
    ];
    for answer in answers {
        assert_eq!(crowd(answer), [5, 0], "one try each, and none for the next object");
    }
}

#[test]
fn a_manifest_that_went_bad_on_the_own_disk_gives_nobody_other_bytes() {
    for before_the_walk in [true, false] {
        let mut mesh = Mesh::chain(2);
        let body = noise(1, LENGTH);
        let name = mesh.publish(1, Page::new(body.clone()));
        mesh.restart(1);
        mesh.disk(1).swap_units = before_the_walk;
        mesh.pass_seconds(40);
        assert_eq!(mesh.shelf(1)[0].whole, !before_the_walk);
        assert_eq!(mesh.report(0).hints, usize::from(!before_the_walk) as u64);
        mesh.disk(1).swap_units = true;
        miss(&mut mesh, 1, &name);
        assert!(!mesh.shelf(1)[0].whole);
        // As a peer is told, too.
        mesh.disk(1).swap_units = false;
        assert_eq!(mesh.publish(1, Page::new(body.clone())), name);
        fetch(&mut mesh, 1, &name, &body);
        mesh.restart(1);
        mesh.pass_seconds(40);
        mesh.disk(1).swap_units = true;
        miss(&mut mesh, 0, &name);
        assert!(!mesh.has_expelled(0, 1), "it does not tell what it does not believe");
        mesh.done();
    }
}

#[test]
fn a_false_head_does_not_cost_the_true_holder_that_is_slow() {
    let mut mesh = Mesh::tree_of(&Plan::default(), &[0, 0]);
    let body = noise(1, LENGTH);
    let name = mesh.publish(1, Page::new(body.clone()));
    mesh.start_liar(2, liar(body.clone(), |forged| forged.head.status = 404));
    mesh.liar_says(2, 0, vec![Message::Have(vec![short(&name)])]);
    mesh.pass_seconds(1);
    mesh.cut(0, 1);
    let id = mesh.call(0, Call::get(&named::uri(&name)));
    mesh.pass_seconds(8);
    assert!(mesh.has_expelled(0, 2));
    assert!(mesh.client(id).end.is_none(), "{:?}", mesh.client(id).head);
    mesh.mend(0, 1);
    mesh.finish();
    assert!(mesh.client(id).is_ok() && mesh.client(id).content == body[..]);
    mesh.kill(2);
    mesh.done();
}

/// 1 claims an object and, asked for it, sends these units at once, and the rest when it is told to; which
/// units it is asked for.
fn early(units: std::ops::Range<usize>, length: usize) -> (Mesh, usize, Bytes, Vec<wire::ChunkId>) {
    let mut mesh = Mesh::tree_of(&Plan::default(), &[0]);
    let body = noise(1, length);
    let (name, forged) = Forged::named(&body);
    let (request, wanted) = (Rc::new(Cell::new(None)), Rc::new(Cell::new(Vec::new())));
    let (asked, wants_of, content) = (Rc::clone(&request), Rc::clone(&wanted), body.clone());
    let play = author(move |_, message| {
        let (_, forged) = Forged::named(&content);
        match message {
            Message::Get(ask) => {
                asked.set(Some(ask.request));
                let early = &forged.units[units.clone()];
                early.iter().map(|(name, bytes)| chunk(*name, bytes)).collect()
            }
            Message::Want(_, wants) => {
                let mut names = wants_of.take();
                names.extend(wants.iter().map(|want| want.name));
                wants_of.set(names);
                forged.units(&wants)
            }
            _ => Vec::new(),
        }
    });
    mesh.start_liar(1, play);
    mesh.liar_says(1, 0, vec![Message::Have(vec![short(&name)])]);
    mesh.pass_seconds(1);
    let id = mesh.call(0, Call::get(&named::uri(&name)));
    mesh.pass_seconds(2);
    let request = request.get().expect("it was asked");
    let told = forged.told(request).into_iter().filter_map(|said| match said {
        Said::Message(message) => Some(message),
        Said::Chunk(..) => None,
    });
    mesh.liar_says(1, 0, told.collect());
    mesh.finish();
    assert!(mesh.client(id).is_ok() && mesh.client(id).content == body[..]);
    (mesh, id, body, wanted.take())
}

#[test]
fn a_unit_that_came_before_it_was_wanted_is_not_asked_for() {
    let (mut mesh, _, body, wanted) = early(10..15, LENGTH);
    let (_, forged) = Forged::named(&body);
    let came: Vec<_> = forged.units[10..15].iter().map(|(name, _)| *name).collect();
    assert!(came.iter().all(|name| !wanted.contains(name)), "{wanted:?}");
    // The first few are expected unasked.
    assert!(wanted.len() + came.len() + 4 > forged.units.len() && !wanted.is_empty());
    let report = mesh.report(0);
    assert_eq!((report.early_bytes, report.early_dropped), (0, 0));
    mesh.kill(1);
    mesh.done();
}

#[test]
fn units_that_nobody_wants_yet_have_their_share_of_the_memory_and_are_counted() {
    let length = 6_000_000;
    let (mut mesh, _, body, wanted) = early(0..700, length);
    let (_, forged) = Forged::named(&body);
    let report = mesh.report(0);
    assert!(report.early_dropped > 0 && report.early_bytes <= (8 << 20) / 32, "{report:?}");
    assert!(wanted.len() as u64 >= report.early_dropped.min(forged.units.len() as u64 / 2));
    mesh.kill(1);
    mesh.done();
}
