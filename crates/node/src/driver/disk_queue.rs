//! Units for which a store had no room: who waits for some, and for how long.

use crate::Ticket;
use std::collections::VecDeque;
use std::time::Duration;
use store::Unit;
use wire::Instant;

/// Units that found no room wait so long for the engine to make some.
const ROOM_TIMEOUT: Duration = Duration::from_secs(1);

/// Units that are to be appended.
#[derive(Debug)]
pub struct Waiting {
    /// They wait for room until then.
    pub until: Instant,
    /// What answers for them.
    pub ticket: Ticket,
    /// Theirs.
    pub units: Vec<Unit>,
}

impl Waiting {
    /// They are to be appended as of now.
    pub fn new(now: Instant, ticket: Ticket, units: Vec<Unit>) -> Self {
        Self { until: now + ROOM_TIMEOUT, ticket, units }
    }
}

/// Who waits for room, the longest first.
#[derive(Debug, Default)]
pub struct DiskQueue(VecDeque<Waiting>);

impl DiskQueue {
    /// There was no room for these: the engine is making some, or will when it has heard of what was written
    /// before.
    pub fn wait(&mut self, waiting: Waiting) {
        self.0.push_back(waiting);
    }

    /// A segment was rewritten, or that failed. All who wait are to be appended again, in this order; if room is
    /// being made, whoever finds none yet may wait for the next piece.
    pub fn take(&mut self, now: Instant, makes_room: bool) -> VecDeque<Waiting> {
        if makes_room {
            self.0.iter_mut().for_each(|waiting| waiting.until = now + ROOM_TIMEOUT);
        }
        std::mem::take(&mut self.0)
    }

    /// When somebody will have waited in vain.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.0.front().map(|waiting| waiting.until)
    }

    /// Those for whom no room was made in time, so that they are not stored.
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
