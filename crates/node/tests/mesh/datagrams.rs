//! Datagrams between machines: by address, a latency a hop, and lost without a word.

use crate::net::{Mesh, PORT, Plan, Port, address};
use bytes::Bytes;
use std::net::SocketAddr;

/// 0 sends a datagram to 2. Returns the datagrams that arrived within this many milliseconds, with sender and
/// receiver.
fn come(mesh: &mut Mesh, millis: u64) -> Vec<(SocketAddr, usize, Bytes)> {
    let to = SocketAddr::new(address(2), PORT);
    mesh.send_datagram(0, to, Bytes::from_static(b"who has it?"));
    mesh.pass_millis(millis);
    std::mem::take(&mut mesh.datagrams)
}

#[test]
fn a_datagram_comes_after_its_hops_from_the_address_of_who_sent_it() {
    let mut mesh = Mesh::chain(3);
    let hop = Plan::default().latency.as_millis() as u64;
    assert_eq!(come(&mut mesh, 2 * hop - 1), []);
    mesh.pass_millis(1);
    let from = SocketAddr::new(address(0), PORT);
    assert_eq!(mesh.datagrams, [(from, 2, Bytes::from_static(b"who has it?"))]);
}

#[test]
fn a_datagram_is_lost_where_nothing_passes_or_nobody_listens() {
    let mut mesh = Mesh::chain(3);
    mesh.links.ground.ports[2] = Port::Hole;
    assert_eq!(come(&mut mesh, 100), []);
    mesh.links.ground.ports[2] = Port::Open;
    mesh.cut(0, 1);
    assert_eq!(come(&mut mesh, 100), []);
    mesh.mend(0, 1);
    // A node that starts while the datagram is on its way does not get it.
    mesh.send_datagram(0, SocketAddr::new(address(2), PORT), Bytes::new());
    mesh.restart(2);
    mesh.pass_millis(100);
    assert_eq!(mesh.datagrams, []);
    assert_eq!(come(&mut mesh, 100).len(), 1);
}
