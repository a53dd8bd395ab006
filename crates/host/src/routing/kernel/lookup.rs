//! The route of a single packet, looked up by the kernel: only it applies all rules and tables.

use std::io;
use std::net::IpAddr;

use rustix::net::{RecvFlags, SendFlags};

use super::{message, socket};

/// The greatest length of the answer, which is one message and much shorter.
const ANSWER_MAX: usize = 4096;

/// What the kernel does with packets for an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forward {
    /// Delivers them locally.
    Here,
    /// Sends them out by the interface with this index.
    Out(u32),
    /// Drops them: there is no route, or the route forbids it.
    Nowhere,
}

/// The route of packets to an address: packets of this machine or, with `from`, packets forwarded
/// from another machine, by its address and the index of the incoming interface.
///
/// # Errors
/// If the netlink socket fails.
pub fn forward(to: IpAddr, from: Option<(IpAddr, u32)>) -> io::Result<Forward> {
    ask(&message::route_request(to, from, None))
}

/// The route of packets with this mark to an address.
///
/// # Errors
/// If the netlink socket fails.
pub fn forward_marked(to: IpAddr, mark: u32) -> io::Result<Forward> {
    ask(&message::route_request(to, None, Some(mark)))
}

fn ask(request: &[u8]) -> io::Result<Forward> {
    let socket = socket::open(socket::ROUTE)?;
    rustix::net::send(&socket, request, SendFlags::empty())?;
    let mut buffer = [0; ANSWER_MAX];
    // The kernel answers before `send` returns.
    let (length, _) = rustix::net::recv(&socket, &mut buffer[..], RecvFlags::empty())?;
    let answer = message::messages(buffer.get(..length).unwrap_or(&buffer)).next();
    Ok(answer.and_then(|answer| answer.forward()).unwrap_or(Forward::Nowhere))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_address_is_here_and_what_no_route_leads_to_is_nowhere() {
        assert_eq!(forward([127, 0, 0, 1].into(), None).unwrap(), Forward::Here);
        assert_eq!(
            forward([240, 0, 0, 1].into(), Some(([127, 0, 0, 1].into(), u32::MAX))).unwrap(),
            Forward::Nowhere
        );
    }
}
