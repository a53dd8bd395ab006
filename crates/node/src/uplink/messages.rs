//! What the two ends say to each other, and its encoding.
//!
//! # Channels
//!
//! Control: [`Message::Hello`], `Open`, `Dial`, `Credit`, `Cancel`, `Head`, `Batch`, `Piece`, `Raw`, `Finish`. Data:
//! `Want`, `Unit`, and the payloads of batches and of `Raw`, which cross in frames of their own. Monitoring: `Beat`, `Beaten`. Encoded
//! messages cross in order in one zstd stream a direction (`control.rs`), so that what was said before costs
//! little the next time.
//!
//! # Later versions
//!
//! Each message is its kind, the length of its fields, and its fields. Who does not know the kind, or finds more fields
//! than it knows, skips them. So new kinds and new last fields need no new version of the protocol, as long as they leave
//! a [`Context`] as it is and bring no payload of their own.

use super::codec::{Fields, Malformed, Writer};
use super::fetch::{self, Asked};
use super::tcp::{self, Dialled, PIECE_MAX, Reach};
use super::wanax::{ChunkName, NAMES_MAX, Published, ROOT_MAX};
use super::{BATCH_MAX, DICTIONARY_MAX, Digest, LITERALS_MAX, RECORD_MAX, Span, UNIT_MAX};
use crate::input::FetchError;
use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use store::HistoryState;
use wire::varint;

/// Spans of a batch, or of a dictionary, at most.
const SPANS_MAX: usize = 256;
/// Positions in one `Want` at most.
pub const WANTS_MAX: usize = 64;

/// The first message of each side on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hello {
    /// Of the history of what its sender sends.
    pub out: HistoryState,
    /// Of the history of what its sender receives.
    pub within: HistoryState,
    /// The epoch of the history that its sender begins anew if the two ends do not agree.
    pub fresh: [u8; 16],
    /// What its sender reaches, if it is a far end.
    pub reach: Reach,
    /// The published scheme by which content crosses on this connection, in the place of the histories. Only what the
    /// near end says counts.
    pub scheme: Option<Published>,
}

/// The position up to which both ends hold the same; `None` if they hold different histories, or parts that
/// do not meet.
pub fn agreement(sender: HistoryState, receiver: HistoryState) -> Option<u64> {
    let end = sender.end.min(receiver.end);
    let is_same = sender.epoch == receiver.epoch && sender.epoch != [0; 16];
    (is_same && end >= sender.first.max(receiver.first)).then_some(end)
}

/// How the payload of a batch is encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coding {
    /// As it is: it does not compress.
    Plain,
    /// One zstd frame without its magic number, with the dictionary as its prefix.
    Zstd,
}

/// The next part of a flow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// The flow.
    pub flow: u64,
    /// The bytes of content.
    pub length: u32,
    /// The units, in order; those of literals among them.
    pub spans: Vec<Span>,
    /// What is checked before a byte is passed on.
    pub digest: Digest,
    /// The units that cross with it.
    pub literals: Option<Literals>,
}

/// Units that cross for the first time, at adjacent positions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Literals {
    /// The first position.
    pub first: u64,
    /// The length of each.
    pub lengths: Vec<u32>,
    /// Old units that the payload refers to.
    pub dictionary: Vec<Span>,
    /// How the payload is encoded.
    pub coding: Coding,
    /// The payload's length.
    pub payload: u32,
}

/// One message.
#[derive(Clone, Debug, PartialEq)]
pub enum Message {
    /// What each side holds.
    Hello(Hello),
    /// Near to far: request this of an origin. The flow numbers both directions.
    Open(u64, Box<Asked>),
    /// Near to far: make this TCP connection. The flow numbers both directions.
    Dial(u64, Dialled),
    /// The receiver has passed on this many bytes of the flow's content.
    Credit(u64, u64),
    /// The flow's content is not wanted any more.
    Cancel(u64),
    /// Far to near: the origin has answered.
    Head(u64, StatusCode, HeaderMap),
    /// A part of a flow's content.
    Batch(Batch),
    /// A few bytes of a flow's content, uncut.
    Piece(u64, Bytes),
    /// This many bytes of a flow's content, uncut, are the next payload.
    Raw(u64, u32),
    /// The flow's content has ended.
    Finish(u64, Result<(), FetchError>),
    /// The receiver lacks units at these positions.
    Want(Vec<u64>),
    /// A unit that was wanted; empty if the sender lacks it too.
    Unit(u64, Vec<u8>),
    /// Its sender is there; the oldest position that it still holds, jobs and bytes that wait at it.
    Beat {
        /// Is sent back.
        nonce: u32,
        /// The oldest position that its sender still holds of what it receives.
        first: u64,
        /// Jobs that wait for its disk.
        disk: u32,
        /// Bytes that wait for its link.
        network: u64,
    },
    /// The other side of a `Beat`.
    Beaten(u32),
    /// Far to near: what it reaches has changed.
    Reaches(Reach),
    /// Published schemes: a root of a flow. Its payload is a list of its chunks, and the content of those that are
    /// believed to be missing.
    Root {
        /// The flow.
        flow: u64,
        /// The bytes of content.
        length: u32,
        /// The bytes of the list.
        listing: u32,
        /// The bytes of the payload.
        payload: u32,
    },
    /// The root that came with this payload is put together: it need not be kept.
    Acknowledge(u64),
    /// Chunks of the root that came with this payload are missing.
    Request(u64, Vec<ChunkName>),
    /// The answer to the oldest request: the lengths of the chunks in its payload; zero of those that the sender lacks.
    Chunks(Vec<u32>),
}

const HELLO: u8 = 0;
const OPEN: u8 = 1;
const CREDIT: u8 = 2;
const CANCEL: u8 = 3;
const HEAD: u8 = 4;
const BATCH: u8 = 5;
const FINISH: u8 = 6;
const WANT: u8 = 7;
const UNIT: u8 = 8;
const BEAT: u8 = 9;
const BEATEN: u8 = 10;
const DIAL: u8 = 11;
const PIECE: u8 = 12;
const RAW: u8 = 13;
const ROOT: u8 = 14;
const ACKNOWLEDGE: u8 = 15;
const REQUEST: u8 = 16;
const CHUNKS: u8 = 17;
/// The last one: what has a greater number is unknown.
const REACHES: u8 = 18;

/// The fields of a message at most, in bytes: with headers of 32 KiB, and much that a later version may add.
const FIELDS_MAX: usize = 128 * 1024;

/// What was read and not understood, in messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Skipped {
    /// Of an unknown kind.
    pub unknown: u64,
    /// With more fields than are known.
    pub longer: u64,
    /// The bytes of all messages that were read, understood or not.
    pub of: usize,
}

/// What both directions' encodings go by: numbers are sent as their distance from the last.
#[derive(Clone, Copy, Debug, Default)]
pub struct Context {
    flow: u64,
    position: u64,
    payload: u64,
}

/// Appends a message.
pub fn encode(cx: &mut Context, message: &Message, out: &mut Vec<u8>) {
    out.extend([kind_of(message), 0]);
    let begin = out.len();
    encode_fields(cx, message, &mut Writer(out));
    let length = out.len() - begin;
    // Most lengths are one byte, which has its place.
    match u8::try_from(length) {
        Ok(length @ ..0x80) => out[begin - 1] = length,
        _ => {
            let mut bytes = Vec::new();
            varint::write(length as u64, &mut bytes);
            out.splice(begin - 1..begin, bytes);
        }
    }
}

fn kind_of(message: &Message) -> u8 {
    match message {
        Message::Hello(_) => HELLO,
        Message::Open(..) => OPEN,
        Message::Dial(..) => DIAL,
        Message::Credit(..) => CREDIT,
        Message::Cancel(_) => CANCEL,
        Message::Head(..) => HEAD,
        Message::Batch(_) => BATCH,
        Message::Piece(..) => PIECE,
        Message::Raw(..) => RAW,
        Message::Finish(..) => FINISH,
        Message::Want(_) => WANT,
        Message::Unit(..) => UNIT,
        Message::Beat { .. } => BEAT,
        Message::Beaten(_) => BEATEN,
        Message::Reaches(_) => REACHES,
        Message::Root { .. } => ROOT,
        Message::Acknowledge(_) => ACKNOWLEDGE,
        Message::Request(..) => REQUEST,
        Message::Chunks(_) => CHUNKS,
    }
}

fn encode_fields(cx: &mut Context, message: &Message, w: &mut Writer<'_>) {
    match message {
        Message::Hello(hello) => encode_hello(hello, w),
        Message::Open(flow, asked) => {
            cx.begin(w, *flow);
            fetch::encode_asked(asked, w);
        }
        Message::Dial(flow, dialled) => {
            cx.begin(w, *flow);
            tcp::encode_dialled(dialled, w);
        }
        Message::Piece(flow, bytes) => {
            cx.begin(w, *flow);
            w.string(bytes);
        }
        Message::Raw(flow, length) => {
            cx.begin(w, *flow);
            w.number((*length).into());
        }
        Message::Credit(flow, bytes) => {
            cx.begin(w, *flow);
            w.number(*bytes);
        }
        Message::Cancel(flow) => cx.begin(w, *flow),
        Message::Head(flow, status, headers) => {
            cx.begin(w, *flow);
            w.number(status.as_u16().into());
            fetch::encode_headers(headers, w);
        }
        Message::Batch(batch) => {
            cx.begin(w, batch.flow);
            cx.encode_batch(batch, w);
        }
        Message::Finish(flow, result) => {
            cx.begin(w, *flow);
            w.number(fetch::code_of(*result));
        }
        Message::Want(positions) => {
            w.number(positions.len() as u64);
            positions.iter().for_each(|position| w.number(*position));
        }
        Message::Unit(position, bytes) => {
            w.number(*position);
            w.string(bytes);
        }
        Message::Beat { nonce, first, disk, network } => {
            [u64::from(*nonce), *first, u64::from(*disk), *network]
                .into_iter()
                .for_each(|number| w.number(number));
        }
        Message::Beaten(nonce) => {
            w.number((*nonce).into());
        }
        Message::Reaches(reach) => w.bytes(&[reach.bits()]),
        Message::Root { .. }
        | Message::Acknowledge(_)
        | Message::Request(..)
        | Message::Chunks(_) => cx.encode_published(message, w),
    }
}

/// Takes a message off the front; `None` if it is of an unknown kind. What is not understood is counted.
///
/// # Errors
/// If there is no whole message, or not one within bounds.
pub fn decode(
    cx: &mut Context,
    fields: &mut Fields<'_>,
    skipped: &mut Skipped,
) -> Result<Option<Message>, Malformed> {
    let [kind] = fields.array()?;
    let mut known = Fields(fields.string(FIELDS_MAX)?);
    if kind > REACHES {
        skipped.unknown += 1;
        return Ok(None);
    }
    let message = decode_fields(cx, kind, &mut known)?;
    skipped.longer += u64::from(!known.0.is_empty());
    Ok(Some(message))
}

fn decode_fields(
    cx: &mut Context,
    kind: u8,
    fields: &mut Fields<'_>,
) -> Result<Message, Malformed> {
    let of_flow = [OPEN, DIAL, CREDIT, CANCEL, HEAD, BATCH, PIECE, RAW, FINISH, ROOT];
    if of_flow.contains(&kind) {
        cx.flow = fields.relative(cx.flow)?;
    }
    let flow = cx.flow;
    Ok(match kind {
        HELLO => decode_hello(fields)?,
        OPEN => Message::Open(flow, Box::new(fetch::decode_asked(fields)?)),
        DIAL => Message::Dial(flow, tcp::decode_dialled(fields)?),
        PIECE => Message::Piece(flow, Bytes::copy_from_slice(some(fields.string(PIECE_MAX)?)?)),
        RAW => match fields.up_to(RECORD_MAX)? as u32 {
            0 => return Err(Malformed),
            length => Message::Raw(flow, length),
        },
        CREDIT => Message::Credit(flow, fields.number()?),
        CANCEL => Message::Cancel(flow),
        HEAD => {
            let status = u16::try_from(fields.number()?).map_err(|_| Malformed)?;
            let status = StatusCode::from_u16(status).map_err(|_| Malformed)?;
            Message::Head(flow, status, fetch::decode_headers(fields)?)
        }
        BATCH => Message::Batch(cx.decode_batch(flow, fields)?),
        FINISH => Message::Finish(flow, fetch::result_of(fields.number()?)),
        WANT => {
            let count = fields.up_to(WANTS_MAX)?;
            Message::Want((0..count).map(|_| fields.number()).collect::<Result<_, _>>()?)
        }
        UNIT => Message::Unit(fields.number()?, fields.string(UNIT_MAX)?.to_vec()),
        BEAT => Message::Beat {
            nonce: fields.short()?,
            first: fields.number()?,
            disk: fields.short()?,
            network: fields.number()?,
        },
        BEATEN => Message::Beaten(fields.short()?),
        REACHES => {
            let [reach] = fields.array()?;
            Message::Reaches(Reach::from_bits(reach))
        }
        ROOT => Message::Root {
            flow,
            length: fields.short()?,
            listing: fields.short()?,
            payload: fields.short()?,
        },
        ACKNOWLEDGE => Message::Acknowledge(cx.spoken_of(fields)?),
        REQUEST => {
            let payload = cx.spoken_of(fields)?;
            let count = fields.up_to(NAMES_MAX)?;
            Message::Request(payload, (0..count).map(|_| fields.array()).collect::<Result<_, _>>()?)
        }
        CHUNKS => {
            let count = fields.up_to(NAMES_MAX)?;
            let length = |_| Ok(fields.up_to(ROOT_MAX)? as u32);
            Message::Chunks((0..count).map(length).collect::<Result<_, _>>()?)
        }
        _ => return Err(Malformed),
    })
}

/// At least one byte.
fn some(bytes: &[u8]) -> Result<&[u8], Malformed> {
    if bytes.is_empty() { Err(Malformed) } else { Ok(bytes) }
}

fn encode_hello(hello: &Hello, w: &mut Writer<'_>) {
    for extent in [hello.out, hello.within] {
        w.bytes(&extent.epoch);
        w.number(extent.first);
        w.number(extent.end);
    }
    w.bytes(&hello.fresh);
    w.bytes(&[hello.reach.bits()]);
    w.bytes(&hello.scheme.map_or([0; 3], Published::code));
}

fn decode_hello(fields: &mut Fields<'_>) -> Result<Message, Malformed> {
    let mut extent = || {
        let epoch = fields.array()?;
        Ok(HistoryState { epoch, first: fields.number()?, end: fields.number()? })
    };
    let (out, within) = (extent()?, extent()?);
    if out.first > out.end || within.first > within.end {
        return Err(Malformed);
    }
    let fresh = fields.array()?;
    let [reach] = fields.array()?;
    let scheme = match fields.array()? {
        [0, 0, 0] => None,
        code => Some(Published::of_code(code).ok_or(Malformed)?),
    };
    Ok(Message::Hello(Hello { out, within, fresh, reach: Reach::from_bits(reach), scheme }))
}

impl Context {
    fn begin(&mut self, w: &mut Writer<'_>, flow: u64) {
        w.relative(self.flow, flow);
        self.flow = flow;
    }

    /// Appends a message of a published scheme.
    fn encode_published(&mut self, message: &Message, w: &mut Writer<'_>) {
        match message {
            Message::Root { flow, length, listing, payload } => {
                self.begin(w, *flow);
                [length, listing, payload].into_iter().for_each(|it| w.number((*it).into()));
            }
            Message::Acknowledge(payload) => self.speak_of(w, *payload),
            Message::Request(payload, names) => {
                self.speak_of(w, *payload);
                w.number(names.len() as u64);
                names.iter().for_each(|name| w.bytes(name));
            }
            Message::Chunks(lengths) => {
                w.number(lengths.len() as u64);
                lengths.iter().for_each(|length| w.number((*length).into()));
            }
            _ => {}
        }
    }

    fn speak_of(&mut self, w: &mut Writer<'_>, payload: u64) {
        w.relative(self.payload, payload);
        self.payload = payload;
    }

    fn spoken_of(&mut self, fields: &mut Fields<'_>) -> Result<u64, Malformed> {
        self.payload = fields.relative(self.payload)?;
        Ok(self.payload)
    }

    fn encode_batch(&mut self, batch: &Batch, w: &mut Writer<'_>) {
        w.number(batch.length.into());
        w.bytes(&batch.digest);
        self.encode_spans(&batch.spans, w);
        let Some(literals) = &batch.literals else { return w.number(0) };
        w.number(literals.lengths.len() as u64);
        w.relative(self.position, literals.first);
        self.position = literals.first + literals.lengths.len() as u64;
        literals.lengths.iter().for_each(|length| w.number((*length).into()));
        self.encode_spans(&literals.dictionary, w);
        w.number(u64::from(literals.payload) << 1 | u64::from(literals.coding == Coding::Zstd));
    }

    fn encode_spans(&mut self, spans: &[Span], w: &mut Writer<'_>) {
        w.number(spans.len() as u64);
        for span in spans {
            w.number(span.count.into());
            w.relative(self.position, span.first);
            self.position = span.end();
        }
    }

    fn decode_batch(&mut self, flow: u64, fields: &mut Fields<'_>) -> Result<Batch, Malformed> {
        let length = fields.up_to(BATCH_MAX + UNIT_MAX)? as u32;
        let digest = fields.array()?;
        let spans = self.decode_spans(fields, length as usize)?;
        if spans.is_empty() {
            return Err(Malformed);
        }
        let count = fields.up_to(LITERALS_MAX)?;
        if count == 0 {
            return Ok(Batch { flow, length, spans, digest, literals: None });
        }
        let first = fields.relative(self.position)?;
        self.position = first.checked_add(count as u64).ok_or(Malformed)?;
        let (mut lengths, mut total) = (Vec::new(), 0);
        for _ in 0..count {
            let length = fields.up_to(UNIT_MAX)?;
            total += length;
            if length == 0 || total > LITERALS_MAX {
                return Err(Malformed);
            }
            lengths.push(length as u32);
        }
        let dictionary = self.decode_spans(fields, DICTIONARY_MAX)?;
        let payload = fields.up_to(2 * LITERALS_MAX + 1)?;
        let coding = if payload & 1 == 1 { Coding::Zstd } else { Coding::Plain };
        let payload = (payload >> 1) as u32;
        if coding == Coding::Plain && payload as usize != total {
            return Err(Malformed);
        }
        let literals = Some(Literals { first, lengths, dictionary, coding, payload });
        Ok(Batch { flow, length, spans, digest, literals })
    }

    /// Spans of at most `units_max` units in all: no unit is empty.
    fn decode_spans(
        &mut self,
        fields: &mut Fields<'_>,
        units_max: usize,
    ) -> Result<Vec<Span>, Malformed> {
        let (mut spans, mut units) = (Vec::new(), 0);
        for _ in 0..fields.up_to(SPANS_MAX)? {
            let count = fields.up_to(units_max)?;
            units += count;
            let first = fields.relative(self.position)?;
            let end = first.checked_add(count as u64);
            if count == 0 || units > units_max || end.is_none() {
                return Err(Malformed);
            }
            let span = Span { first, count: count as u32 };
            self.position = span.end();
            spans.push(span);
        }
        Ok(spans)
    }
}

impl Message {
    /// About how many bytes its plain text has.
    pub(super) fn weight(&self) -> usize {
        let of_headers = |headers: &HeaderMap| -> usize {
            headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 2).sum()
        };
        match self {
            Self::Open(_, asked) => 16 + asked.path.len() + of_headers(&asked.headers),
            Self::Head(_, _, headers) => 8 + of_headers(headers),
            Self::Unit(_, bytes) => 8 + bytes.len(),
            Self::Piece(_, bytes) => 8 + bytes.len(),
            Self::Dial(..) => 24,
            Self::Request(_, names) => 8 + names.len() * size_of::<ChunkName>(),
            Self::Chunks(lengths) => 8 + 3 * lengths.len(),
            Self::Root { .. } => 16,
            Self::Raw(..) | Self::Finish(..) | Self::Credit(..) => 8,
            Self::Cancel(_) | Self::Acknowledge(_) => 8,
            _ => 64,
        }
    }

    /// Whether a payload follows in frames of its own.
    pub(super) fn has_payload(&self) -> bool {
        match self {
            Self::Batch(batch) => batch.literals.is_some(),
            Self::Raw(..) | Self::Root { .. } => true,
            Self::Chunks(lengths) => lengths.iter().any(|length| *length > 0),
            _ => false,
        }
    }
}
