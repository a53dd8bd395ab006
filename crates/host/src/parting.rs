//! The end of a connection whose last bytes are to be read.

use std::io::{self, ErrorKind};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

/// Says that no more comes, and waits for the other side to end too, whatever it still sends: a socket that is closed
/// while it has unread bytes takes back what it sent.
pub async fn part(mut stream: TcpStream) -> io::Result<()> {
    stream.shutdown().await?;
    loop {
        stream.readable().await?;
        match stream.try_read(&mut [0; 1024]) {
            Ok(0) => return Ok(()),
            Err(error) if error.kind() != ErrorKind::WouldBlock => return Err(error),
            _ => {}
        }
    }
}
