//! Carries the bytes of a pair's connection between its socket and an engine.

use bytes::{Buf as _, Bytes};
use host::parting::part;
use std::io::{self, ErrorKind};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::Notify;

/// Bytes that are read at one time at most.
const READ_MAX: usize = 64 * 1024;
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

    /// Notified when one of the answers above may have changed.
    fn changed(&self) -> &Notify;
}

/// Carries bytes until the connection or the engine's interest in it ends.
pub async fn carry(stream: TcpStream, end: &impl End) {
    let mut unsent = Bytes::new();
    let mut buffer = vec![0; READ_MAX];
    loop {
        let changed = end.changed().notified();
        tokio::pin!(changed);
        changed.as_mut().enable();
        if write(&stream, end, &mut unsent).is_err() {
            return;
        }
        if end.is_over() {
            // The other side may still have to read why.
            let _ = tokio::time::timeout(LINGER, finish(stream, end, unsent)).await;
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
            () = changed => {}
        }
    }
}

/// Sends what is left, and waits until the other side closes too.
async fn finish(stream: TcpStream, end: &impl End, mut unsent: Bytes) -> io::Result<()> {
    while write(&stream, end, &mut unsent).is_ok() && !unsent.is_empty() {
        stream.writable().await?;
    }
    part(stream).await
}

/// Writes as much as the socket takes.
fn write(stream: &TcpStream, end: &impl End, unsent: &mut Bytes) -> Result<(), ()> {
    loop {
        if unsent.is_empty() {
            match end.transmit() {
                Some(bytes) => *unsent = bytes,
                None => return Ok(()),
            }
        }
        match stream.try_write(unsent) {
            Ok(length) => unsent.advance(length),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
            Err(_) => return Err(()),
        }
    }
}
