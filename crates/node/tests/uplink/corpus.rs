//! The corpus of the uplink's fuzz targets, run as plain tests, and how it was made.

use crate::rogue::{AgainstNear, head, hello, keys, literals, number, open, reference};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use node::FetchError;
use node::testing::{self, Dialled, PairEnd, uplink_encoded};
use node::uplink::{Message, Span};
use std::path::{Path, PathBuf};

/// What a target does with its input.
type Check = fn(&[u8]);

fn place(target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../fuzz/corpus").join(target)
}

#[test]
fn the_corpus_does_no_harm() {
    let targets: [(&str, Check); 6] = [
        ("uplink_messages", testing::uplink_messages),
        ("uplink_control", testing::uplink_control),
        ("uplink_record", testing::uplink_record),
        ("uplink_handshake", testing::uplink_handshake),
        ("uplink_published", testing::uplink_published),
        ("uplink_listing", testing::uplink_listing),
    ];
    for (target, check) in targets {
        let files: Vec<_> = std::fs::read_dir(place(target)).unwrap().collect();
        assert!(files.len() >= 3, "{target}");
        files.into_iter().for_each(|it| check(&std::fs::read(it.unwrap().path()).unwrap()));
    }
}

/// One of each message.
fn messages() -> Vec<Message> {
    let fields = [("content-type", "text/html"), ("etag", "\"1\""), ("etag", "\"2\"")];
    let fields = fields
        .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
    let mut batch = literals(1, 3, &[&[1; 40], &[2; 20]]).0;
    batch.spans.push(Span { first: 0, count: 2 });
    batch.length += 50;
    batch.literals.as_mut().unwrap().dictionary = vec![Span { first: 0, count: 3 }];
    vec![
        hello(),
        open(1, true),
        Message::Head(1, StatusCode::NOT_FOUND, HeaderMap::from_iter(fields)),
        Message::Batch(batch),
        Message::Batch(reference(2, 0, &[&[1; 40]])),
        Message::Credit(2, 1 << 20),
        Message::Finish(1, Err(FetchError::TimedOut)),
        Message::Want(vec![1, 2, 1 << 40]),
        Message::Unit(1, vec![1; 40]),
        Message::Beat { nonce: 7, first: 3, disk: 1, network: 100_000 },
        Message::Beaten(7),
        Message::Cancel(1),
        dial(1),
        Message::Piece(3, b"HELO\r\n".as_slice().into()),
        Message::Raw(3, 300),
        Message::Reaches(node::uplink::Reach { v4: true, v6: false }),
        Message::Root { flow: 1, length: 40, listing: 21, payload: 61 },
        Message::Acknowledge(3),
        Message::Request(1, vec![[1; 20], [2; 20]]),
        Message::Chunks(vec![40, 0]),
    ]
}

/// A TCP connection.
fn dial(client: u64) -> Message {
    let to = "192.0.2.1:25".parse().unwrap();
    Message::Dial(3, Dialled { to, client })
}

/// A piece after its length.
fn piece(bytes: &[u8]) -> Vec<u8> {
    [&(bytes.len() as u16).to_be_bytes()[..], bytes].concat()
}

/// Records of a flow that is answered: the first byte tells whether they are plain.
fn records(flow: u64) -> Vec<u8> {
    let (batch, payload) = literals(flow, 0, &[&[1; 40], &[2; 20]]);
    let begin = uplink_encoded(&[open(9, true), head(flow), Message::Batch(batch)]);
    let data = [&[0, 0, 1, payload.len() as u8][..], &payload].concat();
    let again = Message::Batch(reference(flow, 0, &[&[1; 40], &[2; 20]]));
    let rest = uplink_encoded(&[again, Message::Finish(flow, Ok(())), Message::Want(vec![0])]);
    let (begin, rest) = ([&[1][..], &begin].concat(), [&[1][..], &rest].concat());
    [piece(&begin), piece(&data), piece(&rest)].concat()
}

/// A chunk of a list: its name, its length, whether its content crosses.
fn chunk(bytes: &[u8], is_missing: bool) -> Vec<u8> {
    let number = (bytes.len() << 1) as u8 | u8::from(is_missing);
    [&content::name(bytes).as_bytes()[..20], &[number]].concat()
}

/// Records of a flow that is answered by a published scheme: a root whose content crosses, and one that is believed to
/// be there, which is then supplied or not.
fn roots(flow: u64, supplied: &[u8]) -> Vec<u8> {
    let (known, wrong) = ([1; 40], [2; 50]);
    let first = [&chunk(&known, true)[..], &known].concat();
    let root = |length, listing, payload: usize| {
        let payload = payload as u32;
        Message::Root { flow: number(flow), length, listing, payload }
    };
    let begin = uplink_encoded(&[open(9, true), head(flow), root(40, 21, first.len())]);
    let second = [chunk(&known, false), chunk(&wrong, false)].concat();
    let then = uplink_encoded(&[
        root(90, 42, second.len()),
        Message::Request(0, vec![[7; 20]]),
        Message::Acknowledge(0),
    ]);
    let answer = uplink_encoded(&[Message::Chunks(vec![supplied.len() as u32])]);
    let end = uplink_encoded(&[Message::Finish(number(flow), Ok(()))]);
    let said = |messages: &[u8]| piece(&[&[1], messages].concat());
    let data = |bytes: &[u8]| piece(&[&[0, 0, 1, bytes.len() as u8], bytes].concat());
    [
        said(&begin),
        data(&first),
        said(&then),
        data(&second),
        said(&answer),
        data(supplied),
        said(&end),
    ]
    .concat()
}

/// Records of a TCP flow.
fn tcp() -> Vec<u8> {
    let begin = [dial(0), Message::Piece(3, b"HELO\r\n".as_slice().into()), Message::Raw(3, 40)];
    let begin = [&[1][..], &uplink_encoded(&begin)].concat();
    let data = [&[0, 0, 1, 40][..], &[7; 40]].concat();
    let end = [&[1][..], &uplink_encoded(&[Message::Finish(3, Ok(()))])].concat();
    [piece(&begin), piece(&data), piece(&end)].concat()
}

/// What a later version may say: an unknown kind, and a credit with more fields than are known.
fn later() -> Vec<u8> {
    let known = uplink_encoded(&[Message::Beaten(7)]);
    [&[200, 3, 1, 2, 3][..], &[2, 5, 4, 0, 7, 7, 7], &known].concat()
}

/// Run by hand when a format changes: `cargo test -p node-tests --test uplink corpus -- --ignored`.
#[test]
#[ignore = "writes the committed corpus"]
fn write_the_corpus() {
    let write = |target: &str, name: &str, bytes: &[u8]| {
        std::fs::create_dir_all(place(target)).unwrap();
        std::fs::write(place(target).join(name), bytes).unwrap();
    };
    let all = messages();
    write("uplink_messages", "all", &uplink_encoded(&all));
    write("uplink_messages", "open", &uplink_encoded(&all[1..2]));
    write("uplink_messages", "batches", &uplink_encoded(&all[3..5]));
    write("uplink_messages", "later", &later());
    let mut end = PairEnd::near(keys(1), &keys(2).key());
    let first = piece(&end.control(&all).unwrap());
    let second = piece(&end.control(&all[1..]).unwrap());
    write("uplink_control", "once", &first);
    write("uplink_control", "twice", &[&first[..], &second].concat());
    write("uplink_control", "cut", &first[..100]);
    write("uplink_record", "near", &records(1));
    write("uplink_record", "other-flow", &records(3));
    write("uplink_record", "tcp", &tcp());
    write("uplink_record", "plain", &piece(&[0, 0, 1, 0]));
    write("uplink_record", "later", &piece(&[&[1][..], &later()].concat()));
    write("uplink_published", "supplied", &roots(1, &[2; 50]));
    write("uplink_published", "false", &roots(1, &[3; 50]));
    write("uplink_published", "lacking", &roots(2, &[]));
    write("uplink_published", "other-flow", &roots(3, &[2; 50]));
    write("uplink_listing", "one", &chunk(&[1; 40], true));
    write("uplink_listing", "two", &[chunk(&[1; 40], true), chunk(&[2; 50], false)].concat());
    write("uplink_listing", "empty-chunk", &chunk(&[], true));
    write("uplink_listing", "cut", &chunk(&[1; 40], true)[..20]);
    let mut end = PairEnd::near(keys(1), &keys(2).key());
    let hand = end.take_outbox().unwrap();
    write("uplink_handshake", "near", &[&[255][..], &hand].concat());
    write("uplink_handshake", "byte-by-byte", &[&[1][..], &hand, &hand].concat());
    let mut other = hand.to_vec();
    other[8] ^= 1;
    write("uplink_handshake", "unproven", &[&[255][..], &other].concat());
    write("uplink_handshake", "version", b"\x09HSUP\x02\0\0\0");
    write("uplink_handshake", "refusal", &[3, 0, 0, 2]);
    let mut rogue = AgainstNear::up();
    write("uplink_handshake", "far", &[&[200][..], &rogue.end.say(&all, &[]).unwrap()].concat());
}
