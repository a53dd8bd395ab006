//! A TCP connection whose bytes go by the pair: with a client at the gateway, with a server at the far end.

use bytes::{BufMut as _, Bytes, BytesMut};
use host::parting::{LINGER, abort, end_in_order};
use node::{Crossed, FetchError};
use std::borrow::Borrow;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, split};
use tokio::net::TcpStream;
use tokio::sync::Notify;

/// Bytes that are read at one time at most.
const READ_MAX: usize = 16 * 1024;
/// Bytes that may wait for a connection's socket: the engine gives no more.
pub const WAITING_MAX: u64 = 64 * 1024;

/// What the engine has for a connection.
#[derive(Default)]
pub struct Inbox {
    bytes: RefCell<VecDeque<Bytes>>,
    crossed: Cell<Crossed>,
    end: Cell<Option<Result<(), FetchError>>>,
    changed: Notify,
    broken: Notify,
}

impl Inbox {
    /// These bytes.
    pub fn put(&self, bytes: Bytes) {
        self.bytes.borrow_mut().push_back(bytes);
        self.changed.notify_one();
    }

    /// Bytes that come next crossed like this.
    pub fn comes(&self, crossed: Crossed) {
        let mut all = self.crossed.get();
        all.add(crossed);
        self.crossed.set(all);
    }

    /// How these bytes crossed, which the connection has taken.
    pub fn taken(&self, bytes: u64) -> Crossed {
        let mut all = self.crossed.get();
        let taken = all.take(bytes);
        self.crossed.set(all);
        taken
    }

    /// No more. An error breaks the connection off, after what waits.
    pub fn end(&self, result: Result<(), FetchError>) {
        self.end.set(Some(result));
        if result.is_err() {
            self.broken.notify_one();
        }
        self.changed.notify_one();
    }

    /// How the engine has ended it, if it has.
    pub fn result(&self) -> Option<Result<(), FetchError>> {
        self.end.get()
    }

    /// The next bytes, or how it ends.
    async fn next(&self) -> Result<Bytes, Result<(), FetchError>> {
        loop {
            if let Some(bytes) = self.bytes.borrow_mut().pop_front() {
                return Ok(bytes);
            }
            if let Some(end) = self.end.get() {
                return Err(end);
            }
            self.changed.notified().await;
        }
    }

    /// Waits until the engine has broken the connection off, and a while for what it had said before.
    async fn broken(&self) {
        self.cut().await;
        tokio::time::sleep(LINGER).await;
    }

    async fn cut(&self) {
        while !matches!(self.end.get(), Some(Err(_))) {
            self.broken.notified().await;
        }
    }

    /// Does this, unless the engine breaks the connection off meanwhile.
    pub async fn unless_cut<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            done = work => Some(done),
            () = self.cut() => None,
        }
    }
}

/// The engine, as a connection sees it.
pub trait Engine {
    /// How many bytes it takes of the connection, once it takes some; `None` if it wants no more.
    async fn room(&self) -> Option<u64>;

    /// The connection has said this.
    async fn heard(&self, bytes: Bytes);

    /// It has said all, or is broken off.
    fn ended(&self, result: Result<(), FetchError>);

    /// It has taken this much of what the engine had for it.
    fn took(&self, bytes: u64);
}

/// Carries bytes both ways until both sides have said all. Gives the connection back, and whether that was so;
/// otherwise it is to be reset, as it is if this process dies meanwhile.
pub async fn converse<S>(stream: S, inbox: &Inbox, engine: &impl Engine) -> (S, bool)
where
    S: AsyncRead + AsyncWrite + Unpin + Borrow<TcpStream>,
{
    abort(&stream);
    let (mut from, mut to) = split(stream);
    let hear = async {
        let mut buffer = BytesMut::new();
        loop {
            // The engine has broken it off, and says so.
            let Some(room) = engine.room().await else { return Err(()) };
            buffer.reserve(READ_MAX);
            let mut part = (&mut buffer).limit(READ_MAX.min(room as usize));
            match from.read_buf(&mut part).await {
                Ok(0) => {
                    engine.ended(Ok(()));
                    return Ok(());
                }
                Ok(_) => engine.heard(buffer.split().freeze()).await,
                Err(_) => return Err(()),
            }
        }
    };
    let say = async {
        loop {
            match inbox.next().await {
                Ok(bytes) => {
                    to.write_all(&bytes).await.map_err(drop)?;
                    engine.took(bytes.len() as u64);
                }
                Err(Ok(())) => return to.shutdown().await.map_err(drop),
                Err(Err(_)) => return Err(()),
            }
        }
    };
    let both = async { tokio::try_join!(hear, say).is_ok() };
    let is_whole = tokio::select! {
        is_whole = both => is_whole,
        // Also if a side does not read.
        () = inbox.broken() => false,
    };
    if !is_whole {
        engine.ended(Err(FetchError::Truncated));
    }
    let stream = from.unsplit(to);
    if is_whole {
        end_in_order(&stream);
    }
    (stream, is_whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(flavor = "current_thread")]
    async fn what_a_connection_waits_for_ends_with_it() {
        let inbox = Inbox::default();
        assert_eq!(inbox.unless_cut(async { 1 }).await, Some(1));
        inbox.end(Ok(()));
        let later = async {
            tokio::task::yield_now().await;
            2
        };
        assert_eq!(
            inbox.unless_cut(later).await,
            Some(2),
            "a client that has said all still hears"
        );
        inbox.end(Err(FetchError::Truncated));
        assert_eq!(inbox.unless_cut(std::future::pending::<()>()).await, None);
    }
}
