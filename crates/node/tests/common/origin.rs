//! Origins: pages by URL, given out as HTTP would, within what is granted; every request is kept.
//! Nodes are told apart by a number.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use node::driver::Grants;
use node::{Caller, Dial, ExchangeId, Fetch, FetchError, FetchId, Head, Input, OriginInput};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::time::Duration;
use wire::Instant;

/// Says which version of a page a response is; the harness finds the right bytes by it.
const VERSION: &str = "x-version";

/// One version of a resource.
#[derive(Clone, Debug)]
pub struct Page {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Bytes,
    /// Without `Content-Length`.
    pub chunked: bool,
    /// Time to the head; `None` if none ever comes.
    pub head_after: Option<Duration>,
    /// Time between pieces.
    pub pause: Duration,
    pub piece: usize,
    /// After this many bytes, the body pauses for this time.
    pub rests: Option<(usize, Duration)>,
    /// The body breaks off after this many bytes.
    pub breaks_at: Option<usize>,
    /// Responses with a part of the body do not name the version.
    pub bare_parts: bool,
    /// Interim responses before the head.
    pub interims: Vec<(u16, HeaderMap)>,
    /// Only for requests with this field.
    pub only_for: Option<(&'static str, String)>,
    unchecked: bool,
}

impl Page {
    /// A page with a body of this length, different from all others.
    pub fn of(length: usize) -> Self {
        Self::new(Bytes::from(vec![0; length])).scrambled()
    }

    pub fn new(body: Bytes) -> Self {
        Self {
            status: 200,
            headers: HeaderMap::new(),
            body,
            chunked: false,
            head_after: Some(Duration::from_millis(1)),
            pause: Duration::ZERO,
            piece: 8192,
            rests: None,
            breaks_at: None,
            bare_parts: false,
            interims: Vec::new(),
            only_for: None,
            unchecked: false,
        }
    }

    fn scrambled(mut self) -> Self {
        thread_local!(static MADE: std::cell::Cell<u64> = const { std::cell::Cell::new(0) });
        let number = MADE.with(|made| made.replace(made.get() + 1));
        self.body = noise(number, self.body.len());
        self
    }

    pub fn with(mut self, name: &'static str, value: &str) -> Self {
        let value = HeaderValue::try_from(value).expect("a header value");
        self.headers.append(HeaderName::from_static(name), value);
        self
    }

    pub fn fresh(self, seconds: u64) -> Self {
        self.with("cache-control", &format!("max-age={seconds}"))
    }

    pub fn etag(self, tag: &str) -> Self {
        self.with("etag", &format!("\"{tag}\""))
    }

    pub fn status(mut self, status: u16) -> Self {
        self.status = status;
        self
    }

    pub fn chunked(mut self) -> Self {
        self.chunked = true;
        self
    }

    pub fn resting(mut self, at: usize, time: Duration) -> Self {
        self.rests = Some((at, time));
        self
    }

    pub fn breaking_at(mut self, bytes: usize) -> Self {
        self.breaks_at = Some(bytes);
        self
    }

    /// The head comes after this time.
    pub fn waiting(mut self, time: Duration) -> Self {
        self.head_after = Some(time);
        self
    }

    /// It says this before the head.
    pub fn saying(mut self, status: u16, name: &'static str, value: &str) -> Self {
        let value = HeaderValue::try_from(value).expect("a header value");
        self.interims
            .push((status, [(HeaderName::from_static(name), value)].into_iter().collect()));
        self
    }

    /// A piece each millisecond.
    pub fn steady(mut self) -> Self {
        self.pause = Duration::from_millis(1);
        self
    }

    /// The harness does not check what clients get of it.
    pub fn unchecked(mut self) -> Self {
        self.unchecked = true;
        self
    }

    pub fn only_for(mut self, name: &'static str, value: &str) -> Self {
        self.only_for = Some((name, value.into()));
        self
    }
}

/// Bytes that look random.
pub fn noise(number: u64, length: usize) -> Bytes {
    let mut bytes = vec![0; length];
    blake3::Hasher::new().update(&number.to_le_bytes()).finalize_xof().fill(&mut bytes);
    bytes.into()
}

/// A request of a node.
pub type Asker = (usize, FetchId);

/// A request that came to an origin.
#[derive(Debug)]
pub struct Seen {
    /// Which node dialled.
    pub by: usize,
    pub method: Method,
    pub url: String,
    pub headers: HeaderMap,
    pub dial: Dial,
    pub caller: Caller,
    /// The exchange whose body goes with the request.
    pub exchange: Option<ExchangeId>,
}

/// What a client is to get.
#[derive(Debug)]
pub struct Expected {
    pub bytes: Bytes,
}

/// What happens at an origin.
#[derive(Clone, Copy, Debug)]
pub enum Event {
    Head,
    Piece,
    Never,
}

/// A response that is being sent.
#[derive(Debug)]
struct Live {
    page: Page,
    sent: usize,
    /// How long nodes wait for the next piece is not looked at: tests wait for it themselves.
    grants: Grants,
    /// A piece is on its way.
    busy: bool,
    /// The connection is dead, but neither side knows it.
    lost: bool,
    /// There will be no head, but this.
    failing: Option<FetchError>,
}

impl Live {
    fn new(page: Page, failing: Option<FetchError>) -> Self {
        let grants = Grants::default();
        Self { page, sent: 0, grants, busy: true, lost: false, failing }
    }
}

/// All origins of the world.
#[derive(Default)]
pub struct Origin {
    pages: BTreeMap<String, Vec<Page>>,
    bodies: Vec<Bytes>,
    live: BTreeMap<Asker, Live>,
    taken: BTreeSet<Asker>,
    pub seen: Vec<Seen>,
    /// Content bytes sent.
    pub sent: u64,
    /// The origin cannot be reached.
    pub down: Option<FetchError>,
    /// What is dialled for such a caller fails.
    pub refuses: Option<(Caller, FetchError)>,
}

impl Origin {
    /// Puts a page in place of all that was at a URL.
    pub fn put(&mut self, url: &str, page: Page) {
        self.pages.remove(url);
        self.add(url, page);
    }

    /// Puts another variant of a page beside those at a URL.
    pub fn add(&mut self, url: &str, mut page: Page) {
        if !page.unchecked {
            page.headers.insert(VERSION, HeaderValue::from(self.bodies.len()));
        }
        self.bodies.push(page.body.clone());
        self.pages.entry(url.into()).or_default().push(page);
    }

    /// The page at a URL that was put there first.
    pub fn page(&self, url: &str) -> &Page {
        &self.pages[url][0]
    }

    /// How many requests came for a URL.
    pub fn asked(&self, url: &str) -> usize {
        self.seen.iter().filter(|seen| seen.url == url).count()
    }

    /// The latest request.
    pub fn last(&self) -> &Seen {
        self.seen.last().expect("somebody asked")
    }

    pub fn ask(&mut self, id: Asker, fetch: Fetch) -> (Duration, Event) {
        let host = fetch.headers.get("host").and_then(|host| host.to_str().ok()).unwrap_or("");
        let scheme = if fetch.tls { "https" } else { "http" };
        let url = format!("{scheme}://{host}{}", fetch.path);
        let page = self.choose(&url, &fetch);
        let failing = self.refuses.filter(|(caller, _)| *caller == fetch.caller);
        let failing = failing.map(|(_, error)| error);
        let Fetch { method, headers, dial, caller, exchange, .. } = fetch;
        self.seen.push(Seen { by: id.0, method, url, headers, dial, caller, exchange });
        let head_after = page.head_after;
        let live = Live::new(page, failing);
        self.live.insert(id, live);
        match head_after {
            Some(wait) => (wait, Event::Head),
            None => (Duration::ZERO, Event::Never),
        }
    }

    /// Begins to send a page that no node requested: a file that a client puts.
    pub fn take(&mut self, id: Asker, page: Page) -> (Duration, Event) {
        self.taken.insert(id);
        let pause = page.pause;
        let live = Live::new(page, None);
        self.live.insert(id, live);
        (pause, Event::Piece)
    }

    /// Whether this is a file that a client puts.
    pub fn is_taken(&self, id: Asker) -> bool {
        self.taken.contains(&id)
    }

    fn choose(&self, url: &str, fetch: &Fetch) -> Page {
        let fits = |page: &&Page| match &page.only_for {
            Some((name, value)) => fetch.headers.get(*name).is_some_and(|given| given == value),
            None => true,
        };
        let pages = self.pages.get(url).map_or(&[][..], Vec::as_slice);
        let mut fitting = pages.iter().filter(fits);
        let page = fitting.clone().find(|page| page.only_for.is_some()).or(fitting.next());
        let Some(page) = page else { return Page::new(Bytes::new()).status(404) };
        let mut page = page.clone();
        if page.status == 200 && confirms(&page, &fetch.headers) {
            page.status = 304;
        } else if page.status == 200 {
            cut(&mut page, &fetch.headers);
        }
        if fetch.method == Method::HEAD || matches!(page.status, 204 | 304) {
            if !page.chunked && page.status == 200 {
                page.headers.insert("content-length", HeaderValue::from(page.body.len()));
            }
            page.body = Bytes::new();
        } else if !page.chunked {
            page.headers.insert("content-length", HeaderValue::from(page.body.len()));
        }
        page
    }

    pub fn grant(&mut self, now: Instant, id: Asker, bytes: u64) -> Option<(Duration, Event)> {
        let live = self.live.get_mut(&id)?;
        live.grants.grant(now, bytes);
        let begins = !live.busy && live.grants.is_open();
        live.busy |= begins;
        begins.then_some((live.page.pause, Event::Piece))
    }

    /// What a node has asked for and did not get whole.
    pub fn pending(&self, node: usize) -> Vec<FetchId> {
        self.live.keys().filter(|(by, _)| *by == node).map(|(_, id)| *id).collect()
    }

    /// Breaks off a response; whether it was under way.
    pub fn cancel(&mut self, id: Asker) -> bool {
        self.live.remove(&id).is_some()
    }

    /// All connections of a node go dead without a word, as behind another address translation.
    pub fn lose(&mut self, node: usize) {
        let live = self.live.iter_mut().filter(|((by, _), _)| *by == node);
        live.for_each(|(_, live)| live.lost = true);
    }

    /// Breaks off all that a node had asked for.
    pub fn forget(&mut self, node: usize) {
        self.live.retain(|(by, _), _| *by != node);
    }

    /// Which nodes asked for a URL, in order.
    pub fn askers(&self, url: &str) -> Vec<usize> {
        self.seen.iter().filter(|seen| seen.url == url).map(|seen| seen.by).collect()
    }

    /// How many responses are under way.
    pub fn busy(&self) -> usize {
        self.live.len()
    }

    pub fn happen(
        &mut self,
        now: Instant,
        id: Asker,
        event: Event,
    ) -> (Vec<Input>, Option<(Duration, Event)>) {
        let Some(live) = self.live.get_mut(&id) else { return (Vec::new(), None) };
        match event {
            _ if live.lost => (Vec::new(), None),
            Event::Never => (Vec::new(), None),
            Event::Head => {
                if let Some(error) = self.down.or(live.failing) {
                    self.live.remove(&id);
                    return (vec![Input::Origin(OriginInput::End(id.1, Err(error)))], None);
                }
                let status = StatusCode::from_u16(live.page.status).expect("a status");
                let interim = |(status, headers): &(u16, HeaderMap)| {
                    let status = StatusCode::from_u16(*status).expect("a status");
                    Input::Origin(OriginInput::Interim(id.1, status, headers.clone()))
                };
                let mut inputs: Vec<_> = live.page.interims.iter().map(interim).collect();
                let headers = live.page.headers.clone();
                inputs.push(Input::Origin(OriginInput::Head(id.1, status, headers)));
                (inputs, Some((live.page.pause, Event::Piece)))
            }
            Event::Piece => self.piece(now, id),
        }
    }

    fn piece(&mut self, now: Instant, id: Asker) -> (Vec<Input>, Option<(Duration, Event)>) {
        let Some(live) = self.live.get_mut(&id) else { return (Vec::new(), None) };
        let page = &live.page;
        let end = page.breaks_at.unwrap_or(usize::MAX).min(page.body.len());
        // The end of a chunked body is read like its content.
        let needs_grant = live.sent < end || (page.chunked && !page.body.is_empty());
        if needs_grant && !live.grants.is_open() {
            live.busy = false;
            return (Vec::new(), None);
        }
        if live.sent == end {
            let result = match page.breaks_at {
                Some(at) if at < page.body.len() => Err(FetchError::Truncated),
                _ => Ok(()),
            };
            self.live.remove(&id);
            return (vec![Input::Origin(OriginInput::End(id.1, result))], None);
        }
        let mut to = end.min(live.sent + page.piece);
        let mut wait = page.pause;
        if let Some((at, time)) = page.rests
            && (live.sent + 1..=to).contains(&at)
        {
            (to, wait) = (at, time);
        }
        let bytes = page.body.slice(live.sent..to);
        live.grants.took(now, bytes.len());
        live.sent = to;
        self.sent += bytes.len() as u64;
        (vec![Input::Origin(OriginInput::Body(id.1, bytes))], Some((wait, Event::Piece)))
    }

    /// What a client is to get that sees this head; `None` where that cannot be known.
    pub fn expected(&self, head: &Head) -> Option<Expected> {
        let body = self.bodies.get(version_of(&head.headers)?)?;
        let bytes = match head.status.as_u16() {
            304 => Bytes::new(),
            206 => {
                let range = head.headers.get("content-range")?.to_str().ok()?;
                let (range, _) = range.strip_prefix("bytes ")?.split_once('/')?;
                let (first, last) = range.split_once('-')?;
                body.slice(first.parse().ok()?..last.parse::<usize>().ok()? + 1)
            }
            416 => return None,
            _ => body.clone(),
        };
        Some(Expected { bytes })
    }
}

fn version_of(headers: &HeaderMap) -> Option<usize> {
    headers.get(VERSION)?.to_str().ok()?.parse().ok()
}

/// `If-None-Match` with one tag, or `If-Modified-Since` with the very date (RFC 9110 §13.2.2).
fn confirms(page: &Page, asked: &HeaderMap) -> bool {
    match asked.get("if-none-match") {
        Some(tag) => page.headers.get("etag") == Some(tag),
        None => asked
            .get("if-modified-since")
            .is_some_and(|since| page.headers.get("last-modified") == Some(since)),
    }
}

/// One range of a page, if it is asked for and `If-Range` does not forbid it.
fn cut(page: &mut Page, asked: &HeaderMap) {
    let condition = asked.get("if-range");
    if condition.is_some_and(|tag| page.headers.get("etag") != Some(tag)) {
        return;
    }
    let length = page.body.len();
    let range = asked.get("range").and_then(|range| range.to_str().ok()).and_then(|range| {
        let (first, last) = range.strip_prefix("bytes=")?.split_once('-')?;
        let end = last.parse().map_or(length, |last: usize| length.min(last + 1));
        let range: Range<usize> = first.parse().ok()?..end;
        (range.start < range.end).then_some(range)
    });
    if let Some(range) = range {
        let place = format!("bytes {}-{}/{length}", range.start, range.end - 1);
        page.headers.insert("content-range", HeaderValue::try_from(place).expect("ASCII"));
        page.status = 206;
        page.body = page.body.slice(range);
        if page.bare_parts {
            page.headers.remove("etag");
        }
    }
}
