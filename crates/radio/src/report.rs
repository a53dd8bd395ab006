//! What a station has counted since the beginning.

use crate::airtime;
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
    /// ACKs sent.
    pub control_frames: u64,
    /// Bytes of all frames sent, with repetitions, headers and frame check sequences.
    pub mac_bytes_sent: u64,
    /// How long its own frames were on the air.
    pub airtime: Duration,
    /// Packets that no try got acknowledged.
    pub given_up: u64,
    /// Packets that found the queue full.
    pub queue_full: u64,
    /// Data frames received for the first time that were for this station or for all.
    pub packets_received: u64,
    /// Data frames for this station that it had got before.
    pub duplicates: u64,
    /// Data frames received that were for another station.
    pub overheard: u64,
    /// Receptions of decodable frames that other signals spoiled.
    pub disturbed: u64,
    /// Receptions of undisturbed data frames that the link lost.
    pub lost: u64,
}

impl Report {
    /// An ACK goes on the air.
    pub(crate) fn count_ack(&mut self) {
        self.control_frames += 1;
        self.mac_bytes_sent += u64::from(airtime::ACK_BYTES);
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
