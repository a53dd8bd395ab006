//! The loop: what happens next, who is told, and what comes of it.

#![deny(clippy::wildcard_enum_match_arm, reason = "no output may be overlooked")]

use super::Mesh;
use super::ground::{PORT, Port, address};
use super::links::Wire;
use super::machine::Program;
use crate::common::{Answer, End, OriginEvent, Turn, check, check_memory};
use bytes::Bytes;
use http::HeaderMap;
use node::{
    ClientOutput, ExchangeId, FetchError, FetchId, Input, LinkInput, Looked, OriginInput,
    OriginOutput, Output,
};
use std::net::SocketAddr;
use std::time::Duration;
use wire::Instant;

/// No test needs more events than this: one that does goes round in circles.
const EVENTS_MAX: u64 = 5_000_000;
/// A driver gives up an origin that sends nothing for this long.
const ORIGIN_TIMEOUT: Duration = Duration::from_secs(20);
/// A node sees within this time that origins can be reached again.
const SEEN_AFTER: Duration = Duration::from_secs(6);
/// A response that was fresh when it was sent may arrive this many seconds late.
const LATE: u64 = 2;
/// How often it is looked whether the way to the origin is there again.
const RETRY: Duration = Duration::from_millis(500);

/// Something that happens at its time.
pub struct Event {
    /// Whom it is meant for, and which of its lives.
    whom: Option<(usize, u64)>,
    what: What,
}

pub enum What {
    Input(Box<Input>),
    Client(usize, Turn),
    Origin(FetchId, OriginEvent),
    Disk(Answer),
    Wire(Wire),
    Datagram(SocketAddr, Bytes),
}

impl Mesh {
    pub(super) fn after(&mut self, wait: Duration, whom: Option<usize>, what: What) {
        self.events += 1;
        let whom = whom.map(|node| (node, self.machines[node].life));
        self.queue.insert((self.now + wait, self.events), Event { whom, what });
    }

    /// Lets the next thing happen, if there is one in time.
    pub(super) fn step(&mut self, until: Instant) -> bool {
        assert!(self.events < EVENTS_MAX, "it goes round in circles");
        if self.origin.down.is_some() {
            self.down_until = Some(self.now);
        }
        let next = self.queue.first_key_value().map(|(at, _)| *at);
        let timers = self.machines.iter().enumerate();
        let timer = timers.filter_map(|(node, it)| Some((it.poll_timeout()?, node))).min();
        match (timer, next) {
            (Some((at, node)), next) if at <= until && next.is_none_or(|(next, _)| at <= next) => {
                self.now = self.now.max(at);
                self.events += 1;
                self.feed(node, Input::Tick);
                true
            }
            (_, Some(at)) if at.0 <= until => {
                let event = self.queue.remove(&at).expect("it was just seen");
                self.now = at.0;
                self.happen(event);
                true
            }
            _ => false,
        }
    }

    fn happen(&mut self, event: Event) {
        let node = match event.whom {
            Some((node, life)) if self.machines[node].life == life => node,
            Some(_) => return,
            None => 0,
        };
        match event.what {
            What::Input(input) => self.feed(node, *input),
            What::Client(id, turn) => self.turn(node, id, turn),
            What::Origin(fetch, event) => self.at_origin(node, fetch, event),
            What::Disk(answer) => {
                let Some(disk) = &mut self.machines[node].disk else { return };
                let (inputs, later) = disk.happen(self.now, answer);
                if let Some((wait, answer)) = later {
                    self.after(wait, Some(node), What::Disk(answer));
                }
                inputs.into_iter().for_each(|input| self.feed(node, Input::Store(input)));
            }
            What::Datagram(from, bytes) => {
                self.datagrams.push((from, node, bytes.clone()));
                self.feed(node, Input::Datagram(from, bytes));
            }
            What::Wire(wire) => {
                let (told, later) = self.links.happen(self.now, wire);
                self.wires(later);
                let Some((node, input)) = told else { return };
                let passing = if let LinkInput::Received(id, bytes) = &input {
                    self.links.passing(node, *id, bytes)
                } else {
                    None
                };
                self.feed(node, Input::Link(input));
                let heard = passing.map(|passing| self.air.carry(&passing)).unwrap_or_default();
                for (ear, heard) in heard {
                    let heard = What::Input(Box::new(Input::Overheard(heard)));
                    self.after(Duration::ZERO, Some(ear), heard);
                }
            }
        }
    }

    fn turn(&mut self, node: usize, id: usize, turn: Turn) {
        let (input, next) = self.clients[id].turn(ExchangeId(id as u64), turn);
        if self.clients[id].end == Some(End::Left) {
            self.times[id].end.get_or_insert(self.now);
        }
        if let Some((wait, turn)) = next {
            self.after(wait, Some(node), What::Client(id, turn));
        }
        input.into_iter().for_each(|input| self.feed(node, input));
    }

    /// Something happens at an origin, unless nothing comes through.
    fn at_origin(&mut self, node: usize, fetch: FetchId, event: OriginEvent) {
        let asker = (node, fetch);
        if self.links.ground.hops_out(node).is_none() && !self.origin.is_taken(asker) {
            let since = *self.stalled.entry(asker).or_insert(self.now);
            if self.now - since < ORIGIN_TIMEOUT {
                return self.after(RETRY, Some(node), What::Origin(fetch, event));
            }
            self.stalled.remove(&asker);
            let given_up = self.origin.cancel(asker);
            let end = Input::Origin(OriginInput::End(fetch, Err(FetchError::TimedOut)));
            return if given_up {
                self.feed(node, end)
            };
        }
        self.stalled.remove(&asker);
        let (inputs, next) = self.origin.happen(self.now, asker, event);
        for input in &inputs {
            if let Input::Origin(OriginInput::Head(_, _, headers)) = input {
                self.spoken.extend(version(headers).map(|version| (version, self.now)));
            }
        }
        if let Some((wait, event)) = next {
            self.after(wait, Some(node), What::Origin(fetch, event));
        }
        inputs.into_iter().for_each(|input| self.feed(node, input));
    }

    pub(super) fn feed(&mut self, node: usize, input: Input) {
        for output in self.machines[node].handle(self.now, input) {
            self.trace.note(self.now, node, &output);
            self.perform(node, output);
        }
        if self.events.is_multiple_of(64) {
            self.check_memory_of(node);
        }
    }

    fn perform(&mut self, node: usize, output: Output) {
        match output {
            Output::Client(output) => self.for_client(node, output),
            Output::Origin(output) => self.at_its_origin(node, output),
            Output::Link(output) => {
                let later = self.links.perform(self.now, node, output);
                self.wires(later);
            }
            Output::Store(output) => {
                let Some(disk) = &mut self.machines[node].disk else { return };
                if let Some((wait, answer)) = disk.perform(output, self.now) {
                    self.after(wait, Some(node), What::Disk(answer));
                }
            }
            Output::Name(host, _) => {
                let addresses = self.names.get(&host).cloned().unwrap_or_default();
                let input = Box::new(Input::Name(host, Looked::Addresses(addresses)));
                self.after(self.links.latency, Some(node), What::Input(input));
            }
            Output::Probe(..) => {
                let input = Box::new(Input::Probed(self.origin.down.is_none()));
                self.after(self.links.latency, Some(node), What::Input(input));
            }
            Output::Datagram(to, bytes) => self.send_datagram(node, to, bytes),
            Output::Broadcast(bytes) => self.broadcast(node, &bytes),
            Output::Notice(line) => self.notices.push((node, line)),
        }
    }

    fn for_client(&mut self, node: usize, output: ClientOutput) {
        match output {
            ClientOutput::Respond(id, head) => {
                let expected = self.origin.expected(&head);
                self.check_freshness(id.0 as usize, &head.headers);
                self.times[id.0 as usize].head = Some(self.now);
                self.clients[id.0 as usize].respond(*head, expected);
            }
            ClientOutput::Interim(..) => panic!("no origin sends any: {output:?}"),
            ClientOutput::Data(id, bytes) => {
                let id = id.0 as usize;
                self.times[id].first.get_or_insert(self.now);
                if let Some((wait, turn)) = self.clients[id].take(&bytes) {
                    self.after(wait, Some(node), What::Client(id, turn));
                }
            }
            ClientOutput::Finish(id) => self.end(id, End::Finished),
            ClientOutput::Abort(id) => self.end(id, End::Broken),
            ClientOutput::Tunnel(id, dial, ..) => {
                self.tunnels.push((node, dial));
                self.end(id, End::Tunnelled);
            }
            ClientOutput::Relay(id, fetch) => {
                self.tunnels.push((node, fetch.dial));
                self.end(id, End::Tunnelled);
            }
            ClientOutput::Published(exchange, result) => {
                assert!(self.published.insert(exchange, result).is_none(), "it was told before");
            }
        }
    }

    fn at_its_origin(&mut self, node: usize, output: OriginOutput) {
        match output {
            OriginOutput::Fetch(id, fetch) => {
                let (wait, event) = self.origin.ask((node, id), *fetch);
                let hops = self.links.ground.hops_out(node).unwrap_or(0);
                let wait = wait + self.links.latency * 2 * hops;
                self.after(wait, Some(node), What::Origin(id, event));
            }
            OriginOutput::TakeIn(exchange, id) => {
                let page = self.files.remove(&exchange).expect("somebody puts it");
                let (wait, event) = self.origin.take((node, id), page);
                self.after(wait, Some(node), What::Origin(id, event));
            }
            OriginOutput::Grant(id, bytes) => {
                if let Some((wait, event)) = self.origin.grant(self.now, (node, id), bytes) {
                    self.after(wait, Some(node), What::Origin(id, event));
                }
            }
            OriginOutput::Cancel(id) => {
                self.origin.cancel((node, id));
            }
        }
    }

    /// Sends a datagram from a machine. If it cannot arrive it is lost, and no node is told.
    pub fn send_datagram(&mut self, from: usize, to: SocketAddr, bytes: Bytes) {
        let ground = &self.links.ground;
        let target = ground.at(to).filter(|target| ground.ports[*target] == Port::Open);
        let way = target.and_then(|target| Some((target, ground.hops(from, target)?)));
        if let Some((target, hops)) = way {
            let from = SocketAddr::new(address(from), PORT);
            self.after(self.links.latency * hops, Some(target), What::Datagram(from, bytes));
        }
    }

    /// Sends a datagram to all machines that hear this one.
    fn broadcast(&mut self, from: usize, bytes: &Bytes) {
        self.broadcasts.push((from, bytes.clone()));
        for to in 0..self.count() {
            if self.links.ground.hops(from, to) == Some(1) {
                self.send_datagram(from, SocketAddr::new(address(to), PORT), bytes.clone());
            }
        }
    }

    fn end(&mut self, id: ExchangeId, end: End) {
        self.clients[id.0 as usize].finish(end);
        self.times[id.0 as usize].end = Some(self.now);
    }

    /// What the origin has not said for longer than it stays fresh is not given as fresh.
    fn check_freshness(&self, id: usize, headers: &HeaderMap) {
        let Some(said) = version(headers).and_then(|version| self.spoken.get(&version)) else {
            return;
        };
        let text = |headers: &HeaderMap, name| -> String {
            let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
            values.collect::<Vec<_>>().join(", ")
        };
        let control = text(headers, "cache-control");
        let Some(fresh) = seconds(&control, "max-age") else { return };
        let more = seconds(&control, "stale-while-revalidate").unwrap_or(0);
        let asked = text(&self.clients[id].call.headers, "cache-control");
        let stale = seconds(&asked, "max-stale").unwrap_or(0);
        // What is stale may stand in for an origin that was asked, and cannot be reached.
        let caches = text(headers, "cache-status");
        let excused = caches.contains("fwd=stale") && !caches.contains("; hit");
        // Nor is one asked that cannot be reached, until it is seen that it can.
        let was_down = self.down_until.is_some_and(|at| self.now - at <= SEEN_AFTER);
        let excused = excused || (was_down && caches.contains("detail=unreachable"));
        let age = (self.now - *said).as_secs();
        check(excused || age <= fresh + more.max(stale) + LATE, || {
            format!("{age} seconds old for client {id}: {headers:?}")
        });
    }

    pub(super) fn check_memory(&self) {
        (0..self.machines.len()).for_each(|node| self.check_memory_of(node));
    }

    fn check_memory_of(&self, node: usize) {
        if let Program::Node(it) = &self.machines[node].program {
            check_memory(&it.report(), self.plan.node.memory_bytes);
        }
    }
}

/// Which version of a page a response is of.
fn version(headers: &HeaderMap) -> Option<String> {
    headers.get("x-version")?.to_str().ok().map(str::to_owned)
}

/// The seconds of a directive.
fn seconds(control: &str, directive: &str) -> Option<u64> {
    let value = |part: &str| part.trim().strip_prefix(directive)?.strip_prefix('=')?.parse().ok();
    control.split(',').find_map(value)
}
