//! The origin as a program: a plain web server that keeps connections for the next request.

use bytes::Bytes;
use std::collections::{BTreeMap, VecDeque};
use wire::Instant;

use super::date::date;
use super::http::{Malformed, Part, Reader, RequestHead, keeps_alive, response};
use super::origin::{Body, Files};
use crate::net::{Event, Host, SocketId};
use crate::world::Program;

/// Largest number of connections; further ones are refused.
const CONNECTIONS_MAX: usize = 4096;
/// Pipelined requests of one connection that wait here; further ones stay in the socket.
const WAITING_MAX: usize = 16;
/// Largest read from a socket, in bytes.
const READ_MAX: usize = 16 * 1024;

/// The origin.
#[derive(Debug)]
pub struct Origin {
    files: Files,
    port: u16,
    connections: BTreeMap<SocketId, Connection>,
    requests: u64,
}

#[derive(Debug)]
struct Connection {
    reader: Reader,
    waiting: VecDeque<RequestHead>,
    /// Bytes to send next, …
    next: Bytes,
    /// … and the content to send after them.
    body: Option<Body>,
    /// The connection closes after this response.
    is_last: bool,
    /// The client has closed its side.
    is_ended: bool,
}

impl Origin {
    /// An origin that listens on `port`.
    pub fn new(files: Files, port: u16) -> Self {
        Self { files, port, connections: BTreeMap::new(), requests: 0 }
    }

    /// Number of requests received.
    pub fn requests(&self) -> u64 {
        self.requests
    }

    fn serve(&mut self, now: Instant, host: &mut Host, id: SocketId) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        match connection.serve(now, host, id, &self.files, &mut self.requests) {
            Ok(false) => {}
            Ok(true) => {
                self.connections.remove(&id);
                host.close(now, id);
            }
            Err(Malformed) => {
                self.connections.remove(&id);
                host.abort(now, id);
            }
        }
    }
}

impl Connection {
    fn new() -> Self {
        Self {
            reader: Reader::new::<RequestHead>(),
            waiting: VecDeque::new(),
            next: Bytes::new(),
            body: None,
            is_last: false,
            is_ended: false,
        }
    }

    /// Reads requests and sends responses as far as buffers allow. Returns whether the connection is
    /// finished.
    fn serve(
        &mut self,
        now: Instant,
        host: &mut Host,
        id: SocketId,
        files: &Files,
        requests: &mut u64,
    ) -> Result<bool, Malformed> {
        loop {
            self.read(now, host, id)?;
            if !self.send(now, host, id) {
                return Ok(false);
            }
            if self.is_last {
                return Ok(true);
            }
            let Some(request) = self.waiting.pop_front() else { return Ok(self.is_ended) };
            *requests += 1;
            self.is_last = !keeps_alive(request.version, &request.headers);
            let answer = files.answer(&request, date(now));
            self.next = response(answer.status, &answer.headers);
            self.body = answer.body;
        }
    }

    fn read(&mut self, now: Instant, host: &mut Host, id: SocketId) -> Result<(), Malformed> {
        while self.waiting.len() < WAITING_MAX
            && let Some(bytes) = host.read(now, id, READ_MAX)
        {
            self.reader.push(bytes);
            while let Some(part) = self.reader.poll()? {
                // A request's content is ignored.
                if let Part::Head(head) = part {
                    self.waiting.push_back(head);
                }
            }
        }
        Ok(())
    }

    /// Sends as much as the socket takes. Returns whether the response is sent.
    fn send(&mut self, now: Instant, host: &mut Host, id: SocketId) -> bool {
        loop {
            if self.next.is_empty() {
                match self.body.as_mut().and_then(|body| body.take(READ_MAX)) {
                    Some(bytes) => self.next = bytes,
                    None => return true,
                }
            }
            host.write(now, id, &mut self.next);
            if !self.next.is_empty() {
                return false;
            }
        }
    }
}

impl Program for Origin {
    fn start(&mut self, _now: Instant, host: &mut Host) {
        host.listen(self.port);
    }

    fn handle_event(&mut self, now: Instant, host: &mut Host, event: Event) {
        match event {
            Event::Accepted { id, .. } if self.connections.len() < CONNECTIONS_MAX => {
                self.connections.insert(id, Connection::new());
            }
            Event::Accepted { id, .. } => host.abort(now, id),
            Event::Readable(id) | Event::Writable(id) => self.serve(now, host, id),
            Event::PeerClosed(id) => {
                if let Some(connection) = self.connections.get_mut(&id) {
                    connection.is_ended = true;
                }
                self.serve(now, host, id);
            }
            Event::Closed { id, .. } => {
                self.connections.remove(&id);
            }
            _ => {}
        }
    }
}
