//! Closing a connection: so that the other side can read the last bytes, or so that it sees that some are missing.

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

/// Has the connection reset once it is dropped; what is unsent is discarded.
pub fn abort(stream: &impl Borrow<TcpStream>) {
    // Errors do not matter: the connection ends in any case.
    let _ = SockRef::from(stream.borrow()).set_linger(Some(Duration::ZERO));
}
