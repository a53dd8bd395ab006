//! Joins two connections, byte for byte, until both have ended.

use std::borrow::Borrow;
use std::cell::Cell;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf, copy_bidirectional_with_sizes};
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

/// Bytes that have passed from near to far, and back.
#[derive(Debug, Default)]
pub struct Passed {
    /// From near to far.
    pub there: Cell<u64>,
    /// From far to near.
    pub back: Cell<u64>,
    /// A sum that these bytes are part of.
    all: Option<Rc<Self>>,
}

impl Passed {
    /// None yet; those that come count in `all` too.
    pub fn part_of(all: &Rc<Self>) -> Self {
        Self { all: Some(Rc::clone(all)), ..Self::default() }
    }

    /// So many bytes more have passed from near to far.
    pub fn go_there(&self, bytes: u64) {
        self.there.set(self.there.get() + bytes);
        self.all.iter().for_each(|all| all.go_there(bytes));
    }

    /// So many bytes more have passed from far to near.
    pub fn come_back(&self, bytes: u64) {
        self.back.set(self.back.get() + bytes);
        self.all.iter().for_each(|all| all.come_back(bytes));
    }

    /// Both together.
    pub fn total(&self) -> u64 {
        self.there.get() + self.back.get()
    }
}

/// Sends what was read before, then copies in both directions, and counts it as it passes. If
/// this is dropped or the process dies before both sides have ended, both connections are reset: a program that
/// recognises the end of its data by the end of the connection must not take a part for the whole.
pub async fn splice<A: Side, B: Side>(
    near: &mut A,
    far: &mut B,
    first: First<'_>,
    passed: &Passed,
) -> io::Result<()> {
    near.tcp().into_iter().chain(far.tcp()).for_each(abort);
    let copied = copy(near, far, first, passed).await;
    match copied {
        Ok(()) => near.tcp().into_iter().chain(far.tcp()).for_each(end_in_order),
        // What arrived before one of them broke off is still delivered to the other.
        Err(_) => {
            tokio::join!(reset(near), reset(far));
        }
    }
    copied
}

async fn copy<A: Side, B: Side>(
    near: &mut A,
    far: &mut B,
    (to_far, to_near): First<'_>,
    passed: &Passed,
) -> io::Result<()> {
    let back = |bytes| passed.come_back(bytes);
    let there = |bytes| passed.go_there(bytes);
    let (mut near, mut far) = (Counted(near, &back), Counted(far, &there));
    far.write_all(to_far).await?;
    near.write_all(to_near).await?;
    copy_bidirectional_with_sizes(&mut near, &mut far, BUFFER_BYTES, BUFFER_BYTES).await?;
    Ok(())
}

/// A side, and what counts the bytes that it is given.
struct Counted<'a, S>(&'a mut S, &'a dyn Fn(u64));

impl<S: Side> AsyncRead for Counted<'_, S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.get_mut().0).poll_read(cx, buffer)
    }
}

impl<S: Side> AsyncWrite for Counted<'_, S> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let Self(side, count) = self.get_mut();
        let written = Pin::new(&mut **side).poll_write(cx, bytes);
        if let Poll::Ready(Ok(bytes)) = written {
            count(bytes as u64);
        }
        written
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.get_mut().0).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.get_mut().0).poll_shutdown(cx)
    }
}

async fn reset(side: &impl Side) {
    if let Some(tcp) = side.tcp() {
        abort_after_all(tcp).await;
    }
}
