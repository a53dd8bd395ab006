//! What the world counts.

/// Packets that were lost, by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Drops {
    /// No try was acknowledged, and there were no more.
    pub retries: u64,
    /// The queue was full at the first station on their way.
    pub queue_source: u64,
    /// The queue was full at a later one.
    pub queue_relays: u64,
    /// A wire's queue was full.
    pub wires: u64,
    /// There was no way to where they should go.
    pub no_route: u64,
}

/// Counters, all of which only grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// What was lost.
    pub drops: Drops,
    /// Steps of the loop; frames of the medium that stations heard, and packets that it is done with; and
    /// packets that machines got.
    pub events: u64,
    /// How often routes changed.
    pub reroutes: u64,
    /// IP packets that were on the air at least once, at all hops.
    pub packets_sent: u64,
}
