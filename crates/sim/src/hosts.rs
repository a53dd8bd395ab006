//! The machines outside the mesh: clients that request files, the origin that has them, and the HTTP/1.1 that
//! they speak.
//!
//! *Who calls it:* the world runs them as programs on machines; the router's driver uses [`http`] too. *What
//! it never does:* cache, or decide which router is asked. *Where to start:* [`Client`], [`Origin`].

use bytes::{Bytes, BytesMut};
use wire::Instant;

use crate::net::{Host, SocketId};

mod browser;
mod client;
pub mod content;
mod date;
pub mod http;
mod origin;
mod server;

pub use browser::Browser;
pub use client::{Ask, Client, Got, TIMEOUT};
pub use date::BEGIN;
pub(crate) use date::date;
pub(crate) use origin::format_date;
pub use origin::{Answer, Body, Files};
pub use server::Origin;

/// Reads up to `most` bytes, and joins the segments that have arrived into one piece.
pub(crate) fn read(now: Instant, host: &mut Host, socket: SocketId, most: usize) -> Option<Bytes> {
    let first = host.read(now, socket, most)?;
    let mut left = most - first.len();
    if left == 0 || host.readable(socket) == 0 {
        return Some(first);
    }
    let mut bytes = BytesMut::from(first);
    while let Some(piece) = host.read(now, socket, left) {
        left -= piece.len();
        bytes.extend_from_slice(&piece);
    }
    Some(bytes.freeze())
}

/// Reads and drops what arrives at a socket whose data is no longer wanted. Otherwise its receive window
/// would stay closed, and its peer would wait.
pub(crate) fn discard(now: Instant, host: &mut Host, socket: SocketId) {
    while host.read(now, socket, usize::MAX).is_some() {}
}
