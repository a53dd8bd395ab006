//! What all stations of a channel have in common.

use crate::airtime::{self, Rate};
use std::time::Duration;

/// Frames that wait at a station, unless said otherwise: ns-2's interface queue.
const QUEUE_FRAMES_MAX: usize = 50;
/// Transmissions of a frame before its sender gives up: dot11ShortRetryLimit's default.
const TRIES_MAX: u8 = 7;

/// What all stations of a channel have in common.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// For data frames to one station.
    pub data_rate: Rate,
    /// For broadcasts and ACKs.
    pub basic_rate: Rate,
    /// Frames that may wait at a station, beside the one being sent; more are dropped as they come.
    pub queue_frames_max: usize,
    /// Transmissions of a frame before its sender gives up; 0 counts as 1.
    pub tries_max: u8,
    /// Of a link's loss, the share that broadcasts suffer: they go at the basic rate, for which less
    /// signal is enough.
    pub broadcast_loss_share: f64,
}

impl Config {
    /// What a data frame reserves the medium for after its end: a SIFS and the ACK (the frame's
    /// Duration field).
    pub fn reserved_for_ack(&self) -> Duration {
        airtime::SIFS + airtime::ack(self.basic_rate)
    }
}

impl Default for Config {
    /// 11 Mbit/s, basic rate 1 Mbit/s, queues of 50, 7 tries; broadcasts are lost as data frames are.
    fn default() -> Self {
        Self {
            data_rate: Rate::Mbps11,
            basic_rate: Rate::Mbps1,
            queue_frames_max: QUEUE_FRAMES_MAX,
            tries_max: TRIES_MAX,
            broadcast_loss_share: 1.0,
        }
    }
}
