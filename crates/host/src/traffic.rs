//! Bytes on the wire of the connections that end here, as the kernel counts them.
//!
//! *What this is:* a [`Metered`] connection is read once more when it closes; [`Traffic::totals`] reads those that are
//! open. A segment counts with its headers: 20 or 40 bytes of IP, 20 of TCP, and 12 of the option of timestamps where
//! it is on. What was sent again counts again; what arrived twice counts once, except for its headers. *Who calls it:*
//! all that accepts or dials connections; the daemon's ledger. *What it never does:* count a frame's own header, or
//! the segments of a handshake before the connection exists.

use crate::timeouts::{Flow, end, flow};
use std::borrow::Borrow;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, IoSlice};
use std::net::IpAddr;
use std::ops::Deref;
use std::os::fd::{AsRawFd as _, RawFd};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

wire::reasons! {
    /// With whom a connection is.
    pub enum With {
        /// With a client.
        Client = "client",
        /// With an origin.
        Origin = "origin",
        /// With another node of the mesh.
        Peer = "peer",
        /// With the other end of the uplink's pair.
        Uplink = "uplink",
    }
}

wire::counters! {
    /// What crossed the wire, headers of IP and TCP included.
    #[derive(Copy)]
    pub struct WireBytes, "wire_" {
        Requests ("hearsay_wire_bytes_total", direction, "Bytes on the wire of connections that end here, with headers of IP and TCP.") {
            /// That arrived.
            in_bytes: Counter, Bytes, "in";
            /// That were sent.
            out_bytes: Counter, Bytes, "out";
        }
        Requests ("hearsay_wire_segments_total", direction, "TCP segments of connections that end here.") {
            /// That arrived.
            in_segments: Counter, Segments, "in";
            /// That were sent.
            out_segments: Counter, Segments, "out";
        }
    }
}

impl WireBytes {
    /// Both directions together.
    pub fn total(&self) -> u64 {
        self.in_bytes + self.out_bytes
    }
}

/// All metered connections. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Traffic(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    totals: [WireBytes; With::ALL.len()],
    open: BTreeMap<u64, Open>,
    opened: u64,
}

#[derive(Debug)]
struct Open {
    /// Open as long as this entry is there.
    fd: RawFd,
    with: With,
    /// This machine's address, if it is known.
    from: Option<IpAddr>,
    /// Bytes of IP's header.
    ip_bytes: u64,
    counted: Flow,
}

impl Traffic {
    /// Meters a connection from now on, with what has crossed it before.
    pub fn meter(&self, stream: TcpStream, with: With) -> Metered {
        let peer = stream.peer_addr().map(|address| address.ip().to_canonical());
        let ip_bytes = if peer.is_ok_and(|address| address.is_ipv6()) { 40 } else { 20 };
        let mut state = self.lock();
        state.opened += 1;
        let number = state.opened;
        let fd = stream.as_raw_fd();
        let from = stream.local_addr().ok().map(|address| address.ip().to_canonical());
        state.open.insert(number, Open { fd, with, from, ip_bytes, counted: Flow::default() });
        drop(state);
        Metered { _entry: Entry { traffic: self.clone(), number }, stream }
    }

    /// What has crossed the wire so far, by [`With::ALL`].
    pub fn totals(&self) -> [WireBytes; With::ALL.len()] {
        let State { totals, open, .. } = &mut *self.lock();
        open.values_mut().for_each(|open| open.count(totals, false));
        *totals
    }

    /// The addresses of this machine from which connections lead out of the site.
    #[must_use]
    pub fn addresses_outward(&self) -> BTreeSet<IpAddr> {
        self.lock()
            .open
            .values()
            .filter(|open| open.is_outward())
            .filter_map(|it| it.from)
            .collect()
    }

    /// Ends the connections that lead out of the site from these addresses.
    pub fn end_outward(&self, from: &BTreeSet<IpAddr>) {
        let state = self.lock();
        let ended = state.open.values().filter(|open| open.is_outward());
        ended.filter(|it| it.from.is_some_and(|it| from.contains(&it))).for_each(|it| end(it.fd));
    }

    fn close(&self, number: u64) {
        let State { totals, open, .. } = &mut *self.lock();
        if let Some(mut open) = open.remove(&number) {
            open.count(totals, true);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Open {
    fn is_outward(&self) -> bool {
        matches!(self.with, With::Origin | With::Uplink)
    }

    /// Adds what was not counted yet. When a connection closes, the kernel still sends what it holds, and both ends
    /// say that they close it.
    fn count(&mut self, totals: &mut [WireBytes], closes: bool) {
        let Some(mut now) = flow(self.fd) else { return };
        if closes {
            now.sent += now.unsent;
            let full = now.unsent.div_ceil(now.segment.max(1));
            now.segments_out = now.segments_out.wrapping_add(full as u32 + 1);
            now.segments_in = now.segments_in.wrapping_add(1);
        }
        let before = std::mem::replace(&mut self.counted, now);
        // The kernel counts segments in 32 bits.
        let segments_in = u64::from(now.segments_in.wrapping_sub(before.segments_in));
        let segments_out = u64::from(now.segments_out.wrapping_sub(before.segments_out));
        let head = self.ip_bytes + 20 + if now.has_timestamps { 12 } else { 0 };
        let total = &mut totals[self.with as usize];
        total.in_segments += segments_in;
        total.out_segments += segments_out;
        total.in_bytes += now.received.saturating_sub(before.received) + segments_in * head;
        total.out_bytes += now.sent.saturating_sub(before.sent) + segments_out * head;
    }
}

/// A connection whose traffic is counted.
#[derive(Debug)]
pub struct Metered {
    /// It is dropped first, so that the connection can still be read.
    _entry: Entry,
    stream: TcpStream,
}

#[derive(Debug)]
struct Entry {
    traffic: Traffic,
    number: u64,
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.traffic.close(self.number);
    }
}

impl Deref for Metered {
    type Target = TcpStream;

    fn deref(&self) -> &TcpStream {
        &self.stream
    }
}

impl Borrow<TcpStream> for Metered {
    fn borrow(&self) -> &TcpStream {
        &self.stream
    }
}

impl AsyncRead for Metered {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, out)
    }
}

impl AsyncWrite for Metered {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bytes)
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

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    #[tokio::test]
    async fn what_crossed_is_counted_while_it_is_open_and_after_it_has_closed() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (dialled, accepted) = tokio::join!(TcpStream::connect(address), listener.accept());
        let (here, there) = (Traffic::default(), Traffic::default());
        let mut client = here.meter(dialled.unwrap(), With::Origin);
        let mut server = there.meter(accepted.unwrap().0, With::Client);
        let mut got = vec![0; 1 << 20];
        let (sent, read) =
            tokio::join!(server.write_all(&[7; 1 << 20]), client.read_exact(&mut got));
        sent.unwrap();
        read.unwrap();
        let all = |traffic: &Traffic, with: With| traffic.totals()[with as usize];
        let (open, at_server) = (all(&here, With::Origin), all(&there, With::Client));
        assert!(open.in_bytes > 1 << 20 && at_server.out_bytes > 1 << 20, "{open:?} {at_server:?}");
        assert!(open.in_bytes < (1 << 20) * 11 / 10, "headers are small: {open:?}");
        // The end of the client's segments counts 20 + 20 + 12 bytes each, and no content.
        assert_eq!(open.out_bytes, open.out_segments * 52);
        assert_eq!(all(&here, With::Client), WireBytes::default());
        assert_eq!(all(&here, With::Origin), open, "nothing is counted twice");
        drop((client, server));
        let closed = all(&here, With::Origin);
        assert!(closed.in_bytes >= open.in_bytes && closed.in_bytes <= open.in_bytes + 200);
        assert!(here.lock().open.is_empty() && there.lock().open.is_empty());
    }

    #[tokio::test]
    async fn only_what_leads_out_from_an_address_is_ended() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let traffic = Traffic::default();
        let mut ends = Vec::new();
        for with in With::ALL {
            let (dialled, accepted) = tokio::join!(TcpStream::connect(address), listener.accept());
            ends.push((traffic.meter(dialled.unwrap(), with), accepted.unwrap().0));
        }
        let here = traffic.addresses_outward();
        assert_eq!(here, [address.ip()].into());
        traffic.end_outward(&["192.0.2.1".parse().unwrap()].into());
        traffic.end_outward(&here);
        for ((mut here, mut there), with) in ends.into_iter().zip(With::ALL) {
            if matches!(with, With::Origin | With::Uplink) {
                assert_eq!(here.read(&mut [0]).await.unwrap(), 0, "{with:?}");
                assert_eq!(there.read(&mut [0]).await.unwrap(), 0, "{with:?}");
            } else {
                there.write_all(b"x").await.unwrap();
                assert_eq!(here.read(&mut [0]).await.unwrap(), 1, "{with:?}");
            }
        }
    }
}
