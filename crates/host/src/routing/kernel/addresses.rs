//! This machine's addresses.

use std::io;
use std::net::IpAddr;

use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};

use super::{DATAGRAM_MAX, message};

/// The current addresses of an interface, given by its index.
pub fn addresses(interface: u32) -> io::Result<Vec<IpAddr>> {
    let of_it = |(at, address)| (at == interface).then_some(address);
    Ok(list()?.into_iter().filter_map(of_it).collect())
}

/// The current addresses of this machine.
pub fn all_addresses() -> io::Result<Vec<IpAddr>> {
    Ok(list()?.into_iter().map(|(_, address)| address).collect())
}

/// All addresses, each with the index of its interface. The kernel answers immediately.
fn list() -> io::Result<Vec<(u32, IpAddr)>> {
    let (family, kind) = (AddressFamily::NETLINK, SocketType::RAW);
    let socket = rustix::net::socket_with(family, kind, SocketFlags::CLOEXEC, None)?;
    rustix::net::bind(&socket, &SocketAddrNetlink::new(0, 0))?;
    rustix::net::send(&socket, &message::dump(message::GETADDR, 1), SendFlags::empty())?;
    let (mut found, mut buffer) = (Vec::new(), vec![0; DATAGRAM_MAX]);
    loop {
        let (length, _) = rustix::net::recv(&socket, &mut buffer[..], RecvFlags::empty())?;
        for message in message::messages(buffer.get(..length).unwrap_or(&buffer)) {
            match message.kind {
                message::NEWADDR => found.extend(message.address()),
                message::DONE => return Ok(found),
                message::ERROR => {
                    return Err(io::Error::other("the kernel does not list addresses"));
                }
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_interface_has_its_address() {
        // Linux gives loopback the index 1 in every namespace.
        let found = addresses(1).unwrap();
        assert!(found.contains(&IpAddr::from([127, 0, 0, 1])), "{found:?}");
        assert!(found.iter().all(|it| all_addresses().unwrap().contains(it)));
        assert_eq!(addresses(u32::MAX).unwrap(), [] as [IpAddr; 0]);
    }
}
