//! Responses from the store, and this node's own error responses.

use super::{Client, Value};
use crate::catalogue::segment_number;
use crate::context::Context;
use crate::events::{Event, RequestEnd};
use crate::exchanges::exchange::{ClientReader, Piece, Source, State};
use crate::fault::Fault;
use crate::http;
use crate::http::{NotStored, Ranges, Record, add_status, add_upstream, bodiless, content_length};
use crate::input::{ExchangeId, FetchError, FetchId};
use crate::output::{ClientOutput, Head, Output};
use crate::transfers::reader::{Joins, Reader};
use crate::trust::Trust;
use ::http::{HeaderMap, HeaderValue, Method, StatusCode, Version, header};
use std::collections::VecDeque;
use std::ops::Range;
use std::rc::Rc;
use wire::RecordId;
use wire::peer::Outcome;

/// Adds to `Cache-Status` that the response begins with overheard bytes.
pub(super) fn overheard(detail: String, heard: bool) -> String {
    if heard { detail + "; detail=overheard" } else { detail }
}

/// The part of a record that a request gets.
struct Selected {
    status: StatusCode,
    headers: HeaderMap,
    pieces: VecDeque<Piece>,
    length: u64,
}

impl Client {
    /// Answers from the store. `left` is the remaining freshness in seconds; `forwarded` is the
    /// `Cache-Status` detail if the origin was asked first.
    pub fn answer(
        &mut self,
        cx: &mut Context,
        id: ExchangeId,
        record: &Rc<Record>,
        left: i64,
        forwarded: Option<&str>,
    ) {
        let Some(exchange) = cx.exchanges.get(&id) else { return };
        cx.events.emit(|| Event::Hit { exchange: id, record: record.id });
        let detail = match forwarded {
            Some(detail) => detail.to_owned(),
            None => format!("hit; ttl={left}"),
        };
        // A peer gets the manifest and asks for units, not a body, unless it passes the response on.
        let for_peer = exchange.peer().is_some();
        if for_peer && !exchange.ask.peer_hops.passed {
            return self.supply_closed(cx, id, record, &detail);
        }
        let mut headers = record.headers.clone();
        // A cache must state the age, or the next cache takes the response for new (RFC 9111 §5.1).
        headers.insert(header::AGE, HeaderValue::from(http::age(record, cx.date())));
        exchange.ask.set_cookies(&mut headers);
        add_upstream(&mut headers, &exchange.ask.peer_hops.upstream);
        if !for_peer {
            http::add_via(&mut headers, Version::HTTP_11, &cx.via);
        }
        let counts = &mut cx.report.requests;
        *(match forwarded {
            Some(_) if left >= 0 => &mut counts.revalidated,
            None if left > 0 => &mut counts.hit,
            _ => &mut counts.stale,
        }) += u64::from(!for_peer);
        let ask = &exchange.ask;
        // A random boundary, so that the author of the content cannot have put it there.
        let boundary = RecordId(cx.record_ids.draw());
        let mut chosen = select(&ask.method, &ask.headers, record, headers, boundary);
        // The first byte that is sent decides what Cache-Status says of overhearing: the head
        // cannot wait for the others.
        let position = chosen.pieces.iter().find_map(|piece| match piece {
            Piece::Object(range) => Some(range.start),
            Piece::Literal(_) => None,
        });
        let heard = position.is_some_and(|position| {
            let number = segment_number(&record.offsets, position);
            cx.is_overheard_at(record.id, (number, None), position)
        });
        add_status(&mut chosen.headers, &cx.config.name, &overheard(detail, heard));
        let client_reader =
            ClientReader::new(Source::Closed(Rc::clone(record)), record.id, chosen.pieces);
        let Selected { status, headers, length, .. } = chosen;
        if for_peer {
            // To a HEAD, the length is that of the content which a GET would get.
            let length = content_length(&headers);
            if !self.peer_readers.say_opaque(cx, id, status, &headers, length) {
                self.dismiss(cx, id, Outcome::Busy);
                return;
            }
        } else {
            let head = Head { status, headers, length: Some(length) };
            cx.out.push_back(Output::Client(ClientOutput::Respond(id, Box::new(head))));
        }
        cx.exchanges.put_state(id, State::ClientReader(Box::new(client_reader)));
        cx.turns.ready(id);
    }

    /// Lets a client or a peer read an object while it is fetched.
    pub fn serve_growing(
        &mut self,
        cx: &mut Context,
        client: ExchangeId,
        id: FetchId,
        collapsed: bool,
    ) {
        let now = cx.date();
        let (peer, head_alone) = (cx.exchanges.is_peer(client), cx.exchanges.wants_head(client));
        let Some(miss) = self.misses.get(&id) else { return };
        let (why, upstream) = (miss.why.name(), miss.status_line.clone());
        let Some(incoming) = cx.transfers.get(&id) else { return };
        let code = incoming.status.as_u16();
        // RFC 9211 §2.6 allows `stored` only if the response is stored. A failed store is tried
        // again, but may fail again.
        let is_kept = !incoming.memory_only && !incoming.starts_late() && cx.trust == Trust::Works;
        let stored = if is_kept { "; stored" } else { "" };
        let with = if collapsed { "; collapsed" } else { "" };
        let detail = format!("fwd={why}; fwd-status={code}{stored}{with}");
        if peer {
            return self.supply_growing(cx, client, id, &detail);
        }
        let (record, first) = (incoming.record, incoming.segment_at(0));
        let heard = cx.is_overheard_at(record, first, 0);
        let detail = overheard(detail, heard);
        let Some(incoming) = cx.transfers.get(&id) else { return };
        let mut headers = incoming.headers.clone();
        // The one that began it gets the response as the origin sent it; for others it has an age.
        if collapsed || incoming.carried > 0 {
            let age = http::age(&incoming.so_far(), now);
            headers.insert(header::AGE, HeaderValue::from(age));
        }
        if let Some(exchange) = cx.exchanges.get(&client) {
            exchange.ask.set_cookies(&mut headers);
        }
        add_upstream(&mut headers, &upstream);
        add_status(&mut headers, &cx.config.name, &detail);
        http::add_via(&mut headers, ::http::Version::HTTP_11, &cx.via);
        // Without a length the body is sent as chunks of HTTP, and ends when the object does.
        let end = incoming.announced.unwrap_or(u64::MAX);
        if end < u64::MAX && !bodiless(&Method::GET, incoming.status) {
            headers.insert(header::CONTENT_LENGTH, HeaderValue::from(end));
        }
        // A response that can have no content must not wait for any.
        let bare = (end == 0 && incoming.limit() > 0) || head_alone;
        let pieces = if bare { [].into() } else { [Piece::Object(0..end)].into() };
        let head = Head { status: incoming.status, headers, length: incoming.announced };
        let mut client_reader = ClientReader::new(Source::Incoming(id), incoming.record, pieces);
        client_reader.leads = !collapsed;
        let reader = Reader::new(client, !collapsed, 0);
        self.values.push_back(Value::Join(id, reader, Joins::Client { head_alone }));
        cx.out.push_back(Output::Client(ClientOutput::Respond(client, Box::new(head))));
        cx.exchanges.put_state(client, State::ClientReader(Box::new(client_reader)));
        cx.turns.ready(client);
    }

    /// Sends an error of this node: the request is malformed, not permitted, or cannot be served.
    pub fn refuse(&mut self, cx: &mut Context, id: ExchangeId, fault: Fault) {
        if !self.dismiss(cx, id, Outcome::NotCached) {
            self.respond_error(cx, id, fault, None);
        }
    }

    /// Reports that the origin could not be reached or gave no valid response (RFC 9209 names the
    /// error).
    pub fn unreachable(&mut self, cx: &mut Context, id: ExchangeId, error: Option<FetchError>) {
        let outcome = super::elsewhere::outcome(cx, id, error);
        if self.dismiss(cx, id, outcome) {
            return;
        }
        let is_unreadable = error == Some(FetchError::Malformed);
        let exchange = cx.exchanges.get_mut(&id);
        if exchange.is_some_and(|exchange| exchange.ask.turn_home(error, &cx.config)) {
            return self.look(cx, id);
        }
        let exchange = cx.exchanges.get(&id).filter(|_| is_unreadable);
        if let Some(request) = exchange.and_then(|exchange| exchange.ask.past_us()) {
            cx.exchanges.remove(&id);
            cx.events.emit(|| Event::RequestEnds { exchange: id, how: RequestEnd::Relayed });
            cx.report.requests.pass += 1;
            cx.report.not_stored.of(NotStored::Unreadable).responses += 1;
            let output = ClientOutput::Relay(id, Box::new(request));
            return cx.out.push_back(Output::Client(output));
        }
        self.respond_error(cx, id, Fault::of(error), error);
    }

    fn respond_error(
        &mut self,
        cx: &mut Context,
        id: ExchangeId,
        fault: Fault,
        error: Option<FetchError>,
    ) {
        cx.report.requests.error += 1;
        *cx.report.errors.of(fault) += 1;
        cx.events.emit(|| Event::RequestEnds { exchange: id, how: RequestEnd::Refused });
        let (mut head, text) = fault.answer(&cx.config.name, error);
        let to_head =
            cx.exchanges.remove(&id).is_some_and(|exchange| exchange.ask.method == Method::HEAD);
        if to_head {
            head.length = Some(0);
        }
        cx.out.push_back(Output::Client(ClientOutput::Respond(id, Box::new(head))));
        if !to_head {
            // The text is short enough to be sent without credit.
            cx.out.push_back(Output::Client(ClientOutput::Data(id, text)));
        }
        cx.out.push_back(Output::Client(ClientOutput::Finish(id)));
    }
}

/// Chooses between 200, 206, 304 and 416 (RFC 9110 §13.2.2, §14.2).
fn select(
    method: &Method,
    request: &HeaderMap,
    record: &Record,
    mut headers: HeaderMap,
    boundary: RecordId,
) -> Selected {
    // Conditions come before ranges (RFC 9110 §13.2.2).
    if http::not_modified(request, record) {
        headers.remove(header::CONTENT_TYPE);
        return Selected {
            status: StatusCode::NOT_MODIFIED,
            headers,
            pieces: VecDeque::new(),
            length: 0,
        };
    }
    // Ranges count only for GET, for a 200, and if `If-Range` names this version.
    let ranged = *method == Method::GET
        && record.status == StatusCode::OK
        && http::range_holds(request, record);
    let ranges = if ranged { http::parse_ranges(request, record.length) } else { Ranges::Whole };
    match ranges {
        Ranges::Whole => whole(method, record, headers),
        Ranges::Some(ranges) => match &ranges[..] {
            // One range needs no multipart, and most clients cannot read one.
            [range] => part(range.clone(), record, headers),
            ranges => parts(ranges, record, headers, boundary),
        },
        // The length tells the client what it could ask for (RFC 9110 §15.5.17).
        Ranges::Unsatisfiable => {
            let range = format!("bytes */{}", record.length);
            headers.insert(
                header::CONTENT_RANGE,
                HeaderValue::try_from(range).expect("digits are ASCII"),
            );
            headers.insert(header::CONTENT_LENGTH, HeaderValue::from(0));
            headers.remove(header::CONTENT_TYPE);
            let status = StatusCode::RANGE_NOT_SATISFIABLE;
            Selected { status, headers, pieces: VecDeque::new(), length: 0 }
        }
    }
}

fn whole(method: &Method, record: &Record, mut headers: HeaderMap) -> Selected {
    let bodiless = matches!(record.status.as_u16(), 204);
    if !bodiless {
        headers.insert(header::CONTENT_LENGTH, HeaderValue::from(record.length));
    }
    let sends = *method == Method::GET && record.length > 0 && !bodiless;
    let pieces = if sends { [Piece::Object(0..record.length)].into() } else { VecDeque::new() };
    let length = if sends { record.length } else { 0 };
    Selected { status: record.status, headers, pieces, length }
}

fn part(range: Range<u64>, record: &Record, mut headers: HeaderMap) -> Selected {
    let length = range.end - range.start;
    headers.insert(header::CONTENT_RANGE, http::content_range(&range, record.length));
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    let pieces = [Piece::Object(range)].into();
    Selected { status: StatusCode::PARTIAL_CONTENT, headers, pieces, length }
}

/// Several ranges at once: `multipart/byteranges` (RFC 9110 §14.6).
fn parts(
    ranges: &[Range<u64>],
    record: &Record,
    mut headers: HeaderMap,
    boundary: RecordId,
) -> Selected {
    let kind = headers.remove(header::CONTENT_TYPE);
    let kind = kind.as_ref().and_then(|kind| kind.to_str().ok());
    let (mut pieces, mut length) = (VecDeque::new(), 0);
    for range in ranges {
        // Each part begins on a new line; the first has an empty preamble.
        let mut lines = format!("\r\n--{boundary}\r\n");
        if let Some(kind) = kind {
            lines += &format!("Content-Type: {kind}\r\n");
        }
        let position = http::content_range(range, record.length);
        lines += &format!("Content-Range: {}\r\n\r\n", position.to_str().expect("made of ASCII"));
        // The total is announced in `Content-Length`, so boundaries count too.
        length += lines.len() as u64 + (range.end - range.start);
        pieces.push_back(Piece::Literal(lines.into()));
        pieces.push_back(Piece::Object(range.clone()));
    }
    let last = format!("\r\n--{boundary}--\r\n");
    length += last.len() as u64;
    pieces.push_back(Piece::Literal(last.into()));
    let kind = HeaderValue::try_from(format!("multipart/byteranges; boundary={boundary}"));
    headers.insert(header::CONTENT_TYPE, kind.expect("made of ASCII"));
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    Selected { status: StatusCode::PARTIAL_CONTENT, headers, pieces, length }
}
