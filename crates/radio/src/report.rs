//! What a station has counted since the beginning.

use crate::airtime;
use crate::output::Control;
use std::ops::AddAssign;
use std::time::Duration;

/// Counters, all of which only grow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Packets of the network layer that were on the air at least once.
    pub packets_sent: u64,
    /// Their lengths in bytes, each counted once.
    pub packet_bytes_sent: u64,
    /// Data frames sent, with repetitions.
    pub data_frames: u64,
    /// Data frames among them that should have been acknowledged and were not.
    pub data_frames_failed: u64,
    /// ACK, RTS and CTS sent.
    pub control_frames: u64,
    /// RTS among them.
    pub rts_frames: u64,
    /// RTS among those that no CTS answered.
    pub rts_frames_failed: u64,
    /// Bytes of all frames sent, with repetitions, headers and frame check sequences.
    pub mac_bytes_sent: u64,
    /// How long its own frames were on the air.
    pub airtime: Duration,
    /// Packets that were given up because tries were not answered.
    pub given_up: u64,
    /// Packets that found the queue full.
    pub queue_full: u64,
    /// Data frames received for the first time that were for this station or for all.
    pub packets_received: u64,
    /// Data frames for this station that it had got before.
    pub duplicates: u64,
    /// Data frames received that were for another station.
    pub overheard: u64,
    /// Receptions of decodable frames that noise or other signals spoiled.
    pub disturbed: u64,
    /// Receptions of undisturbed frames that the link lost.
    pub lost: u64,
}

impl Report {
    /// An ACK, an RTS or a CTS goes on the air.
    pub(crate) fn count_control(&mut self, kind: Control) {
        self.control_frames += 1;
        self.rts_frames += u64::from(kind == Control::Rts);
        self.mac_bytes_sent += u64::from(match kind {
            Control::Ack | Control::Cts => airtime::ACK_BYTES,
            Control::Rts => airtime::RTS_BYTES,
        });
    }

    /// A data frame with a packet of so many bytes goes on the air.
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
