//! The corpus of the uplink's fuzz targets, run as plain tests, and how it was made.

use crate::rogue::{AgainstNear, head, hello, keys, literals, open, reference};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use node::FetchError;
use node::testing::{self, Dialled, PairEnd, uplink_encoded};
use node::uplink::{Message, Span};
use std::path::{Path, PathBuf};

/// What a target does with its input.
type Check = fn(&[u8]);

fn place(target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target)
}

#[test]
fn the_corpus_does_no_harm() {
    let targets: [(&str, Check); 4] = [
        ("uplink_messages", testing::uplink_messages),
        ("uplink_control", testing::uplink_control),
        ("uplink_record", testing::uplink_record),
        ("uplink_handshake", testing::uplink_handshake),
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

/// Records of a TCP flow.
fn tcp() -> Vec<u8> {
    let begin = [dial(0), Message::Piece(3, b"HELO\r\n".as_slice().into()), Message::Raw(3, 40)];
    let begin = [&[1][..], &uplink_encoded(&begin)].concat();
    let data = [&[0, 0, 1, 40][..], &[7; 40]].concat();
    let end = [&[1][..], &uplink_encoded(&[Message::Finish(3, Ok(()))])].concat();
    [piece(&begin), piece(&data), piece(&end)].concat()
}

/// Run by hand when a format changes: `cargo test -p node --test uplink corpus -- --ignored`.
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
    let mut end = PairEnd::near(keys(1));
    let first = piece(&end.control(&all).unwrap());
    let second = piece(&end.control(&all[1..]).unwrap());
    write("uplink_control", "once", &first);
    write("uplink_control", "twice", &[&first[..], &second].concat());
    write("uplink_control", "cut", &first[..100]);
    write("uplink_record", "near", &records(1));
    write("uplink_record", "other-flow", &records(3));
    write("uplink_record", "tcp", &tcp());
    write("uplink_record", "plain", &piece(&[0, 0, 1, 0]));
    let mut end = PairEnd::near(keys(1));
    let hand = end.take_outbox().unwrap();
    write("uplink_handshake", "near", &[&[255][..], &hand].concat());
    write("uplink_handshake", "byte-by-byte", &[&[1][..], &hand, &hand].concat());
    write("uplink_handshake", "version", b"\x09HSUP\x01\0\0\0");
    write("uplink_handshake", "refusal", &[3, 0, 0, 2]);
    let mut rogue = AgainstNear::up();
    write("uplink_handshake", "far", &[&[200][..], &rogue.end.say(&all, &[]).unwrap()].concat());
}
