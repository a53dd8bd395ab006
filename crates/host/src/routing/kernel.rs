//! The kernel's routes to the gateway and to other routers, by netlink: after each notification of a
//! change, all links and routes are listed again.
//!
//! The changes themselves are not applied, because the kernel does not report all of them: IPv4
//! routes that disappear with a link or an address are not reported. Changes that can matter are
//! rare: those of links, addresses, and routes that cover the gateway. Those of routes to other
//! routers are frequent in a large mesh, so the listing waits longer for more of them. Read
//! rtnetlink(7) before editing.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{RecvFlags, SendFlags};
use tokio::io::unix::AsyncFd;
use tokio::time::{Instant, sleep_until};

mod addresses;
mod fib;
mod hosts;
mod links;
mod listing;
mod lookup;
mod message;
mod socket;
mod wireless;

pub use addresses::{addresses, all_addresses};
pub use fib::{BestRoute, Fib, Wanted};
pub use hosts::HostRoute;
pub use links::{all_links, devices};
pub use lookup::{Forward, forward, forward_marked};
pub use message::Device;
use message::Message;
pub use message::{Link, LinkKind, messages};
pub use wireless::is_forwarding_mesh_point;

#[cfg(test)]
pub use fib::tests::{links, links_for, own, route};
#[cfg(test)]
pub use message::Route as KernelRoute;

/// Changes come in bursts: the delay between the first of them and the listing.
const SETTLE: Duration = Duration::from_millis(25);
/// The same delay if only routes to other routers have changed.
const SETTLE_HOSTS: Duration = Duration::from_millis(250);
/// The delay after an error.
const AGAIN: Duration = Duration::from_secs(1);
/// The greatest length of a datagram in the kernel's listings.
const DATAGRAM_MAX: usize = 32 * 1024;

/// Multicast groups: links, addresses and routes of both families (`RTMGRP_…`).
const GROUPS: u32 = 0x1 | 0x10 | 0x40 | 0x100 | 0x400;

/// The netlink connection.
#[derive(Debug)]
pub struct Kernel {
    socket: AsyncFd<OwnedFd>,
    /// The address of this socket, assigned by the kernel.
    port: u32,
    sequence: u32,
    phase: Phase,
    buffer: Vec<u8>,
    /// The last complete listing.
    fib: Fib,
    /// The listing in progress.
    coming: Fib,
    /// Something changed during the listing: the delay until the next.
    stale: Option<Duration>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Nothing to do.
    Idle,
    /// A listing must be requested at this time.
    Due(Instant),
    /// Links are being listed.
    Links,
    /// Routes are being listed.
    Routes,
}

impl Kernel {
    /// Opens the socket, for these routes.
    pub fn open(wanted: Wanted) -> io::Result<Self> {
        let socket = socket::subscribed(GROUPS)?;
        let own: SocketAddrNetlink = rustix::net::getsockname(&socket)?.try_into()?;
        Ok(Self {
            socket: watched(socket)?,
            port: own.pid(),
            sequence: 0,
            phase: Phase::Due(Instant::now()),
            buffer: vec![0; DATAGRAM_MAX],
            fib: Fib::new(wanted),
            coming: Fib::default(),
            stale: None,
        })
    }

    /// The last complete listing.
    pub fn fib(&self) -> &Fib {
        &self.fib
    }

    /// Waits for a listing that differs from the last one. The future may be dropped at any time.
    pub async fn changed(&mut self) {
        loop {
            let due = match self.phase {
                Phase::Due(at) => Some(at),
                _ => None,
            };
            let received = tokio::select! {
                () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => None,
                received = receive(&self.socket, &mut self.buffer) => Some(received),
            };
            match received {
                None => self.ask(message::GETLINK),
                Some(Ok(length)) => {
                    if self.hear(length) {
                        return;
                    }
                }
                // More notifications arrived than the socket can hold, and some were lost.
                Some(Err(error)) if Errno::from_io_error(&error) == Some(Errno::NOBUFS) => {
                    self.phase = Phase::Due(Instant::now() + SETTLE);
                }
                Some(Err(error)) => {
                    tracing::warn!(%error, "the kernel's routes cannot be read: trying again");
                    self.phase = Phase::Due(Instant::now() + AGAIN);
                    tokio::time::sleep(AGAIN).await;
                }
            }
        }
    }

    fn ask(&mut self, kind: u16) {
        if kind == message::GETLINK {
            (self.coming, self.stale) = (self.fib.emptied(), None);
        }
        self.sequence = self.sequence.wrapping_add(1);
        let request = message::dump(kind, self.sequence);
        self.phase = match rustix::net::send(&self.socket, &request, SendFlags::empty()) {
            Ok(_) if kind == message::GETLINK => Phase::Links,
            Ok(_) => Phase::Routes,
            Err(_) => Phase::Due(Instant::now() + AGAIN),
        };
    }

    /// Handles a datagram; returns whether the listing has changed.
    fn hear(&mut self, length: usize) -> bool {
        let buffer = std::mem::take(&mut self.buffer);
        let mut changed = false;
        for message in messages(buffer.get(..length).unwrap_or(&buffer)) {
            if message.port == self.port {
                changed |= message.sequence == self.sequence && self.hear_answer(message);
            } else if let Some(delay) = self.delay_after(message) {
                self.list_within(delay);
            }
        }
        self.buffer = buffer;
        changed
    }

    /// A listing is needed, after this delay at the latest.
    fn list_within(&mut self, delay: Duration) {
        let at = Instant::now() + delay;
        match self.phase {
            Phase::Idle => self.phase = Phase::Due(at),
            Phase::Due(due) => self.phase = Phase::Due(due.min(at)),
            Phase::Links | Phase::Routes => {
                self.stale = Some(self.stale.map_or(delay, |before| before.min(delay)));
            }
        }
    }

    /// Handles an answer to a request; returns whether the listing has changed.
    fn hear_answer(&mut self, message: Message<'_>) -> bool {
        if message.flags & message::FLAG_INTERRUPTED != 0 {
            self.stale = Some(SETTLE);
        }
        match (message.kind, self.phase) {
            (message::NEWLINK, Phase::Links) => {
                message.link().into_iter().for_each(|link| self.coming.add_link(link));
            }
            (message::NEWROUTE, Phase::Routes) => {
                let route = message.route();
                route.into_iter().for_each(|route| self.coming.add_route(route));
            }
            (message::DONE, Phase::Links) => self.ask(message::GETROUTE),
            (message::DONE, Phase::Routes) => return self.settle(),
            (message::ERROR, _) => self.phase = Phase::Due(Instant::now() + AGAIN),
            _ => {}
        }
        false
    }

    /// The listing is complete; returns whether it differs from the last one.
    fn settle(&mut self) -> bool {
        self.phase = self.stale.map_or(Phase::Idle, |delay| Phase::Due(Instant::now() + delay));
        let before = std::mem::replace(&mut self.fib, std::mem::take(&mut self.coming));
        before != self.fib
    }

    /// How soon the listing is needed after a notification; `None` if it cannot affect it.
    fn delay_after(&self, message: Message<'_>) -> Option<Duration> {
        match message.kind {
            // Wireless drivers report many changes of neither name nor state.
            message::NEWLINK => message.link().filter(|link| !self.fib.knows(link)).map(|_| SETTLE),
            message::DELLINK => message.link().map(|_| SETTLE),
            message::NEWADDR | message::DELADDR => Some(SETTLE),
            message::NEWROUTE | message::DELROUTE => {
                let route = message.route()?;
                let leads_there = self.fib.leads_to_target(&route).then_some(SETTLE);
                leads_there.or(self.fib.concerns_hosts(&route).then_some(SETTLE_HOSTS))
            }
            _ => None,
        }
    }
}

/// Registers a socket with tokio.
#[expect(deprecated, reason = "an OwnedFd keeps its promises by itself; the successor is unsafe")]
fn watched(socket: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    AsyncFd::new(socket)
}

/// Receives a datagram from the kernel; others are dropped.
async fn receive(socket: &AsyncFd<OwnedFd>, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        let mut ready = socket.readable().await?;
        let received = ready.try_io(|socket| {
            let (_, length, from) =
                rustix::net::recvfrom(socket, &mut *buffer, RecvFlags::empty())?;
            let from = from.and_then(|from| SocketAddrNetlink::try_from(from).ok());
            Ok((length, from.map(|from| from.pid())))
        });
        match received {
            Ok(Ok((length, Some(0)))) => return Ok(length),
            Ok(Err(error)) if error.kind() != io::ErrorKind::Interrupted => return Err(error),
            _ => {}
        }
    }
}
