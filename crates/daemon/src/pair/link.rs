//! Carries the bytes of a pair's connection between its socket and an engine.

use bytes::{Buf as _, Bytes};
use host::pair::wants_more;
use host::parting::part;
use std::borrow::Borrow;
use std::io::{self, ErrorKind};
use std::time::Duration;
use tokio::io::AsyncWrite;
use tokio::net::TcpStream;
use tokio::sync::Notify;

/// Bytes that are read at one time at most.
const READ_MAX: usize = 64 * 1024;
/// How often it is looked whether a connection whose path is full wants more: no event tells of it.
const LOOK_EVERY: Duration = Duration::from_millis(4);
/// How long what is left may take to be sent when a connection ends.
const LINGER: Duration = Duration::from_secs(5);

/// An engine, as its connection sees it.
pub trait End {
    /// Bytes have arrived.
    fn receive(&self, bytes: Bytes);

    /// The next bytes to send; it is asked only when the socket takes some, so that what is most urgent then
    /// goes first.
    fn transmit(&self) -> Option<Bytes>;

    /// Whether bytes may be received now.
    fn may_receive(&self) -> bool;

    /// Whether the connection must end, once nothing is left to send.
    fn is_over(&self) -> bool;

    /// Whether no newer connection has taken its place.
    fn is_current(&self) -> bool;

    /// Notified when one of the answers above may have changed.
    fn changed(&self) -> &Notify;
}

/// Carries bytes until the connection or the engine's interest in it ends.
pub async fn carry<S>(owned: S, end: &impl End)
where
    S: AsyncWrite + Unpin + Borrow<TcpStream>,
{
    let mut unsent = Bytes::new();
    let mut buffer = vec![0; READ_MAX];
    loop {
        let stream: &TcpStream = owned.borrow();
        let changed = end.changed().notified();
        tokio::pin!(changed);
        changed.as_mut().enable();
        let Ok(written) = write(stream, end, &mut unsent) else { return };
        if end.is_over() {
            // The other side may still have to read why; who has connected anew reads nothing more here.
            tokio::select! {
                _ = tokio::time::timeout(LINGER, finish(owned, end, unsent)) => {}
                () = replaced(end) => {}
            }
            return;
        }
        tokio::select! {
            ready = stream.readable(), if end.may_receive() => {
                let read = ready.and_then(|()| stream.try_read(&mut buffer));
                match read {
                    Ok(0) => return,
                    Ok(length) => end.receive(Bytes::copy_from_slice(&buffer[..length])),
                    Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                    Err(_) => return,
                }
            }
            ready = stream.writable(), if !unsent.is_empty() => {
                if ready.is_err() {
                    return;
                }
            }
            () = tokio::time::sleep(LOOK_EVERY), if written == Written::PathFull => {}
            () = changed => {}
        }
    }
}

/// Waits until a newer connection has taken this one's place.
async fn replaced(end: &impl End) {
    while end.is_current() {
        end.changed().notified().await;
    }
}

/// Why no more was written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Written {
    /// There is nothing more now.
    All,
    /// The socket takes no more.
    SocketFull,
    /// What is on its way fills the path: more would wait in the slow link's queue.
    PathFull,
}

/// Sends what is left, and waits until the other side closes too.
async fn finish<S>(owned: S, end: &impl End, mut unsent: Bytes) -> io::Result<()>
where
    S: AsyncWrite + Unpin + Borrow<TcpStream>,
{
    let stream: &TcpStream = owned.borrow();
    while let Ok(written) = write(stream, end, &mut unsent) {
        match written {
            Written::All => break,
            Written::SocketFull => stream.writable().await?,
            Written::PathFull => tokio::time::sleep(LOOK_EVERY).await,
        }
    }
    part(owned).await
}

/// Writes as much as the socket and the path take.
fn write(stream: &TcpStream, end: &impl End, unsent: &mut Bytes) -> Result<Written, ()> {
    loop {
        if unsent.is_empty() {
            if !wants_more(stream) {
                return Ok(Written::PathFull);
            }
            match end.transmit() {
                Some(bytes) => *unsent = bytes,
                None => return Ok(Written::All),
            }
        }
        match stream.try_write(unsent) {
            Ok(length) => unsent.advance(length),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(Written::SocketFull),
            Err(_) => return Err(()),
        }
    }
}
