//! One direction of a wired link with a rate, a delay, a queue and losses, in virtual time.
//!
//! *What this is:* [`Pipe`], for the gateway's uplink. *Who calls it:* the simulator's loop, and the lab's
//! medium in real time. *What it never does:* reorder packets, lose an accepted packet unless
//! [`Pipe::with_loss`] says so, or read a clock.

use std::collections::VecDeque;
use std::time::Duration;

use wire::Instant;

use crate::losses::Losses;

const NANOS_PER_SECOND: u128 = 1_000_000_000;

/// One direction of a wired link.
///
/// A packet leaves when the packets before it have left and its own bits are sent, and arrives one delay
/// later, or is lost on the way. A lost packet takes its place in the queue and its time on the link like any
/// other. Departure times are kept to a fraction of a nanosecond, so that a long run of packets does not
/// drift.
#[derive(Clone, Debug)]
pub struct Pipe<F> {
    bits_per_second: u64,
    delay: Duration,
    packets_max: usize,
    /// When the link falls idle, in whole nanoseconds, …
    busy_nanos: u64,
    /// … plus this many parts of a nanosecond; `bits_per_second` parts make one nanosecond.
    busy_parts: u64,
    /// Packets in the order in which they leave.
    packets: VecDeque<Packet<F>>,
    /// How many of them had left at the latest send.
    left: usize,
    /// `None` if the link loses nothing.
    losses: Option<Losses>,
    /// Number of packets lost.
    lost: u64,
}

#[derive(Clone, Debug)]
struct Packet<F> {
    leaves: Instant,
    /// `None` if the packet is lost.
    frame: Option<F>,
}

impl<F> Pipe<F> {
    /// An idle link. At most `packets_max` packets wait while another is being sent.
    ///
    /// # Panics
    ///
    /// If the rate is 0.
    pub fn new(bits_per_second: u64, delay: Duration, packets_max: usize) -> Self {
        assert!(bits_per_second > 0, "a wire has a rate");
        Self {
            bits_per_second,
            delay,
            packets_max,
            busy_nanos: 0,
            busy_parts: 0,
            packets: VecDeque::new(),
            left: 0,
            losses: None,
            lost: 0,
        }
    }

    /// The same link, which loses each accepted packet with this probability. Whether a packet is lost depends
    /// on `seed` and on its number among the accepted ones.
    ///
    /// # Panics
    ///
    /// If the probability is not between 0 and 1.
    #[must_use]
    pub fn with_loss(self, probability: f64, seed: u64) -> Self {
        Self { losses: Losses::new(probability, seed), ..self }
    }

    /// Takes a packet of `bytes` bytes, or gives it back if the queue is full.
    ///
    /// `now` must not go back from one call to the next, here and in [`Pipe::receive`].
    pub fn send(&mut self, now: Instant, bytes: u32, packet: F) -> Result<(), F> {
        let leaving = self.packets.iter().skip(self.left);
        self.left += leaving.take_while(|it| it.leaves <= now).count();
        if self.packets.len() - self.left > self.packets_max {
            return Err(packet);
        }
        if self.busy_nanos < now.as_nanos() {
            (self.busy_nanos, self.busy_parts) = (now.as_nanos(), 0);
        }
        let rate = u128::from(self.bits_per_second);
        let parts = u128::from(bytes) * 8 * NANOS_PER_SECOND + u128::from(self.busy_parts);
        let nanos = u64::try_from(parts / rate).unwrap_or(u64::MAX);
        self.busy_nanos = self.busy_nanos.saturating_add(nanos);
        self.busy_parts = (parts % rate) as u64;
        let leaves = self.busy_nanos.saturating_add(u64::from(self.busy_parts > 0));
        let is_lost = self.losses.as_mut().is_some_and(Losses::draw);
        self.lost += u64::from(is_lost);
        let frame = (!is_lost).then_some(packet);
        self.packets.push_back(Packet { leaves: Instant::from_nanos(leaves), frame });
        Ok(())
    }

    /// Number of accepted packets that do not arrive.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// When the next packet in flight arrives, or would arrive if it is lost: when to call [`Pipe::receive`]
    /// next.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.packets.front().map(|packet| packet.leaves + self.delay)
    }

    /// The next packet that has arrived at `now`, and when it arrived: at the first whole nanosecond at which
    /// all its bits are there.
    pub fn receive(&mut self, now: Instant) -> Option<(Instant, F)> {
        loop {
            let arrived = self.poll_timeout().filter(|it| *it <= now)?;
            let packet = self.packets.pop_front()?;
            self.left = self.left.saturating_sub(1);
            if let Some(frame) = packet.frame {
                return Some((arrived, frame));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DELAY: Duration = Duration::from_millis(10);

    fn at(nanos: u64) -> Instant {
        Instant::from_nanos(nanos)
    }

    #[test]
    fn a_packet_takes_its_bits_over_the_rate_and_the_delay() {
        let mut pipe = Pipe::new(100_000_000, DELAY, 10);
        assert_eq!(pipe.poll_timeout(), None);
        pipe.send(at(5), 1500, 'a').unwrap();
        let arrives = at(5 + 120_000 + 10_000_000);
        assert_eq!(pipe.poll_timeout(), Some(arrives));
        assert_eq!(pipe.receive(at(arrives.as_nanos() - 1)), None);
        assert_eq!(pipe.receive(arrives), Some((arrives, 'a')));
        assert_eq!((pipe.receive(arrives), pipe.poll_timeout()), (None, None));
    }

    #[test]
    fn packets_arrive_in_order_one_after_the_other_whenever_they_are_fetched() {
        let mut pipe = Pipe::new(8_000_000_000, DELAY, 10);
        for (now, bytes, packet) in [(0, 100, 'a'), (30, 50, 'b'), (1000, 7, 'c')] {
            pipe.send(at(now), bytes, packet).unwrap();
        }
        let late = at(1_000_000_000);
        let start = Instant::ZERO + DELAY;
        let mut next = || pipe.receive(late).map(|(at, it)| ((at - start).as_nanos(), it));
        assert_eq!(next(), Some((100, 'a')));
        assert_eq!(next(), Some((150, 'b')));
        assert_eq!(next(), Some((1007, 'c')));
        assert_eq!(next(), None);
    }

    #[test]
    fn nothing_drifts_though_a_packet_takes_no_whole_number_of_nanoseconds() {
        // 1 byte at 3 Gbit/s takes 8/3 ns.
        let mut pipe = Pipe::new(3_000_000_000, Duration::ZERO, usize::MAX);
        for packet in 1..=3_000_000_u64 {
            pipe.send(Instant::ZERO, 1, packet).unwrap();
            let (arrived, received) = pipe.receive(at(u64::MAX)).unwrap();
            assert_eq!((arrived, received), (at((packet * 8).div_ceil(3)), packet));
        }
    }

    #[test]
    fn a_fraction_is_forgotten_when_the_wire_falls_idle() {
        let mut pipe = Pipe::new(3_000_000_000, Duration::ZERO, 10);
        pipe.send(at(0), 1, ()).unwrap();
        // The link is busy until 8/3 ns: a packet at 2 ns must wait, one at 10 ns need not.
        pipe.send(at(2), 1, ()).unwrap();
        pipe.send(at(10), 1, ()).unwrap();
        let arrivals: Vec<_> =
            std::iter::from_fn(|| pipe.receive(at(99))).map(|(at, ())| at.as_nanos()).collect();
        assert_eq!(arrivals, [3, 6, 13]);
    }

    #[test]
    fn a_full_queue_gives_packets_back_until_one_has_left() {
        // 125 bytes at 1 Mbit/s take 1 ms.
        let mut pipe = Pipe::new(1_000_000, DELAY, 2);
        for packet in 0..3 {
            assert_eq!(pipe.send(at(0), 125, packet), Ok(()));
        }
        assert_eq!(pipe.send(at(0), 125, 3), Err(3));
        assert_eq!(pipe.send(at(999_999), 125, 4), Err(4));
        // The first packet has left, though it has not arrived.
        assert_eq!(pipe.send(at(1_000_000), 125, 5), Ok(()));
        assert_eq!(pipe.send(at(1_000_000), 125, 6), Err(6));
        let arrived: Vec<_> = std::iter::from_fn(|| pipe.receive(at(14_000_000))).collect();
        let expected = [(11, 0), (12, 1), (13, 2), (14, 5)];
        assert_eq!(arrived, expected.map(|(ms, packet)| (at(ms * 1_000_000), packet)));
        // Packets that were received do not count.
        for packet in 7..10 {
            assert_eq!(pipe.send(at(14_000_000), 125, packet), Ok(()));
        }
        assert_eq!(pipe.send(at(14_000_000), 125, 10), Err(10));
    }

    #[test]
    fn without_a_queue_one_packet_is_taken_at_a_time() {
        let mut pipe = Pipe::new(1_000_000, DELAY, 0);
        assert_eq!(pipe.send(at(0), 125, 'a'), Ok(()));
        assert_eq!(pipe.send(at(1), 125, 'b'), Err('b'));
        assert_eq!(pipe.send(at(1_000_000), 125, 'b'), Ok(()));
    }

    #[test]
    fn a_steady_stream_needs_no_more_room() {
        let mut pipe = Pipe::new(1_000_000, DELAY, 10);
        let mut room = 0;
        for ms in 0..1000 {
            let now = at(ms * 1_000_000);
            pipe.send(now, 125, ms).unwrap();
            while pipe.receive(now).is_some() {}
            if ms == 100 {
                room = pipe.packets.capacity();
            }
        }
        assert_eq!(pipe.packets.capacity(), room);
    }

    /// The numbers of the packets that arrive of `count`, sent one after the other.
    fn arrived(mut pipe: Pipe<u64>, count: u64) -> Vec<u64> {
        let mut all = Vec::new();
        for packet in 0..count {
            pipe.send(Instant::ZERO, 125, packet).unwrap();
            all.extend(pipe.receive(at(u64::MAX)).map(|(_, packet)| packet));
        }
        assert_eq!(pipe.lost() + all.len() as u64, count);
        all
    }

    #[test]
    fn packets_are_lost_by_their_share_and_the_seed() {
        let lossy = |share, seed| Pipe::new(1_000_000, DELAY, 10).with_loss(share, seed);
        let some = arrived(lossy(0.1, 1), 10_000);
        // Three standard deviations of a binomial distribution: 30 packets each.
        assert!((8_910..=9_090).contains(&some.len()), "{}", some.len());
        assert!(some.is_sorted());
        assert_eq!(arrived(lossy(0.1, 1), 10_000), some);
        assert_ne!(arrived(lossy(0.1, 2), 10_000), some);
        // Two losses in a row are as frequent as by chance.
        let gaps = some.windows(2).filter(|two| two[1] - two[0] > 2).count();
        assert!((50..=130).contains(&gaps), "{gaps}");
        assert_eq!(arrived(lossy(0.0, 1), 1_000).len(), 1_000);
        assert_eq!(arrived(lossy(1.0, 1), 1_000).len(), 0);
    }

    #[test]
    fn a_lost_packet_takes_its_time_and_its_place_in_the_queue() {
        // 125 bytes at 1 Mbit/s take 1 ms.
        let mut pipe = Pipe::new(1_000_000, DELAY, 1).with_loss(1.0, 1);
        pipe.send(at(0), 125, 'a').unwrap();
        pipe.send(at(0), 125, 'b').unwrap();
        assert_eq!(pipe.send(at(0), 125, 'c'), Err('c'));
        assert_eq!(pipe.lost(), 2, "a packet that was given back is not lost");
        assert_eq!(pipe.poll_timeout(), Some(at(11_000_000)));
        assert_eq!(pipe.receive(at(11_000_000)), None);
        assert_eq!(pipe.poll_timeout(), Some(at(12_000_000)));
        assert_eq!(pipe.receive(at(99_000_000)), None);
        assert_eq!(pipe.poll_timeout(), None);
        // Nothing is left of them.
        assert_eq!((pipe.packets.len(), pipe.left), (0, 0));
    }

    #[test]
    fn losses_delay_no_other_packet() {
        let times = |mut pipe: Pipe<u32>| {
            (0..100).for_each(|packet| pipe.send(at(0), 125, packet).unwrap());
            std::iter::from_fn(move || pipe.receive(at(u64::MAX))).collect::<Vec<_>>()
        };
        let all = times(Pipe::new(1_000_000, DELAY, 100));
        let some = times(Pipe::new(1_000_000, DELAY, 100).with_loss(0.5, 1));
        assert!((20..80).contains(&some.len()), "{some:?}");
        assert!(some.iter().all(|it| all[it.1 as usize] == *it));
    }

    #[test]
    fn the_end_of_time_is_not_passed() {
        let mut pipe = Pipe::new(1, Duration::MAX, 10);
        pipe.send(at(u64::MAX - 1), u32::MAX, ()).unwrap();
        pipe.send(at(u64::MAX), u32::MAX, ()).unwrap();
        assert_eq!(pipe.poll_timeout(), Some(at(u64::MAX)));
    }
}
