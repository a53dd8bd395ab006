//! What is under way to a neighbouring interlay node, by the numbers in the headers of both.

use std::time::Duration;

use wire::Instant;

/// The numbers of packets to and from a neighbour, modulo 256.
#[derive(Debug)]
pub(super) struct Window {
    /// The number of the last packet that was sent to it.
    sent: u8,
    /// The last number that has left it, as it said.
    gone: u8,
    /// How many were under way when it said so.
    under_way: u8,
    /// The last of its numbers that has left this router, if any has.
    left: Option<u8>,
    /// When it was told.
    told_at: Instant,
    /// When it last said that anything new had left.
    news_at: Instant,
}

/// After this time without news of packets under way, the numbers do not count.
const NEWS_TIMEOUT: Duration = Duration::from_secs(2);

impl Window {
    pub(super) fn new(now: Instant) -> Self {
        Self { sent: 0, gone: 0, under_way: 0, left: None, told_at: now, news_at: now }
    }

    /// The number of a packet that is sent to it now.
    pub(super) fn next(&mut self) -> u8 {
        self.sent = self.sent.wrapping_add(1);
        self.sent
    }

    /// The last of its numbers that has left this router. It is told so now.
    pub(super) fn tell(&mut self, now: Instant) -> Option<u8> {
        self.told_at = now;
        self.left
    }

    /// One of its packets has left this router: when it was told of such before.
    pub(super) fn has_left(&mut self, number: u8) -> Instant {
        if self.left.is_none_or(|last| number.wrapping_sub(last) < 128) {
            self.left = Some(number);
        }
        self.told_at
    }

    /// It says that this number has left it: how many more than it said before; `None`: that is old, or was never sent.
    pub(super) fn heed(&mut self, now: Instant, number: u8) -> Option<u8> {
        let advance = number.wrapping_sub(self.gone);
        let most = self.sent.wrapping_sub(self.gone);
        if advance > most {
            return None;
        }
        (self.gone, self.news_at) = (number, now);
        self.under_way = self.sent.wrapping_sub(number);
        (advance > 0).then_some(advance)
    }

    /// Whether it has packets under way, and has said nothing of them for long.
    pub(super) fn is_silent(&self, now: Instant) -> bool {
        self.sent != self.gone && now.since(self.news_at) >= NEWS_TIMEOUT
    }

    /// How many were under way when it last said what had left.
    pub(super) fn under_way(&self) -> u8 {
        self.under_way
    }

    /// How many more were under way than these.
    pub(super) fn beyond(&self, limit: f64) -> f64 {
        (f64::from(self.under_way) - limit).max(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_under_way_is_counted_across_the_end_of_the_numbers() {
        let mut window = Window::new(Instant::ZERO);
        let mut oldest = 0_u8;
        for _ in 0..1000 {
            let numbers = [(); 3].map(|()| window.next());
            assert_eq!(
                window.heed(Instant::ZERO, numbers[0]),
                Some(numbers[0].wrapping_sub(oldest))
            );
            assert_eq!((window.under_way(), window.beyond(0.5)), (2, 1.5));
            assert_eq!(window.heed(Instant::ZERO, numbers[0]), None, "it is no news");
            oldest = numbers[0];
        }
    }

    #[test]
    fn what_was_not_sent_or_is_old_is_no_news() {
        let mut window = Window::new(Instant::ZERO);
        (0..10).for_each(|_| _ = window.next());
        assert_eq!(window.heed(Instant::ZERO, 8), Some(8));
        for number in [11, 200, 7, 3, 0] {
            assert_eq!(window.heed(Instant::ZERO, number), None, "{number}");
        }
        assert_eq!(window.under_way(), 2);
        assert_eq!(window.beyond(2.5), 0.0);
    }

    #[test]
    fn the_neighbour_is_told_the_newest_that_has_left() {
        let mut window = Window::new(Instant::ZERO);
        assert_eq!(window.tell(Instant::ZERO), None);
        for number in [250, 255, 3, 2] {
            window.has_left(number);
        }
        assert_eq!(window.tell(Instant::ZERO), Some(3));
    }
}
