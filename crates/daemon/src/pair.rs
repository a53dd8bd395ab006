//! What both ends of an uplink's pair need of the machine: the histories on disk, the thread that packs and
//! unpacks, and the connection.

mod history;
mod link;
pub mod tcp;
mod worker;

pub use history::Histories;
pub use link::{End, carry};
pub use worker::{Results, Work, Workers};
