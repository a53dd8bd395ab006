//! Scenarios, the simulator that runs them in virtual time, and what running one of them gave.
//!
//! *What this is:* [`scenario`] reads the file that simulator and lab are driven by, [`world`] is the
//! simulator's loop, [`net`] the stack of its machines, [`observers`] those who only listen,
//! [`pipe`] the wire of a gateway's uplink, [`result`] what every run gives. *Who calls it:* the lab's program,
//! and experiments. *What it never does:* open sockets, read clocks, or touch any file but the scenario that a
//! user names. *Where to start:* [`scenario::Scenario::load`].

pub mod hosts;
pub mod monitor;
pub mod net;
pub mod observers;
pub mod pipe;
pub mod result;
pub mod router;
pub mod scenario;
pub mod world;
