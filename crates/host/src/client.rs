//! A client's connection, whose traffic is counted.

use crate::parting::abort;
use crate::traffic::Metered;
use node::driver::admission::Meter;
use std::borrow::Borrow;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// An accepted connection.
#[derive(Debug)]
pub struct Client {
    stream: Metered,
    meter: Arc<Meter>,
}

impl Client {
    /// A connection that is counted by this meter.
    pub fn new(stream: Metered, meter: Arc<Meter>) -> Self {
        Self { stream, meter }
    }

    /// The address that the client dialled.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.stream.local_addr()
    }

    /// The connection's meter.
    pub fn meter(&self) -> Arc<Meter> {
        Arc::clone(&self.meter)
    }

    fn written(&self, ready: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        match &ready {
            Poll::Ready(Ok(count)) => {
                self.meter.moved(*count as u64);
                self.meter.keeps(false);
            }
            Poll::Ready(Err(_)) => {}
            Poll::Pending => {
                self.meter.waits();
                self.meter.keeps(true);
            }
        }
        ready
    }
}

impl Borrow<TcpStream> for Client {
    fn borrow(&self) -> &TcpStream {
        &self.stream
    }
}

impl AsyncRead for Client {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = out.filled().len();
        let ready = Pin::new(&mut this.stream).poll_read(cx, out);
        this.meter.moved((out.filled().len() - before) as u64);
        ready
    }
}

impl AsyncWrite for Client {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let ready = Pin::new(&mut this.stream).poll_write(cx, bytes);
        this.written(ready)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let ready = Pin::new(&mut this.stream).poll_write_vectored(cx, bytes);
        this.written(ready)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// Discards unsent data of a client that was given up, which would otherwise outlive the
/// connection.
impl Drop for Client {
    fn drop(&mut self) {
        if self.meter.is_reset() {
            abort(&*self);
        }
    }
}
