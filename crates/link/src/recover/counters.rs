//! What recovery counts.

/// What recovery has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packets that the layer gave and that went on to the MAC.
    pub sent: u64,
    /// Data packets that entered the cache.
    pub cached: u64,
    /// Data packets sent again because the MAC had given them up.
    pub resent_given_up: u64,
    /// Data packets sent again because the next hop was heard forwarding later ones.
    pub resent_overheard: u64,
    /// Data packets sent again because the next hop was not heard forwarding them in time.
    pub resent_unheard: u64,
    /// Data packets sent again because acknowledgements named them as missing.
    pub resent_duplicates: u64,
    /// Data packets sent again because the timer had expired.
    pub resent_timer: u64,
    /// Acknowledgements sent again because the MAC had given them up, or they seemed lost.
    pub acks_resent: u64,
    /// Acknowledgements sent again in answer to data that the receiver has.
    pub acks_answered: u64,
    /// Data not forwarded, because the receiver has acknowledged it.
    pub data_answered: u64,
    /// Data not forwarded, because a copy of it was on its way from here.
    pub data_absorbed: u64,
    /// Repeated acknowledgements not forwarded.
    pub duplicates_dropped: u64,
    /// Old acknowledgements not forwarded.
    pub old_acks_dropped: u64,
    /// Data dropped by Link-RED.
    pub red_dropped: u64,
    /// Notices sent.
    pub notices_sent: u64,
    /// Notices that changed something here.
    pub notices_obeyed: u64,
    /// Data that left the cache because it was acknowledged.
    pub evicted_acked: u64,
    /// Data that left the cache because the next hop was heard forwarding it.
    pub evicted_eldd: u64,
    /// Data that left the cache for want of memory.
    pub evicted_budget: u64,
    /// Data that left the cache because a notice said so, its connection ended or began anew, the MAC's queue
    /// was full, or other data covered it.
    pub evicted_other: u64,
    /// Data that left the cache because it had been sent again too often.
    pub evicted_hopeless: u64,
    /// Flows forgotten to make room for others.
    pub flows_evicted: u64,
}

impl Counters {
    /// How many data packets were sent again, for whatever reason.
    pub fn data_resent(&self) -> u64 {
        self.resent_given_up
            + self.resent_overheard
            + self.resent_unheard
            + self.resent_duplicates
            + self.resent_timer
    }

    /// How many data packets have left the cache.
    pub fn evicted(&self) -> u64 {
        self.evicted_acked
            + self.evicted_eldd
            + self.evicted_budget
            + self.evicted_other
            + self.evicted_hopeless
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_take_each_of_their_causes_once_and_no_other() {
        let counters = Counters {
            resent_given_up: 1,
            resent_overheard: 2,
            resent_unheard: 4,
            resent_duplicates: 8,
            resent_timer: 16,
            acks_resent: 1 << 20,
            acks_answered: 1 << 21,
            evicted_acked: 32,
            evicted_eldd: 64,
            evicted_budget: 128,
            evicted_other: 256,
            evicted_hopeless: 512,
            flows_evicted: 1 << 22,
            ..Counters::default()
        };
        assert_eq!((counters.data_resent(), counters.evicted()), (31, 31 << 5));
    }
}
