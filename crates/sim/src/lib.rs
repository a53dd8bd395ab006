//! Scenarios, the simulator that runs them in virtual time, and the results of a run.
//!
//! *What this is:* [`scenario`] reads the file that drives both simulator and lab. [`world`] is the
//! simulator's loop, [`net`] the network stack of its machines, [`pipe`] the link of a gateway's uplink.
//! [`observers`] are stations that only listen. [`result`] is what each run gives. *Who calls it:* the lab's
//! program, and the experiments in `papers`. *What it never does:* open sockets, read clocks, or touch any
//! file but the scenario that a user names. *Where to start:* [`scenario::Scenario::load`].

pub mod hosts;
pub mod losses;
pub mod monitor;
pub mod net;
pub mod observers;
pub mod pipe;
pub mod result;
pub mod router;
pub mod scenario;
mod seeds;
pub mod world;
