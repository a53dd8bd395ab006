//! The world of these tests itself: what peers say reaches each other as a driver would carry it.

use crate::net::{Mesh, Plan, address, author};
use node::testing::Event;
use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;

#[test]
fn two_peers_meet_and_one_that_falls_silent_is_missed() {
    let mut mesh = Mesh::asleep(&Plan::default(), &[0]);
    mesh.start_liar(0, author(|_, _| Vec::new()));
    let heard = Rc::new(RefCell::new(Vec::new()));
    let notes = Rc::clone(&heard);
    mesh.start_liar(
        1,
        Box::new(move |_, _, event| {
            notes.borrow_mut().push(match event {
                Event::Up { .. } => "up",
                Event::Down(..) => "down",
                Event::Failed(..) => "failed",
                _ => "something",
            });
        }),
    );
    let to = SocketAddr::new(address(0), crate::net::PORT);
    mesh.with_liar(1, |now, peers| peers.dial(now, to));
    mesh.pass_seconds(1);
    assert_eq!(*heard.borrow(), ["up"]);
    assert!(mesh.control(1, 0) > 100 && mesh.data_out(1) == 0);
    mesh.power_off(0);
    mesh.pass_seconds(330);
    assert_eq!(*heard.borrow(), ["up", "down"]);
    mesh.with_liar(1, |now, peers| peers.dial(now, to));
    mesh.pass_seconds(15);
    assert_eq!(*heard.borrow(), ["up", "down", "failed"]);
}
