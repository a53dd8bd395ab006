//! Writes of units for which the store had no room, and how long they wait.

use crate::Ticket;
use std::collections::VecDeque;
use std::time::Duration;
use store::Unit;
use wire::Instant;

/// How long a write waits for the engine to make room.
const ROOM_TIMEOUT: Duration = Duration::from_secs(1);

/// A write of units that waits for room.
#[derive(Debug)]
pub struct Waiting {
    /// When the wait for room ends.
    pub until: Instant,
    /// The ticket of the write, for the answer to the engine.
    pub ticket: Ticket,
    /// The units to append.
    pub units: Vec<Unit>,
}

impl Waiting {
    /// A write that begins to wait now.
    pub fn new(now: Instant, ticket: Ticket, units: Vec<Unit>) -> Self {
        Self { until: now + ROOM_TIMEOUT, ticket, units }
    }
}

/// The writes that wait for room, the oldest first.
#[derive(Debug, Default)]
pub struct DiskQueue(VecDeque<Waiting>);

impl DiskQueue {
    /// There was no room for this write. The engine is making room, or will do so once it gets the results of
    /// earlier writes.
    pub fn wait(&mut self, waiting: Waiting) {
        self.0.push_back(waiting);
    }

    /// A segment was rewritten, or rewriting it failed. Returns the waiting writes, which the driver
    /// must retry in this order. If the engine makes more room (`makes_room`), their timeout starts
    /// again: a write that still finds no room may wait for the next segment.
    pub fn take(&mut self, now: Instant, makes_room: bool) -> VecDeque<Waiting> {
        if makes_room {
            self.0.iter_mut().for_each(|waiting| waiting.until = now + ROOM_TIMEOUT);
        }
        std::mem::take(&mut self.0)
    }

    /// When the oldest write's wait ends.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.0.front().map(|waiting| waiting.until)
    }

    /// The writes that found no room in time: their units are not stored.
    pub fn expire(&mut self, now: Instant) -> impl Iterator<Item = Ticket> {
        let count = self.0.iter().take_while(|waiting| waiting.until <= now).count();
        self.0.drain(..count).map(|waiting| waiting.ticket)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    fn wait(queue: &mut DiskQueue, millis: u64, ticket: u64) {
        queue.wait(Waiting::new(at(millis), Ticket(ticket), Vec::new()));
    }

    #[test]
    fn who_finds_no_room_in_time_is_given_up() {
        let mut queue = DiskQueue::default();
        assert_eq!(queue.poll_timeout(), None);
        wait(&mut queue, 0, 1);
        wait(&mut queue, 10, 2);
        assert_eq!(queue.poll_timeout(), Some(at(1000)));
        assert_eq!(queue.expire(at(1009)).collect::<Vec<_>>(), [Ticket(1)]);
        assert_eq!(queue.expire(at(1010)).collect::<Vec<_>>(), [Ticket(2)]);
    }

    #[test]
    fn who_waits_may_wait_longer_only_while_room_is_being_made() {
        let mut queue = DiskQueue::default();
        for (makes_room, until) in [(false, 1000), (true, 1500)] {
            wait(&mut queue, 0, 1);
            let again = queue.take(at(500), makes_room);
            assert_eq!(queue.poll_timeout(), None);
            again.into_iter().for_each(|waiting| queue.wait(waiting));
            assert_eq!(queue.poll_timeout(), Some(at(until)));
            queue.take(at(500), false);
        }
    }
}
