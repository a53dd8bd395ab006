//! Ends that say *elsewhere* or *not understood*: who is asked then, and within which bounds.

use crate::net::{Call, Heard, Mesh, Page, Plan, Said, address, ask, author, noise};
use node::named;
use std::cell::{Cell, RefCell};
use std::net::IpAddr;
use std::rc::Rc;
use wire::NodeId;
use wire::peer::{Get, Message, Options, Outcome, Request, Router};

const URL: &str = "http://o.test/a";
const LENGTH: usize = 100_000;

/// 2 is behind 1, which lies: it answers each request with the outcome that this cell holds. 3, on another branch
/// of the gateway, has the object.
fn mesh(says: &Rc<RefCell<Outcome>>) -> Mesh {
    let mut mesh = Mesh::tree_of(&Plan::default(), &[0, 1, 0]);
    let says = Rc::clone(says);
    mesh.start_liar(
        1,
        author(move |_, message| match message {
            Message::Get(ask) => {
                vec![Said::Message(Message::End(ask.request, says.borrow().clone()))]
            }
            _ => Vec::new(),
        }),
    );
    mesh.pass_seconds(40);
    mesh.origin.put(URL, Page::of(LENGTH).fresh(600));
    mesh.get(3, URL);
    mesh
}

/// The liar's id: it has the identity of the node in whose place it is.
fn id_of_1() -> NodeId {
    Mesh::chain(2).id(1)
}

fn router(id: NodeId, address: impl Into<Option<IpAddr>>) -> Router {
    Router { id, address: address.into(), cost: None }
}

/// A client of 2 asks; how many requests the two others have got for it.
fn asks(mesh: &mut Mesh) -> [u64; 2] {
    let before = [0, 3].map(|node| mesh.report(node).asks_in);
    let id = mesh.get(2, URL);
    assert!(mesh.client(id).is_ok(), "{:?}", mesh.client(id).head);
    let after = [0, 3].map(|node| mesh.report(node).asks_in);
    assert_eq!(mesh.origin.asked(URL), 1);
    [after[0] - before[0], after[1] - before[1]]
}

#[test]
fn the_router_that_an_end_names_is_asked() {
    let says = Rc::new(RefCell::new(Outcome::Busy));
    let mut mesh = mesh(&says);
    let named = router(mesh.id(3), address(3));
    *says.borrow_mut() = Outcome::Elsewhere(vec![named]);
    assert_eq!(asks(&mut mesh), [0, 1]);
    assert!(mesh.peers(2).contains(&3), "they have met");
    mesh.kill(1);
    mesh.done();
}

#[test]
fn who_cannot_be_asked_is_passed_over_and_then_comes_the_gateway() {
    let says = Rc::new(RefCell::new(Outcome::Busy));
    let strange = NodeId([7; 16]);
    type Lists<'a> = dyn Fn(&Mesh) -> Vec<Router> + 'a;
    let lists: [&Lists<'_>; 6] = [
        &|_| vec![],
        // Another node answers at that address.
        &|_| vec![router(strange, address(3))],
        // No node answers there.
        &|_| vec![router(strange, address(77))],
        // Its address is unknown, or none of the mesh.
        &|mesh| vec![router(mesh.id(3), None)],
        &|mesh| vec![router(mesh.id(3), "192.0.2.1".parse::<IpAddr>().ok())],
        // It asks itself, and one that has been asked.
        &|mesh| vec![router(mesh.id(2), address(2)), router(id_of_1(), address(1))],
    ];
    for list in lists {
        let mut mesh = mesh(&says);
        *says.borrow_mut() = Outcome::Elsewhere(list(&mesh));
        assert_eq!(asks(&mut mesh), [1, 0], "{:?}", says.borrow());
        mesh.kill(1);
        mesh.done();
    }
}

#[test]
fn it_is_followed_once_for_each_request() {
    let says = Rc::new(RefCell::new(Outcome::Busy));
    let mut mesh = mesh(&says);
    let (one, other) = (router(id_of_1(), address(1)), router(mesh.id(3), address(3)));
    *says.borrow_mut() = Outcome::Elsewhere(vec![other]);
    let asked = Rc::new(Cell::new(0));
    let count = Rc::clone(&asked);
    mesh.start_liar(
        3,
        author(move |_, message| match message {
            Message::Get(ask) => {
                count.set(count.get() + 1);
                assert_eq!(ask.options.to, Some(other.id), "it does not say whom it means");
                let end = Outcome::Elsewhere(vec![one, other]);
                vec![Said::Message(Message::End(ask.request, end))]
            }
            _ => Vec::new(),
        }),
    );
    let id = mesh.get(2, URL);
    assert!(mesh.client(id).is_ok());
    assert_eq!((asked.get(), mesh.report(2).asks_out), (1, 3));
    for liar in [1, 3] {
        mesh.kill(liar);
    }
    mesh.done();
}

#[test]
fn what_is_not_understood_goes_to_the_gateway_and_the_connection_stays() {
    let says = Rc::new(RefCell::new(Outcome::NotUnderstood));
    let mut mesh = mesh(&says);
    assert_eq!(asks(&mut mesh), [1, 0]);
    assert!(mesh.peers(2).contains(&1) && !mesh.has_expelled(2, 1));
    for url in ["http://o.test/b", "https://o.test/b"] {
        mesh.origin.put(url, Page::of(LENGTH).fresh(600));
        let out = mesh.report(2).asks_out;
        for call in [Call::get(url).with("range", "bytes=0-9"), Call::get(url)] {
            let id = mesh.call(2, call);
            mesh.finish();
            assert!(mesh.client(id).is_whole());
        }
        // The part by `http` is not asked of peers.
        let asked = mesh.report(2).asks_out - out;
        assert_eq!(asked, if url.starts_with("https") { 4 } else { 2 }, "{url}");
    }
    mesh.kill(1);
    mesh.done();
}

#[test]
fn a_request_for_another_router_is_not_answered_and_that_router_is_named() {
    let says = Rc::new(RefCell::new(Outcome::Busy));
    let mut mesh = mesh(&says);
    let heard = Heard::default();
    mesh.start_liar(1, heard.play());
    mesh.pass_seconds(40);
    let meant = [mesh.id(0), mesh.id(3), NodeId([9; 16])];
    let asks = (1..).zip(meant).map(|(number, to)| {
        let options = Options { to: Some(to), ..Options::default() };
        Message::Get(Box::new(Get { options, ..ask(number, URL) }))
    });
    mesh.liar_says(1, 0, asks.collect());
    mesh.pass_seconds(5);
    assert!(matches!(heard.of(1)[0], Message::Head(..)), "it is meant: {:?}", heard.of(1));
    let elsewhere = |number, routers| Message::End(Request(number), Outcome::Elsewhere(routers));
    assert_eq!(heard.of(2), [elsewhere(2, vec![router(meant[1], address(3))])]);
    assert_eq!(heard.of(3), [elsewhere(3, vec![])]);
    mesh.kill(1);
    mesh.done();
}

#[test]
fn who_may_not_ask_the_holder_itself_names_it() {
    let says = Rc::new(RefCell::new(Outcome::Busy));
    let mut mesh = mesh(&says);
    let body = noise(1, LENGTH);
    let name = mesh.publish(3, Page::new(body.clone()));
    let heard = Heard::default();
    mesh.start_liar(1, heard.play());
    mesh.pass_seconds(40);
    let last = |number, visited| Get { hops: 0, visited, ..ask(number, &named::uri(&name)) };
    let holder = mesh.id(3);
    let asks = [last(1, vec![]), last(2, vec![holder])];
    mesh.liar_says(1, 0, asks.map(|ask| Message::Get(Box::new(ask))).into());
    mesh.pass_seconds(5);
    let named = vec![router(holder, address(3))];
    assert_eq!(heard.of(1), [Message::End(Request(1), Outcome::Elsewhere(named))]);
    assert_eq!(heard.of(2), [Message::End(Request(2), Outcome::NotCached)]);
    mesh.kill(1);
    mesh.done();
}
