//! HTTP/1.1 as bytes (RFC 9112): reads and writes heads, and removes the framing of content.
//!
//! *Who calls it:* simulated clients, the origin, and both sides of the router's driver, where the daemon has
//! hyper. As in the daemon, the engine's [`Screen`] sees each head first: it refuses a head that two parsers
//! could read differently, or that is too large.

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, Version, header};
use node::{Refusal, Screen, Verdict};

/// Largest number of fields in a head.
const FIELDS_MAX: usize = 64;
/// Longest line with a chunk's size, and longest line of the trailers, in bytes.
const LINE_MAX: usize = 1024;
/// Largest number of lines in the trailers.
const TRAILERS_MAX: u32 = 16;

/// The bytes are not HTTP/1.1, or exceed a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

impl From<Refusal> for Malformed {
    fn from(_: Refusal) -> Self {
        Self
    }
}

/// How the end of a message's content is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// After this many bytes; 0 if there is no content.
    Length(u64),
    /// After the last chunk and its trailers.
    Chunked,
    /// At the end of the connection.
    UntilClose,
}

/// The head of a request.
#[derive(Debug)]
pub struct RequestHead {
    /// What to do.
    pub method: Method,
    /// The request's target, usually a path.
    pub uri: Uri,
    /// HTTP's version.
    pub version: Version,
    /// The header fields.
    pub headers: HeaderMap,
}

/// The head of a response.
#[derive(Debug)]
pub struct ResponseHead {
    /// The response's status.
    pub status: StatusCode,
    /// HTTP's version.
    pub version: Version,
    /// The header fields.
    pub headers: HeaderMap,
}

/// A part of a message.
#[derive(Debug)]
pub enum Part<H> {
    /// The head: a message begins.
    Head(H),
    /// A piece of its content.
    Body(Bytes),
    /// The end: the message is complete.
    End,
}

/// A kind of head, that of requests or that of responses.
pub trait Head: Sized {
    /// The screen that a head must pass before it is parsed.
    fn screen() -> Screen;
    /// Parses a head that has passed the screen.
    fn parse(bytes: &[u8]) -> Result<Self, Malformed>;
    /// How long the content is; `to_head` says that the message answers a HEAD request.
    fn framing(&self, to_head: bool) -> Framing;
}

/// Reads one direction of a connection: takes bytes as they arrive, gives messages part by part.
#[derive(Debug)]
pub struct Reader {
    /// Received bytes that were not given on.
    held: BytesMut,
    /// Received content that was not given on and can be given on without a copy. If it is not empty, `held`
    /// is.
    whole: Bytes,
    state: State,
    to_head: bool,
}

#[derive(Debug)]
enum State {
    Head(Screen),
    Length(u64),
    UntilClose,
    ChunkSize,
    ChunkData(u64),
    /// Before the line end that follows a chunk's data.
    ChunkEnd,
    Trailers(u32),
    End,
    /// The peer has closed its side.
    Closed,
}

impl Reader {
    /// A reader of messages of one kind.
    pub fn new<H: Head>() -> Self {
        let (held, whole) = (BytesMut::new(), Bytes::new());
        Self { held, whole, state: State::Head(H::screen()), to_head: false }
    }

    /// Says whether the next response answers a HEAD request.
    pub fn expect(&mut self, to_head: bool) {
        self.to_head = to_head;
    }

    /// Whether no byte of the next message has arrived.
    pub fn is_idle(&self) -> bool {
        matches!(self.state, State::Head(_)) && self.held.is_empty() && self.whole.is_empty()
    }

    /// Whether the next bytes belong to a head.
    pub fn is_in_head(&self) -> bool {
        matches!(self.state, State::Head(_))
    }

    /// Takes bytes that arrived.
    pub fn push(&mut self, bytes: Bytes) {
        if self.held.is_empty() && self.whole.is_empty() {
            self.whole = bytes;
        } else {
            self.gather();
            self.held.extend_from_slice(&bytes);
        }
    }

    /// The next part, if enough bytes have arrived. Poll until there is none.
    pub fn poll<H: Head>(&mut self) -> Result<Option<Part<H>>, Malformed> {
        loop {
            match &mut self.state {
                State::Head(_) => return self.head(),
                State::Length(0) | State::End => {
                    self.state = State::Head(H::screen());
                    return Ok(Some(Part::End));
                }
                State::Length(left) => {
                    let left = std::mem::take(left);
                    let bytes = self.content(left);
                    self.state = State::Length(left - bytes.len() as u64);
                    return Ok((!bytes.is_empty()).then_some(Part::Body(bytes)));
                }
                State::UntilClose => {
                    let bytes = self.content(u64::MAX);
                    return Ok((!bytes.is_empty()).then_some(Part::Body(bytes)));
                }
                State::ChunkData(0) => self.state = State::ChunkEnd,
                State::ChunkData(left) => {
                    let left = std::mem::take(left);
                    let bytes = self.content(left);
                    self.state = State::ChunkData(left - bytes.len() as u64);
                    return Ok((!bytes.is_empty()).then_some(Part::Body(bytes)));
                }
                State::ChunkSize | State::ChunkEnd | State::Trailers(_) => {
                    let Some(line) = self.line()? else { return Ok(None) };
                    self.state = self.after(&line)?;
                }
                State::Closed => return Ok(None),
            }
        }
    }

    /// The peer has closed its side. Returns the end of the message if that is how it ends, `None` between
    /// two messages, an error within one. The caller has polled all parts before.
    pub fn close<H: Head>(&mut self) -> Result<Option<Part<H>>, Malformed> {
        let is_idle = self.is_idle();
        match std::mem::replace(&mut self.state, State::Closed) {
            State::UntilClose => Ok(Some(Part::End)),
            State::Closed => Ok(None),
            _ if is_idle => Ok(None),
            _ => Err(Malformed),
        }
    }

    fn head<H: Head>(&mut self) -> Result<Option<Part<H>>, Malformed> {
        self.gather();
        let State::Head(screen) = &mut self.state else { return Ok(None) };
        let length = match screen.judge(&self.held) {
            Verdict::Pass(length) => length,
            Verdict::More => return Ok(None),
            Verdict::Refuse(refusal) => return Err(refusal.into()),
        };
        let head = H::parse(&self.held.split_to(length))?;
        self.state = match head.framing(self.to_head) {
            Framing::Length(bytes) => State::Length(bytes),
            Framing::Chunked => State::ChunkSize,
            Framing::UntilClose => State::UntilClose,
        };
        Ok(Some(Part::Head(head)))
    }

    /// Moves all bytes into `held`, in one piece.
    fn gather(&mut self) {
        if !self.whole.is_empty() {
            self.held.extend_from_slice(&std::mem::take(&mut self.whole));
        }
    }

    /// Up to `most` bytes of content.
    fn content(&mut self, most: u64) -> Bytes {
        if self.whole.is_empty() {
            self.whole = self.held.split().freeze();
        }
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        self.whole.split_to(self.whole.len().min(most))
    }

    /// The next line, without its line end.
    fn line(&mut self) -> Result<Option<Bytes>, Malformed> {
        self.gather();
        match self.held.iter().take(LINE_MAX).position(|byte| *byte == b'\n') {
            Some(end) => {
                let line = self.held.split_to(end + 1).freeze();
                Ok(Some(line.slice(..end - usize::from(end > 0 && line[end - 1] == b'\r'))))
            }
            None if self.held.len() >= LINE_MAX => Err(Malformed),
            None => Ok(None),
        }
    }

    /// The state after a line of the chunked coding (RFC 9112 section 7.1).
    fn after(&self, line: &[u8]) -> Result<State, Malformed> {
        match self.state {
            State::ChunkEnd if line.is_empty() => Ok(State::ChunkSize),
            State::ChunkSize => {
                let digits = line.split(|byte| *byte == b';').next().unwrap_or_default();
                let digits = std::str::from_utf8(digits.trim_ascii()).map_err(|_| Malformed)?;
                match u64::from_str_radix(digits, 16) {
                    Ok(0) => Ok(State::Trailers(0)),
                    Ok(size) if !digits.starts_with('+') => Ok(State::ChunkData(size)),
                    _ => Err(Malformed),
                }
            }
            State::Trailers(_) if line.is_empty() => Ok(State::End),
            State::Trailers(seen) if seen < TRAILERS_MAX => Ok(State::Trailers(seen + 1)),
            _ => Err(Malformed),
        }
    }
}

impl Head for RequestHead {
    fn screen() -> Screen {
        Screen::requests()
    }

    fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
        let mut request = httparse::Request::new(&mut fields);
        request.parse(bytes).map_err(|_| Malformed)?;
        let method = request.method.ok_or(Malformed)?;
        let uri = request.path.ok_or(Malformed)?;
        Ok(Self {
            method: method.parse().map_err(|_| Malformed)?,
            uri: uri.parse().map_err(|_| Malformed)?,
            version: version(request.version),
            headers: headers(request.headers)?,
        })
    }

    fn framing(&self, _: bool) -> Framing {
        match framing(&self.headers) {
            Framing::UntilClose => Framing::Length(0),
            told => told,
        }
    }
}

impl Head for ResponseHead {
    fn screen() -> Screen {
        Screen::responses()
    }

    fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
        let mut response = httparse::Response::new(&mut fields);
        response.parse(bytes).map_err(|_| Malformed)?;
        let code = response.code.ok_or(Malformed)?;
        Ok(Self {
            status: StatusCode::from_u16(code).map_err(|_| Malformed)?,
            version: version(response.version),
            headers: headers(response.headers)?,
        })
    }

    fn framing(&self, to_head: bool) -> Framing {
        match self.status.as_u16() {
            100..=199 | 204 | 304 => Framing::Length(0),
            _ if to_head => Framing::Length(0),
            _ => framing(&self.headers),
        }
    }
}

/// The framing of the content as the fields give it (RFC 9112 section 6.3). The screen has refused fields
/// that contradict each other.
fn framing(headers: &HeaderMap) -> Framing {
    if headers.contains_key(header::TRANSFER_ENCODING) {
        return Framing::Chunked;
    }
    let length = headers.get(header::CONTENT_LENGTH).and_then(|it| it.to_str().ok());
    length.and_then(|it| it.trim().parse().ok()).map_or(Framing::UntilClose, Framing::Length)
}

/// Whether another message may follow on the connection (RFC 9112 section 9.3).
pub fn keeps_alive(version: Version, headers: &HeaderMap) -> bool {
    let lines = headers.get_all(header::CONNECTION).iter().filter_map(|it| it.to_str().ok());
    let mut words = lines.flat_map(|line| line.split(',')).map(str::trim);
    if version >= Version::HTTP_11 {
        !words.any(|word| word.eq_ignore_ascii_case("close"))
    } else {
        words.any(|word| word.eq_ignore_ascii_case("keep-alive"))
    }
}

/// The bytes of a request's head.
pub fn request(method: &Method, path: &str, headers: &HeaderMap) -> Bytes {
    let mut bytes = BytesMut::with_capacity(512);
    for part in [method.as_str(), " ", path, " HTTP/1.1\r\n"] {
        bytes.extend_from_slice(part.as_bytes());
    }
    put_fields(&mut bytes, headers);
    bytes.freeze()
}

/// The bytes of a response's head.
pub fn response(status: StatusCode, headers: &HeaderMap) -> Bytes {
    let mut bytes = BytesMut::with_capacity(512);
    let reason = status.canonical_reason().unwrap_or_default();
    for part in ["HTTP/1.1 ", status.as_str(), " ", reason, "\r\n"] {
        bytes.extend_from_slice(part.as_bytes());
    }
    put_fields(&mut bytes, headers);
    bytes.freeze()
}

/// The size line of a chunk with this many bytes (chunked coding).
pub fn chunk_size(bytes: usize) -> Bytes {
    format!("{bytes:x}\r\n").into()
}

/// The line end after a chunk's data.
pub const CHUNK_END: Bytes = Bytes::from_static(b"\r\n");
/// The last chunk, which ends chunked content.
pub const LAST_CHUNK: Bytes = Bytes::from_static(b"0\r\n\r\n");

fn put_fields(bytes: &mut BytesMut, headers: &HeaderMap) {
    for (name, value) in headers {
        for part in [name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"] {
            bytes.extend_from_slice(part);
        }
    }
    bytes.extend_from_slice(b"\r\n");
}

fn version(minor: Option<u8>) -> Version {
    if minor == Some(0) { Version::HTTP_10 } else { Version::HTTP_11 }
}

fn headers(fields: &[httparse::Header<'_>]) -> Result<HeaderMap, Malformed> {
    let mut headers = HeaderMap::with_capacity(fields.len());
    for field in fields {
        let name = HeaderName::from_bytes(field.name.as_bytes()).map_err(|_| Malformed)?;
        let value = HeaderValue::from_bytes(field.value).map_err(|_| Malformed)?;
        headers.append(name, value);
    }
    Ok(headers)
}

#[cfg(test)]
#[path = "http_tests.rs"]
mod tests;
