//! Sockets of netlink.

use std::io;
use std::os::fd::OwnedFd;

use rustix::net::netlink::{self, SocketAddrNetlink};
use rustix::net::{AddressFamily, Protocol, SocketFlags, SocketType};

/// Links, addresses and routes (`NETLINK_ROUTE`, which is protocol 0).
pub const ROUTE: Option<Protocol> = None;
/// Generic netlink.
pub const GENERIC: Option<Protocol> = Some(netlink::GENERIC);

/// A socket for requests, which blocks.
pub fn open(protocol: Option<Protocol>) -> io::Result<OwnedFd> {
    bound(protocol, SocketFlags::empty(), 0)
}

/// A socket that also receives notifications of these groups, and does not block.
pub fn subscribed(groups: u32) -> io::Result<OwnedFd> {
    bound(ROUTE, SocketFlags::NONBLOCK, groups)
}

fn bound(protocol: Option<Protocol>, flags: SocketFlags, groups: u32) -> io::Result<OwnedFd> {
    let flags = flags | SocketFlags::CLOEXEC;
    let socket =
        rustix::net::socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, protocol)?;
    rustix::net::bind(&socket, &SocketAddrNetlink::new(0, groups))?;
    Ok(socket)
}
