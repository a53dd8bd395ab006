//! Which pure ACKs a newer one makes useless (ACK filtering: RFC 3449, section 5.2.1).
//!
//! An ACK may be dropped only if all of this holds:
//!
//! - It acknowledged more than what its flow had sent before. So it is neither a duplicate, nor a window update, nor the
//!   answer to a probe. The first ACK that is seen of a flow stays, because nothing is known of those before it.
//! - The newer one acknowledges still more, and has the same sequence number, so that it is no probe for a window and no
//!   keep-alive.
//! - No other segment of the flow lies between them, so that segments of a flow never overtake each other.
//! - Both are ACKs and nothing else: no payload, no other control bit, no unknown option.
//! - It has no duplicate SACK (RFC 2883), and its other blocks are in the newer one too.

use std::net::SocketAddr;

use crate::header::before;
use crate::table::{Key, Table};
use crate::{Flags, Header, Tcp};

/// Where a packet waits: in which queue, and at which place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// The interlay node's slot; `None`: the active queue.
    pub(super) queue: Option<usize>,
    pub(super) at: u64,
}

/// What is known of the flows whose ACKs pass.
#[derive(Debug)]
pub(super) struct Flows {
    flows: Table<(SocketAddr, SocketAddr), Flow>,
}

#[derive(Debug)]
struct Flow {
    /// The last acknowledgement number that it sent.
    ack: u32,
    /// Its last segment, if that is an ACK that may be dropped, and waits.
    waiting: Option<(Place, Tcp)>,
}

/// What to do with a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// It waits behind the others. `Some`: it may be dropped; tell its place to [`Flows::waits`].
    Append(Option<Key>),
    /// It takes the place of an older one, which is dropped.
    Replace(Place),
}

impl Flows {
    pub(super) fn new(flows_max: usize, seed: u64) -> Self {
        Self { flows: Table::new(flows_max, seed) }
    }

    /// A packet is about to wait.
    pub(super) fn step(&mut self, header: &Header) -> Step {
        let Some(tcp) = header.tcp() else { return Step::Append(None) };
        let name = (header.from, header.to);
        let Some(key) = self.flows.find(&name) else {
            if tcp.is_pure_ack() {
                self.flows.insert(name, Flow { ack: tcp.ack, waiting: None });
            }
            return Step::Append(None);
        };
        self.flows.touch(key);
        let Some(flow) = self.flows.get_mut(key) else { return Step::Append(None) };
        let waiting = flow.waiting.take();
        if !tcp.flags.has(Flags::ACK) {
            return Step::Append(None);
        }
        let advances = before(flow.ack, tcp.ack);
        flow.ack = tcp.ack;
        if !advances || !tcp.is_pure_ack() {
            return Step::Append(None);
        }
        if let Some((place, older)) = waiting
            && supersedes(tcp, &older)
        {
            flow.waiting = may_go(tcp).then_some((place, *tcp));
            return Step::Replace(place);
        }
        Step::Append(may_go(tcp).then_some(key))
    }

    /// An ACK that may be dropped waits at this place.
    pub(super) fn waits(&mut self, flow: Key, place: Place, tcp: &Tcp) {
        if let Some(flow) = self.flows.get_mut(flow) {
            flow.waiting = Some((place, *tcp));
        }
    }

    /// What waited at a place has gone to another, or has left.
    pub(super) fn moved(&mut self, flow: Key, from: Place, to: Option<Place>) {
        let Some(flow) = self.flows.get_mut(flow) else { return };
        if let Some((place, tcp)) = flow.waiting
            && place == from
        {
            flow.waiting = to.map(|to| (to, tcp));
        }
    }

    pub(super) fn len(&self) -> usize {
        self.flows.len()
    }
}

/// Whether a newer pure ACK says all that an older one said.
pub(super) fn supersedes(newer: &Tcp, older: &Tcp) -> bool {
    let is_there = |&(first, after): &(u32, u32)| {
        let is_acked = !before(newer.ack, after);
        let is_in = |&(from, to): &(u32, u32)| !before(first, from) && !before(to, after);
        is_acked || newer.sack.blocks().iter().any(is_in)
    };
    before(older.ack, newer.ack)
        && older.seq == newer.seq
        && older.sack.blocks().iter().all(is_there)
}

/// Whether a pure ACK that acknowledges more than those before it may be dropped: it has no duplicate SACK, whose first
/// block is below the acknowledgement number or in the second block (RFC 2883, section 4).
pub(super) fn may_go(tcp: &Tcp) -> bool {
    match tcp.sack.blocks() {
        [] => true,
        [(first, after), rest @ ..] => {
            let is_in = |&(from, to): &(u32, u32)| !before(*first, from) && !before(to, *after);
            !before(*first, tcp.ack) && !rest.first().is_some_and(is_in)
        }
    }
}
