//! One listing by the kernel, on a socket of its own. The kernel answers immediately.

use std::io;

use rustix::net::{RecvFlags, SendFlags};

use super::message::{self, Message};
use super::{DATAGRAM_MAX, socket};

/// What `read` makes of the messages that answer a request to list all of a kind (`GETADDR` …).
pub fn list<T>(kind: u16, read: impl Fn(Message<'_>) -> Option<T>) -> io::Result<Vec<T>> {
    let socket = socket::open(socket::ROUTE)?;
    rustix::net::send(&socket, &message::dump(kind, 1), SendFlags::empty())?;
    let (mut found, mut buffer) = (Vec::new(), vec![0; DATAGRAM_MAX]);
    loop {
        let (length, _) = rustix::net::recv(&socket, &mut buffer[..], RecvFlags::empty())?;
        for message in message::messages(buffer.get(..length).unwrap_or(&buffer)) {
            match message.kind {
                message::DONE => return Ok(found),
                message::ERROR => return Err(io::Error::other("the kernel does not list this")),
                _ => found.extend(read(message)),
            }
        }
    }
}
