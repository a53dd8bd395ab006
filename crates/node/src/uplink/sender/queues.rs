//! Which flow is next: no input and no record looks at all flows.

use super::flow::Flow;
use crate::uplink::schedule::{SHORT, Shares};
use std::collections::{BTreeMap, BTreeSet};
use wire::Instant;

/// A flow's class; the first class goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    /// Little of it has crossed, and nothing is on its way.
    New,
    Short,
    Long,
}

/// Where a flow stands; by default it waits for nothing that time or the link brings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// A batch may be made of what it has.
    wants: Option<Slot>,
    /// Something of it can be sent.
    ready: Option<Slot>,
    /// When it needs [`Flow::handle_timeout`], or its head waits no longer.
    timer: Option<Instant>,
    /// The next new unit's position when its oldest unsent batch was put together.
    placed: Option<u64>,
    /// All of it has crossed.
    is_over: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Slot {
    class: Class,
    /// When its turn was last, as a count.
    turn: u64,
}

impl Place {
    /// Where this flow stands now.
    pub fn of(flow: &Flow) -> Self {
        let short = if flow.batches.is_empty() { Class::New } else { Class::Short };
        let class = if flow.crossed < SHORT { short } else { Class::Long };
        let slot = Slot { class, turn: flow.turn };
        let head = flow.head.as_ref().map(|(_, until)| *until);
        let timers = [head, flow.gathers_until(), flow.pauses_until()];
        Self {
            wants: flow.may_batch().then_some(slot),
            ready: flow.is_ready().then_some(slot),
            timer: timers.into_iter().flatten().min(),
            placed: flow.batches.front().map(|outgoing| outgoing.placed),
            is_over: flow.is_drained() && (flow.ended.is_some() || flow.is_cancelled),
        }
    }
}

/// The flows that have something to do, in order.
#[derive(Debug, Default)]
pub struct Queues {
    shares: Shares,
    new: Turns,
    short: Turns,
    long: Turns,
    ready_short: Turns,
    ready_long: Turns,
    timers: BTreeSet<(Instant, u64)>,
    placed: BTreeSet<(u64, u64)>,
    over: BTreeSet<u64>,
}

impl Queues {
    /// There are no flows any more. What clients have had is remembered.
    pub fn clear(&mut self) {
        *self = Self { shares: std::mem::take(&mut self.shares), ..Self::default() };
    }

    /// A flow of a client stands at `now` and no longer at `before`.
    pub fn move_to(&mut self, flow: u64, client: u64, before: Place, now: Place) {
        let rank = self.shares.rank(client);
        if before.wants != now.wants {
            before.wants.inspect(|at| self.wants(at.class).remove(rank, client, (at.turn, flow)));
            now.wants.inspect(|at| self.wants(at.class).insert(rank, client, (at.turn, flow)));
        }
        if before.ready != now.ready {
            before.ready.inspect(|at| self.ready(at.class).remove(rank, client, (at.turn, flow)));
            now.ready.inspect(|at| self.ready(at.class).insert(rank, client, (at.turn, flow)));
        }
        if before.timer != now.timer {
            before.timer.inspect(|at| _ = self.timers.remove(&(*at, flow)));
            now.timer.inspect(|at| _ = self.timers.insert((*at, flow)));
        }
        if before.placed != now.placed {
            before.placed.inspect(|at| _ = self.placed.remove(&(*at, flow)));
            now.placed.inspect(|at| _ = self.placed.insert((*at, flow)));
        }
        match now.is_over {
            true => _ = self.over.insert(flow),
            false => _ = self.over.remove(&flow),
        }
    }

    fn wants(&mut self, class: Class) -> &mut Turns {
        match class {
            Class::New => &mut self.new,
            Class::Short => &mut self.short,
            Class::Long => &mut self.long,
        }
    }

    fn ready(&mut self, class: Class) -> &mut Turns {
        match class {
            Class::New | Class::Short => &mut self.ready_short,
            Class::Long => &mut self.ready_long,
        }
    }

    /// The flow of which a batch is made next. Unless there is room for more than that, only one of which nothing is on its
    /// way: a short flow's job must not wait behind several long ones.
    pub fn next_to_batch(&self, has_room: bool) -> Option<u64> {
        let others = || self.short.first().or_else(|| self.long.first());
        self.new.first().or_else(|| others().filter(|_| has_room))
    }

    /// The flow that sends next.
    pub fn next_to_send(&self) -> Option<u64> {
        self.ready_short.first().or_else(|| self.ready_long.first())
    }

    /// This many bytes were sent for a client.
    pub fn serve(&mut self, client: u64, bytes: u64) {
        self.shares.serve(client, bytes);
        let (clock, rank) = (self.shares.clock(), self.shares.rank(client));
        let all = [&mut self.new, &mut self.short, &mut self.long];
        for turns in all.into_iter().chain([&mut self.ready_short, &mut self.ready_long]) {
            turns.catch_up(clock);
            turns.rank(rank, client);
        }
    }

    /// Whether a client has had much more than those whose turn it is.
    pub fn is_ahead(&self, client: u64) -> bool {
        self.shares.is_ahead(client)
    }

    /// The oldest position at which an unsent batch was put together.
    pub fn oldest_placed(&self) -> Option<u64> {
        self.placed.first().map(|(placed, _)| *placed)
    }

    /// The time of the first timer.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.timers.first().map(|(at, _)| *at)
    }

    /// The flows whose timers have come.
    pub fn due(&self, now: Instant) -> Vec<u64> {
        self.timers.range(..=(now, u64::MAX)).map(|(_, flow)| *flow).collect()
    }

    /// Flows that have crossed wholly.
    pub fn take_over(&mut self) -> BTreeSet<u64> {
        std::mem::take(&mut self.over)
    }
}

/// A flow among those of its client: whose turn is longer ago is first.
type Turn = (u64, u64);

/// Flows that take turns: of the client that has had least, the one whose turn is longest ago.
#[derive(Debug, Default)]
struct Turns {
    clients: BTreeMap<u64, Client>,
    /// Each client's rank, its first flow, and itself.
    order: BTreeSet<(u64, Turn, u64)>,
}

#[derive(Debug)]
struct Client {
    rank: u64,
    flows: BTreeSet<Turn>,
}

impl Turns {
    fn first(&self) -> Option<u64> {
        self.order.first().map(|(_, (_, flow), _)| *flow)
    }

    fn insert(&mut self, rank: u64, client: u64, turn: Turn) {
        self.change(rank, client, |flows| _ = flows.insert(turn));
    }

    fn remove(&mut self, rank: u64, client: u64, turn: Turn) {
        self.change(rank, client, |flows| _ = flows.remove(&turn));
    }

    /// A client's rank is another now, if it has flows here.
    fn rank(&mut self, rank: u64, client: u64) {
        if self.clients.contains_key(&client) {
            self.change(rank, client, |_| {});
        }
    }

    fn change(&mut self, rank: u64, client: u64, change: impl FnOnce(&mut BTreeSet<Turn>)) {
        let it =
            self.clients.entry(client).or_insert_with(|| Client { rank, flows: BTreeSet::new() });
        if let Some(first) = it.flows.first() {
            self.order.remove(&(it.rank, *first, client));
        }
        it.rank = rank;
        change(&mut it.flows);
        match it.flows.first() {
            Some(first) => _ = self.order.insert((rank, *first, client)),
            None => _ = self.clients.remove(&client),
        }
    }

    /// Clients whose rank is this at most stand at zero from now on.
    fn catch_up(&mut self, clock: u64) {
        while let Some((_, _, client)) =
            self.order.range((1, (0, 0), 0)..=(clock.max(1), (u64::MAX, u64::MAX), u64::MAX)).next()
        {
            let client = *client;
            self.rank(0, client);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ready(class: Class, turn: u64) -> Place {
        Place { ready: Some(Slot { class, turn }), ..Place::default() }
    }

    fn wants(class: Class, turn: u64) -> Place {
        Place { wants: Some(Slot { class, turn }), ..Place::default() }
    }

    const NOWHERE: Place =
        Place { wants: None, ready: None, timer: None, placed: None, is_over: false };

    #[test]
    fn short_flows_go_first_then_who_has_had_less_then_whose_turn_is_longer_ago() {
        let mut queues = Queues::default();
        queues.serve(1, 1000);
        queues.move_to(10, 1, NOWHERE, ready(Class::Short, 9));
        queues.move_to(20, 2, NOWHERE, ready(Class::Long, 1));
        assert_eq!(queues.next_to_send(), Some(10), "a short flow");
        queues.move_to(10, 1, ready(Class::Short, 9), ready(Class::Long, 0));
        assert_eq!(queues.next_to_send(), Some(20), "client 1 had more");
        queues.move_to(21, 2, NOWHERE, ready(Class::Long, 0));
        assert_eq!(queues.next_to_send(), Some(21), "its turn is longer ago");
        queues.serve(2, 2000);
        assert_eq!(queues.next_to_send(), Some(10));
        for (flow, client, at) in [(10, 1, 0), (20, 2, 1), (21, 2, 0)] {
            queues.move_to(flow, client, ready(Class::Long, at), NOWHERE);
        }
        assert_eq!(queues.next_to_send(), None);
        assert!(queues.ready_long.clients.is_empty() && queues.ready_long.order.is_empty());
    }

    #[test]
    fn who_has_caught_up_stands_with_those_that_had_nothing() {
        let mut queues = Queues::default();
        queues.move_to(10, 1, NOWHERE, ready(Class::Long, 5));
        queues.move_to(20, 2, NOWHERE, ready(Class::Long, 6));
        queues.serve(1, 100);
        queues.serve(2, 100);
        queues.serve(2, 100);
        // The clock is at 100: that was client 2's when it was served last.
        queues.move_to(30, 3, NOWHERE, ready(Class::Long, 7));
        assert_eq!(queues.next_to_send(), Some(10), "1 stands where 3 begins, and waits longer");
        queues.move_to(10, 1, ready(Class::Long, 5), ready(Class::Long, 8));
        assert_eq!(queues.next_to_send(), Some(30));
    }

    #[test]
    fn without_room_only_new_flows_get_batches() {
        let mut queues = Queues::default();
        queues.move_to(1, 1, NOWHERE, wants(Class::Long, 1));
        queues.move_to(2, 1, NOWHERE, wants(Class::Short, 2));
        assert_eq!((queues.next_to_batch(false), queues.next_to_batch(true)), (None, Some(2)));
        queues.move_to(3, 1, NOWHERE, wants(Class::New, 3));
        assert_eq!((queues.next_to_batch(false), queues.next_to_batch(true)), (Some(3), Some(3)));
    }

    #[test]
    fn timers_positions_and_ends_are_of_where_a_flow_stands_now() {
        let at = |seconds| Instant::from_nanos(seconds);
        let mut queues = Queues::default();
        let first = Place { timer: Some(at(5)), placed: Some(70), ..NOWHERE };
        let second = Place { timer: Some(at(4)), placed: Some(80), is_over: true, ..NOWHERE };
        queues.move_to(1, 1, NOWHERE, first);
        queues.move_to(2, 1, NOWHERE, second);
        assert_eq!((queues.poll_timeout(), queues.oldest_placed()), (Some(at(4)), Some(70)));
        assert_eq!(
            (queues.due(at(3)), queues.due(at(4)), queues.due(at(5))),
            (vec![], vec![2], vec![2, 1])
        );
        queues.move_to(1, 1, first, NOWHERE);
        assert_eq!((queues.poll_timeout(), queues.oldest_placed()), (Some(at(4)), Some(80)));
        queues.move_to(1, 1, NOWHERE, second);
        queues.move_to(1, 1, second, NOWHERE);
        assert_eq!(queues.take_over(), BTreeSet::from([2]));
    }
}
