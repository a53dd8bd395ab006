//! What stands outside of the mesh: clients that ask for files, the origin that has them, and the
//! HTTP/1.1 that they speak.
//!
//! *Who calls it:* the world, as programs on machines; [`http`] also the router's driver. *What it never
//! does:* cache, or decide who is asked. *Where to start:* [`Client`], [`Origin`].

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
pub use client::{Ask, Client, Got, PATIENCE};
pub use date::BEGIN;
pub(crate) use date::date;
pub(crate) use origin::format_date;
pub use origin::{Answer, Body, Files};
pub use server::Origin;

/// Reads at most so much, in one piece, of all segments that have come.
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

/// Takes what comes at a socket of which nothing more is wanted: else its peer would wait for room.
pub(crate) fn discard(now: Instant, host: &mut Host, socket: SocketId) {
    while host.read(now, socket, usize::MAX).is_some() {}
}
