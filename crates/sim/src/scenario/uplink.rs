//! The gateway's uplink.

use std::time::Duration;

use node::uplink::{Kind, Published};

use super::choice::Choice;
use super::keys::UPLINK_MBPS_MIN;
use crate::pipe::Pipe;

/// Numbers of the streams that derive the seeds of losses from a run's seed, one for each direction. Changing
/// them changes runs.
const UP: u16 = 4;
const DOWN: u16 = 5;

/// The values of the keys about the uplink.
#[derive(Clone, Debug)]
pub(super) struct UplinkKeys {
    pub mbps: f64,
    /// 0 if it is the same as `mbps`.
    pub up_mbps: f64,
    pub delay_ms: f64,
    pub loss: f64,
    pub queue: u64,
    pub far: FarEnd,
    pub crossing: Crossing,
    pub http: Http,
    /// 0: the scheme's usual one.
    pub degree: u64,
    pub smallest: u64,
}

impl Default for UplinkKeys {
    fn default() -> Self {
        // The queue is that of a Linux interface.
        Self {
            mbps: 100.0,
            up_mbps: 0.0,
            delay_ms: 10.0,
            loss: 0.0,
            queue: 1000,
            far: FarEnd::None,
            crossing: Crossing(None),
            http: Http::Cached,
            degree: 0,
            smallest: 0,
        }
    }
}

/// What stands at the outer end of the uplink, before the origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FarEnd {
    /// Nothing: the origin is there.
    None,
    /// A far end, which makes a pair with the gateway. It forwards packets, too.
    Pair,
}

impl FarEnd {
    /// The origin's host name. A far end is asked for no name without a dot, which only a site would know.
    pub fn origin_name(self) -> &'static str {
        match self {
            Self::None => "origin",
            Self::Pair => "origin.example",
        }
    }
}

impl Choice for FarEnd {
    const ALL: &'static [(Self, &'static str)] = &[(Self::None, "none"), (Self::Pair, "pair")];
}

/// How content crosses the pair: by its history, or by a scheme of this kind as published.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Crossing(pub Option<Kind>);

impl Choice for Crossing {
    const ALL: &'static [(Self, &'static str)] = &[
        (Self(None), "ours"),
        (Self(Some(Kind::Mrc)), "mrc"),
        (Self(Some(Kind::MrcLarge)), "mrc-large"),
        (Self(Some(Kind::Src)), "src"),
    ];
}

/// What becomes of intercepted HTTP. The words are those of the daemon's table `[experiment]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Http {
    /// Routers parse it, and serve it from their stores.
    Cached,
    /// The gateway has it cross the pair as any TCP connection, without a cache (Wanax §5); no other router intercepts
    /// it.
    Bypass,
}

impl Choice for Http {
    const ALL: &'static [(Self, &'static str)] =
        &[(Self::Cached, "cached"), (Self::Bypass, "bypass")];
}

impl UplinkKeys {
    /// What becomes of HTTP; otherwise why that cannot be.
    pub(super) fn http(&self) -> Result<Http, String> {
        if self.http == Http::Bypass && self.far == FarEnd::None {
            return Err("`http` \"bypass\" is of a pair: set `far` to \"pair\"".into());
        }
        Ok(self.http)
    }
}

/// The published scheme that the keys describe, if they describe one; otherwise why there is none.
pub(super) fn published(keys: &UplinkKeys) -> Result<Option<Published>, String> {
    let set = |value: u64| (value > 0).then_some(value as u32);
    let (degree, smallest) = (set(keys.degree), set(keys.smallest));
    let word = keys.crossing.word();
    match keys.crossing.0 {
        None if degree.is_some() || smallest.is_some() => {
            Err("`degree` and `smallest` are of a published scheme: set `uplink`, like \"mrc\""
                .into())
        }
        None => Ok(None),
        Some(_) if keys.far == FarEnd::None => {
            Err(format!("`uplink` \"{word}\" is of a pair: set `far` to \"pair\""))
        }
        Some(kind) => {
            let scheme = Published::new(kind, degree, smallest);
            scheme.map(Some).map_err(|why| format!("`uplink` \"{word}\": {why}"))
        }
    }
}

/// The wired link between the gateway and the origin.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Uplink {
    /// Rate from the mesh to the outside, in bits per second.
    pub up_bps: u64,
    /// Rate from the outside to the mesh, in bits per second.
    pub down_bps: u64,
    /// One-way delay.
    pub delay: Duration,
    /// The probability that a packet is lost, in either direction.
    pub loss: f64,
    /// Length of the queue at each end, in packets, without the one being sent.
    pub packets_max: usize,
}

impl Uplink {
    /// The uplink that the keys describe; otherwise why there is none.
    pub(super) fn of(keys: &UplinkKeys) -> Result<Self, String> {
        let up_mbps = match keys.up_mbps {
            0.0 => keys.mbps,
            UPLINK_MBPS_MIN.. => keys.up_mbps,
            wrong => {
                return Err(format!(
                    "`uplink_up_mbps` is {wrong}: it must be 0, for the rate of `uplink_mbps`, or at \
                     least {UPLINK_MBPS_MIN}"
                ));
            }
        };
        let bits_per_second = |mbps: f64| (mbps * 1e6).round() as u64;
        Ok(Self {
            up_bps: bits_per_second(up_mbps),
            down_bps: bits_per_second(keys.mbps),
            delay: Duration::from_secs_f64(keys.delay_ms / 1e3),
            loss: keys.loss,
            packets_max: keys.queue as usize,
        })
    }

    /// The two directions: from the gateway to the origin, and back. Losses follow from the run's seed, and are
    /// drawn apart from all else.
    pub fn pipes<F>(&self, seed: u64) -> [Pipe<F>; 2] {
        [(self.up_bps, UP), (self.down_bps, DOWN)].map(|(bits_per_second, purpose)| {
            Pipe::new(bits_per_second, self.delay, self.packets_max)
                .with_loss(self.loss, super::seed(seed, 0, purpose))
        })
    }
}

#[cfg(test)]
mod tests {
    use wire::Instant;

    use super::*;

    #[test]
    fn directions_have_their_rates_and_losses_of_their_own() {
        let uplink = Uplink {
            up_bps: 1_000_000,
            down_bps: 8_000_000,
            delay: Duration::from_millis(5),
            loss: 0.2,
            packets_max: 2_000,
        };
        let arrivals = |seed| {
            uplink.pipes(seed).map(|mut pipe| {
                (0..1_000).for_each(|it| pipe.send(Instant::ZERO, 125, it).unwrap());
                std::iter::from_fn(move || pipe.receive(Instant::from_nanos(u64::MAX)))
                    .collect::<Vec<_>>()
            })
        };
        let [up, down] = arrivals(1);
        // 125 bytes take 1 ms to the outside and an eighth of it back.
        let millis = |(at, it): &(Instant, u32), each: f64| {
            let expected = 5.0 + f64::from(it + 1) * each;
            assert!((at.as_nanos() as f64 / 1e6 - expected).abs() < 1e-6, "{at:?} {it}");
        };
        up.iter().for_each(|it| millis(it, 1.0));
        down.iter().for_each(|it| millis(it, 0.125));
        let packets = |all: &[(Instant, u32)]| all.iter().map(|it| it.1).collect::<Vec<_>>();
        assert!((700..900).contains(&up.len()) && packets(&up) != packets(&down));
        assert_eq!(arrivals(1), [up.clone(), down]);
        assert_ne!(packets(&arrivals(2)[0]), packets(&up));
    }
}
