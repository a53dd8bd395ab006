//! All requests that are being answered. Every machine may read this table; `client` writes it, and
//! so does `node/values.rs` with what `object` says of readers.

pub mod exchange;
pub mod peer_reader;

use crate::hasher::Map;
use crate::http::Record;
use crate::input::{ExchangeId, FetchId};
use ::http::Method;
use bytes::Bytes;
use exchange::{ClientReader, Exchange, Source, State};
use peer_reader::PeerReader;
use std::ops::{Deref, DerefMut};
use std::rc::Rc;
use wire::ChunkId;

/// The exchanges by number; see the module.
#[derive(Debug, Default)]
pub struct Exchanges(Map<ExchangeId, Exchange>);

impl Deref for Exchanges {
    type Target = Map<ExchangeId, Exchange>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl DerefMut for Exchanges {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.0
    }
}

impl Exchanges {
    pub fn put_state(&mut self, id: ExchangeId, state: State) {
        if let Some(exchange) = self.0.get_mut(&id) {
            exchange.state = state;
        }
    }

    pub fn wants_head(&self, client: ExchangeId) -> bool {
        self.0.get(&client).is_some_and(|exchange| exchange.ask.method == Method::HEAD)
    }

    pub fn is_peer(&self, id: ExchangeId) -> bool {
        self.0.get(&id).is_some_and(|exchange| exchange.peer().is_some())
    }

    /// The state of a peer that reads an object.
    pub fn peer_reader(&self, id: ExchangeId) -> Option<&PeerReader> {
        match &self.0.get(&id)?.state {
            State::PeerReader(peer_reader) => Some(peer_reader),
            _ => None,
        }
    }

    /// The same, for changing it.
    pub fn supplying_mut(&mut self, id: ExchangeId) -> Option<&mut PeerReader> {
        match &mut self.0.get_mut(&id)?.state {
            State::PeerReader(peer_reader) => Some(peer_reader),
            _ => None,
        }
    }

    pub fn with_serving(&mut self, id: ExchangeId, change: impl FnOnce(&mut ClientReader)) {
        if let Some(exchange) = self.0.get_mut(&id)
            && let State::ClientReader(client_reader) = &mut exchange.state
        {
            change(client_reader);
        }
    }

    /// An object under way ends at this offset.
    pub fn object_ends(&mut self, id: ExchangeId, length: u64) {
        if let Some(exchange) = self.0.get_mut(&id)
            && let State::ClientReader(client_reader) = &mut exchange.state
        {
            client_reader.ends(length);
        }
    }

    /// An object is stored: its readers continue from the store. `unfillable`: peers cannot fill
    /// its holes.
    pub fn read_closed(&mut self, id: ExchangeId, record: &Rc<Record>, unfillable: bool) {
        let source = Source::Closed(Rc::clone(record));
        match self.0.get_mut(&id).map(|exchange| &mut exchange.state) {
            Some(State::ClientReader(it)) => {
                it.source = source;
                it.unfillable |= unfillable;
            }
            Some(State::PeerReader(it)) => {
                it.source = source;
                it.unfillable |= unfillable;
            }
            _ => {}
        }
    }

    /// Units of a hole have arrived from the origin for a reader. `all`: these were the last.
    pub fn mended(&mut self, id: ExchangeId, units: Vec<(ChunkId, Bytes)>, all: bool) {
        self.with_serving(id, |client_reader| {
            client_reader.waits &= units.is_empty();
            client_reader.ahead.extend(units);
            if all {
                client_reader.repair = None;
            }
        });
    }

    /// For these readers, `bytes` counted as a peer's were overheard; `mended` of them in units
    /// that a peer completed.
    pub fn not_from_peer(&mut self, readers: &[ExchangeId], bytes: u64, mended: u64) {
        for reader in readers {
            self.with_serving(*reader, |client_reader| {
                client_reader.from_peer = client_reader.from_peer.saturating_sub(bytes);
                client_reader.from_repair += mended;
            });
        }
    }

    /// The transfer that an exchange reads, if one is under way.
    pub fn reads_growing(&self, id: ExchangeId) -> Option<FetchId> {
        match &self.0.get(&id)?.state {
            State::ClientReader(client_reader) => client_reader.source.incoming(),
            State::PeerReader(peer_reader) => peer_reader.source.incoming(),
            _ => None,
        }
    }

    /// A reader of a stored record has a transfer again, which fills holes.
    pub fn reopen(&mut self, id: ExchangeId, fetch: FetchId) {
        match self.0.get_mut(&id).map(|exchange| &mut exchange.state) {
            Some(State::ClientReader(it)) => it.source = Source::Incoming(fetch),
            Some(State::PeerReader(it)) => it.source = Source::Incoming(fetch),
            _ => {}
        }
    }
}
