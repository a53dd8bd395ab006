//! The bytes of every frame. They must never change.

use std::net::IpAddr;

use wire::peer::{
    ByteRange, Call, Capability, ChunkHead, Connection, Copies, Cost, Envelope, Found, Gateway,
    Get, Head, Hello, Introduction, Locate, Message, Opaque, Options, Outcome, Passed, Preamble,
    Reach, Refusal, Request, Resume, Router, Search, Setup, Source, VERSION, Want, segment_signed,
};
use wire::{ChunkId, Digest, Hint, NodeId, ObjectKey, PublicKey, RecordId, Signature, Token};

const REQUEST: Request = Request(300);

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn frozen<const N: usize>(message: &Message, expected: [&str; N]) {
    let bytes = message.encode().expect("within the limits");
    assert_eq!(hex(&bytes), expected.concat());
    assert_eq!(Message::decode(&bytes).as_ref(), Ok(message));
}

fn hello(gateway: Gateway) -> Hello {
    Hello { name: "ab".into(), profile: 1, gateway, ..Hello::default() }
}

fn head() -> Head {
    Head {
        confirmed: true,
        record: RecordId([0x22; 16]),
        status: 200,
        fields: vec![("etag".into(), b"\"1\"".to_vec()), ("x".into(), Vec::new())],
        selecting: vec![("dnt".into(), None), ("te".into(), Some(b"a".to_vec()))],
        signer: PublicKey([0x33; 32]),
        signature: Signature([0x44; 64]),
        age: 128,
        length: Some(100_000),
        status_line: "a; hit".into(),
    }
}

#[test]
fn hellos() {
    let at = |address: &str| Gateway::At(address.parse::<IpAddr>().unwrap());
    frozen(&Message::Hello(hello(Gateway::Unknown)), ["01", "026162", "01", "00", "00", "00"]);
    frozen(&Message::Hello(hello(Gateway::Here)), ["01", "026162", "01", "01", "00", "00"]);
    let v4 = ["01", "026162", "01", "02", "0a000001", "00", "00"];
    frozen(&Message::Hello(hello(at("10.0.0.1"))), v4);
    let v6 = ["01", "026162", "01", "03", "fe80", "000000000000", "0000000000000001", "00", "00"];
    frozen(&Message::Hello(hello(at("fe80::1"))), v6);
    let full = Hello {
        capabilities: vec![Capability::HTTPS, Capability(300)],
        address: "10.0.0.2".parse().ok(),
        hops: Some(130),
        gateway_key: Some(PublicKey([0x33; 32])),
        ..hello(Gateway::Here)
    };
    let key = "33".repeat(32);
    let expected = ["01", "026162", "01", "01", "0201ac02", "0d", "0a000002", "8201", &key];
    frozen(&Message::Hello(full.clone()), expected);
    let at_v6 = Hello { address: "fe80::1".parse().ok(), hops: None, gateway_key: None, ..full };
    let expected =
        ["01", "026162", "01", "01", "0201ac02", "02", "fe80", "000000000000", "0000000000000001"];
    frozen(&Message::Hello(at_v6), expected);
    let numbers = Capability::ALL.map(|it| it.0);
    assert_eq!(numbers, [1, 2, 3, 4, 5]);
}

#[test]
fn tokens_and_pings() {
    frozen(&Message::Token(Token([0x55; 16])), ["02", &"55".repeat(16)]);
    frozen(&Message::Ping(300), ["03", "ac02"]);
    frozen(&Message::Ping(u64::MAX), ["03", &"ff".repeat(9), "01"]);
    frozen(&Message::Pong(0), ["04", "00"]);
}

#[test]
fn asks() {
    let ask = Get {
        request: REQUEST,
        hops: 3,
        visited: vec![NodeId([0x11; 16]), NodeId([0x12; 16])],
        merge: true,
        per_hop: false,
        resume: Some(Resume { record: RecordId([0x22; 16]), segment: 5 }),
        have: None,
        sparing: true,
        manifest_credit: 16_384,
        credit: 65_536,
        uri: "http://a/".into(),
        fields: vec![("te".into(), b"x".to_vec())],
        options: Options::default(),
    };
    let expected = [
        "05",
        "ac02",               // request: 300
        "03",                 // hops
        "02",                 // visited two
        &"11".repeat(16),     // one node
        &"12".repeat(16),     // and another
        "15",                 // merge, resume, sparing
        &"22".repeat(16),     // record
        "05",                 // segment
        "808001",             // cover: 16 384
        "808004",             // credit: 65 536
        "09",                 // a URI of nine bytes
        "687474703a2f2f612f", // http://a/
        "01",                 // one field
        "027465",             // te
        "0178",               // x
        "00",                 // no options
    ];
    frozen(&Message::Get(Box::new(ask)), expected);
    let plain = Get {
        request: Request(0),
        hops: 0,
        visited: vec![],
        merge: false,
        per_hop: true,
        resume: None,
        have: Some(RecordId([0x66; 16])),
        sparing: false,
        manifest_credit: 0,
        credit: 0,
        uri: "a".into(),
        fields: vec![],
        options: Options::default(),
    };
    let expected = ["05", "00", "00", "00", "0a", &"66".repeat(16), "00", "00", "0161", "00", "00"];
    frozen(&Message::Get(Box::new(plain)), expected);
}

#[test]
fn options() {
    // Type, request, hops, visited, flags, both credits, a URI, no fields.
    let bare = ["05", "00", "00", "00", "00", "00", "00", "0161", "00"].concat();
    let asking =
        |options| Message::Get(Box::new(Get { uri: "a".into(), options, ..Get::default() }));
    let with = |options, expected: &[&str]| {
        frozen(&asking(options), [&bare[..], &expected.concat()]);
    };
    let all = Options {
        passed: Some(Passed::Get),
        range: Some(ByteRange::Between(5, 300)),
        to: Some(NodeId([0x11; 16])),
        follow: true,
        digest: Some(Digest::Sha256([0x77; 32])),
        towards: Some([10, 0, 0, 7].into()),
        elsewhere: true,
    };
    let expected = [
        "07",             // seven options
        "010100",         // passed: GET
        "03040005ac02",   // range: between 5 and 300
        "0510",           // to:
        &"11".repeat(16), // this node
        "0700",           // follow
        "082101",         // digest: SHA-256
        &"77".repeat(32),
        "09040a000007", // towards 10.0.0.7
        "0a00",         // elsewhere
    ];
    with(all, &expected);
    let passed = Some(Passed::Head);
    let from = Options { passed, range: Some(ByteRange::From(128)), ..Options::default() };
    with(from, &["02", "010101", "0303018001"]);
    let last = Options { passed, range: Some(ByteRange::Last(1)), ..Options::default() };
    with(last, &["02", "010101", "03020201"]);
    let digest = Some(Digest::Sha512([0x88; 64]));
    let long = Options { digest, ..Options::default() };
    with(long, &["01", "084102", &"88".repeat(64)]);
    let towards = Some(IpAddr::from([0x99; 16]));
    with(Options { towards, ..Options::default() }, &["01", "0910", &"99".repeat(16)]);
}

#[test]
fn copies() {
    let (near, far) = ([10, 0, 0, 7].into(), IpAddr::from([0x55; 16]));
    let reach = Reach {
        id: NodeId([0x11; 16]),
        address: near,
        gateway: 512,
        paths: vec![Cost { router: far, cost: 256 }],
    };
    let expected = ["12", &"11".repeat(16), "010a000007", "8004", "0102", &"55".repeat(16), "8002"];
    frozen(&Message::Reach(Box::new(reach)), expected);
    let copies = Copies {
        router: near,
        stored: vec![Hint([0x22; 8]), Hint([0x33; 8])],
        evicted: vec![Hint([0x44; 8])],
    };
    let names = ["02", &"22".repeat(8), &"33".repeat(8), "01", &"44".repeat(8)].concat();
    frozen(&Message::Copies(copies), ["13", "010a000007", &names]);
}

#[test]
fn datagrams() {
    let mut out = Vec::new();
    Envelope::Open.write(&mut out);
    assert_eq!(hex(&out), "485344470200");
    let mut out = Vec::new();
    Envelope::Sealed { nonce: [0x33; 24] }.write(&mut out);
    assert_eq!(hex(&out), ["485344470201", &"33".repeat(24)].concat());
    let search = Search { boot: 0x0102_0304_0506_0708, sequence: 9 };
    let (name, holder) = (Hint([0x44; 8]), [10, 0, 0, 7].into());
    let frozen = |call: Call, expected: [&str; 4]| {
        assert_eq!(hex(&call.encode()), expected.concat());
        assert_eq!(Call::decode(&call.encode()), Ok(call));
    };
    let number = "010203040506070800000009";
    frozen(
        Call::Locate(Locate { origin: holder, search, name, ttl: 5, hops: 2 }),
        ["01", number, "4444444444444444", "0502010a000007"],
    );
    frozen(Call::Found(Found { search, holder, hops: 2 }), ["02", number, "02", "010a000007"]);
    let holder = IpAddr::from([0x55; 16]);
    frozen(
        Call::Setup(Setup { search, name, holder }),
        ["03", number, "4444444444444444", &["02", &"55".repeat(16)].concat()],
    );
}

#[test]
fn heads() {
    let expected = [
        "06",
        "ac02",           // request: 300
        "03",             // confirmed, length
        &"22".repeat(16), // record
        "c801",           // status: 200
        "02",             // two fields
        "0465746167",     // etag
        "03223122",       // "1"
        "0178",           // x
        "00",             // (empty)
        "02",             // two selecting fields
        "03646e74",       // dnt
        "00",             // absent
        "027465",         // te
        "010161",         // a
        &"33".repeat(32), // signer
        &"44".repeat(64), // signature
        "8001",           // age: 128
        "a08d06",         // length: 100 000
        "06613b20686974", // a; hit
    ];
    frozen(&Message::Head(REQUEST, Box::new(head())), expected);
}

#[test]
fn what_is_signed() {
    let expected = [
        "68656172736179203230323620",         // hearsay 2026
        "68656164206f662061207265636f726400", // head of a record
        &"77".repeat(32),                     // the object's key
        &"22".repeat(16),                     // record
        "c801",                               // status
        "02046574616703223122017800",         // fields
        "0203646e7400027465010161",           // selecting fields
    ];
    assert_eq!(hex(&head().signed(&ObjectKey([0x77; 32]))), expected.concat());
    // Fields that change on the way are not signed.
    let later = Head { age: 9, length: None, status_line: "b".into(), ..head() };
    assert_eq!(later.signed(&ObjectKey([0x77; 32])), head().signed(&ObjectKey([0x77; 32])));
    let expected = [
        "68656172736179203230323620",                   // hearsay 2026
        "7365676d656e74206f662061206d616e696665737400", // segment of a manifest
        &"22".repeat(16),
        &"88".repeat(32),
    ];
    let signed = segment_signed(&RecordId([0x22; 16]), &[0x88; 32]);
    assert_eq!(hex(&signed), expected.concat());
}

#[test]
fn segments_and_bytes() {
    let segment = Message::Segment(REQUEST, Box::new(Signature([0x44; 64])), vec![1, 2, 3]);
    frozen(&segment, ["07", "ac02", &"44".repeat(64), "03", "010203"]);
    let opaque = Opaque {
        status: 404,
        fields: vec![("a".into(), b"b".to_vec())],
        length: Some(0),
        status_line: String::new(),
    };
    let expected = ["08", "ac02", "01", "9403", "01", "0161", "0162", "00", "00"];
    frozen(&Message::Opaque(REQUEST, Box::new(opaque.clone())), expected);
    let chunked = Opaque { length: None, fields: vec![], ..opaque };
    let expected = ["08", "ac02", "00", "9403", "00", "00"];
    frozen(&Message::Opaque(REQUEST, Box::new(chunked)), expected);
    let bytes = Message::Bytes(REQUEST, 16_384, vec![0xaa, 0xbb]);
    frozen(&bytes, ["09", "ac02", "808001", "02", "aabb"]);
}

#[test]
fn ends() {
    let outcomes = [
        (Outcome::Complete, "00"),
        (Outcome::Unresolved, "01"),
        (Outcome::Forbidden, "02"),
        (Outcome::Unreachable, "03"),
        (Outcome::TimedOut, "04"),
        (Outcome::Malformed, "05"),
        (Outcome::Truncated, "06"),
        (Outcome::Loop, "07"),
        (Outcome::UnknownRecord, "08"),
        (Outcome::Busy, "09"),
        (Outcome::NotCached, "0a"),
        (Outcome::NotUnderstood, "0b"),
        (Outcome::Elsewhere(vec![]), "0c00"),
        (Outcome::Untrusted, "0d"),
        (Outcome::NotTls, "0e"),
    ];
    for (outcome, code) in outcomes {
        frozen(&Message::End(REQUEST, outcome), ["0a", "ac02", code]);
    }
    let id = NodeId([0x11; 16]);
    let routers = vec![
        Router { id, address: "10.0.0.1".parse().ok(), cost: Some(96) },
        Router { id, address: None, cost: None },
        Router { id, address: "fe80::1".parse().ok(), cost: None },
    ];
    let id = "11".repeat(16);
    let v6 = "fe800000000000000000000000000001";
    let expected =
        ["0a", "ac02", "0c", "03", &id, "05", "0a000001", "60", &id, "00", &id, "02", v6];
    frozen(&Message::End(REQUEST, Outcome::Elsewhere(routers)), expected);
    let expected = ["0e", "ffffffff0f"];
    frozen(&Message::Cancel(Request(u32::MAX)), expected);
}

#[test]
fn wants() {
    frozen(&Message::Credit(REQUEST, 1, 128), ["0b", "ac02", "01", "8001"]);
    let whole = Want { name: ChunkId([0x99; 32]), length: 8_192, missing: vec![] };
    let parts = Want { name: ChunkId([0x98; 32]), length: 200, missing: vec![0..1, 100..200] };
    let expected = [
        "0c",
        "ac02",           // request: 300
        "02",             // two units
        &"99".repeat(32), // this one:
        "8040",           // 8 192 bytes,
        "00",             // all of them
        &"98".repeat(32), // that one:
        "c801",           // 200 bytes,
        "02",             // two ranges:
        "0001",           // 0..1
        "64c801",         // 100..200
    ];
    frozen(&Message::Want(REQUEST, vec![whole, parts]), expected);
    let lost = Message::DontHave(REQUEST, vec![ChunkId([0x99; 32])]);
    frozen(&lost, ["0d", "ac02", "01", &"99".repeat(32)]);
    let unwant = Message::CancelWant(REQUEST, vec![ChunkId([0x99; 32]), ChunkId([0x98; 32])]);
    frozen(&unwant, ["11", "ac02", "02", &"99".repeat(32), &"98".repeat(32)]);
}

#[test]
fn holders() {
    let names = vec![Hint([0x77; 8]), Hint([0x88; 8])];
    let listed = ["77".repeat(8), "88".repeat(8)].concat();
    frozen(&Message::Have(names.clone()), ["0f", "02", &listed]);
    frozen(&Message::Withdraw(names), ["10", "02", &listed]);
}

#[test]
fn introductions() {
    let introduction = Introduction {
        identity: PublicKey([0x33; 32]),
        signature: Signature([0x44; 64]),
        token: Token([0x55; 16]),
        hello: hello(Gateway::Here),
    };
    let expected = [
        &"33".repeat(32),
        &"44".repeat(64),
        &"55".repeat(16),
        "02",
        "6162",
        "01",
        "01",
        "00",
        "00",
    ]
    .concat();
    let bytes = introduction.encode().expect("within the limits");
    assert_eq!(hex(&bytes), expected);
    assert_eq!(Introduction::decode(&bytes), Ok(introduction));
}

#[test]
fn preambles_and_refusals() {
    assert_eq!(VERSION, 2);
    let control = Preamble { connection: Connection::Control, sealed: true };
    assert_eq!(hex(&control.encode()), "4853505202010100");
    let data = Preamble { connection: Connection::Data, sealed: false };
    assert_eq!(hex(&data.encode()), "4853505202020000");
    let refusals = [
        Refusal::Version,
        Refusal::MeshKey,
        Refusal::Identity,
        Refusal::Busy,
        Refusal::Token,
        Refusal::Kind,
    ];
    assert_eq!(refusals.map(Refusal::code), [1, 2, 3, 4, 5, 6]);
    assert_eq!([1, 2, 3, 4, 5, 6].map(Refusal::from_code), refusals.map(Some));
    assert_eq!([0, 7, 255].map(Refusal::from_code), [None; 3]);
}

#[test]
fn heads_of_chunks() {
    let head = ChunkHead {
        name: ChunkId([0x99; 32]),
        total: 8_192,
        offset: 256,
        length: 7_936,
        source: Source::Held,
    };
    let expected = [
        "48534348",
        "02",             // HSCH, version
        &"99".repeat(32), // name
        "00002000",       // total
        "00000100",       // offset
        "00001f00",       // length
    ]
    .concat();
    for (source, code) in [(Source::Held, "00"), (Source::Relayed, "01"), (Source::Origin, "02")] {
        let bytes = ChunkHead { source, ..head }.encode();
        assert_eq!(hex(&bytes), format!("{expected}{code}"));
    }
}
