//! Figure 4: how often a router can send a packet again before its sender's timer expires, if all round trips are
//! equally long (InPCM, section 3.6.1).

/// The timers of routers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Timer {
    /// One round trip to the receiver: the ideal case.
    Ideal,
    /// As TCP's, after its first sample: three round trips (RFC 6298, section 2.2), and twice as long each time.
    TcpLike,
    /// The round trip and β times no deviation.
    Esrto,
}

impl Timer {
    /// How often a router sends a packet again, whose receiver is `hops` hops away, before the sender gives up after
    /// four round trips over `all` hops, as the paper has it.
    pub fn retransmissions(self, hops: u32, all: u32) -> u32 {
        let budget = 4 * all;
        match self {
            Self::Ideal | Self::Esrto => budget / hops,
            Self::TcpLike => {
                let at = |count: u32| 3 * hops * ((1 << count) - 1);
                (1..16).take_while(|count| at(*count) <= budget).count() as u32
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sender_itself_has_four_round_trips() {
        assert_eq!(Timer::Ideal.retransmissions(11, 11), 4);
        // 3 round trips fit into 4, and 9 do not.
        assert_eq!(Timer::TcpLike.retransmissions(11, 11), 1);
    }

    #[test]
    fn routers_near_the_receiver_lose_most_by_tcps_timer() {
        let both = |hops| [Timer::Ideal, Timer::TcpLike].map(|it| it.retransmissions(hops, 11));
        assert_eq!([both(1), both(2), both(5)], [[44, 3], [22, 3], [8, 1]]);
    }
}
