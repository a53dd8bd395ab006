//! Clients that read pages: which files they request, how many, and how long they think.
//!
//! The model of MeshCache's section 5. Popularity follows Zipf's law and is similar among neighbours, but not
//! the same (the paper cites Yin and Cao). Pages have several files, and think times a long tail (the paper
//! cites Mah).

use std::time::Duration;

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{RngCore as _, SeedableRng as _};

use super::Router;

/// Numbers of the random streams of a seed. Changing them changes runs. Clients use numbers from `CLIENTS`
/// on.
const SIZES: u16 = 16;
const CLIENTS: u16 = 17;
/// Clients have read for this long before the run begins, so that they do not all start together.
const BEFORE_S: f64 = 86_400.0;

/// What clients that read pages do.
#[derive(Clone, Debug, PartialEq)]
pub struct Browsing {
    /// Number of clients behind each receiver.
    pub clients: u16,
    /// Number of different files.
    pub files: usize,
    /// Smallest and largest size of a file in bytes; sizes are uniform between them.
    pub bytes: [u64; 2],
    /// Zipf's exponent: the file of rank n is requested n^-theta times as often as the first.
    pub theta: f64,
    /// Side of the squares of ground, in metres, in which popularity is the same. From one square to the next
    /// it shifts by one rank.
    pub square_m: f64,
    /// Mean number of files in a page; the distribution is geometric.
    pub page_files: f64,
    /// Mean time from the end of a page to the next, in seconds; the distribution is log-normal.
    pub think_s: f64,
    /// Standard deviation of the think time's logarithm.
    pub think_sigma: f64,
    /// No page begins after this.
    pub lasts: Duration,
    /// How long files stay fresh, in seconds.
    pub max_age_s: u64,
    /// Size of each router's store, in bytes of content; eviction is LRU.
    pub store_bytes: u64,
    /// Rate of the wire that a router's clients share, in bits per second.
    pub access_bps: u64,
}

/// One client that reads pages.
#[derive(Clone, Debug)]
pub struct Reader {
    chance: Xoshiro256PlusPlus,
    popularity: Vec<f64>,
    /// By how many ranks its popularity is shifted.
    shift: usize,
    page_files: f64,
    think_s: f64,
    think_sigma: f64,
}

impl Browsing {
    /// The size of each file, in bytes, by its number.
    pub fn sizes(&self, seed: u64) -> Vec<u64> {
        let [least, most] = self.bytes;
        let mut chance = Xoshiro256PlusPlus::seed_from_u64(super::seed(seed, 0, SIZES));
        let mut size = || least + ((most - least + 1) as f64 * unit(chance.next_u64())) as u64;
        (0..self.files).map(|_| size().min(most)).collect()
    }

    /// The client of this number behind a router.
    pub fn reader(&self, router: &Router, number: usize, client: u16, seed: u64) -> Reader {
        let chance = super::seed(seed, number, CLIENTS + client);
        let square = |m: f64| (m / self.square_m).floor().max(0.0) as usize;
        Reader {
            chance: Xoshiro256PlusPlus::seed_from_u64(chance),
            popularity: popularity(self.files, self.theta),
            shift: square(router.x_m) + square(router.y_m),
            page_files: self.page_files,
            think_s: self.think_s,
            think_sigma: self.think_sigma,
        }
    }
}

impl Reader {
    /// When its first page in the run begins, in seconds.
    pub fn first_s(&mut self) -> f64 {
        let mut at = -BEFORE_S;
        while at < 0.0 {
            at += self.think_s();
        }
        at
    }

    /// Draws a think time, in seconds.
    pub fn think_s(&mut self) -> f64 {
        // Two uniform numbers give a normal one (Box and Muller, 1958); the first must not be 0.
        let radius = libm::sqrt(-2.0 * libm::log(1.0 - self.unit()));
        let normal = radius * libm::cos(std::f64::consts::TAU * self.unit());
        // The mean of exp(mu + sigma n) is exp(mu + sigma^2 / 2).
        let sigma = self.think_sigma;
        self.think_s * libm::exp(sigma * normal - sigma * sigma / 2.0)
    }

    /// Draws the number of files in a page, at least one.
    pub fn page(&mut self) -> usize {
        let more = 1.0 - 1.0 / self.page_files;
        let mut files = 1;
        while self.unit() < more {
            files += 1;
        }
        files
    }

    /// Draws the file to request.
    pub fn file(&mut self) -> usize {
        let share = self.unit();
        let rank = self.popularity.partition_point(|below| *below <= share);
        (rank.min(self.popularity.len() - 1) + self.shift) % self.popularity.len()
    }

    fn unit(&mut self) -> f64 {
        unit(self.chance.next_u64())
    }
}

/// For each rank, the share of requests for it and all ranks before it.
fn popularity(files: usize, theta: f64) -> Vec<f64> {
    let mut sum = 0.0;
    let mut below: Vec<_> = (1..=files)
        .map(|rank| {
            sum += libm::pow(rank as f64, -theta);
            sum
        })
        .collect();
    below.iter_mut().for_each(|it| *it /= sum);
    below
}

/// A number from 0 to below 1, made from 53 bits.
fn unit(bits: u64) -> f64 {
    (bits >> 11) as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn browsing() -> Browsing {
        Browsing {
            clients: 5,
            files: 1000,
            bytes: [1024, 102_400],
            theta: 0.8,
            square_m: 250.0,
            page_files: 3.0,
            think_s: 100.0,
            think_sigma: 1.5,
            lasts: Duration::from_secs(3600),
            max_age_s: 5000,
            store_bytes: 2 << 20,
            access_bps: 11_000_000,
        }
    }

    fn reader(x_m: f64, seed: u64) -> Reader {
        let router = Router { name: "1".to_owned(), x_m, y_m: 0.0 };
        browsing().reader(&router, 1, 0, seed)
    }

    #[test]
    fn means_are_those_of_the_model() {
        let mut reader = reader(0.0, 1);
        let mean = |draw: &mut dyn FnMut() -> f64| (0..40_000).map(|_| draw()).sum::<f64>() / 4e4;
        let pages = mean(&mut || reader.page() as f64);
        assert!((pages - 3.0).abs() < 0.06, "{pages}");
        let think = mean(&mut || reader.think_s());
        assert!((think - 100.0).abs() < 10.0, "{think}");
        // By hand: 1 / sum of n^-0.8 up to 1000 is 0.0645.
        let first = mean(&mut || f64::from(u8::from(reader.file() == 0)));
        assert!((first - 0.0645).abs() < 0.004, "{first}");
        let sizes = browsing().sizes(3);
        assert!(sizes.iter().all(|it| (1024..=102_400).contains(it)));
        let size = sizes.iter().sum::<u64>() as f64 / 1000.0;
        assert!((size - 51_712.0).abs() < 3.0 * 29_270.0 / 1000_f64.sqrt(), "{size}");
    }

    #[test]
    fn neighbours_like_nearly_the_same() {
        let (mut here, mut there) = (reader(100.0, 9), reader(300.0, 9));
        for _ in 0..100 {
            assert_eq!((here.file() + 1) % 1000, there.file());
        }
    }

    #[test]
    fn a_seed_says_all() {
        let draws = |seed| {
            let mut reader = reader(0.0, seed);
            (reader.first_s(), reader.page(), reader.file(), reader.think_s())
        };
        assert_eq!(draws(1), draws(1));
        assert_ne!(draws(1), draws(2));
        assert!(draws(1).0 >= 0.0);
    }
}
