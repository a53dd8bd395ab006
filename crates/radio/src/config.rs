//! What all stations of a channel have in common.

use crate::airtime::Rate;

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
}

impl Default for Config {
    /// 11 Mbit/s, basic rate 1 Mbit/s, queues of 50, 7 tries.
    fn default() -> Self {
        Self {
            data_rate: Rate::Mbps11,
            basic_rate: Rate::Mbps1,
            queue_frames_max: QUEUE_FRAMES_MAX,
            tries_max: TRIES_MAX,
        }
    }
}
