//! Clients: what they ask, how they read, and what they got.

use super::check;
use super::origin::Expected;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, Version};
use node::{Binding, ClientInput, Entrance, ExchangeId, Head, Input};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;
use wire::Digest;

/// The engine may send so much more than the credit: its own short error texts, and what an origin
/// sends beyond its grant in one piece.
const SURPLUS: i64 = 17 * 1024;
/// And in a mesh, what a peer may send of a response that is not stored before it has credit.
const SURPLUS_OF_PEERS: i64 = 16 * 1024;

/// How a client reads.
#[derive(Clone, Copy, Debug)]
pub enum Pace {
    /// All at once.
    Fast,
    /// Reads this many bytes each millisecond.
    Slow(u64),
    /// Reads this many bytes, then no more.
    Stalls(u64),
    /// Fast, but leaves when it has this many bytes.
    Leaves(u64),
}

impl Pace {
    pub fn window(self) -> u64 {
        match self {
            Self::Fast | Self::Leaves(_) => 64 * 1024,
            Self::Slow(bytes) => bytes.max(1),
            Self::Stalls(bytes) => bytes,
        }
    }
}

/// What a client is to ask, and how it is to read.
#[derive(Clone, Debug)]
pub struct Call {
    pub method: Method,
    pub url: String,
    pub headers: HeaderMap,
    pub pace: Pace,
    pub from: IpAddr,
    pub dialling: Option<SocketAddr>,
    pub has_body: bool,
    /// It is a program on the node's own machine.
    pub at_home: bool,
    /// It asks as a client of a mirror, for content with this digest if one is given.
    pub mirrors: Option<Option<Digest>>,
    /// The version of HTTP that it speaks.
    pub version: Version,
    /// The first line holds the whole URL even if the client was intercepted.
    pub is_absolute: bool,
    /// Its connection, if it authenticates by that.
    pub binding: Option<Binding>,
}

impl Call {
    pub fn new(method: Method, url: &str) -> Self {
        Self {
            method,
            url: url.into(),
            headers: HeaderMap::new(),
            pace: Pace::Fast,
            from: [10, 0, 0, 2].into(),
            dialling: None,
            has_body: false,
            at_home: false,
            mirrors: None,
            version: Version::HTTP_11,
            is_absolute: false,
            binding: None,
        }
    }

    pub fn get(url: &str) -> Self {
        Self::new(Method::GET, url)
    }

    pub fn head(url: &str) -> Self {
        Self::new(Method::HEAD, url)
    }

    pub fn with(mut self, name: &'static str, value: &str) -> Self {
        let value = HeaderValue::try_from(value).expect("a header value");
        self.headers.append(HeaderName::from_static(name), value);
        self
    }

    pub fn pace(mut self, pace: Pace) -> Self {
        self.pace = pace;
        self
    }

    /// The client is a program on the node's own machine.
    pub fn at_home(mut self) -> Self {
        self.from = [127, 0, 0, 1].into();
        self.at_home = true;
        self
    }

    /// The client meant to dial this address, and was intercepted.
    pub fn dialling(mut self, address: &str) -> Self {
        self.dialling = Some(address.parse().expect("an address"));
        let url: Uri = self.url.parse().expect("a URL");
        let host = url.authority().expect("a host").as_str();
        self.headers.insert("host", HeaderValue::try_from(host).expect("a host"));
        self
    }

    /// The client asks a mirror, for content with this digest if one is given.
    pub fn by_mirror(mut self, digest: Option<Digest>) -> Self {
        self.mirrors = Some(digest);
        self
    }

    /// How it reaches the node.
    pub fn entrance(&self) -> Entrance {
        match (self.dialling, self.mirrors) {
            (Some(dialled), _) => Entrance::Intercepted(dialled),
            (None, Some(_)) => Entrance::Mirror,
            (None, None) => Entrance::Explicit,
        }
    }

    /// What stands in the first line: intercepted clients put the host elsewhere.
    pub fn target(&self) -> Uri {
        let url: Uri = self.url.parse().expect("a URL");
        match (self.dialling, url.path_and_query()) {
            (Some(_), Some(path)) if !self.is_absolute => path.as_str().parse().expect("a path"),
            _ => url,
        }
    }
}

/// How an exchange ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Finished,
    Broken,
    Left,
    Tunnelled,
}

/// What a client does when its time comes.
#[derive(Clone, Copy, Debug)]
pub enum Turn {
    /// Opens its window.
    Open(u64),
    /// Takes what it has got off the way.
    Digest,
    Leave,
}

/// A client and all that it got.
#[derive(Debug)]
pub struct Client {
    pub call: Call,
    pub head: Option<Head>,
    pub end: Option<End>,
    pub content: Vec<u8>,
    /// Interim responses that came before the head.
    pub interims: Vec<(u16, HeaderMap)>,
    expected: Option<Expected>,
    credit: i64,
    surplus: i64,
    owed: u64,
    digesting: bool,
}

impl Client {
    pub fn new(call: Call) -> Self {
        Self {
            call,
            head: None,
            end: None,
            content: Vec::new(),
            interims: Vec::new(),
            expected: None,
            credit: 0,
            surplus: SURPLUS,
            owed: 0,
            digesting: false,
        }
    }

    /// Its node has peers.
    pub fn in_mesh(mut self) -> Self {
        self.surplus += SURPLUS_OF_PEERS;
        self
    }

    pub fn status(&self) -> u16 {
        self.head.as_ref().map_or(0, |head| head.status.as_u16())
    }

    pub fn header(&self, name: &str) -> &str {
        let head = self.head.as_ref().expect("it was answered");
        head.headers.get(name).map_or("", |value| value.to_str().expect("ASCII"))
    }

    /// The cookies that were set at it.
    pub fn cookies(&self) -> Vec<&str> {
        let head = self.head.as_ref().expect("it was answered");
        let cookies = head.headers.get_all("set-cookie").iter();
        cookies.map(|value| value.to_str().expect("ASCII")).collect()
    }

    /// What our node says in `Cache-Status`.
    pub fn cache(&self) -> &str {
        self.header("cache-status").trim_start_matches("hearsay; ")
    }

    /// It got a complete response with all that it was to get.
    pub fn is_whole(&self) -> bool {
        let told = self.head.as_ref().and_then(|head| head.length);
        self.end == Some(End::Finished)
            && told.is_none_or(|length| length == self.content.len() as u64)
    }

    /// It got a complete 200.
    pub fn is_ok(&self) -> bool {
        self.status() == 200 && self.is_whole()
    }

    pub fn is_broken(&self) -> bool {
        self.end == Some(End::Broken)
    }

    pub fn interim(&mut self, status: StatusCode, headers: HeaderMap) {
        assert!(self.head.is_none() && self.end.is_none(), "after the head: {self:?}");
        self.interims.push((status.as_u16(), headers));
    }

    pub fn respond(&mut self, head: Head, expected: Option<Expected>) {
        assert!(self.head.is_none() && self.end.is_none(), "answered twice, or too late: {self:?}");
        if let (Some(Expected { bytes, .. }), Some(length)) = (&expected, head.length) {
            let empty = self.call.method == Method::HEAD;
            assert!(empty || bytes.len() as u64 == length, "a wrong length was announced");
        }
        self.expected = expected;
        self.head = Some(head);
    }

    pub fn take(&mut self, bytes: &Bytes) -> Option<(Duration, Turn)> {
        assert!(self.head.is_some() && self.end.is_none(), "content before or after its time");
        self.credit -= bytes.len() as i64;
        check(self.credit >= -self.surplus, || {
            format!("{} bytes more than it can take: {:?}", -self.credit, self.call)
        });
        if let Some(expected) = &self.expected {
            let from = self.content.len();
            let right = expected.bytes.get(from..from + bytes.len());
            check(right == Some(&bytes[..]), || {
                format!("wrong bytes at {from} for {:?} {:?}", self.call, self.head)
            });
        }
        self.content.extend_from_slice(bytes);
        self.owed += bytes.len() as u64;
        match self.call.pace {
            Pace::Stalls(_) => None,
            Pace::Leaves(at) if self.content.len() as u64 >= at => {
                Some((Duration::ZERO, Turn::Leave))
            }
            Pace::Fast | Pace::Leaves(_) => self.digest_after(Duration::ZERO),
            Pace::Slow(_) => self.digest_after(Duration::from_millis(1)),
        }
    }

    fn digest_after(&mut self, wait: Duration) -> Option<(Duration, Turn)> {
        let begins = !std::mem::replace(&mut self.digesting, true);
        begins.then_some((wait, Turn::Digest))
    }

    pub fn turn(
        &mut self,
        id: ExchangeId,
        turn: Turn,
    ) -> (Option<Input>, Option<(Duration, Turn)>) {
        if self.end.is_some() {
            return (None, None);
        }
        match turn {
            Turn::Leave => {
                self.end = Some(End::Left);
                (Some(Input::Client(ClientInput::Gone(id))), None)
            }
            Turn::Open(bytes) => {
                self.credit += bytes as i64;
                (Some(Input::Client(ClientInput::Credit(id, bytes))), None)
            }
            Turn::Digest => {
                self.digesting = false;
                let bytes = match self.call.pace {
                    Pace::Slow(bytes) => bytes.min(self.owed),
                    _ => self.owed,
                };
                self.owed -= bytes;
                self.credit += bytes as i64;
                let more = self.owed > 0;
                let next = if more { self.digest_after(Duration::from_millis(1)) } else { None };
                (Some(Input::Client(ClientInput::Credit(id, bytes))), next)
            }
        }
    }

    pub fn finish(&mut self, end: End) {
        assert!(self.end.is_none(), "it ended twice");
        self.end = Some(end);
        if let (End::Finished, Some(expected)) = (end, &self.expected) {
            let all =
                self.call.method == Method::HEAD || self.content.len() == expected.bytes.len();
            check(all, || {
                let (got, of) = (self.content.len(), expected.bytes.len());
                format!("a part was given for the whole: {got} of {of} bytes, {:?}", self.head)
            });
        }
    }
}
