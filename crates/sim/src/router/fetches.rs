//! Requests to origins, over connections that are kept for later requests, with the daemon's timeouts.

#![deny(clippy::wildcard_enum_match_arm, reason = "no output may be overlooked")]

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr, SocketAddrV4};

use bytes::Bytes;
use http::Method;
use node::driver::{DIAL_MAX, Grants, HEAD_MAX, Made, OriginPool, READ_MAX};
use node::{
    Access, Dial, Fetch, FetchError, FetchId, Forbidden, Input, Leads, OriginInput, OriginOutput,
    RouteTable,
};
use wire::Instant;

use crate::hosts::http::{Malformed, Part, Reader, ResponseHead, keeps_alive, request};
use crate::hosts::{discard, read};
use crate::net::{Host, SocketId, tcp};

/// All requests in progress, and idle connections.
#[derive(Debug)]
pub(super) struct Fetches {
    /// Addresses by name.
    names: BTreeMap<String, IpAddr>,
    active: BTreeMap<FetchId, Active>,
    ids: BTreeMap<SocketId, FetchId>,
    idle: OriginPool<SocketId>,
}

#[derive(Debug)]
struct Active {
    fetch: Fetch,
    to: SocketAddrV4,
    /// What its connection may be used for.
    made: Made,
    socket: SocketId,
    reader: Reader,
    /// The unsent rest of the request.
    request: Bytes,
    /// The request went over a kept connection and no head has arrived, so it can be sent again over a new
    /// connection.
    is_repeatable: bool,
    is_open: bool,
    grants: Grants,
    /// When the connection, or then the head, times out. `None` once the final head has arrived.
    until: Option<Instant>,
    keeps: bool,
    /// The origin has closed its side.
    is_ended: bool,
}

impl Fetches {
    /// No requests. `names` are the origins' addresses.
    pub fn new(names: BTreeMap<String, IpAddr>) -> Self {
        let (active, ids) = (BTreeMap::new(), BTreeMap::new());
        Self { names, active, ids, idle: OriginPool::default() }
    }

    /// The addresses of a name.
    pub fn resolve(&self, name: &str) -> Vec<IpAddr> {
        let literal = name.parse().ok();
        literal.or_else(|| self.names.get(name).copied()).into_iter().collect()
    }

    /// Performs an output of the engine for an origin.
    pub fn perform(
        &mut self,
        now: Instant,
        host: &mut Host,
        output: OriginOutput,
        inputs: &mut VecDeque<Input>,
    ) {
        match output {
            OriginOutput::Fetch(id, fetch) => self.begin(now, host, id, *fetch, inputs),
            OriginOutput::Grant(id, bytes) => self.grant(now, host, id, bytes, inputs),
            OriginOutput::Cancel(id) => self.cancel(now, host, id),
            // No file is published in the simulator.
            OriginOutput::TakeIn(..) => {}
        }
    }

    /// Starts a request.
    fn begin(
        &mut self,
        now: Instant,
        host: &mut Host,
        id: FetchId,
        fetch: Fetch,
        inputs: &mut VecDeque<Input>,
    ) {
        let mut reader = Reader::new::<ResponseHead>();
        reader.expect(fetch.method == Method::HEAD);
        let begun = self.address(host, &fetch).and_then(|to| {
            let kept = self.take_idle(now, host, &fetch);
            let is_open = kept.is_some();
            let socket = match kept {
                Some(socket) => socket,
                None => host.connect(now, to).map_err(|_| FetchError::Unreachable)?,
            };
            Ok((to, socket, is_open))
        });
        match begun {
            Err(error) => inputs.push_back(Input::Origin(OriginInput::End(id, Err(error)))),
            Ok((to, socket, is_open)) => {
                self.ids.insert(socket, id);
                let mut made = self.idle.made(&fetch);
                made.asks(&fetch, false);
                let active = Active {
                    to,
                    made,
                    socket,
                    reader,
                    request: head(&fetch),
                    // A kept connection may already be closed at the origin.
                    is_repeatable: is_open,
                    is_open,
                    grants: Grants::default(),
                    // A kept connection is open, so the wait is for the head.
                    until: Some(now + if is_open { HEAD_MAX } else { DIAL_MAX }),
                    keeps: false,
                    is_ended: false,
                    fetch,
                };
                self.active.insert(id, active);
                self.go_on(now, host, id, inputs);
            }
        }
    }

    /// The address to dial, if access rules permit it.
    fn address(&self, host: &Host, fetch: &Fetch) -> Result<SocketAddrV4, FetchError> {
        // Simulated origins speak no TLS.
        if fetch.tls {
            return Err(FetchError::NotTls);
        }
        let (addresses, port) = match &fetch.dial {
            Dial::Address(address) => (vec![address.ip()], address.port()),
            Dial::Name(name, port) => (self.resolve(name), *port),
        };
        if addresses.is_empty() {
            return Err(FetchError::Unresolved);
        }
        let is_own = |ip: IpAddr| host.addresses().iter().any(|own| IpAddr::V4(*own) == ip);
        // A simulated router has one zone: every address but its own leads out.
        let leads = |ip| if is_own(ip) { Leads::Here } else { Leads::Out };
        let may = |to: &SocketAddr| Access::default().may_dial(fetch.caller, *to, leads).is_ok();
        match addresses.into_iter().map(|ip| SocketAddr::new(ip, port)).find(may) {
            Some(SocketAddr::V4(to)) => Ok(to),
            Some(SocketAddr::V6(_)) => Err(FetchError::Unreachable),
            None => Err(FetchError::Forbidden(Forbidden::Inward)),
        }
    }

    fn take_idle(&mut self, now: Instant, host: &mut Host, fetch: &Fetch) -> Option<SocketId> {
        self.drop_idle(now, host);
        self.idle.take(fetch, false)
    }

    fn drop_idle(&mut self, now: Instant, host: &mut Host) {
        self.idle.expire(now).into_iter().for_each(|socket| host.close(now, socket));
    }

    /// Drops connections that a new route to the gateway has cut off.
    pub fn follow(&mut self, now: Instant, host: &mut Host, routes: &RouteTable) {
        self.idle.follow(&routes.exit).into_iter().for_each(|socket| host.close(now, socket));
    }

    /// The engine accepts `bytes` more bytes of content.
    fn grant(
        &mut self,
        now: Instant,
        host: &mut Host,
        id: FetchId,
        bytes: u64,
        inputs: &mut VecDeque<Input>,
    ) {
        if let Some(active) = self.active.get_mut(&id) {
            active.grants.grant(now, bytes);
            self.go_on(now, host, id, inputs);
        }
    }

    /// Cancels a request.
    fn cancel(&mut self, now: Instant, host: &mut Host, id: FetchId) {
        if let Some(active) = self.active.remove(&id) {
            self.ids.remove(&active.socket);
            host.abort(now, active.socket);
        }
    }

    /// Whether this socket belongs to a request, or is idle.
    pub fn has(&self, socket: SocketId) -> bool {
        self.ids.contains_key(&socket) || self.idle.any(|idle| *idle == socket)
    }

    /// A dial to an origin has succeeded.
    pub fn connected(
        &mut self,
        now: Instant,
        host: &mut Host,
        socket: SocketId,
        inputs: &mut VecDeque<Input>,
    ) {
        if let Some(id) = self.ids.get(&socket).copied()
            && let Some(active) = self.active.get_mut(&id)
        {
            active.is_open = true;
            active.until = Some(now + HEAD_MAX);
            self.go_on(now, host, id, inputs);
        }
    }

    /// A socket can be read or written, or (`is_ended`) the origin has closed its side.
    pub fn ready(
        &mut self,
        now: Instant,
        host: &mut Host,
        socket: SocketId,
        is_ended: bool,
        inputs: &mut VecDeque<Input>,
    ) {
        match self.ids.get(&socket).copied() {
            Some(id) => {
                if let Some(active) = self.active.get_mut(&id) {
                    active.is_ended |= is_ended;
                }
                self.go_on(now, host, id, inputs);
            }
            // Data without a request ends an idle connection.
            None => {
                self.idle.retain(|idle| *idle != socket);
                discard(now, host, socket);
                host.close(now, socket);
            }
        }
    }

    /// A connection has ended.
    pub fn closed(
        &mut self,
        now: Instant,
        host: &mut Host,
        socket: SocketId,
        why: tcp::End,
        inputs: &mut VecDeque<Input>,
    ) {
        self.idle.retain(|idle| *idle != socket);
        let Some(id) = self.ids.get(&socket).copied() else { return };
        let is_open = self.active.get(&id).is_some_and(|active| active.is_open);
        let error = match (why, is_open) {
            (tcp::End::TimedOut, _) => FetchError::TimedOut,
            (_, true) => FetchError::Truncated,
            (_, false) => FetchError::Unreachable,
        };
        self.fail(now, host, id, error, inputs);
    }

    /// Writes and reads as much as possible.
    fn go_on(&mut self, now: Instant, host: &mut Host, id: FetchId, inputs: &mut VecDeque<Input>) {
        let Some(active) = self.active.get_mut(&id) else { return };
        if !active.is_open {
            return;
        }
        while !active.request.is_empty() {
            if host.write(now, active.socket, &mut active.request) == 0 {
                return;
            }
        }
        match active.read(now, host, id, inputs) {
            Ok(false) => {}
            Ok(true) => self.end(now, host, id),
            Err(error) => self.fail(now, host, id, error, inputs),
        }
    }

    /// A response is complete: its connection can be kept.
    fn end(&mut self, now: Instant, host: &mut Host, id: FetchId) {
        let Some(active) = self.active.remove(&id) else { return };
        self.ids.remove(&active.socket);
        self.drop_idle(now, host);
        let is_clean = active.reader.is_idle() && !active.is_ended;
        let left = match active.keeps && is_clean {
            true => self.idle.put(now, active.made, active.socket),
            false => Some(active.socket),
        };
        left.into_iter().for_each(|socket| host.close(now, socket));
    }

    /// Fails a request, or sends it again if that is safe: the origin may have closed a kept connection
    /// before the request arrived.
    fn fail(
        &mut self,
        now: Instant,
        host: &mut Host,
        id: FetchId,
        error: FetchError,
        inputs: &mut VecDeque<Input>,
    ) {
        let Some(active) = self.active.get_mut(&id) else { return };
        self.ids.remove(&active.socket);
        host.abort(now, active.socket);
        if std::mem::take(&mut active.is_repeatable)
            && error == FetchError::Truncated
            && let Ok(socket) = host.connect(now, active.to)
        {
            (active.socket, active.request, active.is_open) = (socket, head(&active.fetch), false);
            active.made = self.idle.made(&active.fetch);
            active.made.asks(&active.fetch, false);
            (active.until, active.is_ended) = (Some(now + DIAL_MAX), false);
            self.ids.insert(socket, id);
            return;
        }
        self.active.remove(&id);
        inputs.push_back(Input::Origin(OriginInput::End(id, Err(error))));
    }

    /// When the next request times out.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let active = self.active.values().filter_map(Active::poll_timeout).min();
        active.into_iter().chain(self.idle.poll_timeout()).min()
    }

    /// Fails requests that have timed out.
    pub fn handle_timeout(&mut self, now: Instant, host: &mut Host, inputs: &mut VecDeque<Input>) {
        self.drop_idle(now, host);
        let is_late = |active: &Active| active.poll_timeout().is_some_and(|until| until <= now);
        let late = self.active.iter().filter(|(_, active)| is_late(active));
        let late: Vec<_> = late.map(|(id, _)| *id).collect();
        late.into_iter().for_each(|id| self.fail(now, host, id, FetchError::TimedOut, inputs));
    }
}

impl Active {
    /// When it times out.
    fn poll_timeout(&self) -> Option<Instant> {
        self.until.or(self.grants.poll_timeout())
    }

    /// Reads as much as is granted. Returns whether the response is complete.
    fn read(
        &mut self,
        now: Instant,
        host: &mut Host,
        id: FetchId,
        inputs: &mut VecDeque<Input>,
    ) -> Result<bool, FetchError> {
        // A head may be read without a grant.
        while self.grants.is_open() || self.reader.is_in_head() {
            let Some(bytes) = read(now, host, self.socket, READ_MAX) else { break };
            self.reader.push(bytes);
            if self.take(now, id, inputs)? {
                return Ok(true);
            }
        }
        // The end of the connection counts only once all granted data is read.
        let would_read = self.grants.is_open() || self.reader.is_in_head();
        if self.is_ended && would_read && host.readable(self.socket) == 0 {
            return match self.reader.close::<ResponseHead>() {
                Ok(Some(_)) => {
                    inputs.push_back(Input::Origin(OriginInput::End(id, Ok(()))));
                    Ok(true)
                }
                _ => Err(FetchError::Truncated),
            };
        }
        Ok(false)
    }

    /// Gives the engine the parts that have arrived. Returns whether the response is complete.
    fn take(
        &mut self,
        now: Instant,
        id: FetchId,
        inputs: &mut VecDeque<Input>,
    ) -> Result<bool, FetchError> {
        loop {
            match self.reader.poll::<ResponseHead>() {
                Ok(None) => return Ok(false),
                Err(Malformed) => return Err(FetchError::Malformed),
                Ok(Some(Part::Head(head))) if head.status.is_informational() => {}
                Ok(Some(Part::Head(head))) => {
                    (self.is_repeatable, self.until) = (false, None);
                    self.keeps = keeps_alive(head.version, &head.headers);
                    self.made.answers(&head.headers);
                    inputs.push_back(Input::Origin(OriginInput::Head(
                        id,
                        head.status,
                        head.headers,
                    )));
                }
                Ok(Some(Part::Body(bytes))) => {
                    self.grants.took(now, bytes.len());
                    inputs.push_back(Input::Origin(OriginInput::Body(id, bytes)));
                }
                // The end of an interim response.
                Ok(Some(Part::End)) if self.until.is_some() => {}
                Ok(Some(Part::End)) => {
                    inputs.push_back(Input::Origin(OriginInput::End(id, Ok(()))));
                    return Ok(true);
                }
            }
        }
    }
}

/// The head of a request; no simulated client's request has content.
fn head(fetch: &Fetch) -> Bytes {
    request(&fetch.method, &fetch.path, &fetch.headers)
}
