//! Closing a connection so that the other side can read the last bytes.

use std::borrow::Borrow;
use std::io::{self, ErrorKind};
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
