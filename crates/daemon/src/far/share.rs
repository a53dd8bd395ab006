//! Each gateway's share of the far end's memory.
//!
//! *Source:* max-min fairness (Bertsekas, Gallager, "Data Networks", 1992, §6.5.2): who needs less than an equal share gets
//! what it needs, and the others share the rest equally.

/// About what a unit takes in the index.
const UNIT_BYTES: u64 = 130;

/// A gateway's share of the memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// For content that origins may send, or that waits for the link.
    pub content_bytes: u64,
    /// Units in its index.
    pub units_max: usize,
}

/// Shares `memory` among gateways, of which each has this many units in its index. Half of it is for content, and that is
/// shared equally. Indexes grow, so that each needs twice what it has; half of an equal share is left to one that is new.
pub fn share_out(memory: u64, units: &[usize]) -> Vec<Share> {
    let gateways = units.len().max(1);
    let content_bytes = (memory - memory / 2) / gateways as u64;
    let all = (memory / 2 / UNIT_BYTES).min(u32::MAX.into()) as usize;
    let least = all / gateways / 2;
    let mut order: Vec<(usize, usize)> =
        units.iter().enumerate().map(|(at, units)| ((2 * units).max(least), at)).collect();
    order.sort_unstable();
    let (mut left, mut shares) = (all, vec![0; units.len()]);
    for (more, (need, at)) in (0..order.len()).rev().zip(order) {
        shares[at] = need.min(left / (more + 1));
        left -= shares[at];
    }
    let spare = left / gateways;
    shares.into_iter().map(|it| Share { content_bytes, units_max: it + spare }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn units(memory: u64, units: &[usize]) -> Vec<usize> {
        share_out(memory, units).iter().map(|share| share.units_max).collect()
    }

    #[test]
    fn one_alone_has_all_and_new_ones_have_equal_shares() {
        let all = Share { content_bytes: 130 << 10, units_max: 1024 };
        assert_eq!(share_out(260 << 10, &[0]), [all]);
        assert_eq!(units(260 << 10, &[0, 0, 0, 0]), [256; 4]);
        assert_eq!(share_out(260 << 10, &[5; 4])[3].content_bytes, (130 << 10) / 4);
        assert_eq!(share_out(260 << 10, &[]), []);
    }

    #[test]
    fn what_others_do_not_need_is_for_those_that_do() {
        assert_eq!(units(260 << 10, &[600, 10]), [768, 256], "half of an equal share is left");
        assert_eq!(units(260 << 10, &[768, 256]), [512, 512], "both have filled theirs");
        assert_eq!(units(260 << 10, &[768, 200]), [624, 400], "one needs less than half");
        assert_eq!(units(260 << 10, &[150, 0]), [534, 490], "what is left is shared equally");
    }

    #[test]
    fn no_more_is_given_than_there_is_and_everyone_has_half_of_an_equal_share() {
        for gateways in 1..200_usize {
            let memory = (gateways as u64 * 7_919_317) % (1 << 28) + (1 << 20);
            let has: Vec<_> = (0..gateways).map(|at| at.pow(3) * 7919 % (1 << 17)).collect();
            let all = (memory / 2 / UNIT_BYTES) as usize;
            let shares = share_out(memory, &has);
            let content: u64 = shares.iter().map(|share| share.content_bytes).sum();
            assert!(content + memory / 2 <= memory);
            assert!(shares.iter().map(|share| share.units_max).sum::<usize>() <= all);
            assert!(shares.iter().all(|share| share.units_max >= all / gateways / 2));
        }
    }
}
