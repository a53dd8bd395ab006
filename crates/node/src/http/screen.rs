//! Inspects raw HTTP/1 messages before a parser does, and refuses those that two parsers could read in
//! two ways. Request smuggling depends on such messages (RFC 9112 §6.1, §6.3, §11.2).
//!
//! The screen follows the framing of each message, so that it finds the head of the next one on a persistent
//! connection. The messages that it passes have exactly one reading.

use http::StatusCode;
use std::fmt;
use wire::counters::Reason as _;

/// The most bytes of one head.
pub const HEAD_MAX: usize = 32 * 1024;
/// The most bytes of one chunk-size line with its extensions.
const CHUNK_LINE_MAX: usize = 1024;
/// The most bytes of all trailer fields of a message.
const TRAILERS_MAX: usize = 16 * 1024;

/// The screen's verdict on the bytes shown to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The first bytes, this many (at least one), may be passed on. The caller then shows the rest again.
    Pass(usize),
    /// No verdict is possible until more bytes have arrived.
    More,
    /// The bytes must not be passed on, and the connection must be closed.
    Refuse(Refusal),
}

wire::reasons! {
    /// Why bytes were refused.
    pub enum Refusal {
        /// The first line is not one of HTTP/1.
        StartLine = "start_line",
        /// A header line is malformed.
        FieldLine = "field_line",
        /// A bare CR or a NUL in the head.
        Control = "control",
        /// The field Content-Length is ambiguous.
        ContentLength = "content_length",
        /// The field Transfer-Encoding is ambiguous or not supported.
        TransferEncoding = "transfer_encoding",
        /// There must be exactly one Host.
        Host = "host",
        /// The chunked coding is malformed.
        Chunk = "chunk",
        /// The message head is too large.
        TooLarge = "too_large",
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.clause())
    }
}

impl std::error::Error for Refusal {}

impl Refusal {
    /// The status of the error response to the client.
    pub fn status(self) -> StatusCode {
        match self {
            Self::TooLarge => StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            _ => StatusCode::BAD_REQUEST,
        }
    }
}

/// A screen for one direction of one connection.
#[derive(Debug)]
pub struct Screen {
    side: Side,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Side {
    Request,
    Response { to_head: bool },
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    /// Between two messages, or in a head: its first `scanned` bytes do not contain its end.
    Head {
        scanned: usize,
    },
    Body(u64),
    ChunkSize,
    ChunkData(u64),
    Trailers(usize),
    /// The rest of the connection passes unparsed: a tunnel, another protocol, or content that ends with the
    /// connection.
    Opaque,
}

impl State {
    /// The next byte begins a message.
    const NEXT: Self = Self::Head { scanned: 0 };
}

impl Screen {
    /// A screen for a client's requests.
    pub fn requests() -> Self {
        Self { side: Side::Request, state: State::NEXT }
    }

    /// A screen for an origin's responses.
    pub fn responses() -> Self {
        Self { side: Side::Response { to_head: false }, state: State::NEXT }
    }

    /// To be called before each response: whether it answers a HEAD, and so has no body.
    pub fn expect(&mut self, to_head: bool) {
        if let Side::Response { to_head: expected } = &mut self.side {
            *expected = to_head;
        }
    }

    /// Whether the next byte begins a message or belongs to a head.
    pub fn is_between(&self) -> bool {
        matches!(self.state, State::Head { .. })
    }

    /// How many of the next bytes are content, which passes in any case. They need not be shown, but must be
    /// reported to [`skip`](Self::skip).
    pub fn unseen(&self) -> u64 {
        match self.state {
            State::Body(left) | State::ChunkData(left) => left,
            State::Opaque => u64::MAX,
            _ => 0,
        }
    }

    /// This many bytes, at most [`unseen`](Self::unseen), have passed without being shown.
    pub fn skip(&mut self, count: u64) {
        match &mut self.state {
            State::Body(left) if *left == count => self.state = State::NEXT,
            State::Body(left) | State::ChunkData(left) => *left = left.saturating_sub(count),
            _ => {}
        }
    }

    /// Judges `bytes`, which begin after the last byte that was passed.
    pub fn judge(&mut self, bytes: &[u8]) -> Verdict {
        if bytes.is_empty() {
            return Verdict::More;
        }
        match self.state {
            State::Opaque => Verdict::Pass(bytes.len()),
            State::Head { scanned } => self.judge_head(bytes, scanned),
            State::Body(left) => self.pass_body(bytes, left),
            State::ChunkSize => self.judge_chunk_size(bytes),
            State::ChunkData(left) => self.judge_chunk_data(bytes, left),
            State::Trailers(seen) => self.judge_trailer(bytes, seen),
        }
    }

    fn judge_head(&mut self, bytes: &[u8], scanned: usize) -> Verdict {
        // Empty lines before a request line must be ignored (RFC 9112 §2.2).
        let blank = bytes.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
        if blank > 0 {
            return Verdict::Pass(blank);
        }
        // The end of the head may begin within the last three scanned bytes (CR LF CR).
        let from = scanned.min(bytes.len()).saturating_sub(3);
        let Some(end) = end_of_head(bytes, from) else {
            if bytes.len() > HEAD_MAX {
                return Verdict::Refuse(Refusal::TooLarge);
            }
            self.state = State::Head { scanned: bytes.len() };
            return early(&bytes[from..]).map_or(Verdict::More, Verdict::Refuse);
        };
        if end > HEAD_MAX {
            return Verdict::Refuse(Refusal::TooLarge);
        }
        match next_state(self.side, &bytes[..end]) {
            Ok(state) => {
                self.state = state;
                Verdict::Pass(end)
            }
            Err(refusal) => Verdict::Refuse(refusal),
        }
    }

    fn pass_body(&mut self, bytes: &[u8], left: u64) -> Verdict {
        let taken = left.min(bytes.len() as u64);
        self.state = if taken == left { State::NEXT } else { State::Body(left - taken) };
        Verdict::Pass(taken as usize)
    }

    fn judge_chunk_size(&mut self, bytes: &[u8]) -> Verdict {
        let Some(line) = line(bytes) else {
            let long = bytes.len() > CHUNK_LINE_MAX;
            return if long { Verdict::Refuse(Refusal::TooLarge) } else { Verdict::More };
        };
        if line.len() > CHUNK_LINE_MAX {
            return Verdict::Refuse(Refusal::TooLarge);
        }
        let size = line.strip_suffix(b"\r\n").and_then(chunk_size);
        self.state = match size {
            None => return Verdict::Refuse(Refusal::Chunk),
            Some(0) => State::Trailers(0),
            Some(size) => State::ChunkData(size),
        };
        Verdict::Pass(line.len())
    }

    fn judge_chunk_data(&mut self, bytes: &[u8], left: u64) -> Verdict {
        if left > 0 {
            let taken = left.min(bytes.len() as u64);
            self.state = State::ChunkData(left - taken);
            return Verdict::Pass(taken as usize);
        }
        match bytes {
            [b'\r', b'\n', ..] => {
                self.state = State::ChunkSize;
                Verdict::Pass(2)
            }
            [b'\r'] => Verdict::More,
            _ => Verdict::Refuse(Refusal::Chunk),
        }
    }

    fn judge_trailer(&mut self, bytes: &[u8], seen: usize) -> Verdict {
        let Some(line) = line(bytes) else {
            let long = seen + bytes.len() > TRAILERS_MAX;
            return if long { Verdict::Refuse(Refusal::TooLarge) } else { Verdict::More };
        };
        let seen = seen + line.len();
        if seen > TRAILERS_MAX {
            return Verdict::Refuse(Refusal::TooLarge);
        }
        if line == b"\r\n" {
            self.state = State::NEXT;
        } else if let Err(refusal) = field(trim_line(line)) {
            return Verdict::Refuse(refusal);
        } else {
            self.state = State::Trailers(seen);
        }
        Verdict::Pass(line.len())
    }
}

/// Whether the first bytes of a connection look like an HTTP/1 request: a method and a space.
/// `None` if there are too few bytes to decide.
pub fn looks_like_http(bytes: &[u8]) -> Option<bool> {
    const METHOD_MAX: usize = 32;
    let start = bytes.iter().position(|byte| !matches!(byte, b'\r' | b'\n'))?;
    let bytes = &bytes[start..];
    match bytes.iter().position(|byte| !is_token(*byte)) {
        None if bytes.len() < METHOD_MAX => None,
        Some(end) if end > 0 && bytes[end] == b' ' => {
            // The connection preface of HTTP/2 looks like a request with method PRI (RFC 9113 §3.4).
            Some(&bytes[..end] != b"PRI")
        }
        _ => Some(false),
    }
}

/// The offset at which the first empty line after `from` ends.
fn end_of_head(bytes: &[u8], mut from: usize) -> Option<usize> {
    while let Some(at) = bytes[from..].iter().position(|byte| *byte == b'\n') {
        let next = from + at + 1;
        match bytes[next..] {
            [b'\n', ..] => return Some(next + 1),
            [b'\r', b'\n', ..] => return Some(next + 2),
            _ => from = next,
        }
    }
    None
}

/// Why a head can be refused before all of it has arrived.
fn early(bytes: &[u8]) -> Option<Refusal> {
    bytes.contains(&0).then_some(Refusal::Control)
}

/// Reads a whole head; returns the state after it, or why it is refused.
fn next_state(side: Side, head: &[u8]) -> Result<State, Refusal> {
    if head.contains(&0) || bare_cr(head) {
        return Err(Refusal::Control);
    }
    let mut lines = head.split(|byte| *byte == b'\n').map(trim_line);
    let start = Start::read(side, lines.next().unwrap_or_default())?;
    let mut framing = Framing::default();
    for line in lines.take_while(|line| !line.is_empty()) {
        let (name, value) = field(line)?;
        framing.take(name, value)?;
    }
    framing.check(&start, side)?;
    Ok(framing.state(&start, side))
}

fn bare_cr(head: &[u8]) -> bool {
    head.windows(2).any(|pair| pair[0] == b'\r' && pair[1] != b'\n')
}

/// What a start line contributes to the framing.
#[derive(Default)]
struct Start {
    old: bool,
    connect: bool,
    bodiless: bool,
    interim: bool,
    switching: bool,
}

impl Start {
    fn read(side: Side, line: &[u8]) -> Result<Self, Refusal> {
        match side {
            Side::Request => Self::of_request(line),
            Side::Response { to_head } => Self::of_response(line, to_head),
        }
        .ok_or(Refusal::StartLine)
    }

    fn of_request(line: &[u8]) -> Option<Self> {
        let mut parts = line.split(|byte| *byte == b' ');
        let (method, target, version) = (parts.next()?, parts.next()?, parts.next()?);
        let sound = parts.next().is_none()
            && !method.is_empty()
            && method.iter().all(|byte| is_token(*byte))
            && !target.is_empty()
            && target.iter().all(|byte| *byte > b' ' && *byte != 0x7f);
        let old = match version {
            b"HTTP/1.1" => false,
            b"HTTP/1.0" => true,
            _ => return None,
        };
        sound.then(|| Self { old, connect: method == b"CONNECT", ..Self::default() })
    }

    /// Reads a status line. The reason phrase is not checked, since no program reads it.
    fn of_response(line: &[u8], to_head: bool) -> Option<Self> {
        let (old, rest) = match line.strip_prefix(b"HTTP/1.")? {
            [b'0', b' ', rest @ ..] => (true, rest),
            [b'1', b' ', rest @ ..] => (false, rest),
            _ => return None,
        };
        let code = rest.get(..3).filter(|code| code.iter().all(u8::is_ascii_digit))?;
        let switching = code == b"101";
        let interim = code[0] == b'1' && !switching;
        let bodiless = to_head || interim || code == b"204" || code == b"304";
        Some(Self { old, bodiless, interim, switching, connect: false })
    }
}

/// What the header fields contribute to the framing.
#[derive(Default)]
struct Framing {
    length: Option<u64>,
    lengths: usize,
    chunked: bool,
    hosts: usize,
    upgrade: bool,
}

impl Framing {
    fn take(&mut self, name: &[u8], value: &[u8]) -> Result<(), Refusal> {
        if name.eq_ignore_ascii_case(b"content-length") {
            let length = number(value).ok_or(Refusal::ContentLength)?;
            if self.length.is_some_and(|known| known != length) {
                return Err(Refusal::ContentLength);
            }
            self.length = Some(length);
            self.lengths += 1;
        } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
            if self.chunked || !value.eq_ignore_ascii_case(b"chunked") {
                return Err(Refusal::TransferEncoding);
            }
            self.chunked = true;
        } else if name.eq_ignore_ascii_case(b"host") {
            self.hosts += 1;
        } else if name.eq_ignore_ascii_case(b"upgrade") {
            self.upgrade = true;
        }
        Ok(())
    }

    fn check(&self, start: &Start, side: Side) -> Result<(), Refusal> {
        if self.chunked && (self.length.is_some() || start.old) {
            return Err(Refusal::TransferEncoding);
        }
        if side == Side::Request {
            if self.lengths > 1 {
                return Err(Refusal::ContentLength);
            }
            if self.hosts > 1 || (self.hosts == 0 && !start.old) {
                return Err(Refusal::Host);
            }
        }
        Ok(())
    }

    fn state(&self, start: &Start, side: Side) -> State {
        let request = side == Side::Request;
        if start.connect || start.switching || (request && self.upgrade) {
            // After a request with `Upgrade`, the response either switches protocols or closes the
            // connection.
            return State::Opaque;
        }
        match self.length {
            _ if start.interim || start.bodiless => State::NEXT,
            _ if self.chunked => State::ChunkSize,
            Some(0) => State::NEXT,
            Some(length) => State::Body(length),
            None if request => State::NEXT,
            None => State::Opaque,
        }
    }
}

/// Splits a field line into name and value; refuses folded lines, and white space around the name.
fn field(line: &[u8]) -> Result<(&[u8], &[u8]), Refusal> {
    let colon = line.iter().position(|byte| *byte == b':').ok_or(Refusal::FieldLine)?;
    let (name, value) = (&line[..colon], &line[colon + 1..]);
    let sound = !name.is_empty()
        && name.iter().all(|byte| is_token(*byte))
        && value.iter().all(|byte| *byte >= b' ' && *byte != 0x7f || *byte == b'\t');
    if sound { Ok((name, value.trim_ascii())) } else { Err(Refusal::FieldLine) }
}

fn line(bytes: &[u8]) -> Option<&[u8]> {
    let end = bytes.iter().position(|byte| *byte == b'\n')?;
    Some(&bytes[..=end])
}

fn trim_line(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

fn chunk_size(line: &[u8]) -> Option<u64> {
    let end = line.iter().position(|byte| !byte.is_ascii_hexdigit()).unwrap_or(line.len());
    let (digits, extension) = line.split_at(end);
    let sound = (1..=15).contains(&digits.len())
        && matches!(extension.trim_ascii_start(), [] | [b';', ..])
        && extension.iter().all(|byte| *byte >= b' ' || *byte == b'\t');
    let digits = std::str::from_utf8(digits).ok().filter(|_| sound)?;
    u64::from_str_radix(digits, 16).ok()
}

fn number(value: &[u8]) -> Option<u64> {
    let sound = (1..=19).contains(&value.len()) && value.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(value).ok().filter(|_| sound)?.parse().ok()
}

fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests;
