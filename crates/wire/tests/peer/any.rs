//! Arbitrary frames within the limits.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::Range;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use wire::peer::{
    ByteRange, Call, Capability, ChunkHead, Connection, Copies, Cost, Field, Found, Gateway, Get,
    Head, Hello, Introduction, Locate, Message, Opaque, Options, Outcome, Passed, Preamble, Reach,
    Request, Resume, Router, Search, Selecting, Setup, Source, Want,
};
use wire::{ChunkId, Digest, Hint, NodeId, PublicKey, RecordId, Signature, Token};

const OUTCOMES: [Outcome; 14] = [
    Outcome::Complete,
    Outcome::Unresolved,
    Outcome::Forbidden,
    Outcome::Unreachable,
    Outcome::TimedOut,
    Outcome::Malformed,
    Outcome::Truncated,
    Outcome::Loop,
    Outcome::UnknownRecord,
    Outcome::Busy,
    Outcome::NotCached,
    Outcome::NotUnderstood,
    Outcome::Untrusted,
    Outcome::NotTls,
];

pub fn message() -> impl Strategy<Value = Message> {
    prop_oneof![
        hello().prop_map(Message::Hello),
        any::<[u8; 16]>().prop_map(|token| Message::Token(Token(token))),
        number().prop_map(Message::Ping),
        number().prop_map(Message::Pong),
        ask().prop_map(|ask| Message::Get(Box::new(ask))),
        (request(), head()).prop_map(|(request, head)| Message::Head(request, Box::new(head))),
        (request(), any::<[u8; 64]>(), bytes(Message::SEGMENT_MAX)).prop_map(
            |(request, it, bytes)| Message::Segment(request, Box::new(Signature(it)), bytes)
        ),
        (request(), opaque()).prop_map(|(request, it)| Message::Opaque(request, Box::new(it))),
        (request(), 0..=u64::MAX - Message::BYTES_MAX as u64, bytes(Message::BYTES_MAX))
            .prop_map(|(request, offset, bytes)| Message::Bytes(request, offset, bytes)),
        (request(), outcome()).prop_map(|(request, outcome)| Message::End(request, outcome)),
        (request(), any::<u32>(), number()).prop_map(|(request, bytes, manifest_credit)| {
            Message::Credit(request, bytes, manifest_credit)
        }),
        (request(), few(want(), Message::WANTS_MAX))
            .prop_map(|(request, wants)| Message::Want(request, wants)),
        (request(), few(any::<[u8; 32]>().prop_map(ChunkId), Message::WANTS_MAX))
            .prop_map(|(request, names)| Message::DontHave(request, names)),
        (request(), few(any::<[u8; 32]>().prop_map(ChunkId), Message::WANTS_MAX))
            .prop_map(|(request, names)| Message::CancelWant(request, names)),
        request().prop_map(Message::Cancel),
        few(any::<[u8; 8]>().prop_map(Hint), Message::HELD_MAX).prop_map(Message::Have),
        few(any::<[u8; 8]>().prop_map(Hint), Message::HELD_MAX).prop_map(Message::Withdraw),
        reach().prop_map(|reach| Message::Reach(Box::new(reach))),
        copies().prop_map(Message::Copies),
    ]
}

fn reach() -> impl Strategy<Value = Reach> {
    let path = (any::<IpAddr>(), any::<u32>()).prop_map(|(router, cost)| Cost { router, cost });
    let id = any::<[u8; 16]>().prop_map(NodeId);
    (id, any::<IpAddr>(), any::<u32>(), vec(path, 0..=Reach::PATHS_MAX))
        .prop_map(|(id, address, gateway, paths)| Reach { id, address, gateway, paths })
}

fn copies() -> impl Strategy<Value = Copies> {
    let names = || few(any::<[u8; 8]>().prop_map(Hint), Message::HELD_MAX);
    (any::<IpAddr>(), names(), names())
        .prop_filter("it says something", |(_, stored, evicted)| {
            !(stored.is_empty() && evicted.is_empty())
        })
        .prop_map(|(router, stored, evicted)| Copies { router, stored, evicted })
}

pub fn introduction() -> impl Strategy<Value = Introduction> {
    (any::<[u8; 32]>(), any::<[u8; 64]>(), any::<[u8; 16]>(), hello()).prop_map(
        |(identity, signature, token, hello)| Introduction {
            identity: PublicKey(identity),
            signature: Signature(signature),
            token: Token(token),
            hello,
        },
    )
}

pub fn preamble() -> impl Strategy<Value = Preamble> {
    (any::<bool>(), any::<bool>()).prop_map(|(control, sealed)| Preamble {
        connection: if control { Connection::Control } else { Connection::Data },
        sealed,
    })
}

pub fn chunk_head() -> impl Strategy<Value = ChunkHead> {
    let source = prop_oneof![Just(Source::Held), Just(Source::Relayed), Just(Source::Origin)];
    (any::<[u8; 32]>(), source, 1..=ChunkHead::TOTAL_MAX)
        .prop_flat_map(|(name, source, total)| {
            (Just((name, source, total)), 0..total)
                .prop_flat_map(|(head, offset)| (Just(head), Just(offset), 1..=head.2 - offset))
        })
        .prop_map(|((name, source, total), offset, length)| ChunkHead {
            name: ChunkId(name),
            total,
            offset,
            length,
            source,
        })
}

fn hello() -> impl Strategy<Value = Hello> {
    let gateway = prop_oneof![
        Just(Gateway::Unknown),
        Just(Gateway::Here),
        any::<Ipv4Addr>().prop_map(|address| Gateway::At(IpAddr::V4(address))),
        any::<Ipv6Addr>().prop_map(|address| Gateway::At(IpAddr::V6(address))),
    ];
    // A character has at most four bytes.
    let capabilities = proptest::collection::btree_set(any::<u32>(), 0..=Capability::COUNT_MAX);
    let key = option::of(any::<[u8; 32]>().prop_map(PublicKey));
    (
        ("\\PC{0,16}", any::<u8>(), gateway, capabilities),
        (option::of(any::<IpAddr>()), option::of(any::<u32>()), key),
    )
        .prop_map(|((name, profile, gateway, numbers), (address, hops, gateway_key))| {
            let capabilities = numbers.into_iter().map(Capability).collect();
            Hello { name, profile, gateway, capabilities, address, hops, gateway_key }
        })
}

fn outcome() -> impl Strategy<Value = Outcome> {
    let router = (any::<[u8; 16]>(), option::of(any::<IpAddr>()), option::of(any::<u32>()))
        .prop_map(|(id, address, cost)| Router { id: NodeId(id), address, cost });
    prop_oneof![
        proptest::sample::select(&OUTCOMES[..]),
        vec(router, 0..=Router::COUNT_MAX).prop_map(Outcome::Elsewhere),
    ]
}

fn options() -> impl Strategy<Value = Options> {
    let passed = prop_oneof![Just(Passed::Get), Just(Passed::Head)];
    let range = prop_oneof![
        (number(), number()).prop_map(|(a, b)| ByteRange::Between(a.min(b), a.max(b))),
        number().prop_map(ByteRange::From),
        (1..=u64::MAX).prop_map(ByteRange::Last),
    ];
    let digest = prop_oneof![
        any::<[u8; 32]>().prop_map(Digest::Sha256),
        any::<[[u8; 32]; 2]>()
            .prop_map(|halves| Digest::Sha512(halves.concat().try_into().expect("64 bytes"))),
    ];
    let passed = option::of((passed, option::of(range)));
    let to = option::of(any::<[u8; 16]>().prop_map(NodeId));
    let towards = option::of(any::<IpAddr>());
    (passed, to, any::<[bool; 2]>(), option::of(digest), towards).prop_map(
        |(passed, to, [follow, elsewhere], digest, towards)| {
            let (passed, range) =
                passed.map_or((None, None), |(method, range)| (Some(method), range));
            Options { passed, range, to, follow, digest, towards, elsewhere }
        },
    )
}

pub fn call() -> impl Strategy<Value = Call> {
    let search =
        (any::<u64>(), any::<u32>()).prop_map(|(boot, sequence)| Search { boot, sequence });
    let name = any::<[u8; 8]>().prop_map(Hint);
    (search, name, any::<IpAddr>(), 1..=u8::MAX, 1..=u8::MAX).prop_flat_map(
        |(search, name, router, ttl, hops)| {
            prop_oneof![
                Just(Call::Locate(Locate { origin: router, search, name, ttl, hops })),
                Just(Call::Found(Found { search, holder: router, hops })),
                Just(Call::Setup(Setup { search, name, holder: router })),
            ]
        },
    )
}

fn ask() -> impl Strategy<Value = Get> {
    let resume = (any::<[u8; 16]>(), any::<u32>())
        .prop_map(|(record, segment)| Resume { record: RecordId(record), segment });
    let have = any::<[u8; 16]>().prop_map(RecordId);
    let visited = vec(any::<[u8; 16]>().prop_map(NodeId), 0..=Get::VISITED_MAX);
    (
        (request(), any::<u8>(), visited, any::<bool>(), any::<bool>()),
        (option::of(resume), option::of(have), any::<bool>(), number(), any::<u32>()),
        ("https?://[a-z/%é]{1,40}", fields(), options()),
    )
        .prop_map(|(first, then, (uri, fields, options))| {
            let (request, hops, visited, merge, per_hop) = first;
            let (resume, have, sparing, manifest_credit, credit) = then;
            Get {
                request,
                hops,
                visited,
                merge,
                per_hop,
                resume,
                have,
                sparing,
                manifest_credit,
                credit,
                uri,
                fields,
                options,
            }
        })
}

fn head() -> impl Strategy<Value = Head> {
    (
        (any::<bool>(), any::<[u8; 16]>(), 100_u16..=999, fields(), few(selecting(), 256)),
        (any::<[u8; 32]>(), any::<[u8; 64]>(), any::<u32>(), option::of(number()), status_line()),
    )
        .prop_map(|((confirmed, record, status, fields, selecting), rest)| {
            let (signer, signature, age, length, status_line) = rest;
            Head {
                confirmed,
                record: RecordId(record),
                status,
                fields,
                selecting,
                signer: PublicKey(signer),
                signature: Signature(signature),
                age,
                length,
                status_line,
            }
        })
}

fn opaque() -> impl Strategy<Value = Opaque> {
    (100_u16..=999, fields(), option::of(number()), status_line()).prop_map(
        |(status, fields, length, status_line)| Opaque { status, fields, length, status_line },
    )
}

fn want() -> impl Strategy<Value = Want> {
    (any::<[u8; 32]>(), 1..=ChunkHead::TOTAL_MAX).prop_flat_map(|(name, length)| {
        ranges(length).prop_map(move |missing| Want { name: ChunkId(name), length, missing })
    })
}

/// Ascending offsets, taken in pairs: nonempty ranges that do not touch.
fn ranges(length: u32) -> impl Strategy<Value = Vec<Range<u32>>> {
    proptest::collection::btree_set(0..=length, 0..=(2 * Want::RANGES_MAX).min(length as usize))
        .prop_map(|offsets| {
            let offsets: Vec<u32> = offsets.into_iter().collect();
            offsets.chunks_exact(2).map(|pair| pair[0]..pair[1]).collect()
        })
}

fn fields() -> impl Strategy<Value = Vec<Field>> {
    few((name(), value()), Message::FIELDS_MAX)
}

fn selecting() -> impl Strategy<Value = Selecting> {
    (name(), option::of(value()))
}

fn name() -> impl Strategy<Value = String> {
    "[a-z0-9!#$%&'*+.^_`|~-]{1,12}"
}

fn value() -> impl Strategy<Value = Vec<u8>> {
    let allowed = any::<u8>().prop_filter("a value", |byte| !matches!(byte, 0 | b'\r' | b'\n'));
    vec(allowed, 0..20)
}

fn status_line() -> impl Strategy<Value = String> {
    prop_oneof!["\\PC{0,40}", Just("x".repeat(Message::STATUS_LINE_MAX))]
}

fn request() -> impl Strategy<Value = Request> {
    prop_oneof![any::<u32>(), 0..300_u32].prop_map(Request)
}

/// Numbers of all encoded lengths.
fn number() -> impl Strategy<Value = u64> {
    (any::<u64>(), 0..64_u32).prop_map(|(number, shift)| number >> shift)
}

/// Usually few items, seldom the most that are allowed.
fn few<T: Strategy>(item: T, most: usize) -> impl Strategy<Value = Vec<T::Value>>
where
    T::Value: Clone,
{
    (vec(item, 0..6), 0..20).prop_map(move |(items, dice)| match items.first() {
        Some(first) if dice == 0 => vec![first.clone(); most],
        _ => items,
    })
}

fn bytes(most: usize) -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        9 => vec(any::<u8>(), 0..40),
        1 => any::<u8>().prop_map(move |byte| vec![byte; most]),
    ]
}
