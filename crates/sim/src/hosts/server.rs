//! The origin, as a program: a plain web server with connections that are kept for the next request.

use bytes::Bytes;
use std::collections::{BTreeMap, VecDeque};
use wire::Instant;

use super::date::date;
use super::http::{Malformed, Part, Reader, RequestHead, keeps_alive, response};
use super::origin::{Body, Files};
use crate::net::{Event, Host, SocketId};
use crate::world::Program;

/// Connections at one time; further ones are refused.
const CONNECTIONS_MAX: usize = 4096;
/// Requests of one connection that wait for their turn; the rest waits in the socket.
const WAITING_MAX: usize = 16;
/// Bytes taken from a socket at one time.
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
    /// What is to be sent next …
    next: Bytes,
    /// … and the content behind it.
    body: Option<Body>,
    /// No request is to follow the one that is being answered.
    is_last: bool,
    /// The client will send no more.
    is_ended: bool,
}

impl Origin {
    /// Listens on a port.
    pub fn new(files: Files, port: u16) -> Self {
        Self { files, port, connections: BTreeMap::new(), requests: 0 }
    }

    /// How many requests came.
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

    /// Reads and answers as far as it goes; whether the connection is done with.
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
                // What requests carry is not looked at.
                if let Part::Head(head) = part {
                    self.waiting.push_back(head);
                }
            }
        }
        Ok(())
    }

    /// Sends what there is room for; whether that was all.
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
