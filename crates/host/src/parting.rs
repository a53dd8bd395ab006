//! Closing a connection: so that the other side can read the last bytes, or so that it sees that some are missing.

use crate::timeouts::flight;
use socket2::SockRef;
use std::borrow::Borrow;
use std::io::{self, ErrorKind};
use std::time::Duration;
use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// Shuts down the sending side, then discards everything received until the other side closes too.
/// If a socket were closed with unread bytes, the kernel would reset the connection, and data sent
/// before might be lost.
pub async fn part(mut stream: impl AsyncWrite + Unpin + Borrow<TcpStream>) -> io::Result<()> {
    stream.shutdown().await?;
    let stream: &TcpStream = stream.borrow();
    loop {
        stream.readable().await?;
        match stream.try_read(&mut [0; 1024]) {
            Ok(0) => return Ok(()),
            Err(error) if error.kind() != ErrorKind::WouldBlock => return Err(error),
            _ => {}
        }
    }
}

/// How long what was written may take to arrive before a connection is reset …
pub const LINGER: Duration = Duration::from_secs(2);
/// … and how often it is looked whether it has.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Waits until what was written has arrived, for a while at most. Then the connection is reset once it is dropped.
pub async fn abort_after_all(stream: &impl Borrow<TcpStream>) {
    let arrived = async {
        while flight(stream.borrow()).is_some_and(|it| it.bytes > 0) {
            tokio::time::sleep(LOOK_EVERY).await;
        }
    };
    // What has not arrived by then is lost.
    let _ = tokio::time::timeout(LINGER, arrived).await;
    abort(stream);
}

/// Undoes [`abort`]: both sides have said all, and the kernel delivers the rest after the connection is dropped.
pub fn end_in_order(stream: &impl Borrow<TcpStream>) {
    let _ = SockRef::from(stream.borrow()).set_linger(None);
}

/// Has the connection reset once it is dropped, or this process has died; what is unsent is discarded.
pub fn abort(stream: &impl Borrow<TcpStream>) {
    // Errors do not matter: the connection ends in any case.
    let _ = SockRef::from(stream.borrow()).set_linger(Some(Duration::ZERO));
}
