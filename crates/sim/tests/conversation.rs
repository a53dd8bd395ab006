//! A router between an origin and a client that sends arbitrary bytes: kept connections, pipelined requests,
//! and bytes that are not HTTP.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddrV4};
use std::time::Duration;

use bytes::Bytes;
use node::{Exit, RouteSource, Uplink};
use radio::Links;
use sim::hosts::content::stream;
use sim::hosts::{BEGIN, Files, Origin};
use sim::net::{Config, Event, Host, Interface, SocketId};
use sim::router::{Router, Settings, StoreSize};
use sim::scenario::Http;
use sim::world::{Program, Routes, Wire, World, address};
use wire::Instant;

const ROUTER: usize = 0;
const ORIGIN: usize = 1;
const TALKER: usize = 2;

enum Member {
    Router(Box<Router>),
    Origin(Origin),
    Talker { says: Bytes, socket: Option<SocketId>, heard: Vec<u8>, is_over: bool },
}

impl Program for Member {
    fn start(&mut self, now: Instant, host: &mut Host) {
        match self {
            Self::Router(router) => router.start(now, host),
            Self::Origin(origin) => origin.start(now, host),
            Self::Talker { socket, .. } => {
                *socket = host.connect(now, SocketAddrV4::new(address(ORIGIN), 80)).ok();
            }
        }
    }

    fn handle_event(&mut self, now: Instant, host: &mut Host, event: Event) {
        match self {
            Self::Router(router) => router.handle_event(now, host, event),
            Self::Origin(origin) => origin.handle_event(now, host, event),
            Self::Talker { says, socket, heard, is_over } => {
                let Some(socket) = *socket else { return };
                host.write(now, socket, says);
                while let Some(bytes) = host.read(now, socket, usize::MAX) {
                    heard.extend_from_slice(&bytes);
                }
                *is_over |= matches!(event, Event::PeerClosed(_) | Event::Closed { .. });
            }
        }
    }

    fn handle_timeout(&mut self, now: Instant, host: &mut Host) {
        if let Self::Router(router) = self {
            router.handle_timeout(now, host);
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        match self {
            Self::Router(router) => router.poll_timeout(),
            _ => None,
        }
    }
}

/// Gives what a client receives that sends these bytes at once, whether its connection was closed, and how
/// many requests reached the origin.
fn talk(says: &str) -> (String, bool, u64) {
    let host = |machine: usize| Host::new(Config::default(), &[address(machine)], machine as u64);
    let settings = Settings {
        name: "router".to_owned(),
        seed: 1,
        selection: None,
        search: node::SearchConfig::default(),
        squares: node::Squares::default(),
        table: Exit::Gateway(Uplink {
            address: Some(IpAddr::V4(address(ROUTER))),
            interface: None,
            source: RouteSource::Kernel,
        })
        .into(),
        gateway: ROUTER,
        intercepts: vec![Interface(2)],
        overhear: None,
        store: StoreSize::lru(1_000_000),
        profile: content::Profile::DEFAULT,
        memory_bytes: 1 << 20,
        names: BTreeMap::from([("origin".to_owned(), IpAddr::V4(address(ORIGIN)))]),
        far: None,
        http: Http::Cached,
    };
    let router = Member::Router(Box::new(Router::new(settings).unwrap()));
    let routes = Routes::over(1, []);
    let radio = radio::Config::default();
    let mut world = World::new(radio, Links::new(1), routes, 1, vec![(host(ROUTER), router)]);
    let files = Files { source: 1.into(), sizes: vec![200_000, 5], max_age_s: 60, changed: BEGIN };
    world.attach(ROUTER, Wire::LAN, host(ORIGIN), Member::Origin(Origin::new(files, 80)));
    let says = Bytes::copy_from_slice(says.as_bytes());
    let talker = Member::Talker { says, socket: None, heard: Vec::new(), is_over: false };
    world.attach(ROUTER, Wire::LAN, host(TALKER), talker);
    world.run(Instant::ZERO + Duration::from_secs(5));
    let requests = match world.program(ORIGIN) {
        Member::Origin(origin) => origin.requests(),
        _ => 0,
    };
    let Member::Talker { heard, is_over, .. } = world.program(TALKER) else { panic!() };
    (String::from_utf8_lossy(heard).into_owned(), *is_over, requests)
}

fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: origin\r\n\r\n")
}

fn content(file: usize, bytes: usize) -> String {
    let mut content = vec![0; bytes];
    stream(1, file).fill(&mut content);
    String::from_utf8_lossy(&content).into_owned()
}

#[test]
fn requests_on_one_connection_are_answered_in_their_order() {
    let says = [get("/file-1.bin"), get("/file-2.bin"), get("/file-9.bin"), get("/file-1.bin")];
    let (heard, is_over, requests) = talk(&says.concat());
    let statuses: Vec<_> =
        heard.match_indices("HTTP/1.1 ").map(|(at, _)| &heard[at + 9..at + 12]).collect();
    assert_eq!(statuses, ["200", "200", "404", "200"]);
    assert_eq!(heard.matches(&content(0, 200_000)).count(), 2, "the large one, twice");
    assert_eq!(heard.matches("; hit").count(), 1, "the second time from the store");
    assert_eq!((is_over, requests), (false, 3));
}

#[test]
fn a_client_that_wants_it_so_is_left_after_the_answer() {
    let says = "GET /file-2.bin HTTP/1.1\r\nHost: origin\r\nConnection: close\r\n\r\n";
    let (heard, is_over, _) = talk(says);
    assert!(heard.ends_with(&content(1, 5)) && is_over, "{heard}");
}

#[test]
fn a_head_has_no_content() {
    let says = "HEAD /file-1.bin HTTP/1.1\r\nHost: origin\r\n\r\n".to_owned() + &get("/file-2.bin");
    let (heard, _, _) = talk(&says);
    assert!(heard.contains("content-length: 200000\r\n") && heard.len() < 2000, "{heard}");
    assert!(heard.ends_with(&content(1, 5)), "{heard}");
}

#[test]
fn what_is_no_request_ends_the_connection() {
    for says in [
        "\0\0\0\0\r\n\r\n",
        "GET /\r\n\r\n",
        "GET / HTTP/1.1\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc",
    ] {
        let (heard, is_over, requests) = talk(says);
        assert!(heard.is_empty() && is_over && requests == 0, "{says:?}: {heard}");
    }
}
