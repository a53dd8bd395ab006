//! A scheme that asks by datagram whom to ask, given to a node from outside.

mod scheme;

use crate::net::{Call, Client, Mesh, PORT, Page, Plan, Port, address};
use bytes::Bytes;
use node::FetchId;
use node::select::{Answer, Here, Query, Said, Select};
use scheme::{ByOracle, QUESTIONS_MAX, TIMEOUT};
use std::cell::RefCell;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::time::Duration;
use wire::Instant;

const URL: &str = "http://o.test/a";
const LENGTH: usize = 100_000;
/// The node that asks the oracle: behind 2, which is behind 1, which is behind the gateway.
const ASKER: usize = 3;
/// Beside 2, behind 1.
const ORACLE: usize = 4;
/// Beside the asker, behind 2.
const HOLDER: usize = 5;

/// A scheme that a test looks into.
#[derive(Clone)]
struct Watched(Rc<RefCell<ByOracle>>);

impl Watched {
    fn count(&self) -> usize {
        self.0.borrow().questions.len()
    }
}

impl Select for Watched {
    fn choose(&self, query: &Query<'_>) -> Answer {
        self.0.borrow().choose(query)
    }

    fn begin(&mut self, here: &Here<'_>, query: &Query<'_>) {
        self.0.borrow_mut().begin(here, query);
    }

    fn end(&mut self, now: Instant, id: FetchId) {
        self.0.borrow_mut().end(now, id);
    }

    fn handle_datagram(&mut self, here: &Here<'_>, from: SocketAddr, bytes: &[u8]) {
        self.0.borrow_mut().handle_datagram(here, from, bytes);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.0.borrow_mut().handle_timeout(now);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.0.borrow().poll_timeout()
    }

    fn poll(&mut self) -> Option<Said> {
        self.0.borrow_mut().poll()
    }
}

/// A scheme that knows one node at most, and never finds out about another.
struct Never(Option<IpAddr>);

impl Select for Never {
    fn choose(&self, query: &Query<'_>) -> Answer {
        self.0.filter(|it| (query.may)(*it)).map_or(Answer::Later, Answer::Found)
    }
}

/// What the oracle says to a question: this address.
fn says(question: &[u8], holder: IpAddr) -> Bytes {
    let IpAddr::V4(holder) = holder else { panic!("an IPv4 address: {holder}") };
    [question, &holder.octets()].concat().into()
}

/// A mesh with an oracle that names one address, or is silent. Only the holder has the page.
fn mesh(named: Option<IpAddr>) -> (Mesh, Watched) {
    let mut mesh = Mesh::asleep(&Plan::default(), &[0, 1, 2, 1, 2]);
    let scheme = Watched(Rc::new(RefCell::new(ByOracle::new((address(ORACLE), PORT).into()))));
    let given = scheme.clone();
    mesh.select(ASKER, move || Box::new(given.clone()));
    mesh.start_all();
    mesh.start_oracle(ORACLE, Box::new(move |question| Some(says(question, named?))));
    mesh.origin.put(URL, Page::of(LENGTH).fresh(600));
    mesh.get(HOLDER, URL);
    for node in [2, 1, 0] {
        mesh.restart_empty(node);
    }
    mesh.pass_seconds(5);
    (mesh, scheme)
}

#[test]
fn who_the_oracle_names_is_asked() {
    let (mut mesh, scheme) = mesh(Some(address(HOLDER)));
    let id = mesh.get(ASKER, URL);
    assert!(mesh.client(id).is_ok(), "{:?}", mesh.client(id).head);
    let asked: Vec<u64> = (0..3).map(|node| mesh.report(node).asks_in).collect();
    assert_eq!((asked, mesh.report(HOLDER).asks_in), (vec![0; 3], 1));
    assert_eq!(mesh.origin.askers(URL), [0], "the first time");
    assert_eq!(mesh.report(ASKER).recent.pop().expect("an object").source, "n5");
    assert!(mesh.took(id) < TIMEOUT, "{:?}", mesh.took(id));
    assert_eq!(scheme.count(), 0);
    mesh.done();
}

#[test]
fn a_silent_oracle_is_not_waited_for() {
    let (mut mesh, scheme) = mesh(None);
    let id = mesh.get(ASKER, URL);
    assert!(mesh.client(id).is_ok(), "{:?}", mesh.client(id).head);
    assert_eq!((mesh.report(2).asks_in, mesh.report(HOLDER).asks_in), (1, 0));
    assert_eq!(mesh.origin.askers(URL), [0, 0]);
    let took = mesh.took(id);
    assert!(took > TIMEOUT && took < TIMEOUT * 2, "{took:?}");
    assert_eq!(scheme.count(), 0);
    mesh.done();
}

#[test]
fn what_another_says_in_the_name_of_the_oracle_changes_nothing() {
    let (mut mesh, scheme) = mesh(None);
    mesh.datagrams.clear();
    let id = mesh.call(ASKER, Call::get(URL));
    mesh.pass_millis(100);
    let (from, _, question) = mesh.datagrams.pop().expect("the oracle was asked");
    mesh.send_datagram(2, from, says(&question, address(HOLDER)));
    mesh.pass_millis(100);
    assert_eq!((mesh.datagrams.len(), scheme.count()), (1, 1));
    mesh.finish();
    assert!(mesh.client(id).is_ok());
    assert_eq!((mesh.report(2).asks_in, mesh.report(HOLDER).asks_in), (1, 0));
    mesh.done();
}

#[test]
fn what_was_not_asked_is_not_listened_to() {
    let (mut mesh, scheme) = mesh(None);
    let asker = SocketAddr::new(address(ASKER), PORT);
    for answer in [says(&[7; 32], address(HOLDER)), Bytes::new(), Bytes::from(vec![0; 2000])] {
        mesh.send_datagram(ORACLE, asker, answer);
    }
    mesh.pass_millis(100);
    assert_eq!((mesh.datagrams.len(), scheme.count()), (3, 0));
    mesh.done();
}

#[test]
fn who_is_named_in_vain_costs_time_and_nothing_else() {
    let elsewhere = [192, 0, 2, 1].into();
    let refuses = (address(HOLDER), Port::Refuses);
    let others = [address(HOLDER), address(2), address(ASKER), address(ORACLE), elsewhere];
    for (named, port) in others.map(|named| (named, Port::Hole)).into_iter().chain([refuses]) {
        let (mut mesh, scheme) = mesh(Some(named));
        mesh.kill(HOLDER);
        mesh.links.ground.ports[HOLDER] = port;
        let id = mesh.get(ASKER, URL);
        assert!(mesh.client(id).is_ok(), "{named}: {:?}", mesh.client(id).head);
        assert_eq!(mesh.origin.askers(URL), [0, 0], "{named}");
        // The limit is the time that a node waits for a router that it dialled.
        assert!(mesh.took(id) < Duration::from_secs(11), "{named}: {:?}", mesh.took(id));
        assert_eq!(scheme.count(), 0);
        mesh.done();
    }
}

#[test]
fn more_questions_than_are_kept_go_towards_the_gateway() {
    let (mut mesh, scheme) = mesh(None);
    let urls: Vec<_> = (0..QUESTIONS_MAX + 10).map(|it| format!("http://o.test/{it}")).collect();
    for url in &urls {
        mesh.origin.put(url, Page::of(100).fresh(600));
        mesh.call(ASKER, Call::get(url));
    }
    mesh.pass_millis(400);
    assert_eq!((scheme.count(), mesh.report(ASKER).asks_out), (QUESTIONS_MAX, 10));
    mesh.finish();
    assert!(mesh.clients().iter().all(Client::is_ok));
    assert_eq!(scheme.count(), 0);
    mesh.done();
}

#[test]
fn a_client_that_leaves_ends_the_question() {
    let (mut mesh, scheme) = mesh(None);
    mesh.datagrams.clear();
    let id = mesh.call(ASKER, Call::get(URL));
    mesh.pass_millis(100);
    assert_eq!(scheme.count(), 1);
    mesh.leave(id);
    mesh.pass_millis(10);
    assert_eq!((scheme.count(), scheme.poll_timeout()), (0, None));
    let (from, _, question) = mesh.datagrams.pop().expect("the oracle was asked");
    mesh.send_datagram(ORACLE, from, says(&question, address(HOLDER)));
    mesh.done();
    assert_eq!((mesh.report(ASKER).asks_out, scheme.count()), (0, 0));
}

#[test]
fn a_scheme_that_never_finds_out_is_done_without() {
    let mut mesh = Mesh::asleep(&Plan::default(), &[0, 1]);
    mesh.select(2, || Box::new(Never(None)));
    mesh.start_all();
    mesh.origin.put(URL, Page::of(LENGTH).fresh(600));
    let id = mesh.get(2, URL);
    assert!(mesh.client(id).is_ok(), "{:?}", mesh.client(id).head);
    assert_eq!(mesh.origin.askers(URL), [2]);
    let took = mesh.took(id);
    assert!(took > Duration::from_secs(2) && took < Duration::from_secs(3), "{took:?}");
    mesh.done();
}

#[test]
fn nor_does_it_hold_up_the_end_of_what_broke_off() {
    let mut mesh = Mesh::asleep(&Plan::default(), &[0, 1]);
    mesh.select(2, || Box::new(Never(Some(address(1)))));
    mesh.start_all();
    mesh.origin.put(URL, Page::of(10_000_000).fresh(600).steady());
    let id = mesh.call(2, Call::get(URL));
    mesh.pass_millis(500);
    mesh.power_off(1);
    mesh.finish();
    assert!(mesh.client(id).is_broken(), "{:?}", mesh.client(id).end);
    assert!(mesh.took(id) < Duration::from_secs(60), "{:?}", mesh.took(id));
    mesh.done();
}

/// The lines of a text without what stands before and behind them.
fn trimmed(text: &str) -> String {
    text.lines().map(|line| format!("{}\n", line.trim())).collect()
}

#[test]
fn what_the_guide_quotes_stands_in_the_scheme() {
    let guide = include_str!("../../../../docs/adding-a-scheme.md");
    let scheme = trimmed(include_str!("oracle/scheme.rs"));
    let quotes: Vec<_> = guide.split("```rust\n").skip(1).collect();
    assert!(!quotes.is_empty());
    for quote in quotes {
        let (code, _) = quote.split_once("```").expect("it ends");
        assert!(scheme.contains(&trimmed(code)), "it is not there: {code}");
    }
}
