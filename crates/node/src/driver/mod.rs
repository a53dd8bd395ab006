//! What the drivers of the engine must do alike: limits and decisions that the daemon and the simulator
//! share, one file for each thing.
//!
//! *Who calls it:* the loops of `daemon` and `sim`. *What it never does:* touch a socket or a clock.

pub mod admission;
mod client_window;
mod disk_queue;
pub mod door;
mod grants;
mod link_buffer;
pub mod links;
mod network;
mod pool;
pub mod room;
pub mod shares;

pub use client_window::ClientWindow;
pub use disk_queue::{DiskQueue, Waiting};
pub use grants::{DIAL_MAX, Grants, HEAD_MAX};
pub use link_buffer::LinkBuffer;
pub use network::Network;
pub use pool::{Made, OriginPool};

use std::time::Duration;

/// How often the driver gives the engine the date.
pub const CLOCK_EVERY: Duration = Duration::from_secs(30);
/// The most bytes of a client's head to read at one time.
pub const HEAD_READ_MAX: usize = 4096;
/// The most bytes of a link or of an origin's response to read at one time. A response can exceed its
/// credit by no more than one read.
pub const READ_MAX: usize = 64 * 1024;
