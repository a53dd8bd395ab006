//! Outputs and reports in fixed words, for digests of whole runs: how the engine's types are nested or
//! named may change without changing them.

use http::HeaderMap;
use node::{
    Caller, ClientOutput, Dial, ExchangeId, Fetch, FetchId, Head, LinkId, LinkOutput, OriginOutput,
    Output, PutError, Report, StoreOutput, Ticket,
};
use std::fmt::Write as _;
use store::{Change, Entry, Location, Provenance, SegmentId, Unit};

/// One output in a line; bytes by their digest.
pub fn summary(output: &Output) -> String {
    match output {
        Output::Client(ClientOutput::Respond(id, it)) => {
            format!("respond {} {}", exchange(*id), head(it))
        }
        Output::Client(ClientOutput::Interim(id, status, fields)) => {
            format!("interim {} {}{}", exchange(*id), status.as_u16(), headers(fields))
        }
        Output::Client(ClientOutput::Data(id, bytes)) => {
            format!("data {} {}", exchange(*id), digest(bytes))
        }
        Output::Client(ClientOutput::Finish(id)) => format!("finish {}", exchange(*id)),
        Output::Client(ClientOutput::Abort(id)) => format!("abort {}", exchange(*id)),
        Output::Client(ClientOutput::Tunnel(id, to, client, who)) => {
            format!("tunnel {} {} for {client} {}", exchange(*id), dial(to), caller(*who))
        }
        Output::Client(ClientOutput::Relay(id, it)) => {
            format!("relay {} {}", exchange(*id), fetch(it))
        }
        Output::Name(host, client) => format!("resolve {host} for {client}"),
        Output::Probe(to, client, who) => {
            format!("probe {} for {client} {}", dial(to), caller(*who))
        }
        Output::Store(StoreOutput::Lookup(key)) => format!("lookup {key}"),
        Output::Store(StoreOutput::ReadSegment(record, number)) => {
            format!("read segment {record} {number}")
        }
        Output::Store(StoreOutput::Change(id, changes)) => {
            format!("change {} {}", ticket(*id), list(changes.iter().map(change)))
        }
        Output::Origin(OriginOutput::Fetch(id, it)) => {
            format!("fetch {} {}", transfer(*id), fetch(it))
        }
        Output::Origin(OriginOutput::TakeIn(id, file)) => {
            format!("take in {} {}", exchange(*id), transfer(*file))
        }
        Output::Client(ClientOutput::Published(id, Ok(name))) => {
            format!("published {} {name}", exchange(*id))
        }
        Output::Client(ClientOutput::Published(id, Err(why))) => {
            format!("not published {} {}", exchange(*id), put_error(*why))
        }
        Output::Origin(OriginOutput::Grant(id, bytes)) => {
            format!("grant {} {bytes}", transfer(*id))
        }
        Output::Origin(OriginOutput::Cancel(id)) => format!("cancel {}", transfer(*id)),
        Output::Store(StoreOutput::Read(id, first, lengths)) => {
            format!("read {} {} {}", ticket(*id), location(*first), list(lengths))
        }
        Output::Store(StoreOutput::Append(id, units)) => {
            format!("append {} {}", ticket(*id), list(units.iter().map(unit)))
        }
        Output::Store(StoreOutput::Sync) => "sync".into(),
        Output::Store(StoreOutput::List(file)) => format!("list {}", segment(*file)),
        Output::Link(output) => link_summary(output),
        Output::Datagram(to, bytes) => format!("datagram {to} {}", digest(bytes)),
        Output::Broadcast(bytes) => format!("broadcast {}", digest(bytes)),
        Output::Notice(line) => format!("notice {line}"),
        Output::Store(StoreOutput::Rewrite(file, keep)) => {
            format!("rewrite {} {}", segment(*file), list(keep.iter().map(entry)))
        }
    }
}

fn link_summary(output: &LinkOutput) -> String {
    match output {
        LinkOutput::Connect(id, to) => format!("connect {} {to}", link(*id)),
        LinkOutput::Write(id, bytes) => format!("write {} {}", link(*id), digest(bytes)),
        LinkOutput::Receive(id, bytes) => format!("receive {} {bytes}", link(*id)),
        LinkOutput::ReadThreshold(id, bytes) => format!("gather {} {bytes}", link(*id)),
        LinkOutput::BulkData(id) => format!("bulk {}", link(*id)),
        LinkOutput::Hangup(id) => format!("hang up {}", link(*id)),
    }
}

/// What a node has counted, a figure a line.
pub fn figures(report: &Report) -> String {
    let mut lines = String::new();
    let (requests, heard) = (&report.requests, &report.overheard);
    for (name, value) in [
        ("hit", requests.hit),
        ("stale", requests.stale),
        ("revalidated", requests.revalidated),
        ("miss", requests.miss),
        ("collapsed", requests.collapsed),
        ("pass", requests.pass),
        ("tunnel", requests.tunnel),
        ("error", requests.error),
        ("served local", report.served_local_bytes),
        ("served origin", report.served_origin_bytes),
        ("served peer", report.served_peer_bytes),
        ("served overheard", report.served_overheard_bytes),
        ("served repaired", report.served_repaired_bytes),
        ("origin", report.origin_bytes),
        ("peer units in", report.peer_units_in_bytes),
        ("peer units out", report.peer_units_out_bytes),
        ("peer in", report.peer_in_bytes),
        ("peer out", report.peer_out_bytes),
        ("relayed opaque", report.relayed_opaque_bytes),
        ("asks in", report.asks_in),
        ("asks out", report.asks_out),
        ("asks short", report.asks_short),
        ("resumes", report.resumes),
        ("wants out", report.wants_out),
        ("wants lost", report.wants_lost),
        ("wants taken back", report.wants_taken_back),
        ("overheard units", heard.units),
        ("overheard bytes", heard.bytes),
        ("overheard dropped", heard.dropped_units),
        ("overheard cancelled", heard.cancelled_units),
        ("overheard repaired", heard.repaired_bytes),
        ("overheard false", heard.false_units),
        ("heard segments", heard.heard.segments),
        ("heard bytes", heard.heard.payload_bytes),
        ("heard chunks", heard.heard.chunks),
        ("units false", report.units_false),
        ("early dropped", report.early_dropped),
        ("hints", report.hints),
        ("hints evicted", report.hints_evicted),
        ("published", report.published),
        ("published bytes", report.published_bytes),
        ("peers", report.peers),
        ("peers displaced", report.peers_displaced),
        ("units cut", report.units_cut),
        ("units known", report.units_known),
        ("known bytes", report.known_bytes),
        ("units bad", report.units_bad),
        ("lingering refused", report.lingering_refused),
        ("store failures", report.store_failures),
        ("units", report.index.units),
        ("bytes on disk", report.index.bytes_on_disk),
        ("evicted units", report.index.evicted_units),
        ("rewritten", report.index.rewritten_bytes),
    ] {
        let _ = writeln!(lines, "{name} {value}");
    }
    for (why, it) in report.not_stored.occurred() {
        let _ = writeln!(lines, "not stored {} {} {}", why.name(), it.responses, it.bytes);
    }
    lines
}

fn list(items: impl IntoIterator<Item: ToString>) -> String {
    let items: Vec<_> = items.into_iter().map(|it| it.to_string()).collect();
    format!("[{}]", items.join(", "))
}

fn digest(bytes: &[u8]) -> String {
    format!("{} {}", bytes.len(), blake3::hash(bytes))
}

fn exchange(id: ExchangeId) -> String {
    format!("exchange {}", id.0)
}

fn transfer(id: FetchId) -> String {
    format!("transfer {}", id.0)
}

fn ticket(id: Ticket) -> String {
    format!("ticket {}", id.0)
}

fn link(id: LinkId) -> String {
    format!("link {}", id.0)
}

fn segment(id: SegmentId) -> String {
    format!("segment {}", id.0)
}

fn location(at: Location) -> String {
    format!("{} at {}", segment(at.segment), at.offset)
}

fn head(it: &Head) -> String {
    let length = it.length.map_or("unknown".into(), |length| length.to_string());
    format!("{} length {length}{}", it.status.as_u16(), headers(&it.headers))
}

fn fetch(it: &Fetch) -> String {
    let whose = it.exchange.map_or("nobody's".into(), exchange);
    let tls = if it.tls { " by TLS" } else { "" };
    format!(
        "{} {} at {}{tls} for {} {} content {whose}{}",
        it.method,
        it.path,
        dial(&it.dial),
        it.client,
        caller(it.caller),
        headers(&it.headers)
    )
}

fn headers(all: &HeaderMap) -> String {
    all.iter()
        .map(|(name, value)| format!("; {name}: {}", value.as_bytes().escape_ascii()))
        .collect()
}

fn dial(to: &Dial) -> String {
    match to {
        Dial::Name(name, port) => format!("name {name} {port}"),
        Dial::Address(address) => format!("address {address}"),
    }
}

fn caller(who: Caller) -> &'static str {
    match who {
        Caller::ThisMachine => "this machine",
        Caller::Explicit => "explicit",
        Caller::Tunnel => "tunnel",
        Caller::Intercepted => "intercepted",
        Caller::Peer => "peer",
        Caller::Gateway => "gateway",
    }
}

fn change(it: &Change) -> String {
    match it {
        Change::Put { key, row, records } => format!("put {key} {} {}", digest(row), list(records)),
        Change::Remove { key } => format!("remove {key}"),
        Change::PutSegment { record, number, bytes } => {
            format!("put segment {record} {number} {}", digest(bytes))
        }
        Change::DropSegments { record } => format!("drop segments {record}"),
        Change::Adopt { from, to } => format!("adopt {from} {to}"),
        Change::Keep { key } => format!("keep {key}"),
    }
}

fn unit(it: &Unit) -> String {
    let probation = if it.on_probation { " on probation" } else { "" };
    format!("{} {} {}{probation}", it.id, digest(&it.bytes), provenance(it.provenance))
}

fn entry(it: &Entry) -> String {
    format!("{} {} at {} {}", it.id, it.length, it.offset, provenance(it.provenance))
}

fn provenance(it: Provenance) -> &'static str {
    match it {
        Provenance::Own => "own",
        Provenance::Relayed => "relayed",
        Provenance::Overheard => "overheard",
        Provenance::Put => "put",
    }
}

fn put_error(why: PutError) -> String {
    match why {
        PutError::TooLarge(most) => format!("too large {most}"),
        PutError::TooLong(most) => format!("too long {most}"),
        PutError::Full(most) => format!("full {most}"),
        PutError::TooMany(most) => format!("too many {most}"),
        PutError::Store => "store".into(),
        PutError::Broken => "broken".into(),
        PutError::Unknown => "unknown".into(),
        PutError::Unlisted => "unlisted".into(),
    }
}
