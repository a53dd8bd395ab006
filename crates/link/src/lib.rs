//! The link plane of a router, under IP: WINE's pacing and InPCM's recovery.
//!
//! *What this is:* two engines, [`pace`] and [`recover`], and [`Layer`], which puts them between IP and the
//! MAC. They help packets that no cache can help, and the ends of connections know nothing of them. *Who
//! calls it:* the driver of a router; so far the simulator. *What it never does:* use sockets, clocks or
//! threads, copy a payload, or allocate for a packet once its tables have grown. *Where to start:*
//! [`Layer`].

mod frame;
mod header;
mod layer;
mod message;
pub mod pace;
pub mod recover;
mod table;

pub use frame::{Frame, Next, Outcome, Verdict};
pub use header::{Flags, Header, Kind, SACK_BLOCKS_MAX, Sack, Tcp, before};
pub use layer::{Config, Counters, Layer, Output};
pub use message::{Interlay, Lost, Message, Notice, Probe, SHIM_BYTES};

/// A driver's packet. A clone must be cheap: it shares its payload.
pub trait Packet: Clone {
    /// What the engines read of it.
    fn header(&self) -> Header;

    /// The interlay node that it passed last, as [`Frame::interlay`] said when it came. A router without pacing sends
    /// packets on with it.
    fn interlay(&self) -> Option<Interlay> {
        None
    }
}
