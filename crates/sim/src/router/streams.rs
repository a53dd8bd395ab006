//! TCP connections whose bytes go by the uplink's pair, with clients at the gateway or with servers at the far end:
//! what the daemon's `pair/tcp.rs` does, in virtual time. Unlike there, a reset may overtake what is still under way, and
//! waits for a peer that does not read.

#![deny(clippy::wildcard_enum_match_arm, reason = "no event may be overlooked")]

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use node::FetchError;
use wire::Instant;

use crate::hosts::read;
use crate::net::{Event, Host, SocketId, tcp};

/// Bytes that are read at one time at most, as in the daemon.
const READ_MAX: u64 = 16 * 1024;
/// Bytes that may wait for a socket, as in the daemon: the engine gives no more.
pub const WAITING_MAX: u64 = 64 * 1024;

/// All connections of an end, by the names that its engine gives them.
#[derive(Debug)]
pub(super) struct Streams<K> {
    all: BTreeMap<K, Stream>,
    keys: BTreeMap<SocketId, K>,
}

/// What an event means for a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change<K> {
    /// It is made.
    Made(K),
    /// There may be something to read or write.
    Ready,
    /// It has ended, and is forgotten. `Ok`: the engine knows all of it.
    Ended(K, Result<(), FetchError>),
}

impl<K> Default for Streams<K> {
    fn default() -> Self {
        Self { all: BTreeMap::new(), keys: BTreeMap::new() }
    }
}

impl<K: Copy + Ord> Streams<K> {
    /// A connection that is being made, or is.
    pub fn open(&mut self, key: K, host: &mut Host, socket: SocketId) {
        host.set_nodelay(socket, true);
        self.keys.insert(socket, key);
        self.all.insert(key, Stream::new(socket));
    }

    /// Whether there is one of this name.
    pub fn has(&self, key: K) -> bool {
        self.all.contains_key(&key)
    }

    /// The one of this name.
    pub fn get(&mut self, key: K) -> Option<&mut Stream> {
        self.all.get_mut(&key)
    }

    /// All of them.
    pub fn iter(&mut self) -> impl Iterator<Item = (K, &mut Stream)> {
        self.all.iter_mut().map(|(key, stream)| (*key, stream))
    }

    /// Breaks one off.
    pub fn abort(&mut self, now: Instant, host: &mut Host, key: K) {
        if let Some(stream) = self.all.remove(&key) {
            self.keys.remove(&stream.socket);
            host.abort(now, stream.socket);
        }
    }

    /// Forgets those whose two sides have ended.
    pub fn forget(&mut self) {
        let keys = &mut self.keys;
        self.all.retain(|_, stream| {
            let is_over = stream.is_over();
            if is_over {
                keys.remove(&stream.socket);
            }
            !is_over
        });
    }

    /// Takes an event of a socket; `None` if the socket is of none of them.
    pub fn handle_event(&mut self, event: &Event) -> Option<Change<K>> {
        let (Event::Connected(id)
        | Event::Accepted { id, .. }
        | Event::Readable(id)
        | Event::Writable(id)
        | Event::PeerClosed(id)
        | Event::Closed { id, .. }) = event
        else {
            return None;
        };
        let key = *self.keys.get(id)?;
        Some(match event {
            Event::Connected(_) => Change::Made(key),
            Event::Closed { why, .. } => {
                self.keys.remove(id);
                Change::Ended(key, self.all.remove(&key).map_or(Ok(()), |it| it.ended(*why)))
            }
            Event::PeerClosed(_) => {
                self.all.get_mut(&key).into_iter().for_each(Stream::end_of_peer);
                Change::Ready
            }
            Event::Accepted { .. }
            | Event::Readable(_)
            | Event::Writable(_)
            | Event::Datagram { .. } => Change::Ready,
        })
    }
}

/// One connection.
#[derive(Debug)]
pub(super) struct Stream {
    socket: SocketId,
    /// How many bytes the engine takes of it.
    pub room: u64,
    hearing: Hearing,
    /// What the engine has said and the socket has not taken.
    waiting: VecDeque<Bytes>,
    saying: Saying,
}

/// What comes from the socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hearing {
    /// More may come.
    Open,
    /// The peer has said all; some of it may be unread.
    Ended,
    /// The connection was broken off here.
    Broken,
    /// The engine knows how it has ended.
    Over,
}

/// What goes to the socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Saying {
    /// More may come.
    Open,
    /// The engine has said all; with an error, the connection is to be reset after that.
    Ending(Result<(), FetchError>),
    /// The socket is closed.
    Over,
}

/// What a connection has said.
#[derive(Debug)]
pub(super) enum Heard {
    /// This.
    Bytes(Bytes),
    /// All; or it was broken off.
    End(Result<(), FetchError>),
}

impl Stream {
    fn new(socket: SocketId) -> Self {
        let (hearing, saying) = (Hearing::Open, Saying::Open);
        Self { socket, room: 0, hearing, waiting: VecDeque::new(), saying }
    }

    /// The engine says this.
    pub fn put(&mut self, bytes: Bytes) {
        self.waiting.push_back(bytes);
    }

    /// The engine says no more.
    pub fn end(&mut self, result: Result<(), FetchError>) {
        self.saying = Saying::Ending(result);
    }

    /// The next of what the connection says, as far as the engine has room.
    pub fn hear(&mut self, now: Instant, host: &mut Host) -> Option<Heard> {
        match self.hearing {
            Hearing::Over => return None,
            Hearing::Broken => {
                self.hearing = Hearing::Over;
                return Some(Heard::End(Err(FetchError::Truncated)));
            }
            Hearing::Open | Hearing::Ended => {}
        }
        let most = self.room.min(READ_MAX) as usize;
        if most > 0
            && let Some(bytes) = read(now, host, self.socket, most)
        {
            self.room -= bytes.len() as u64;
            return Some(Heard::Bytes(bytes));
        }
        let is_all = self.hearing == Hearing::Ended && host.readable(self.socket) == 0;
        is_all.then(|| {
            self.hearing = Hearing::Over;
            Heard::End(Ok(()))
        })
    }

    /// Writes what the socket takes, and ends the connection after all of it. Returns how many bytes that was.
    pub fn say(&mut self, now: Instant, host: &mut Host) -> u64 {
        let mut taken = 0;
        while let Some(bytes) = self.waiting.front_mut() {
            taken += host.write(now, self.socket, bytes) as u64;
            if !bytes.is_empty() {
                return taken;
            }
            self.waiting.pop_front();
        }
        match self.saying {
            Saying::Ending(Ok(())) => {
                host.close(now, self.socket);
                self.saying = Saying::Over;
            }
            Saying::Ending(Err(_)) if host.wants_more(self.socket, 1) => {
                host.abort(now, self.socket);
                self.saying = Saying::Over;
                // What it has heard already, it has heard.
                if self.hearing != Hearing::Over {
                    self.hearing = Hearing::Broken;
                }
            }
            Saying::Open | Saying::Ending(Err(_)) | Saying::Over => {}
        }
        taken
    }

    fn end_of_peer(&mut self) {
        if self.hearing == Hearing::Open {
            self.hearing = Hearing::Ended;
        }
    }

    fn is_over(&self) -> bool {
        self.hearing == Hearing::Over && self.saying == Saying::Over
    }

    /// What the end of its socket means to the engine.
    fn ended(&self, why: tcp::End) -> Result<(), FetchError> {
        match why {
            tcp::End::Done if self.hearing == Hearing::Over => Ok(()),
            tcp::End::Refused => Err(FetchError::Unreachable),
            tcp::End::TimedOut => Err(FetchError::TimedOut),
            tcp::End::Done | tcp::End::Reset | tcp::End::Aborted => Err(FetchError::Truncated),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddrV4};

    use super::*;
    use crate::net::{Config, Interface};

    /// Two hosts, whose packets arrive at once. The first has a connection with the second, which is carried.
    struct Carried {
        client: Host,
        socket: SocketId,
        router: Host,
        streams: Streams<u32>,
        changes: Vec<Change<u32>>,
        events: Vec<Event>,
    }

    const NOW: Instant = Instant::ZERO;

    impl Carried {
        fn new() -> Self {
            let host = |number| {
                Host::new(Config::default(), &[Ipv4Addr::new(10, 0, 0, number)], number.into())
            };
            let [mut client, mut router] = [1, 2].map(host);
            router.listen(80);
            let to = SocketAddrV4::new(router.addresses()[0], 80);
            let socket = client.connect(NOW, to).unwrap();
            let (streams, changes, events) = (Streams::default(), Vec::new(), Vec::new());
            let mut it = Self { client, socket, router, streams, changes, events };
            it.settle();
            it
        }

        /// Carries packets until there are none.
        fn settle(&mut self) {
            loop {
                while let Some(event) = self.router.poll_event() {
                    if let Event::Accepted { id, .. } = event {
                        self.streams.open(7, &mut self.router, id);
                    } else {
                        self.changes.extend(self.streams.handle_event(&event));
                    }
                }
                self.events.extend(std::iter::from_fn(|| self.client.poll_event()));
                let packets: Vec<_> = std::iter::from_fn(|| self.client.poll_packet()).collect();
                let answers: Vec<_> = std::iter::from_fn(|| self.router.poll_packet()).collect();
                if packets.is_empty() && answers.is_empty() {
                    return;
                }
                for packet in packets {
                    self.router.handle_packet(NOW, Interface(0), packet);
                }
                for packet in answers {
                    self.client.handle_packet(NOW, Interface(0), packet);
                }
            }
        }

        fn write(&mut self, bytes: &'static [u8]) {
            self.client.write(NOW, self.socket, &mut Bytes::from_static(bytes));
            self.settle();
        }

        /// What the engine hears with this much room.
        fn hear(&mut self, room: u64) -> (Vec<u8>, bool) {
            let (mut bytes, mut is_all) = (Vec::new(), false);
            if let Some(stream) = self.streams.get(7) {
                stream.room = room;
                while let Some(heard) = stream.hear(NOW, &mut self.router) {
                    match heard {
                        Heard::Bytes(more) => bytes.extend(more),
                        Heard::End(result) => {
                            assert_eq!(result, Ok(()));
                            is_all = true;
                        }
                    }
                }
            }
            self.settle();
            (bytes, is_all)
        }

        fn say(&mut self) -> u64 {
            let taken = self.streams.get(7).map_or(0, |it| it.say(NOW, &mut self.router));
            self.streams.forget();
            self.settle();
            taken
        }

        fn got(&mut self) -> Vec<u8> {
            std::iter::from_fn(|| self.client.read(NOW, self.socket, 100)).flatten().collect()
        }
    }

    #[test]
    fn either_side_may_end_first_and_the_other_goes_on() {
        let mut it = Carried::new();
        it.write(b"question");
        it.client.close(NOW, it.socket);
        it.settle();
        assert_eq!(it.hear(5), (b"quest".to_vec(), false), "no more than there is room for");
        assert_eq!(it.hear(5), (b"ion".to_vec(), true));
        assert_eq!(it.hear(5), (vec![], false), "it ends once");
        it.streams.get(7).unwrap().put(Bytes::from_static(b"answer"));
        it.streams.get(7).unwrap().end(Ok(()));
        assert_eq!(it.say(), 6);
        assert_eq!((it.got(), it.streams.has(7)), (b"answer".to_vec(), false));
    }

    #[test]
    fn a_reset_comes_after_what_was_said_before_it() {
        let mut it = Carried::new();
        it.streams.get(7).unwrap().put(Bytes::from_static(b"so far"));
        it.streams.get(7).unwrap().end(Err(FetchError::Truncated));
        assert_eq!((it.say(), it.streams.has(7)), (6, true));
        assert_eq!(it.got(), b"so far");
        it.say();
        let reset = Event::Closed { id: it.socket, why: tcp::End::Reset };
        assert_eq!((it.events.last(), it.streams.has(7)), (Some(&reset), true));
        // The engine hears that, too, as of any end.
        let heard = it.streams.get(7).and_then(|stream| stream.hear(NOW, &mut it.router));
        assert!(matches!(heard, Some(Heard::End(Err(FetchError::Truncated)))), "{heard:?}");
        it.streams.forget();
        assert!(!it.streams.has(7));
    }

    #[test]
    fn the_engine_learns_of_a_reset() {
        let mut it = Carried::new();
        it.write(b"half a ques");
        it.client.abort(NOW, it.socket);
        it.settle();
        assert_eq!(it.changes.last(), Some(&Change::Ended(7, Err(FetchError::Truncated))));
        assert!(!it.streams.has(7));
    }
}
