//! The settings of pacing.

use std::time::Duration;

/// The settings of pacing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    /// How many bytes go to an interlay node at once: further packets go with the first as long as their sum
    /// stays within it. The first always goes, so that 0 is one packet, as in the paper; on 802.11n it is what one
    /// aggregate carries.
    pub quantum_bytes: u32,
    /// How equation 2.1 counts the overhead of hops.
    pub overhead: Overhead,
    /// What a hop adds to each packet, in bytes: what takes as much time at the rate of the data.
    pub overhead_bytes: u32,
    /// How often each neighbouring interlay node is probed; at least 1 ms.
    pub probe_interval: Duration,
    /// Length of a probe, and so of its answer, as IP packets, in bytes.
    pub probe_bytes: u16,
    /// After this many probes without an answer, packets to an interlay node are no longer paced.
    pub probes_unanswered_max: u32,
    /// How long it is then left alone, although its traffic goes on.
    pub silence: Duration,
    /// An interlay node from which no traffic came for so long is forgotten (WINE, section 2.3: 2–4 s), and so is
    /// what was learned from traffic.
    pub activity_timeout: Duration,
    /// The weight of a new measurement in the low-pass filter of the rate, from 0 to 1.
    pub gain: f64,
    /// Probes give only the first rate. Then it follows how many packets are under way; `None`: as the paper has it.
    pub follow: Option<Follow>,
    /// The longest time between two releases to an interlay node, whatever was measured: it limits what a node that
    /// answers slowly can do.
    pub gap_max: Duration,
    /// Whether packets that end at the next hop are paced too, as in the paper. Connections between neighbours, as
    /// those of peers, lose by it.
    pub last_hop: bool,
    /// How many frames the MAC has at once. Those behind them wait here, so that control can pass them; at least 1.
    pub mac_frames_max: u32,
    /// How many packets wait for one interlay node; one more is dropped.
    pub queue_packets_max: usize,
    /// How many packets that are not paced wait for the MAC, and as many of control; one more is dropped.
    pub active_packets_max: usize,
    /// How many neighbouring interlay nodes are known.
    pub neighbours_max: usize,
    /// How many destinations are known, with the interlay node that leads there.
    pub destinations_max: usize,
    /// How many destinations an interlay node can claim.
    pub claims_max: usize,
    /// Of pure ACKs of one flow that wait here, only the newest goes (RFC 3449, section 5.2.1).
    pub thin_acks: bool,
    /// An ACK of a steady transfer waits here until it acknowledges this many bytes more than the one before it; 0:
    /// it only waits for its time as all packets do.
    pub ack_bytes: u32,
    /// But it goes at the latest this long after the one before it.
    pub ack_wait: Duration,
    /// How many flows are known to thinning.
    pub flows_max: usize,
    /// A random number that strangers do not know. It begins the hashes of tables and the numbers of probes.
    pub seed: u64,
}

/// How a rate follows what is under way: packets that were sent to an interlay node, and have not left it yet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Follow {
    /// How many packets are to be under way, and how many more for each hop. With fewer the rate rises, with more it
    /// falls. On a chain every fourth hop can carry one at a time; those that wait on the way, and those whose news is
    /// still coming back, are under way too.
    pub under_way: f64,
    /// See [`under_way`](Self::under_way).
    pub under_way_each_hop: f64,
    /// By which part of itself the rate changes with each packet that has left, for each packet too many or too few.
    pub gain: f64,
    /// By which part of itself the gap grows for each packet too many, at once.
    pub brake: f64,
    /// If a packet of an interlay node leaves, and no traffic has gone to it for so long, it is told so by a message.
    pub tell_after: Duration,
}

impl Follow {
    /// How many packets are to be under way over this many hops.
    pub(super) fn most(&self, hops: u8) -> f64 {
        self.under_way + self.under_way_each_hop * f64::from(hops)
    }
}

/// How equation 2.1 counts the overhead γ.
///
/// If a hop takes the time of `p + o` bytes for a packet of `p` bytes, then the time over all hops is proportional to
/// `p + o`, and not to `p` plus a γ that grows with the hops: a long packet takes longer than the paper's formula has
/// it, if it was measured by a short probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overhead {
    /// As the paper has it: r = (probe + overhead · hops) / (round trip / 2), and a packet of p bytes is followed by
    /// the next after p / r (equation 2.1 and section 2.2).
    Probe,
    /// r = (probe + overhead) / (round trip / 2), and a packet of p bytes is followed after (p + overhead) / r.
    Each,
}

impl Config {
    /// The paper's: one packet, the header, probes and the filter.
    ///
    /// The paper leaves open how long probes are, how often they go, the filter's gain, and γ. Probes are as long as a
    /// full packet, so that γ matters little: such a packet waits for half of the round trip that it would have itself.
    /// γ counts per hop the headers of RTS, CTS, data and ACK (20, 14, 34 and 14 bytes) and the preambles of all four
    /// (192 µs, 24 bytes at 1 Mbit/s).
    pub fn wine() -> Self {
        Self {
            overhead: Overhead::Probe,
            probe_interval: Duration::from_secs(1),
            probe_bytes: 1500,
            gap_max: Duration::from_millis(250),
            overhead_bytes: 20 + 14 + 34 + 14 + 4 * 24,
            follow: None,
            last_hop: true,
            thin_acks: false,
            ..Self::default()
        }
    }
}

impl Default for Config {
    /// Ours, for 802.11b at 11 Mbit/s, where the overhead of a frame takes as long as about 1,200 bytes.
    fn default() -> Self {
        Self {
            quantum_bytes: 0,
            overhead: Overhead::Each,
            overhead_bytes: 1200,
            probe_interval: Duration::from_secs(2),
            probe_bytes: 64,
            probes_unanswered_max: 8,
            silence: Duration::from_secs(10),
            activity_timeout: Duration::from_secs(3),
            gain: 0.125,
            follow: Some(Follow {
                under_way: 1.0,
                under_way_each_hop: 0.5,
                gain: 0.01,
                brake: 0.2,
                tell_after: Duration::from_millis(150),
            }),
            gap_max: Duration::from_millis(100),
            last_hop: false,
            mac_frames_max: 1,
            queue_packets_max: 512,
            active_packets_max: 50,
            neighbours_max: 32,
            destinations_max: 4096,
            claims_max: 32,
            thin_acks: true,
            ack_bytes: 8 * 1460,
            ack_wait: Duration::from_millis(500),
            flows_max: 4096,
            seed: 0,
        }
    }
}
