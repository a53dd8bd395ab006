//! The keys about TCP.

use std::time::Duration;

use crate::net::tcp::{Config, Recovery};

/// The values of the keys about TCP.
#[derive(Clone, Debug)]
pub(super) struct TcpKeys {
    pub mss: u64,
    pub rto_min_s: f64,
    pub recovery: Recovery,
    pub timestamps: bool,
    pub initial_window: u64,
    pub delayed_ack: u64,
    pub send_buffer: u64,
    pub receive_buffer: u64,
}

impl Default for TcpKeys {
    fn default() -> Self {
        Self {
            mss: 1460,
            rto_min_s: 0.2,
            recovery: Recovery::Standard,
            timestamps: false,
            initial_window: 2,
            delayed_ack: 2,
            send_buffer: 131_072,
            receive_buffer: 131_072,
        }
    }
}

impl TcpKeys {
    /// The settings of every machine's TCP.
    pub fn config(&self) -> Config {
        Config {
            mss: self.mss as u16,
            initial_window: self.initial_window as u32,
            rto_min: Duration::from_secs_f64(self.rto_min_s),
            delayed_ack: self.delayed_ack as u32,
            recovery: self.recovery,
            timestamps: self.timestamps,
            send_buffer: self.send_buffer as u32,
            receive_buffer: self.receive_buffer as u32,
            ..Config::default()
        }
    }
}
