//! Records that a peer forges or sends under another name: no client gets one as the response to another request, and
//! no transfer stops because of them.

use crate::net::{Call, Forged, Heard, Mesh, Page, Plan, Relay, Said, ask, author, noise};
use bytes::Bytes;
use content::Segment;
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::Duration;
use wire::peer::{Head, Message, Opaque, Outcome, Resume};

const URL: &str = "http://o.test/a";
const OTHER: &str = "http://o.test/b";
const LENGTH: usize = 300_000;

/// 1 is a liar that answers 2 itself. No gateway's key is configured, so 2 cannot tell which signer to trust.
fn alone(play: impl FnMut(&node::testing::Peers, Message) -> Vec<Said> + 'static) -> Mesh {
    let mut mesh = Mesh::chain(3);
    mesh.start_liar(1, author(play));
    mesh.pass_seconds(40);
    mesh
}

/// 1 answers 2 with records of its own making.
fn forging(forge: impl Fn(&node::testing::Peers) -> Forged + 'static) -> Mesh {
    alone(move |peers, message| match message {
        Message::Get(ask) if ask.resume.is_none() => forge(peers).all(ask.request),
        Message::Want(_, wants) => forge(peers).units(&wants),
        _ => Vec::new(),
    })
}

#[test]
fn a_record_is_not_gone_on_with_under_another_name() {
    let mut mesh = Mesh::chain(2);
    let heard = Heard::default();
    mesh.start_liar(1, heard.play());
    mesh.origin.put(URL, Page::of(4_000_000).fresh(600).steady());
    mesh.origin.put(OTHER, Page::of(LENGTH).fresh(600));
    mesh.liar_says(1, 0, vec![Message::Get(Box::new(ask(1, URL)))]);
    mesh.pass_millis(100);
    let first = heard.of(1);
    let Some(Message::Head(_, head)) = first.first() else { panic!("{first:?}") };
    let resume = Some(Resume { record: head.record, segment: 0 });
    let foreign = wire::peer::Get { resume, ..ask(2, OTHER) };
    let own = wire::peer::Get { resume, ..ask(3, URL) };
    mesh.liar_says(1, 0, [foreign, own].map(|ask| Message::Get(Box::new(ask))).into());
    mesh.pass_millis(100);
    assert!(matches!(heard.of(2)[..], [Message::End(_, Outcome::UnknownRecord)]));
    assert!(matches!(heard.of(3).first(), Some(Message::Head(..))));
    mesh.kill(1);
    mesh.done();
}

#[test]
fn a_unit_of_another_length_than_is_listed_ends_it_honestly() {
    let sound = noise(1, 16_000);
    for (listed, unit) in [(8_000, noise(2, 5)), (3_000, noise(3, 9_000))] {
        let units = [(16_000, sound.clone()), (listed, unit)];
        let length = 16_000 + u64::from(listed);
        let mut mesh = forging(move |peers| Forged::listing(peers, URL, &units));
        mesh.origin.put(URL, Page::of(LENGTH).fresh(600));
        // The second time its units are held, and no transfer is needed.
        for _ in 0..2 {
            let id = mesh.get(2, URL);
            let told = mesh.client(id).head.as_ref().and_then(|head| head.length);
            assert!(told != Some(length) || mesh.client(id).is_broken(), "{:?}", mesh.client(id));
        }
        for range in ["bytes=20-29", "bytes=16010-16019", "bytes=18000-18009", "bytes=-10"] {
            mesh.call(2, Call::get(URL).with("range", range));
            mesh.finish();
        }
        mesh.kill(1);
        mesh.done();
    }
}

/// 2 has a stale page, and the gateway's key; the page has changed meanwhile.
fn stale() -> Mesh {
    let plan = Plan { configured: true, ..Plan::default() };
    let mut mesh = Mesh::tree_of(&plan, &[0, 1]);
    mesh.origin.put(URL, Page::of(LENGTH).fresh(20).etag("a"));
    mesh.get(2, URL);
    mesh
}

#[test]
fn a_confirmation_that_nobody_signed_refreshes_nothing() {
    let mut mesh = stale();
    let conditional = Rc::new(RefCell::new(BTreeSet::new()));
    let asked = Rc::clone(&conditional);
    let up = move |message| {
        if let Message::Get(ask) = &message
            && ask.have.is_some()
        {
            asked.borrow_mut().insert(ask.request.0);
        }
        vec![message]
    };
    let down = move |said| match said {
        Said::Message(Message::Head(request, _)) if conditional.borrow().contains(&request.0) => {
            let fields = vec![("cache-control".into(), b"max-age=31536000".to_vec())];
            let (status, length, status_line) = (304, None, String::new());
            let opaque = Box::new(Opaque { status, fields, length, status_line });
            vec![Said::Message(Message::Opaque(request, opaque))]
        }
        said => vec![said],
    };
    mesh.start_liar(1, Relay::both(up, down));
    mesh.pass_seconds(40);
    mesh.origin.put(URL, Page::of(LENGTH).fresh(20).etag("b"));
    let id = mesh.get(2, URL);
    assert!(mesh.client(id).is_ok(), "{:?}", mesh.client(id).head);
    assert_eq!(mesh.client(id).header("etag"), "\"b\"");
    assert!(!mesh.client(id).header("cache-control").contains("31536000"));
    mesh.kill(1);
    mesh.done();
}

#[test]
fn where_the_gateway_has_forgotten_a_record_the_whole_comes_anew() {
    let mut mesh = stale();
    for node in [0, 1] {
        mesh.restart_empty(node);
    }
    mesh.pass_seconds(40);
    let id = mesh.get(2, URL);
    assert!(mesh.client(id).is_ok(), "{:?}", mesh.client(id).head);
    assert_eq!(mesh.origin.sent, 2 * LENGTH as u64, "nobody vouched for the old one");
    mesh.pass_seconds(5);
    let hit = mesh.get(2, URL);
    assert!(mesh.client(hit).is_ok() && mesh.is_hit(hit), "{}", mesh.cache(hit));
    mesh.done();
}

#[test]
fn a_record_that_may_not_be_shared_is_for_who_asked_alone() {
    for control in ["private", "no-store"] {
        let asked = Rc::new(Cell::new(0));
        let count = Rc::clone(&asked);
        let body = noise(1, 50_000);
        let mut mesh = alone(move |peers, message| match message {
            Message::Get(ask) => {
                count.set(count.get() + 1);
                let number = count.get().to_string().into_bytes();
                let change = |head: &mut Head| {
                    head.record.0[0] = count.get();
                    head.fields =
                        vec![("cache-control".into(), control.into()), ("x-for".into(), number)];
                };
                Forged::new(peers, URL, &body).with_head(peers, URL, change).all(ask.request)
            }
            Message::Want(_, wants) => Forged::new(peers, URL, &body).units(&wants),
            _ => Vec::new(),
        });
        let ids = [2, 2, 2].map(|node| mesh.call(node, Call::get(URL)));
        mesh.finish();
        let mut whom: Vec<_> = ids.iter().map(|id| mesh.client(*id).header("x-for")).collect();
        whom.sort_unstable();
        assert_eq!((whom, asked.get()), (vec!["1", "2", "3"], 3), "{control}");
        assert!(ids.iter().all(|id| mesh.client(*id).is_ok()));
        let later = mesh.get(2, URL);
        assert!(!mesh.is_hit(later), "it was kept");
        mesh.kill(1);
        mesh.done();
    }
}

/// What such a peer says is no record: it goes, and the gateway serves.
fn expelled(change: fn(&mut Head)) {
    let body = noise(1, 20_000);
    let mut mesh =
        forging(move |peers| Forged::new(peers, URL, &body).with_head(peers, URL, change));
    mesh.origin.put(URL, Page::of(LENGTH).fresh(600));
    let id = mesh.get(2, URL);
    assert!(mesh.has_expelled(2, 1), "{:?}", mesh.notices);
    assert!(mesh.client(id).is_ok() && mesh.client(id).content.len() == LENGTH);
    mesh.kill(1);
    mesh.done();
}

#[test]
fn a_record_of_a_response_that_none_is_made_of_is_not_taken() {
    expelled(|head| head.status = 101);
    expelled(|head| head.status = 206);
    expelled(|head| head.status = 304);
}

#[test]
fn a_record_with_fields_of_one_connection_is_not_taken() {
    expelled(|head| head.fields.push(("content-length".into(), b"5".to_vec())));
    expelled(|head| head.fields.push(("transfer-encoding".into(), b"chunked".to_vec())));
    expelled(|head| head.fields.push(("connection".into(), b"close".to_vec())));
}

#[test]
fn a_manifest_beyond_what_was_welcome_is_not_taken() {
    let mut mesh = alone(|peers, message| match message {
        Message::Get(ask) => Forged::endless(peers, URL, 3).told(ask.request),
        _ => Vec::new(),
    });
    mesh.origin.put(URL, Page::of(LENGTH).fresh(600));
    let id = mesh.get(2, URL);
    assert!(mesh.has_expelled(2, 1), "{:?}", mesh.notices);
    assert!(mesh.took(id) < Duration::from_secs(30), "{:?}", mesh.took(id));
    mesh.kill(1);
    mesh.done();
}

#[test]
fn units_that_are_smaller_than_any_that_is_cut_are_not_taken() {
    let crumbs = |length| (length, Bytes::from(vec![7; length as usize]));
    let mut mesh =
        forging(move |peers| Forged::listing(peers, URL, &[crumbs(1), crumbs(2), crumbs(3)]));
    mesh.origin.put(URL, Page::of(LENGTH).fresh(600));
    let id = mesh.get(2, URL);
    assert!(mesh.has_expelled(2, 1), "{:?}", mesh.notices);
    assert!(mesh.took(id) < Duration::from_secs(30), "{:?}", mesh.took(id));
    mesh.kill(1);
    mesh.done();
}

#[test]
fn a_short_object_is_told_of_in_two_pieces() {
    let mut mesh = Mesh::chain(2);
    let heard = Heard::default();
    mesh.start_liar(1, heard.play());
    mesh.origin.put(URL, Page::of(100_000).fresh(600));
    mesh.liar_says(1, 0, vec![Message::Get(Box::new(ask(1, URL)))]);
    mesh.pass_millis(500);
    let told = heard.of(1);
    let listed = told.iter().filter_map(|message| match message {
        Message::Segment(_, _, bytes) => Some(Segment::decode(bytes).expect("a segment")),
        _ => None,
    });
    let listed: Vec<_> = listed.map(|it| (it.entries.len(), it.closing.is_some())).collect();
    assert!(matches!(listed[..], [(_, false), (_, true)]), "{listed:?}");
    mesh.kill(1);
    mesh.done();
}
