//! What no signature covers, where the gateway's key is known: clients get such bytes from the gateway alone.

use crate::net::{Call, Client, Mesh, Page, Plan, Play, Port, Relay, Said, author};
use content::Segment;
use std::time::Duration;
use wire::peer::{Message, Opaque};

const URL: &str = "http://o.test/a";

fn configured() -> Plan {
    Plan { configured: true, ..Plan::default() }
}

fn private() -> Page {
    Page::of(40_000).with("cache-control", "private")
}

/// A stream that the gateway gives on as it comes.
fn stream() -> Page {
    Page::of(200_000).fresh(600).chunked().resting(100_000, Duration::from_secs(2))
}

/// Gives on what it hears, with other bytes where nothing is signed.
fn forger() -> Play {
    Relay::play(|said| match said {
        Said::Message(Message::Opaque(request, mut opaque)) => {
            opaque.fields.push(("x-forged".into(), b"1".to_vec()));
            vec![Said::Message(Message::Opaque(request, opaque))]
        }
        Said::Message(Message::Bytes(request, offset, bytes)) => {
            let false_bytes = vec![b'!'; bytes.len()];
            vec![Said::Message(Message::Bytes(request, offset, false_bytes))]
        }
        said => vec![said],
    })
}

/// Answers everything by itself, with a response that is not stored.
fn author_of_opaque() -> Play {
    author(|_, message| match message {
        Message::Get(ask) => {
            let (fields, status_line) = (Vec::new(), String::new());
            let opaque = Opaque { status: 200, fields, length: Some(5), status_line };
            let head = Message::Opaque(ask.request, Box::new(opaque));
            let bytes = Message::Bytes(ask.request, 0, b"false".to_vec());
            [head, bytes].map(Said::Message).into()
        }
        _ => Vec::new(),
    })
}

/// The gateway's neighbour 1 lies; behind it there are this many more routers.
fn behind_a_liar(count: usize, play: Play, page: Page) -> Mesh {
    let mut mesh = Mesh::chain_of(&configured(), count + 2);
    mesh.start_liar(1, play);
    mesh.pass_seconds(40);
    mesh.origin.put(URL, page);
    mesh
}

/// Says of an object that it ends with its first segment, or before.
fn shortener(to_nothing: bool) -> Play {
    let mut held = None;
    Relay::play(move |said| match said {
        Said::Message(Message::Head(request, head)) => {
            held = Some((request, head));
            Vec::new()
        }
        Said::Message(Message::Segment(_, _, ref bytes)) => {
            let head = held.take().map(|(request, mut head)| {
                let first = Segment::decode(bytes).expect("a segment");
                head.length = Some(if to_nothing { 0 } else { first.end_offset() });
                Said::Message(Message::Head(request, head))
            });
            head.into_iter().chain([said]).collect()
        }
        said => vec![said],
    })
}

fn over(mut mesh: Mesh) {
    // A liar may leave its requests open as long as it runs.
    mesh.kill(1);
    mesh.done();
}

#[test]
fn a_forged_response_that_is_not_stored_reaches_no_client() {
    for count in [1, 2, 3] {
        let mut mesh = behind_a_liar(count, forger(), private());
        let id = mesh.get(count + 1, URL);
        assert!(mesh.client(id).is_ok(), "{count}: {:?}", mesh.client(id).end);
        assert_eq!(mesh.client(id).header("x-forged"), "");
        assert_eq!(mesh.origin.askers(URL), [0, 0], "the second time for the client's router");
        assert!(!mesh.has_expelled(count + 1, 1), "{:?}", mesh.notices);
        over(mesh);
    }
}

#[test]
fn honest_routers_on_the_way_are_gone_around_and_not_expelled() {
    for plan in [configured(), Plan { configured: true, ..Plan::thcp() }] {
        let mut mesh = Mesh::chain_of(&plan, 4);
        mesh.origin.put(URL, private());
        let id = mesh.get(3, URL);
        assert!(mesh.client(id).is_ok());
        let once = plan.selection == wire::Selection::Thcp;
        assert_eq!(mesh.origin.asked(URL), if once { 1 } else { 2 });
        assert_eq!(mesh.origin.askers(URL).iter().max(), Some(&0), "it came by the gateway");
        for one in 0..4 {
            assert!((0..4).all(|other| !mesh.has_expelled(one, other)), "{:?}", mesh.notices);
        }
        mesh.done();
    }
}

#[test]
fn a_neighbour_s_own_response_is_not_taken_and_without_a_gateway_the_origin_is_asked() {
    for is_there in [true, false] {
        let mut mesh = behind_a_liar(1, author_of_opaque(), private());
        if !is_there {
            mesh.kill(0);
        }
        let id = mesh.get(2, URL);
        assert!(mesh.client(id).is_ok(), "{:?}", mesh.client(id).end);
        assert_eq!(mesh.origin.askers(URL), [if is_there { 0 } else { 2 }]);
        over(mesh);
    }
}

#[test]
fn all_who_wait_for_a_response_that_is_not_stored_get_the_true_one() {
    let mut mesh = behind_a_liar(2, forger(), private().waiting(Duration::from_millis(50)));
    let ids = [3, 3, 2, 2].map(|node| mesh.call(node, Call::get(URL)));
    mesh.finish();
    assert!(ids.iter().all(|id| mesh.client(*id).is_ok()));
    assert!(ids.iter().all(|id| mesh.client(*id).header("x-forged").is_empty()));
    over(mesh);
}

#[test]
fn a_body_that_pauses_goes_on_at_the_gateway_itself() {
    for count in [1, 2, 3] {
        let mut mesh = behind_a_liar(count, forger(), stream());
        let ids = [count + 1, 2].map(|node| mesh.call(node, Call::get(URL)));
        mesh.finish();
        for id in ids {
            assert!(mesh.client(id).is_ok(), "{count}: {:?}", mesh.client(id).end);
        }
        assert_eq!(mesh.origin.askers(URL), [0], "it is the same transfer");
        over(mesh);
    }
}

#[test]
fn a_body_that_pauses_comes_whole_along_honest_routers() {
    let mut mesh = Mesh::chain_of(&configured(), 4);
    mesh.origin.put(URL, stream());
    let ids = [3, 1].map(|node| mesh.call(node, Call::get(URL)));
    mesh.pass_millis(1_500);
    let got = ids.map(|id| mesh.client(id).content.len());
    assert_eq!(got, [100_000; 2], "what has come is not held back");
    mesh.finish();
    assert!(mesh.clients().iter().all(Client::is_ok));
    assert_eq!(mesh.origin.askers(URL), [0]);
    mesh.done();
}

#[test]
fn a_body_that_pauses_breaks_off_where_the_gateway_cannot_be_reached() {
    let mut mesh = behind_a_liar(1, forger(), stream());
    mesh.origin.put("http://o.test/b", Page::of(1_000).fresh(600));
    mesh.get(2, "http://o.test/b");
    // The gateway keeps its connection with the liar, but accepts no new ones.
    mesh.links.ground.ports[0] = Port::Refuses;
    let id = mesh.get(2, URL);
    assert!(mesh.client(id).is_broken(), "{:?}", mesh.client(id).end);
    assert!(mesh.client(id).content.len() <= 100_000);
    assert!(mesh.took(id) < Duration::from_secs(60), "{:?}", mesh.took(id));
    over(mesh);
}

#[test]
fn a_length_that_is_told_too_short_makes_no_part_a_whole() {
    for page in [Page::of(300_000), Page::of(300_000).chunked()] {
        for to_nothing in [false, true] {
            let page = page.clone().fresh(600).steady().unchecked();
            let mut mesh = behind_a_liar(1, shortener(to_nothing), page);
            let id = mesh.get(2, URL);
            assert!(mesh.client(id).is_broken(), "{:?}", mesh.client(id).end);
            assert!(!mesh.has_expelled(2, 0), "{:?}", mesh.notices);
            over(mesh);
        }
    }
}

#[test]
fn fields_that_end_at_the_next_hop_are_not_taken_from_a_peer() {
    const FIELDS: [(&str, &str); 4] = [
        ("connection", "x-hop"),
        ("x-hop", "1"),
        ("keep-alive", "timeout=5"),
        ("transfer-encoding", "chunked"),
    ];
    let play = Relay::play(|said| match said {
        Said::Message(Message::Opaque(request, mut opaque)) => {
            let more = FIELDS.map(|(name, value)| (name.to_owned(), value.as_bytes().to_vec()));
            opaque.fields.extend(more);
            vec![Said::Message(Message::Opaque(request, opaque))]
        }
        said => vec![said],
    });
    let mut mesh = Mesh::chain_of(&Plan::default(), 3);
    mesh.start_liar(1, play);
    mesh.pass_seconds(40);
    mesh.origin.put(URL, private());
    let id = mesh.get(2, URL);
    assert!(mesh.client(id).is_ok(), "{:?}", mesh.client(id).head);
    for (name, _) in FIELDS {
        assert_eq!(mesh.client(id).header(name), "", "{name}");
    }
    mesh.done();
}
