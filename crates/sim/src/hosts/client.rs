//! A client as the lab's curl is one: a connection for each file, a request, and a look at each byte of the
//! answer.

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use std::collections::VecDeque;
use std::net::SocketAddrV4;
use std::time::Duration;
use wire::Instant;

use super::content::{Check, path};
use super::discard;
use super::http::{Malformed, Part, Reader, ResponseHead, request};
use crate::net::{Event, Host, SocketId};
use crate::world::Program;

/// A transfer is given up if nothing comes for so long, from the first attempt to connect on.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Bytes taken from a socket at one time.
const READ_MAX: usize = 64 * 1024;

/// What to get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ask {
    /// What the client calls it.
    pub number: usize,
    /// Which file.
    pub file: usize,
    /// How large the file is, in bytes.
    pub size: u64,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Got {
    /// What was to be got.
    pub ask: Ask,
    /// When the client began.
    pub began: Instant,
    /// From there to the first byte of the response.
    pub first_byte: Option<Duration>,
    /// From there to the end.
    pub took: Duration,
    /// Bytes of content that came.
    pub bytes: u64,
    /// What the caches on the way say of themselves (RFC 9211); empty if they say nothing.
    pub cache_status: String,
    /// Whether the content was the file's, whole.
    pub is_right: bool,
    /// Why it is not a whole answer, if it is not.
    pub failure: Option<String>,
}

/// The client of one machine; several transfers may be under way.
#[derive(Debug)]
pub struct Client {
    /// Its name, as in `Host`.
    name: String,
    origin: SocketAddrV4,
    /// The origin's files are made from it.
    seed: u64,
    active: Vec<Transfer>,
    done: VecDeque<Got>,
}

#[derive(Debug)]
struct Transfer {
    socket: SocketId,
    reader: Reader,
    check: Check,
    got: Got,
    /// It is given up then, unless something comes.
    until: Instant,
    status: Option<StatusCode>,
}

impl Client {
    /// Asks the origin of this name and address, whose files are made from this seed.
    pub fn new(name: &str, origin: SocketAddrV4, seed: u64) -> Self {
        Self { name: name.to_owned(), origin, seed, active: Vec::new(), done: VecDeque::new() }
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
            check: Check::new(self.seed, ask.file),
            got,
            until: now + PATIENCE,
            status: None,
        });
    }

    /// A transfer that has ended.
    pub fn poll_done(&mut self) -> Option<Got> {
        self.done.pop_front()
    }

    /// Whether a transfer is under way.
    pub fn is_busy(&self) -> bool {
        !self.active.is_empty()
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

    /// A transfer has ended.
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
            transfer.until = now + PATIENCE;
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
    /// Looks at what came; whether the answer is complete.
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
                    self.active[place].until = now + PATIENCE;
                    let mut bytes = self.request(self.active[place].got.ask.file);
                    // A new connection has room for so little.
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
                // It may have ended with what was read.
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
                    self.end(now, host, place, Some(format!("the connection broke: {why:?}")));
                }
            }
            _ => {}
        }
    }

    fn handle_timeout(&mut self, now: Instant, host: &mut Host) {
        while let Some(place) = self.active.iter().position(|transfer| transfer.until <= now) {
            let seconds = PATIENCE.as_secs();
            self.end(now, host, place, Some(format!("nothing came for {seconds} seconds")));
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.active.iter().map(|transfer| transfer.until).min()
    }
}
