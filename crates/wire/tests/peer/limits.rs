//! Frames that are refused, when received or about to be sent.

use wire::peer::{
    ByteRange, Call, Capability, ChunkHead, Copies, Cost, Envelope, Found, FrameError, Get, Hello,
    Introduction, Locate, Message, Opaque, Outcome, Passed, Preamble, Reach, Received, Request,
    Router, Search, Source, Want,
};
use wire::{ChunkId, Hint, NodeId, PublicKey, Signature, Token};

const REQUEST: Request = Request(1);

/// `within` can be sent, `beyond` cannot. One function checks both what is sent and what is
/// received; bytes that only a malicious sender could send are in [`what_a_liar_sends`].
fn edge(within: &Message, beyond: &Message) {
    let bytes = within.encode().expect("within the limits");
    assert_eq!(Message::decode(&bytes).as_ref(), Ok(within));
    assert_eq!(beyond.encode(), None);
}

fn refused(bytes: &[u8], why: FrameError) {
    assert_eq!(Message::decode(bytes), Err(why), "{bytes:02x?}");
    assert_eq!(Message::receive(bytes), Err(why), "{bytes:02x?}");
}

/// These bytes are this message, with something unknown that is skipped.
fn skipped(bytes: &[u8], message: Message) {
    assert_eq!(Message::receive(bytes), Ok(Received::Message { message, skipped: true }));
    assert_eq!(Message::decode(bytes), Err(FrameError::Malformed), "it is not ours");
}

fn hello(name: &str) -> Hello {
    Hello { name: name.into(), profile: 1, ..Hello::default() }
}

fn ask() -> Get {
    Get { request: REQUEST, hops: 1, uri: "http://a/".into(), ..Get::default() }
}

fn opaque() -> Opaque {
    Opaque { status: 200, fields: vec![], length: None, status_line: String::new() }
}

fn asking(change: impl FnOnce(&mut Get)) -> Message {
    let mut ask = ask();
    change(&mut ask);
    Message::Get(Box::new(ask))
}

fn answering(change: impl FnOnce(&mut Opaque)) -> Message {
    let mut opaque = opaque();
    change(&mut opaque);
    Message::Opaque(REQUEST, Box::new(opaque))
}

fn wanting(length: u32, missing: &[(u32, u32)]) -> Message {
    let missing = missing.iter().map(|(start, end)| *start..*end).collect();
    let want = Want { name: ChunkId([1; 32]), length, missing };
    Message::Want(REQUEST, vec![want])
}

#[test]
fn lengths() {
    let bytes = |length| Message::Bytes(REQUEST, 0, vec![0; length]);
    edge(&bytes(16 * 1024), &bytes(16 * 1024 + 1));
    let segment = |length| Message::Segment(REQUEST, Signature([0; 64]).into(), vec![0; length]);
    edge(&segment(32 * 1024), &segment(32 * 1024 + 1));
    let lost = |count| Message::DontHave(REQUEST, vec![ChunkId([1; 32]); count]);
    edge(&lost(256), &lost(257));
    for say in [Message::Have, Message::Withdraw] {
        let held = |count| say(vec![Hint([1; 8]); count]);
        edge(&held(256), &held(257));
    }
    let unwant = |count| Message::CancelWant(REQUEST, vec![ChunkId([1; 32]); count]);
    edge(&unwant(256), &unwant(257));
    let visited = |count| asking(|ask| ask.visited = vec![NodeId([1; 16]); count]);
    edge(&visited(16), &visited(17));
    let uri = |length| asking(|ask| ask.uri = "a".repeat(length));
    edge(&uri(16 * 1024), &uri(16 * 1024 + 1));
    edge(&uri(1), &uri(0));
    let fields = |count| asking(|ask| ask.fields = vec![("a".into(), vec![]); count]);
    edge(&fields(256), &fields(257));
    let line = |length| answering(|it| it.status_line = "a".repeat(length));
    edge(&line(4 * 1024), &line(4 * 1024 + 1));
    let name = |length| Message::Hello(hello(&"a".repeat(length)));
    edge(&name(64), &name(65));
    let able = |count| {
        let capabilities = (0..count).map(Capability).collect();
        Message::Hello(Hello { capabilities, ..hello("a") })
    };
    edge(&able(16), &able(17));
    let elsewhere = |count| {
        let router = Router { id: NodeId([1; 16]), address: None, cost: None };
        Message::End(REQUEST, Outcome::Elsewhere(vec![router; count]))
    };
    edge(&elsewhere(4), &elsewhere(5));
    let wants = |count| {
        let want = Want { name: ChunkId([1; 32]), length: 1, missing: vec![] };
        Message::Want(REQUEST, vec![want; count])
    };
    edge(&wants(256), &wants(257));
}

#[test]
fn a_message_as_a_whole() {
    // Type, flags, status (2), two counts of 1, name (2), the value's length (3), an empty status
    // line.
    let around = 1 + 1 + 1 + 2 + 1 + 2 + 3 + 1;
    let with = |length| answering(|it| it.fields = vec![("a".into(), vec![b'x'; length])]);
    let longest = Message::LENGTH_MAX - around;
    edge(&with(longest), &with(longest + 1));
    assert_eq!(with(longest).encode().map(|it| it.len()), Some(Message::LENGTH_MAX));
    refused(&vec![0; Message::LENGTH_MAX + 1], FrameError::TooLong);
}

#[test]
fn texts() {
    for bad in ["a\n", "a\0", "\u{7f}", "\u{85}"] {
        assert_eq!(Message::Hello(hello(bad)).encode(), None, "{bad:?}");
        assert_eq!(answering(|it| it.status_line = bad.into()).encode(), None, "{bad:?}");
        assert_eq!(asking(|ask| ask.uri = bad.into()).encode(), None, "{bad:?}");
    }
    for bad in ["", "A", "a b", "a:", "é"] {
        assert_eq!(asking(|it| it.fields = vec![(bad.into(), vec![])]).encode(), None, "{bad:?}");
    }
    for bad in [b"\r", b"\n", b"\0"] {
        let fields = vec![("a".into(), bad.to_vec())];
        assert_eq!(answering(|it| it.fields = fields).encode(), None, "{bad:?}");
    }
    refused(&[1, 1, b'\n', 0, 0, 0, 0], FrameError::Malformed);
    refused(&[1, 1, 0xff, 0, 0, 0, 0], FrameError::Malformed);
}

#[test]
fn numbers() {
    let status = |status| answering(|it| it.status = status);
    edge(&status(100), &status(99));
    edge(&status(999), &status(1000));
    let bytes = |offset| Message::Bytes(REQUEST, offset, vec![1]);
    edge(&bytes(u64::MAX - 1), &bytes(u64::MAX));
    refused(&[14, 0x80, 0], FrameError::Malformed); // zero in two bytes
    refused(&[14, 0xff, 0xff, 0xff, 0xff, 0x1f], FrameError::Malformed); // above 32 bits
}

#[test]
fn ranges() {
    edge(&wanting(1, &[]), &wanting(0, &[]));
    edge(&wanting(32 * 1024, &[]), &wanting(32 * 1024 + 1, &[]));
    edge(&wanting(9, &[(0, 9)]), &wanting(9, &[(0, 10)]));
    edge(&wanting(9, &[(0, 1), (2, 9)]), &wanting(9, &[(0, 1), (1, 9)])); // touch
    edge(&wanting(9, &[(3, 4), (6, 7)]), &wanting(9, &[(6, 7), (3, 4)])); // out of order
    edge(&wanting(9, &[(3, 4)]), &wanting(9, &[(3, 3)])); // empty
    edge(&wanting(9, &[(3, 4)]), &wanting(9, &[(5, 6), (2, 9)])); // overlap
    edge(&wanting(9, &[(3, 4)]), &wanting(9, &[(4, 3)]));
    let many =
        |count: u32| wanting(100, &(0..count).map(|i| (2 * i, 2 * i + 1)).collect::<Vec<_>>());
    edge(&many(32), &many(33));
}

#[test]
fn what_a_liar_sends() {
    let want = |length: u8, ranges: &[u8]| {
        let count = ranges.len() as u8 / 2;
        [&[12, 1, 1], &[7; 32][..], &[length, count], ranges].concat()
    };
    assert!(Message::decode(&want(9, &[0, 1, 2, 9])).is_ok());
    refused(&want(0, &[]), FrameError::Malformed);
    refused(&want(9, &[0, 10]), FrameError::Malformed);
    refused(&want(9, &[3, 3]), FrameError::Malformed);
    refused(&want(9, &[4, 3]), FrameError::Malformed);
    refused(&want(9, &[0, 1, 1, 9]), FrameError::Malformed);
    refused(&want(9, &[6, 7, 3, 4]), FrameError::Malformed);
    refused(&want(9, &[5, 6, 2, 9]), FrameError::Malformed);
    refused(&[&[1, 65], &[b'a'; 65][..], &[1, 0, 0, 0]].concat(), FrameError::TooLong);
    refused(&[1, 0, 1, 0, 2, 5, 5, 0], FrameError::Malformed); // a capability twice
    refused(&[1, 0, 1, 0, 2, 6, 5, 0], FrameError::Malformed); // out of order
    refused(&[1, 0, 1, 0, 0, 3, 1, 2, 3, 4], FrameError::Malformed); // two families
    refused(&[5, 1, 0, 0, 0, 0, 0, 0, 0, 0], FrameError::Malformed); // no URI
    assert!(Message::decode(&[8, 1, 0, 100, 1, 1, b'a', 1, b'b', 0]).is_ok());
    refused(&[8, 1, 0, 99, 0, 0], FrameError::Malformed);
    refused(&[8, 1, 0, 100, 1, 0, 1, b'b', 0], FrameError::Malformed); // no name
    refused(&[8, 1, 0, 100, 1, 1, b'A', 1, b'b', 0], FrameError::Malformed);
    refused(&[8, 1, 0, 100, 1, 1, b'a', 1, b'\n', 0], FrameError::Malformed);
    let bytes = [&[9, 1, 0, 0x81, 0x80, 1][..], &[0; 16 * 1024 + 1]].concat();
    refused(&bytes, FrameError::TooLong);
}

/// A get with these options: their number, and each as its bytes.
fn with_options(options: &[u8]) -> Vec<u8> {
    let mut bytes = Message::Get(Box::new(ask())).encode().expect("within the limits");
    assert_eq!(bytes.pop(), Some(0), "it has no options");
    bytes.extend(options);
    bytes
}

#[test]
fn ranges_of_content() {
    let part = |range| {
        asking(|ask| {
            ask.options.passed = Some(Passed::Get);
            ask.options.range = Some(range);
        })
    };
    edge(&part(ByteRange::Between(5, 5)), &part(ByteRange::Between(5, 4)));
    edge(&part(ByteRange::Last(1)), &part(ByteRange::Last(0)));
    let alone = asking(|ask| ask.options.range = Some(ByteRange::From(1)));
    assert_eq!(alone.encode(), None, "only what is passed on has a part");
    refused(&with_options(&[1, 3, 2, 1, 1]), FrameError::Malformed);
}

#[test]
fn options_are_in_order_and_exact() {
    refused(&with_options(&[2, 7, 0, 7, 0]), FrameError::Malformed);
    refused(&with_options(&[2, 7, 0, 5, 0]), FrameError::Malformed);
    refused(&with_options(&[1, 7, 1, 0]), FrameError::Malformed); // a value too long
    refused(&with_options(&[1, 5, 1, 0]), FrameError::Malformed); // a value too short
    refused(&with_options(&[1, 7]), FrameError::Malformed);
    refused(&with_options(&[1, 11, 2, 0]), FrameError::Malformed); // an unknown one that is cut off
    refused(&with_options(&[1, 9, 5, 10, 0, 0, 7, 0]), FrameError::Malformed); // no address
    refused(&with_options(&[17]), FrameError::TooLong);
}

#[test]
fn copies_say_something_and_lists_are_bounded() {
    let router = std::net::IpAddr::from([10, 0, 0, 7]);
    let copies = |stored: usize| {
        let stored = vec![Hint([1; 8]); stored];
        Message::Copies(Copies { router, stored, evicted: Vec::new() })
    };
    edge(&copies(Message::HELD_MAX), &copies(Message::HELD_MAX + 1));
    edge(&copies(1), &copies(0));
    let reach = |paths: usize| {
        let paths = vec![Cost { router, cost: 1 }; paths];
        let id = NodeId([1; 16]);
        Message::Reach(Box::new(Reach { id, address: router, gateway: 1, paths }))
    };
    edge(&reach(Reach::PATHS_MAX), &reach(Reach::PATHS_MAX + 1));
}

#[test]
fn calls_are_exact() {
    let search = Search { boot: 1, sequence: 2 };
    let found = Call::Found(Found { search, holder: [10, 0, 0, 7].into(), hops: 3 });
    let good = found.encode();
    let refused = |bytes: &[u8]| assert_eq!(Call::decode(bytes), Err(FrameError::Malformed));
    refused(&[]);
    refused(&good[..good.len() - 1]);
    refused(&[&good[..], &[0]].concat());
    for (at, byte) in [(0, 4), (13, 0), (14, 0), (14, 3), (14, 4)] {
        let mut bad = good.clone();
        bad[at] = byte;
        refused(&bad);
    }
    let name = Hint([4; 8]);
    let locate = Locate { origin: [10, 0, 0, 7].into(), search, name, ttl: 1, hops: 1 };
    let good = Call::Locate(locate).encode();
    for at in [21, 22] {
        let mut bad = good.clone();
        bad[at] = 0;
        refused(&bad);
    }
}

#[test]
fn envelopes_are_short_and_of_this_version() {
    let opened =
        |bytes: &[u8]| Envelope::read(bytes).map(|(envelope, rest)| (envelope, rest.len()));
    assert_eq!(opened(b"HSDG\x02\x00abc"), Ok((Envelope::Open, 3)));
    assert_eq!(opened(b"HSDG\x01\x00abc"), Err(FrameError::Version(1)));
    assert_eq!(opened(b"HSDG\x02\x02abc"), Err(FrameError::Malformed));
    assert_eq!(opened(b"HSDG\x02\x01abc"), Err(FrameError::Malformed), "no nonce");
    assert_eq!(opened(&[0; 129]), Err(FrameError::TooLong));
}

#[test]
fn what_later_versions_may_add() {
    for kind in [0, 20, 255] {
        assert_eq!(Message::receive(&[kind, 1, 2]), Ok(Received::UnknownType(kind)));
    }
    skipped(&[14, 1, 9, 9], Message::Cancel(REQUEST));
    skipped(&[1, 0, 1, 0, 0, 0, 7], Message::Hello(hello("")));
    // Outcomes, with whatever fields they have.
    skipped(&[10, 1, 99], Message::End(REQUEST, Outcome::NotUnderstood));
    skipped(&[10, 1, 15, 3, 4], Message::End(REQUEST, Outcome::NotUnderstood));
    // Options that may be skipped.
    skipped(&with_options(&[1, 12, 2, 1, 2]), asking(|_| {}));
    skipped(&with_options(&[2, 7, 0, 0x80, 2, 0]), asking(|ask| ask.options.follow = true));
    skipped(&with_options(&[1, 8, 2, 3, 0]), asking(|_| {})); // a digest of another kind
    // Options that may not: also values of a known one.
    for options in [&[1, 11, 0][..], &[2, 7, 0, 11, 1, 5], &[1, 1, 1, 2], &[2, 1, 1, 0, 3, 1, 3]] {
        let received = Message::receive(&with_options(options));
        assert_eq!(received, Ok(Received::NotUnderstood(REQUEST)), "{options:?}");
    }
}

#[test]
fn what_is_unknown_where_nothing_may_be_added() {
    refused(&[], FrameError::Malformed);
    assert_eq!(Message::decode(&[0]), Err(FrameError::Malformed));
    assert_eq!(Message::decode(&[255, 1]), Err(FrameError::Malformed));
    refused(&[1, 0, 1, 4, 0, 0], FrameError::Malformed); // gateway
    refused(&[1, 0, 1, 0, 0, 16], FrameError::Malformed); // flags
    let mut bytes = Message::Get(Box::new(ask())).encode().expect("within the limits");
    bytes[4] = 0x20;
    refused(&bytes, FrameError::Malformed);
    let mut bytes = answering(|_| {}).encode().expect("within the limits");
    bytes[2] = 2;
    refused(&bytes, FrameError::Malformed);
}

#[test]
fn counts_that_nothing_stands_behind() {
    refused(&[13, 1, 0x80, 2], FrameError::Malformed); // 256 names
    refused(&[13, 1, 0x81, 2], FrameError::TooLong); // one too many
    refused(&[12, 1, 0xff, 0xff, 0xff, 0xff, 0x0f], FrameError::TooLong);
    let most = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1];
    refused(&[&[9, 1, 0][..], &most].concat(), FrameError::Malformed);
}

#[test]
fn introductions() {
    let introduction = |name: &str| Introduction {
        identity: PublicKey([1; 32]),
        signature: Signature([2; 64]),
        token: Token([3; 16]),
        hello: hello(name),
    };
    assert_eq!(introduction(&"a".repeat(65)).encode(), None);
    let long = vec![0; Introduction::LENGTH_MAX + 1];
    assert_eq!(Introduction::decode(&long), Err(FrameError::TooLong));
    let mut bytes = introduction(&"a".repeat(64)).encode().expect("within the limits");
    bytes.push(0);
    assert_eq!(Introduction::decode(&bytes), Err(FrameError::Malformed), "trailing");
    let known = introduction(&"a".repeat(64));
    assert_eq!(Introduction::receive(&bytes), Ok((known, true)));
}

#[test]
fn preambles() {
    let decode = |bytes: &[u8; 8]| Preamble::decode(bytes).expect_err("refused");
    assert_eq!(decode(b"HSPX\x02\x01\0\0"), FrameError::Malformed);
    assert_eq!(decode(b"HSPR\x01\x01\0\0"), FrameError::Version(1));
    assert_eq!(decode(b"HSPR\x03\x09\xff\x01"), FrameError::Version(3));
    assert_eq!(decode(b"HSPR\x02\0\0\0"), FrameError::Kind(0));
    assert_eq!(decode(b"HSPR\x02\x03\xff\x01"), FrameError::Kind(3));
    assert_eq!(decode(b"HSPR\x02\x01\x02\0"), FrameError::Malformed);
    assert_eq!(decode(b"HSPR\x02\x01\0\x01"), FrameError::Malformed);
}

#[test]
fn heads_of_chunks() {
    let decode = |total, offset, length| {
        let name = ChunkId([1; 32]);
        let head = ChunkHead { name, total, offset, length, source: Source::Held };
        ChunkHead::decode(&head.encode()).map(|_| ())
    };
    assert_eq!(decode(32 * 1024, 32 * 1024 - 1, 1), Ok(()));
    assert_eq!(decode(32 * 1024 + 1, 0, 1), Err(FrameError::TooLong));
    assert_eq!(decode(10, 0, 0), Err(FrameError::Malformed));
    assert_eq!(decode(10, 10, 1), Err(FrameError::Malformed));
    assert_eq!(decode(10, 5, 6), Err(FrameError::Malformed));
    assert_eq!(decode(10, u32::MAX, 2), Err(FrameError::Malformed));
    let good =
        ChunkHead { name: ChunkId([1; 32]), total: 1, offset: 0, length: 1, source: Source::Held };
    for (at, byte, why) in [
        (0, b'X', FrameError::Malformed),
        (4, 1, FrameError::Version(1)),
        (49, 3, FrameError::Malformed),
    ] {
        let mut bytes = good.encode();
        bytes[at] = byte;
        assert_eq!(ChunkHead::decode(&bytes), Err(why));
    }
}
