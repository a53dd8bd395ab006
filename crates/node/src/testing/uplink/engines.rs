//! The two engines of a pair, fed any bytes.

use super::{Heard, PairEnd, pieces};
use crate::access::{Access, Caller};
use crate::input::{FetchId, OriginInput};
use crate::output::{Dial, Fetch, OriginOutput};
use crate::testing::Hello;
use crate::uplink::{
    Far, FarConfig, FarInput, FarOutput, Guest, MemoryUnits, Message, Near, NearConfig, NearInput,
    NearOutput, PairKeys, Published, Reach, Worker,
};
use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode};
use std::time::Duration;
use store::{Files as _, HistoryState, Memory, Ring};
use wire::Instant;

const NOW: Instant = Instant::from_nanos(1);
/// Bytes that an end may want to send without being asked to.
const SENT_MAX: usize = 16 << 20;

fn keys(seed: u8) -> PairKeys {
    PairKeys::new(&[seed; 32], &[seed; 32])
}

fn worker() -> Worker<MemoryUnits> {
    let history = || MemoryUnits::new([9; 16], 1000);
    let ring = Ring::new(Memory::new().create("ring").expect("a new file"), 1 << 20, [3; 32]);
    Worker::new(history(), history()).with_cache(ring.expect("an empty file"), 1000)
}

fn near_end(worker: &Worker<MemoryUnits>, scheme: Option<Published>) -> Near {
    let config = NearConfig {
        far_key: keys(2).key(),
        access: Access::default(),
        held: worker.held(),
        scheme,
    };
    Near::new(config, keys(1), &[3; 32], std::iter::empty())
}

/// Feeds a near end these pieces instead of a handshake.
pub fn handshake<'a>(pieces: impl Iterator<Item = &'a [u8]>, far: PairKeys) {
    let config = NearConfig {
        far_key: far.key(),
        access: Access::default(),
        held: (HistoryState::default(), HistoryState::default()),
        scheme: None,
    };
    let mut near = Near::new(config, keys(1), &[3; 32], std::iter::empty());
    near.handle_input(NOW, NearInput::Connected);
    for piece in pieces {
        near.handle_input(NOW, NearInput::Received(Bytes::copy_from_slice(piece)));
    }
    assert!(!near.is_up(), "nobody has proven a key");
}

/// Feeds both ends records after a real handshake. Each piece of the bytes is one record: its first byte tells
/// whether the rest is the record's plain text, or encoded messages.
///
/// # Panics
/// If an end does, or wants to send without bound.
pub fn records(bytes: &[u8]) {
    against_far(bytes, None);
    against_near(bytes, None);
}

/// The same with ends that use a published scheme.
///
/// # Panics
/// As [`records`].
pub fn published(bytes: &[u8]) {
    for scheme in ["mrc-8-128", "mrc-large-2-32", "src-64"] {
        let scheme = scheme.parse().ok();
        against_far(bytes, scheme);
        against_near(bytes, scheme);
    }
}

fn record(end: &mut PairEnd, piece: &[u8]) -> Option<Bytes> {
    let (kind, rest) = piece.split_first()?;
    if kind & 1 == 0 { end.say_plain(rest) } else { end.say_encoded(rest) }
}

/// The answer to a hello, from an end that holds nothing.
fn hello(scheme: Option<Published>) -> Message {
    let nothing = HistoryState::default();
    let reach = Reach::default();
    Message::Hello(Hello { out: nothing, within: nothing, fresh: [5; 16], reach, scheme })
}

fn against_far(bytes: &[u8], scheme: Option<Published>) {
    let mut worker = worker();
    let config = FarConfig { near_key: keys(1).key(), units_max: 1000, held: worker.held() };
    let mut far = Far::new(config, keys(2), &[4; 32], std::iter::empty());
    let (mut end, mut guest, mut far_keys) =
        (PairEnd::near(keys(1), &keys(2).key()), Guest::default(), keys(2));
    while let Some(sent) = end.take_outbox() {
        let known = guest.receive(&sent, &mut far_keys).expect("a sound handshake");
        guest.take_outbox().iter().for_each(|bytes| end.receive(bytes));
        if known.is_some() {
            break;
        }
        assert!(matches!(end.poll(), Heard::Known(_)));
    }
    far.handle_input(NOW, FarInput::Connected(guest, [192, 0, 2, 1].into(), Reach::default()));
    drive_far(&mut far, &mut worker);
    let greeting = end.say(&[hello(scheme)], &[]);
    let records = pieces(bytes).map_while(|piece| record(&mut end, piece));
    for sealed in greeting.into_iter().chain(records.collect::<Vec<_>>()) {
        far.handle_input(NOW, FarInput::Received(sealed));
        drive_far(&mut far, &mut worker);
    }
    far.handle_input(NOW + Duration::from_secs(60), FarInput::Tick);
    drive_far(&mut far, &mut worker);
}

/// Does jobs, answers requests, and discards what is sent.
fn drive_far(far: &mut Far, worker: &mut Worker<MemoryUnits>) {
    let mut sent = 0;
    loop {
        while let Some(output) = far.poll_output() {
            let input = match output {
                FarOutput::Work(number, job) => FarInput::Done(number, worker.work(job)),
                FarOutput::Origin(OriginOutput::Fetch(id, _), has_content) => {
                    let head = OriginInput::Head(id, StatusCode::OK, HeaderMap::new());
                    far.handle_input(NOW, FarInput::Origin(head));
                    if has_content {
                        far.accept_content(NOW, id, 1 << 20);
                    }
                    FarInput::Origin(OriginInput::Body(id, Bytes::from_static(&[7; 100])))
                }
                _ => continue,
            };
            far.handle_input(NOW, input);
        }
        let Some(bytes) = far.poll_transmit(NOW) else { return };
        sent += bytes.len();
        assert!(sent < SENT_MAX, "it sends without end");
    }
}

fn against_near(bytes: &[u8], scheme: Option<Published>) {
    let mut worker = worker();
    let (mut near, mut end) = (near_end(&worker, scheme), PairEnd::far(keys(2)));
    near.handle_input(NOW, NearInput::Connected);
    for _ in 0..2 {
        drive_near(&mut near, &mut worker, &mut end);
        if let Heard::Known(_) = end.poll() {
            end.accept();
        }
        end.take_outbox().into_iter().for_each(|bytes| {
            near.handle_input(NOW, NearInput::Received(bytes));
        });
    }
    let greeting = end.say(&[hello(scheme)], &[]);
    greeting.into_iter().for_each(|it| near.handle_input(NOW, NearInput::Received(it)));
    drive_near(&mut near, &mut worker, &mut end);
    assert!(near.is_up());
    for id in 0..4 {
        let fetch = OriginOutput::Fetch(FetchId(id), Box::new(fetch()));
        near.handle_input(NOW, NearInput::Origin(fetch, id == 3));
        let grant = OriginOutput::Grant(FetchId(id), 1 << 20);
        near.handle_input(NOW, NearInput::Origin(grant, false));
    }
    for piece in pieces(bytes) {
        let Some(sealed) = record(&mut end, piece) else { break };
        near.handle_input(NOW, NearInput::Received(sealed));
        drive_near(&mut near, &mut worker, &mut end);
    }
    near.handle_input(NOW + Duration::from_secs(60), NearInput::Tick);
    drive_near(&mut near, &mut worker, &mut end);
}

fn fetch() -> Fetch {
    Fetch {
        dial: Dial::Name("files.example.org".into(), 80),
        tls: false,
        client: [10, 0, 0, 2].into(),
        caller: Caller::Explicit,
        method: Method::GET,
        path: "/".into(),
        headers: HeaderMap::new(),
        exchange: None,
        binding: None,
    }
}

/// Does jobs, and gives the other end what is sent.
fn drive_near(near: &mut Near, worker: &mut Worker<MemoryUnits>, end: &mut PairEnd) {
    let mut sent = 0;
    loop {
        while let Some(output) = near.poll_output() {
            if let NearOutput::Work(number, job) = output {
                near.handle_input(NOW, NearInput::Done(number, worker.work(job)));
            }
        }
        let Some(bytes) = near.poll_transmit(NOW) else { return };
        sent += bytes.len();
        assert!(sent < SENT_MAX, "it sends without end");
        end.receive(&bytes);
    }
}
