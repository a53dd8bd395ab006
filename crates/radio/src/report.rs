//! The counters of a station.

use crate::airtime;
use crate::output::Control;
use std::ops::AddAssign;
use std::time::Duration;

/// Counters since the start; all of them only increase.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Packets of the network layer that were sent at least once.
    pub packets_sent: u64,
    /// Their lengths in bytes, each counted once.
    pub packet_bytes_sent: u64,
    /// Data frames sent, including retransmissions.
    pub data_frames: u64,
    /// Data frames among them whose ACK did not arrive.
    pub data_frames_failed: u64,
    /// ACK, RTS and CTS frames sent.
    pub control_frames: u64,
    /// RTS frames among them.
    pub rts_frames: u64,
    /// RTS frames among those whose CTS did not arrive.
    pub rts_frames_failed: u64,
    /// Bytes of all frames sent, including retransmissions, headers and frame check sequences.
    pub mac_bytes_sent: u64,
    /// The airtime of its own frames.
    pub airtime: Duration,
    /// Packets that were given up at the retry limit.
    pub given_up: u64,
    /// Packets that were dropped because the queue was full.
    pub queue_full: u64,
    /// Data frames for this station or for all, received for the first time.
    pub packets_received: u64,
    /// Data frames for this station that it had received before.
    pub duplicates: u64,
    /// Data frames received that were for other stations.
    pub overheard: u64,
    /// Receptions of decodable frames that failed because of noise or interference.
    pub disturbed: u64,
    /// Receptions that failed because of the link's loss.
    pub lost: u64,
}

impl Report {
    /// Counts a control frame.
    pub(crate) fn count_control(&mut self, kind: Control) {
        self.control_frames += 1;
        self.rts_frames += u64::from(kind == Control::Rts);
        self.mac_bytes_sent += u64::from(match kind {
            Control::Ack | Control::Cts => airtime::ACK_BYTES,
            Control::Rts => airtime::RTS_BYTES,
        });
    }

    /// Counts a data frame that carries a packet of this length.
    pub(crate) fn count_data(&mut self, packet_bytes: u32, retry: bool) {
        self.data_frames += 1;
        self.mac_bytes_sent += u64::from(airtime::data_bytes(packet_bytes));
        if !retry {
            self.packets_sent += 1;
            self.packet_bytes_sent += u64::from(packet_bytes);
        }
    }
}

impl AddAssign<&Self> for Report {
    fn add_assign(&mut self, other: &Self) {
        self.packets_sent += other.packets_sent;
        self.packet_bytes_sent += other.packet_bytes_sent;
        self.data_frames += other.data_frames;
        self.data_frames_failed += other.data_frames_failed;
        self.control_frames += other.control_frames;
        self.rts_frames += other.rts_frames;
        self.rts_frames_failed += other.rts_frames_failed;
        self.mac_bytes_sent += other.mac_bytes_sent;
        self.airtime += other.airtime;
        self.given_up += other.given_up;
        self.queue_full += other.queue_full;
        self.packets_received += other.packets_received;
        self.duplicates += other.duplicates;
        self.overheard += other.overheard;
        self.disturbed += other.disturbed;
        self.lost += other.lost;
    }
}
