//! What clients use a pair for, from beginning to end.

use crate::net::Net;
use bytes::Bytes;
use http::Method;
use node::uplink::{FlowId, NearInput};
use node::{Fetch, FetchId};
use std::time::Duration;

impl Net {
    /// A client dials a server of TCP, which says this without being asked; returns what crossed for it.
    #[track_caller]
    pub fn hear_all(&mut self, server: &str, bytes: &[u8]) -> u64 {
        let before = self.crossed.0;
        let (client, server) = self.call(server);
        self.server_says(server, bytes);
        self.server_ends(server, Ok(()));
        self.until(|net| net.clients[&client].end.is_some());
        assert!(self.clients[&client].heard == bytes, "it came otherwise");
        assert_eq!(self.clients[&client].end, Some(Ok(())));
        self.client_ends(client, Ok(()));
        self.until(|net| net.servers[&server].end.is_some());
        self.crossed.0 - before
    }

    /// A client sends this, as fast as there is room, and gets it back; returns what crossed, to it and from it.
    #[track_caller]
    pub fn echo(&mut self, body: &[u8]) -> (u64, u64) {
        let before = self.crossed;
        let id = self.fetch(Fetch { method: Method::POST, ..Net::fetch_of("/echo") }, true);
        let flow = FlowId::Fetch(FetchId(id));
        let mut rest = Bytes::copy_from_slice(body);
        while !rest.is_empty() {
            let room = self.near.room(flow).min(rest.len() as u64);
            let piece = rest.split_to(room as usize);
            self.near.handle_input(self.now, NearInput::Content(flow, piece));
            self.run_for(Duration::from_millis(10));
        }
        self.near.handle_input(self.now, NearInput::ContentEnd(flow, Ok(())));
        self.run_for(Duration::from_millis(1));
        self.until(|net| net.answers[&id].end.is_some());
        assert_eq!(self.answers[&id].end, Some(Ok(())));
        assert!(self.answers[&id].body == body, "another came back");
        (self.crossed.0 - before.0, self.crossed.1 - before.1)
    }

    /// Clients get these at the same time, each at a URL of its own.
    #[track_caller]
    pub fn get_together(&mut self, bodies: &[Vec<u8>]) {
        for (at, body) in bodies.iter().enumerate() {
            self.origin(&format!("/{at}"), body.clone());
        }
        let ids: Vec<_> = (0..bodies.len()).map(|at| self.get(&format!("/{at}"))).collect();
        self.until(|net| ids.iter().all(|id| net.answers[id].end.is_some()));
        for (id, body) in ids.iter().zip(bodies) {
            assert_eq!(self.answers[id].end, Some(Ok(())));
            assert!(self.answers[id].body == *body, "{id}");
        }
    }
}
