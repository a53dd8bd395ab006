//! A client like the lab's curl: it opens a connection for each file, sends one request, and checks each byte
//! of the response.

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use std::collections::VecDeque;
use std::net::SocketAddrV4;
use std::time::Duration;
use wire::Instant;

use super::content::{Check, Source, path};
use super::discard;
use super::http::{Malformed, Part, Reader, ResponseHead, request};
use crate::net::{Event, Host, SocketId};
use crate::world::Program;

/// A transfer fails if nothing arrives for this long, counted from the first attempt to connect.
pub const TIMEOUT: Duration = Duration::from_secs(60);

/// Largest read from a socket, in bytes.
const READ_MAX: usize = 64 * 1024;

/// A file to fetch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ask {
    /// The number that the client gives to the transfer.
    pub number: usize,
    /// Which file.
    pub file: usize,
    /// Its size, in bytes.
    pub size: u64,
}

/// What a transfer gave.
#[derive(Clone, Debug, PartialEq)]
pub struct Got {
    /// The file that was requested.
    pub ask: Ask,
    /// When the client began.
    pub began: Instant,
    /// Time from there to the first byte of the response.
    pub first_byte: Option<Duration>,
    /// Time from there to the end.
    pub took: Duration,
    /// Bytes of content received.
    pub bytes: u64,
    /// The response's `Cache-Status` (RFC 9211): one member for each cache on the route. Empty if there is none.
    pub cache_status: String,
    /// Whether the content was the whole file and nothing else.
    pub is_right: bool,
    /// Why the response is incomplete, if it is.
    pub failure: Option<String>,
}

/// The client of one machine; it may run several transfers at once.
#[derive(Debug)]
pub struct Client {
    /// The origin's name, sent in `Host`.
    name: String,
    origin: SocketAddrV4,
    /// The origin's files are generated from it.
    source: Source,
    active: Vec<Transfer>,
    done: VecDeque<Got>,
}

#[derive(Debug)]
struct Transfer {
    socket: SocketId,
    reader: Reader,
    check: Check,
    got: Got,
    /// The transfer fails at this time unless something arrives.
    until: Instant,
    status: Option<StatusCode>,
}

impl Client {
    /// A client of the origin of this name and address, whose files are generated from `source`.
    pub fn new(name: &str, origin: SocketAddrV4, source: Source) -> Self {
        Self { name: name.to_owned(), origin, source, active: Vec::new(), done: VecDeque::new() }
    }

    /// Begins a transfer.
    pub fn ask(&mut self, now: Instant, host: &mut Host, ask: Ask) {
        let got = Got {
            ask,
            began: now,
            first_byte: None,
            took: Duration::ZERO,
            bytes: 0,
            cache_status: String::new(),
            is_right: false,
            failure: None,
        };
        let socket = match host.connect(now, self.origin) {
            Ok(socket) => socket,
            Err(error) => {
                let failure = Some(format!("cannot connect: {error:?}"));
                return self.done.push_back(Got { failure, ..got });
            }
        };
        self.active.push(Transfer {
            socket,
            reader: Reader::new::<ResponseHead>(),
            check: Check::new(self.source, ask.file),
            got,
            until: now + TIMEOUT,
            status: None,
        });
    }

    /// The next transfer that has ended.
    pub fn poll_done(&mut self) -> Option<Got> {
        self.done.pop_front()
    }

    /// Whether a transfer is under way.
    pub fn is_busy(&self) -> bool {
        !self.active.is_empty()
    }

    /// Breaks all transfers off.
    #[cfg(test)]
    pub(crate) fn abandon(&mut self, now: Instant, host: &mut Host) {
        while !self.active.is_empty() {
            self.end(now, host, 0, Some("it is not wanted any more".to_owned()));
        }
    }

    fn request(&self, file: usize) -> Bytes {
        let fields = [
            (header::HOST, self.name.as_str()),
            (header::USER_AGENT, "curl/7.88.1"),
            (header::ACCEPT, "*/*"),
        ];
        let value = |text| HeaderValue::try_from(text).unwrap_or(HeaderValue::from_static("-"));
        let headers: HeaderMap =
            fields.into_iter().map(|(name, text)| (name, value(text))).collect();
        request(&Method::GET, &path(file), &headers)
    }

    /// Ends a transfer.
    fn end(&mut self, now: Instant, host: &mut Host, place: usize, failure: Option<String>) {
        let Transfer { socket, mut got, check, status, .. } = self.active.remove(place);
        got.took = now - got.began;
        got.failure = match status {
            _ if failure.is_some() => failure,
            Some(StatusCode::OK) => None,
            Some(status) => Some(format!("status {}", status.as_str())),
            None => Some("no answer".to_owned()),
        };
        got.is_right = got.failure.is_none() && check.is_right() && got.bytes == got.ask.size;
        if got.failure.is_some() {
            host.abort(now, socket);
        } else {
            host.close(now, socket);
        }
        self.done.push_back(got);
    }

    fn read(&mut self, now: Instant, host: &mut Host, place: usize) {
        let transfer = &mut self.active[place];
        while let Some(bytes) = host.read(now, transfer.socket, READ_MAX) {
            transfer.until = now + TIMEOUT;
            transfer.reader.push(bytes);
            match transfer.take(now) {
                Ok(false) => {}
                Ok(true) => return self.end(now, host, place, None),
                Err(Malformed) => {
                    return self.end(now, host, place, Some("not HTTP".to_owned()));
                }
            }
        }
    }
}

impl Transfer {
    /// Parses and checks the bytes received. Returns whether the response is complete.
    fn take(&mut self, now: Instant) -> Result<bool, Malformed> {
        self.got.first_byte.get_or_insert(now - self.got.began);
        while let Some(part) = self.reader.poll::<ResponseHead>()? {
            match part {
                Part::Head(head) => {
                    let lines = head.headers.get_all("cache-status").iter();
                    let lines: Vec<_> = lines.filter_map(|line| line.to_str().ok()).collect();
                    self.got.cache_status = lines.join(", ");
                    self.status = Some(head.status);
                }
                Part::Body(bytes) => {
                    self.check.take(&bytes);
                    self.got.bytes += bytes.len() as u64;
                }
                Part::End => return Ok(true),
            }
        }
        Ok(false)
    }
}

impl Program for Client {
    fn handle_event(&mut self, now: Instant, host: &mut Host, event: Event) {
        let place = |it: &Self, id| it.active.iter().position(|transfer| transfer.socket == id);
        match event {
            Event::Connected(id) => {
                if let Some(place) = place(self, id) {
                    self.active[place].until = now + TIMEOUT;
                    let mut bytes = self.request(self.active[place].got.ask.file);
                    // The send buffer of a new connection always has room for a request.
                    host.write(now, id, &mut bytes);
                }
            }
            Event::Readable(id) => match place(self, id) {
                Some(place) => self.read(now, host, place),
                None => discard(now, host, id),
            },
            Event::PeerClosed(id) => {
                if let Some(at) = place(self, id) {
                    self.read(now, host, at);
                }
                // The bytes just read may have completed the response.
                if let Some(at) = place(self, id) {
                    let end = self.active[at].reader.close::<ResponseHead>();
                    let failure = match end {
                        Ok(Some(_)) => None,
                        _ => Some("the connection ended early".to_owned()),
                    };
                    self.end(now, host, at, failure);
                }
            }
            Event::Closed { id, why } => {
                if let Some(place) = place(self, id) {
                    self.end(now, host, place, Some(format!("the connection failed: {why:?}")));
                }
            }
            _ => {}
        }
    }

    fn handle_timeout(&mut self, now: Instant, host: &mut Host) {
        while let Some(place) = self.active.iter().position(|transfer| transfer.until <= now) {
            let seconds = TIMEOUT.as_secs();
            self.end(now, host, place, Some(format!("nothing arrived for {seconds} seconds")));
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.active.iter().map(|transfer| transfer.until).min()
    }
}
