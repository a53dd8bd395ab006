//! The settings of recovery: the paper's, and ours.

/// The settings of recovery.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    /// Memory for cached packets: bytes of IP packets, each counted as 512 or more. The flow that holds most gives way
    /// first.
    pub cache_bytes: u32,
    /// Largest number of flows (one per direction of a connection) that are remembered.
    pub flows_max: usize,
    /// When the first unacknowledged packet is sent again (InPCM, section 3.6).
    pub timer: Timer,
    /// What a notice that another router has sent a packet again does here (InPCM, section 3.7).
    pub on_notice: OnNotice,
    /// Early loss detection and discard: data that the next hop is heard forwarding leaves the cache (InPCM,
    /// section 3.5). Wrong where the next hop has no cache.
    pub eldd: bool,
    /// Whether repeated acknowledgements of data that is cached here are dropped (InPCM, algorithm 2); with
    /// `overheard_loss`, only those of data that is sent again.
    pub suppress: bool,
    /// Whether routers nearer to the sender are told of what a timer has sent again (InPCM, section 3.7).
    pub notify: bool,
    /// Link-RED, if used (InPCM, section 3.9).
    pub link_red: Option<LinkRed>,
    /// Whether what the MAC has given up is sent again at once. Not in the paper.
    pub mac_trigger: bool,
    /// Whether order tells of losses: the next hop is heard forwarding a later packet and not this one, or an
    /// adjacent receiver acknowledges out of order. It is believed as far as it was right before. Copies that the
    /// next hop gets in vain go no farther. Not in the paper.
    pub overheard_loss: bool,
    /// Seed of Link-RED's choices, and of the hashes of flows.
    pub seed: u64,
}

/// How long the first unacknowledged packet waits for its acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Timer {
    /// For ever.
    Off,
    /// As TCP's: the smoothed round trip and four times its mean deviation (RFC 6298).
    TcpLike,
    /// The smoothed round trip, and β times the deviation that a line through all hop counts gives (InPCM,
    /// equations 1 to 4).
    Esrto {
        /// How patient it is.
        beta: Beta,
    },
}

/// Where β comes from. The paper has a constant and names the others as open.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Beta {
    /// It is constant; the paper's is 1.5.
    Fixed(f64),
    /// 1.5 for each time that the MAC sends a packet, on average.
    Contention,
    /// Such that the timer expires after half of the shortest timeout that senders have, which is Linux' 0.2 s.
    SenderTimeout,
}

/// What a notice does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnNotice {
    /// The packet leaves the cache.
    Evict,
    /// Its timer runs for twice as long.
    Double,
}

/// Link-RED: packets are dropped early while the MAC must often repeat (Fu et al. 2005, section 5).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinkRed {
    /// Average number of repetitions of a packet below which none is dropped.
    pub min: f64,
    /// Average at which the probability would reach 1.
    pub max: f64,
    /// The largest probability.
    pub probability_max: f64,
}

impl Default for LinkRed {
    fn default() -> Self {
        Self { min: 1.0, max: 3.0, probability_max: 0.1 }
    }
}

impl Config {
    /// The paper's recovery, as its algorithms are meant: they are misprinted (see [`super::Recover`]).
    pub fn inpcm() -> Self {
        Self {
            timer: Timer::Esrto { beta: Beta::Fixed(1.5) },
            notify: true,
            eldd: true,
            link_red: Some(LinkRed::default()),
            mac_trigger: false,
            overheard_loss: false,
            ..Self::default()
        }
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            cache_bytes: 1 << 20,
            flows_max: 256,
            timer: Timer::Off,
            on_notice: OnNotice::Evict,
            eldd: false,
            suppress: true,
            notify: false,
            link_red: None,
            mac_trigger: true,
            overheard_loss: true,
            seed: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// InPCM: β is 1.5 (section 3.6.1), ELDD (3.5), notices that evict (3.7), Link-RED (3.9). What the MAC or neighbours
    /// tell is ours.
    #[test]
    fn the_papers_recovery_has_the_papers_settings() {
        let config = Config::inpcm();
        assert_eq!(config.timer, Timer::Esrto { beta: Beta::Fixed(1.5) });
        assert!(config.eldd && config.suppress && config.notify && config.link_red.is_some());
        assert_eq!(config.on_notice, OnNotice::Evict);
        assert!(!config.mac_trigger && !config.overheard_loss);
        assert_eq!((config.cache_bytes, config.flows_max), (1_048_576, 256));
    }
}
