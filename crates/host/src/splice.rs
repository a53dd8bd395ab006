//! Joins two connections, byte for byte, until both have ended.

use std::borrow::Borrow;
use std::io;

use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, copy_bidirectional_with_sizes};
use tokio::net::TcpStream;

use crate::client::Client;
use crate::parting::{abort, abort_after_all, end_in_order};
use crate::traffic::Metered;

/// Buffer size per direction. There are many tunnels, mostly idle, and each one holds both buffers.
const BUFFER_BYTES: usize = 8 * 1024;

/// One of the two connections.
pub trait Side: AsyncRead + AsyncWrite + Unpin {
    /// Its socket; `None` if that does not matter, because what it carries tells its end itself, as TLS does.
    fn tcp(&self) -> Option<&TcpStream>;
}

impl Side for Client {
    fn tcp(&self) -> Option<&TcpStream> {
        Some(self.borrow())
    }
}

impl Side for Metered {
    fn tcp(&self) -> Option<&TcpStream> {
        Some(self)
    }
}

impl Side for TokioIo<Upgraded> {
    fn tcp(&self) -> Option<&TcpStream> {
        None
    }
}

/// What was read of both sides before: to be sent to far, and to near.
pub type First<'a> = (&'a [u8], &'a [u8]);

/// Sends what was read before, then copies in both directions. Returns the number of bytes from near to far, and back. If
/// this is dropped or the process dies before both sides have ended, both connections are reset: a program that
/// recognises the end of its data by the end of the connection must not take a part for the whole.
pub async fn splice<A: Side, B: Side>(
    near: &mut A,
    far: &mut B,
    first: First<'_>,
) -> io::Result<(u64, u64)> {
    near.tcp().into_iter().chain(far.tcp()).for_each(abort);
    let passed = copy(near, far, first).await;
    match passed {
        Ok(_) => near.tcp().into_iter().chain(far.tcp()).for_each(end_in_order),
        // What arrived before one of them broke off is still delivered to the other.
        Err(_) => {
            tokio::join!(reset(near), reset(far));
        }
    }
    passed
}

async fn copy<A: Side, B: Side>(
    near: &mut A,
    far: &mut B,
    (to_far, to_near): First<'_>,
) -> io::Result<(u64, u64)> {
    far.write_all(to_far).await?;
    near.write_all(to_near).await?;
    let (there, back) =
        copy_bidirectional_with_sizes(near, far, BUFFER_BYTES, BUFFER_BYTES).await?;
    Ok((there + to_far.len() as u64, back + to_near.len() as u64))
}

async fn reset(side: &impl Side) {
    if let Some(tcp) = side.tcp() {
        abort_after_all(tcp).await;
    }
}
