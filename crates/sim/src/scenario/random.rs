//! Random places of routers, and the seeds of all other random streams.

use radio::{Propagation, Station};
use rand_xoshiro::rand_core::{RngCore, SeedableRng};
use rand_xoshiro::{SplitMix64, Xoshiro256PlusPlus};

use super::Router;

/// Number of this random stream among those of a seed. Changing it changes random places.
const PURPOSE: u64 = 4 << 16;
/// Largest number of meshes drawn to find a connected one,
const DRAWS_MAX: usize = 1_000;
/// and largest number of routers in all of them together.
const DRAWN_MAX: usize = 100_000;

/// Routers at random places in a square, each coordinate uniform, named by numbers from 0.
///
/// Meshes are drawn until one is connected over links of at most `range_m`. `None` if none of many is
/// connected.
pub(super) fn routers(
    count: usize,
    area_m: f64,
    range_m: f64,
    propagation: &Propagation,
    seed: u64,
) -> Option<Vec<Router>> {
    let mut stream = stream(seed);
    let mut coordinate = || area_m * unit(stream.next_u64());
    for _ in 0..DRAWS_MAX.min(DRAWN_MAX / count) {
        let positions_m: Vec<_> = (0..count).map(|_| (coordinate(), coordinate())).collect();
        if are_connected(&positions_m, range_m, propagation) {
            let router = |(number, (x_m, y_m)): (usize, (f64, f64))| Router {
                name: number.to_string(),
                x_m,
                y_m,
            };
            return Some(positions_m.into_iter().enumerate().map(router).collect());
        }
    }
    None
}

/// The router nearest to a place; the first of several.
pub(super) fn nearest(routers: &[Router], (x_m, y_m): (f64, f64)) -> usize {
    let far = |router: &Router| {
        let (dx, dy) = (router.x_m - x_m, router.y_m - y_m);
        dx * dx + dy * dy
    };
    let nearest = (0..routers.len()).min_by(|a, b| far(&routers[*a]).total_cmp(&far(&routers[*b])));
    nearest.unwrap_or(0)
}

/// `count` random routers other than the gateway, in the order of their numbers; all if there are fewer.
pub(super) fn receivers(routers: usize, gateway: usize, count: usize, seed: u64) -> Vec<usize> {
    // Places use the beginning of this stream, so receivers use a later part.
    let mut stream = stream(seed);
    stream.jump();
    some(routers, gateway, count, stream)
}

/// `count` random routers other than the gateway that lie, likewise.
pub(super) fn liars(routers: usize, gateway: usize, count: usize, seed: u64) -> Vec<usize> {
    let mut stream = stream(seed);
    stream.long_jump();
    some(routers, gateway, count, stream)
}

fn some(
    routers: usize,
    gateway: usize,
    count: usize,
    mut stream: Xoshiro256PlusPlus,
) -> Vec<usize> {
    let mut left: Vec<_> = (0..routers).filter(|it| *it != gateway).collect();
    let mut chosen: Vec<_> = (0..count.min(left.len()))
        .map(|_| {
            let place = (u128::from(stream.next_u64()) * left.len() as u128) >> 64;
            left.swap_remove(place as usize)
        })
        .collect();
    chosen.sort_unstable();
    chosen
}

/// Whether all routers are connected. Longer links than `range_m`, which shadowing can make, do not count:
/// with some settings nearly every pair has one.
fn are_connected(positions_m: &[(f64, f64)], range_m: f64, propagation: &Propagation) -> bool {
    let joined = |one: usize, other: usize| {
        let (from, to) = (positions_m[one], positions_m[other]);
        let (dx, dy) = (from.0 - to.0, from.1 - to.1);
        let distance_m = (dx * dx + dy * dy).sqrt();
        let pair = (Station(one as u16), Station(other as u16));
        distance_m <= range_m
            && propagation.link(pair, distance_m, |_| 0.0).is_some_and(|link| link.decodable)
    };
    let mut reached = vec![0];
    let mut left: Vec<_> = (1..positions_m.len()).collect();
    while let Some(from) = reached.pop() {
        left.retain(|to| {
            let is_joined = joined(from, *to);
            reached.extend(is_joined.then_some(*to));
            !is_joined
        });
    }
    left.is_empty()
}

fn stream(seed: u64) -> Xoshiro256PlusPlus {
    let root = SplitMix64::seed_from_u64(seed).next_u64();
    Xoshiro256PlusPlus::seed_from_u64(root ^ PURPOSE)
}

/// A number from 0 to below 1, made from 53 bits.
fn unit(bits: u64) -> f64 {
    (bits >> 11) as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use radio::Ranges;
    use radio::propagation::PathLoss;

    use super::*;
    use crate::seeds::seed;

    fn usual() -> Propagation {
        Propagation::in_ranges(Ranges::default())
    }

    #[test]
    fn a_seed_says_where_routers_stand_and_who_receives() {
        let mesh = |seed| routers(50, 1000.0, 250.0, &usual(), seed).unwrap();
        assert_eq!(mesh(7), mesh(7));
        assert_ne!(mesh(7), mesh(8));
        let inside = |m: f64| (0.0..1000.0).contains(&m);
        assert!(mesh(7).iter().all(|it| inside(it.x_m) && inside(it.y_m)));
        let chosen = receivers(50, 3, 25, 7);
        assert_eq!((chosen.len(), chosen.contains(&3)), (25, false));
        assert!(chosen.windows(2).all(|two| two[0] < two[1]));
        assert_eq!(receivers(3, 1, 25, 7), [0, 2]);
    }

    #[test]
    fn the_gateway_is_the_nearest_to_its_place() {
        let at = |x_m, y_m| Router { name: String::new(), x_m, y_m };
        let routers = [at(0.0, 0.0), at(60.0, 40.0), at(80.0, 50.0)];
        assert_eq!(nearest(&routers, (50.0, 50.0)), 1);
        assert_eq!(nearest(&routers, (10.0, 90.0)), 1);
        assert_eq!(nearest(&routers, (0.0, 0.0)), 0);
    }

    #[test]
    fn routers_that_cannot_be_connected_are_given_up() {
        assert_eq!(routers(3, 100_000.0, 250.0, &usual(), 1), None);
        // With this shadowing nearly all routers sense each other, so a draw has a link for each pair.
        let path_loss =
            PathLoss::LogDistance { loss_1m_db: 40.0, exponent: 2.0, shadowing_db: 20.0, seed: 1 };
        let shadowed = Propagation::by_power(path_loss, 24.5, -63.0, -70.0);
        assert_eq!(routers(1000, 100_000.0, 250.0, &shadowed, 1), None);
    }

    #[test]
    fn seeds_differ_by_machine_and_purpose() {
        let seeds: BTreeSet<_> = (0..50).flat_map(|it| [seed(1, it, 0), seed(1, it, 1)]).collect();
        assert_eq!(seeds.len(), 100);
        assert_ne!(seed(1, 0, 0), seed(2, 0, 0));
        // No machine's stream equals one of the medium's, which derives its streams from purpose and station
        // under the same seed.
        let streams = (1..=4_u64).flat_map(|purpose| (0..50_u64).map(move |it| purpose << 16 | it));
        let root = SplitMix64::seed_from_u64(1).next_u64();
        let mediums = |place| SplitMix64::seed_from_u64(root ^ place).next_u64();
        assert!(streams.map(mediums).all(|it| !seeds.contains(&it)));
    }
}
