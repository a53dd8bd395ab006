//! What both ends do on a connection: agree on the histories, exchange records, and notice silence.
//!
//! *In:* bytes of the connection, results of jobs, time. *Out:* jobs, messages and content for the engine that
//! owns it, records. A connection is up once both histories agree; until then nothing of a flow crosses.

mod agree;
mod link;

use super::halves::{Inward, Outward};
use super::messages::Message;
use super::receiver::{self, Broken, WANTED_MAX};
use super::report::PairReport;
use super::schedule::Rate;
use super::sender::{Record, Sender};
use super::session::{Came, PairKeys, Refused, Session};
use super::tcp::Reach;
use super::wanax::{self, Published};
use super::work::{Done, Job};
use super::{FLOWS_MAX, RECORD_MAX};
use crate::crossed::Crossed;
use crate::input::FetchError;
use bytes::Bytes;
use link::{Link, Stage};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;
use store::HistoryState;
use wire::{Instant, PublicKey, varint};

/// A beat is sent after this much silence while something is expected …
const QUIET_EXPECTING: Duration = Duration::from_secs(1);
/// … and after this much while nothing is.
const QUIET_IDLE: Duration = Duration::from_secs(15);
/// Nothing may come any more if a beat is not answered for this long …
const DOUBT: Duration = Duration::from_secs(1);
/// … and the other end is silent if it is not for this long.
const ANSWER: Duration = Duration::from_secs(4);
/// A handshake must be done by then.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// Bytes that are received and not handled at most, while the histories are being brought to agree.
const INBOX_MAX: usize = 256 * 1024;
/// Messages that wait to be sent at most; sound ends have a few for each flow or root.
const QUEUE_MAX: usize = 128 * 1024;
/// Messages of this many bytes, when decompressed, are handled at one time, about: a few bytes may stand for many, and
/// the driver has others to serve.
const TURN_BYTES: usize = 64 * 1024;
/// With more messages waiting than this …
const CROWDED: usize = 8 * FLOWS_MAX;
/// … or with more bytes of them and of heads, no flow is begun: one that is cancelled leaves its messages here.
const CROWDED_BYTES: usize = 1 << 20;
/// The plain text of a record's messages at most, about: a Noise message has at most 65,535 bytes.
const MESSAGES_MAX: usize = 8 * 1024;

/// How far a pair is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// There is no connection.
    Down,
    /// A connection is being made.
    Connecting,
    /// Flows may cross.
    Up,
}

/// What the pair tells its engine.
#[derive(Debug)]
pub enum Event {
    /// The histories agree: flows may cross.
    Up,
    /// The other end has proven this key: [`Pair::trust`] or [`Pair::close`].
    Known(PublicKey),
    /// The other end says nothing for so long that it may be out of reach.
    Doubted,
    /// The connection must end: all flows are broken off. Why, if the other end said so.
    Down(Option<Refused>),
    /// A message of the engine's: `Open`, `Dial`, `Head`, `Cancel`.
    Message(Message),
    /// Content of a flow that is received.
    Content(u64, Bytes),
    /// How content of a flow crossed that comes next.
    Crossed(u64, Crossed),
    /// The end of a flow that is received.
    End(u64, Result<(), FetchError>),
    /// A job for the worker.
    Work(u64, Job),
}

/// Who waits for a job.
#[derive(Clone, Copy, Debug)]
enum Owner {
    Sender,
    Receiver(u64),
    Pair,
}

/// One connection, and what is left of it when the next begins.
pub struct Pair {
    pub sender: Outward,
    pub receiver: Inward,
    pub rate: Rate,
    pub report: PairReport,
    /// The other end opens flows.
    pub is_far: bool,
    /// By which published scheme content crosses. The near end's configuration says so, and its hello tells the far end.
    pub scheme: Option<Published>,
    /// What the far end reaches: this one, or the other as it said.
    pub reach: Reach,
    link: Option<Link>,
    /// What was received cannot be trusted: the histories must begin anew.
    is_spoiled: bool,
    chance: blake3::OutputReader,
    jobs: u64,
    owners: BTreeMap<u64, Owner>,
    events: VecDeque<Event>,
    /// The oldest position of what is received that is still held.
    within_first: u64,
}

impl Pair {
    /// A pair without a connection; `chance` seeds its random numbers.
    pub fn new(sender: Sender, within: HistoryState, chance: &[u8; 32]) -> Self {
        let mut hasher = blake3::Hasher::new_derive_key("hearsay 2026 epochs of an uplink's end");
        hasher.update(chance);
        Self {
            sender: Outward::new(sender),
            receiver: Inward::default(),
            rate: Rate::default(),
            report: PairReport::default(),
            is_far: false,
            scheme: None,
            reach: Reach::default(),
            link: None,
            is_spoiled: false,
            chance: hasher.finalize_xof(),
            jobs: 0,
            owners: BTreeMap::new(),
            events: VecDeque::new(),
            within_first: within.first,
        }
    }

    /// How far it is.
    pub fn state(&self) -> State {
        match &self.link {
            None => State::Down,
            Some(Link { stage: Stage::Up, .. }) => State::Up,
            Some(_) => State::Connecting,
        }
    }

    /// A connection begins.
    pub fn connect(&mut self, now: Instant, session: Session) {
        self.close(None);
        self.link = Some(Link::new(now, session));
    }

    /// The other end is who it should be.
    pub fn trust(&mut self) {
        self.report.connections += 1;
        if let Some(link) = &mut self.link {
            link.stage = Stage::Looking(None);
        }
        self.job(Owner::Pair, Job::Look);
    }

    /// The connection has ended, or must.
    pub fn close(&mut self, why: Option<Refused>) {
        if self.link.take().is_none() {
            return;
        }
        self.report.is_up = false;
        self.rate.is_idle();
        self.sender.drop_flows();
        self.receiver.drop_flows();
        // Results of the connection's jobs are for nobody.
        self.owners.clear();
        self.events.retain(|event| matches!(event, Event::Content(..) | Event::End(..)));
        self.take_receiver_events();
        self.events.push_back(Event::Down(why));
    }

    /// The other end has closed the connection.
    pub fn closed(&mut self) {
        let is_silent = self.link.as_ref().is_some_and(|link| !link.session.is_begun());
        self.close(is_silent.then_some(Refused::Silent));
    }

    /// The other end broke the protocol.
    fn spoil(&mut self) {
        // A published scheme checks all by names, and leaves the histories alone.
        self.is_spoiled |= self.scheme.is_none();
        self.close(None);
    }

    /// Whether bytes may be received now.
    pub fn may_receive(&self) -> bool {
        let has_room = |link: &Link| link.session.waiting() < INBOX_MAX && !link.is_paused;
        !self.receiver.is_busy() && self.link.as_ref().is_some_and(has_room)
    }

    /// Bytes have arrived.
    pub fn receive(&mut self, now: Instant, bytes: &[u8], keys: &mut PairKeys) {
        let Some(link) = &mut self.link else { return };
        link.session.receive(bytes);
        link.heard = now;
        self.report.received_framing_bytes += bytes.len() as u64;
        self.advance(now, keys);
    }

    /// Handles what has arrived, as far as it can be handled now. The rest of what is much waits for the next call, for
    /// which [`poll_timeout`](Self::poll_timeout) asks at once.
    pub fn advance(&mut self, now: Instant, keys: &mut PairKeys) {
        let mut heard = 0;
        loop {
            let Some(link) = &mut self.link else { return };
            link.is_paused = heard >= TURN_BYTES;
            if link.is_paused {
                return;
            }
            let is_waiting = matches!(link.stage, Stage::Agreeing { .. } | Stage::Looking(Some(_)));
            if is_waiting || self.receiver.is_busy() {
                return;
            }
            match link.session.poll(keys) {
                Came::Nothing => return,
                Came::Known(key) => {
                    self.events.push_back(Event::Known(key));
                    return;
                }
                Came::Refused(why) => return self.close(Some(why)),
                Came::Broken | Came::Unproven => return self.close(None),
                Came::Record(record) => match self.record(now, &record) {
                    Ok(bytes) => heard += bytes,
                    Err(Broken) => return self.spoil(),
                },
            }
        }
    }

    /// Handles a record; returns the bytes of its messages when decompressed.
    fn record(&mut self, now: Instant, mut record: &[u8]) -> Result<usize, Broken> {
        let length = varint::read(&mut record).ok_or(Broken)?;
        let length = usize::try_from(length).map_err(|_| Broken)?;
        let (control, mut rest) = record.split_at_checked(length).ok_or(Broken)?;
        self.count_received(control.len() as u64, 0);
        let (mut messages, mut heard) = (Vec::new(), 0);
        if !control.is_empty() {
            let link = self.link.as_mut().ok_or(Broken)?;
            let skipped = link.reader.hear(control, |message| messages.push(message));
            let skipped = skipped.map_err(|_| Broken)?;
            self.report.messages_unknown += skipped.unknown;
            self.report.parts_unknown += skipped.longer;
            heard = skipped.of;
        }
        for message in messages {
            self.message(now, message)?;
        }
        while !rest.is_empty() {
            let back = varint::read(&mut rest).ok_or(Broken)?;
            let length = varint::read(&mut rest).ok_or(Broken)?;
            let length = usize::try_from(length).map_err(|_| Broken)?;
            let (bytes, others) = rest.split_at_checked(length).ok_or(Broken)?;
            rest = others;
            self.count_received(0, bytes.len() as u64);
            let number = self.receiver.payloads().checked_sub(back).ok_or(Broken)?;
            self.receiver.data(number, bytes)?;
        }
        self.take_receiver_events();
        // Who does not read what it is told is told no more.
        match &self.link {
            Some(link) if link.queued().0 > QUEUE_MAX => Err(Broken),
            _ => Ok(heard),
        }
    }

    fn count_received(&mut self, control: u64, payload: u64) {
        self.report.received_control_bytes += control;
        self.report.received_payload_bytes += payload;
        let framing = &mut self.report.received_framing_bytes;
        *framing = framing.saturating_sub(control + payload);
    }

    fn message(&mut self, now: Instant, message: Message) -> Result<(), Broken> {
        let Some(link) = &mut self.link else { return Ok(()) };
        if let Message::Hello(hello) = message {
            return self.greeted(hello);
        }
        if !matches!(link.stage, Stage::Up) {
            return Err(Broken);
        }
        match message {
            Message::Batch(batch) => self.receiver.by_history()?.batch(batch)?,
            Message::Root { flow, length, listing, payload } => {
                self.receiver.by_names()?.root(flow, [length, listing, payload])?;
            }
            Message::Chunks(lengths) => self.receiver.by_names()?.chunks(lengths)?,
            Message::Acknowledge(payload) => self.sender.by_names()?.acknowledged(payload),
            Message::Request(payload, names) => {
                self.sender.by_names()?.requested(payload, &names)?
            }
            Message::Piece(flow, bytes) => self.receiver.by_history()?.piece(flow, bytes)?,
            Message::Raw(flow, length) => self.receiver.by_history()?.raw(flow, length)?,
            Message::Finish(flow, result) => self.receiver.finish(flow, result),
            Message::Credit(flow, bytes) => self.sender.credit(flow, bytes),
            Message::Want(positions) => {
                link.supplying += positions.len();
                if link.supplying > WANTED_MAX {
                    return Err(Broken);
                }
                for position in positions {
                    self.job(Owner::Pair, Job::Supply(position));
                }
            }
            Message::Unit(position, bytes) => {
                self.receiver.by_history()?.unit(position, bytes.into())?;
            }
            Message::Beat { nonce, first, .. } => {
                link.beaten = Some(nonce);
                self.sender.raise_floor(first);
            }
            Message::Beaten(nonce) => {
                if let Some((_, sent)) = link.beat.take_if(|(expected, _)| *expected == nonce) {
                    self.report.round_trip_micros = now.since(sent).as_micros() as u64;
                }
            }
            Message::Cancel(flow) => {
                self.sender.cancel(flow);
                self.events.push_back(Event::Message(Message::Cancel(flow)));
            }
            Message::Open(flow, asked) => {
                // At once: its content may follow in the same record.
                if self.is_far && asked.has_content {
                    self.receiver.open(flow);
                }
                self.events.push_back(Event::Message(Message::Open(flow, asked)));
            }
            Message::Dial(flow, dialled) => {
                if self.is_far {
                    self.receiver.open_tcp(flow);
                }
                self.events.push_back(Event::Message(Message::Dial(flow, dialled)));
            }
            other => self.events.push_back(Event::Message(other)),
        }
        Ok(())
    }

    fn job(&mut self, owner: Owner, job: Job) -> u64 {
        self.jobs += 1;
        self.owners.insert(self.jobs, owner);
        self.events.push_back(Event::Work(self.jobs, job));
        self.jobs
    }

    /// A job was done.
    pub fn done(&mut self, now: Instant, number: u64, done: Done, keys: &mut PairKeys) {
        let Some(owner) = self.owners.remove(&number) else { return };
        match (owner, done) {
            (Owner::Sender, done) => self.sender.done(number, done),
            (Owner::Receiver(job), done) => {
                if let Done::Unpacked(first) = done
                    && first != self.within_first
                {
                    // While content flows no other beat tells what is gone.
                    self.within_first = first;
                    self.beat(now);
                }
                if self.receiver.done(job, done).is_err() {
                    return self.spoil();
                }
                self.take_receiver_events();
            }
            (Owner::Pair, Done::Looked(out, within)) => self.looked(out, within),
            (Owner::Pair, Done::Agreed(..)) => self.agreed(),
            // The driver of this end has no cache: it cannot do what was asked.
            (Owner::Pair, Done::Published(wanax::Done::False)) => return self.close(None),
            (Owner::Pair, Done::Supplied(position, bytes)) => {
                let bytes = bytes.map(Vec::from).unwrap_or_default();
                self.say(Message::Unit(position, bytes));
            }
            _ => {}
        }
        self.advance(now, keys);
    }

    fn take_receiver_events(&mut self) {
        while let Some(event) = self.receiver.poll() {
            match event {
                receiver::Event::Content(flow, bytes) => {
                    self.report.content_in_bytes += bytes.len() as u64;
                    self.events.push_back(Event::Content(flow, bytes));
                }
                receiver::Event::Crossed(id, it) => self.events.push_back(Event::Crossed(id, it)),
                receiver::Event::End(id, result) => self.events.push_back(Event::End(id, result)),
                receiver::Event::Say(message) => self.say(message),
                receiver::Event::Work(number, job) => {
                    self.job(Owner::Receiver(number), job);
                }
            }
        }
    }

    /// Says something to the other end.
    pub fn say(&mut self, message: Message) {
        if let Some(link) = &mut self.link {
            link.say(message);
        }
    }

    /// Whether so much waits to be said that no flow is to begin.
    pub fn is_crowded(&self) -> bool {
        let (messages, bytes) = self.link.as_ref().map_or((0, 0), Link::queued);
        messages >= CROWDED || bytes + self.sender.due_bytes() >= CROWDED_BYTES
    }

    /// Says this, and asks for a sign of life if there was none for a while.
    pub fn expect(&mut self, now: Instant, message: Message) {
        self.say(message);
        if self.link.as_ref().is_some_and(|link| now.since(link.heard) >= QUIET_EXPECTING) {
            self.beat(now);
        }
    }

    fn beat(&mut self, now: Instant) {
        let first = self.within_first;
        let (disk, network) = (self.receiver.jobs() as u32, self.sender.waiting());
        let Some(link) = self.link.as_mut().filter(|link| link.beat.is_none()) else { return };
        link.beats = link.beats.wrapping_add(1);
        let nonce = link.beats;
        link.beat = Some((nonce, now));
        link.doubts = true;
        link.say(Message::Beat { nonce, first, disk, network });
    }

    /// What happened next. Gives out the jobs of what was pushed meanwhile, too.
    pub fn poll_event(&mut self, now: Instant) -> Option<Event> {
        if self.events.is_empty() && self.state() == State::Up {
            for (flow, job) in self.sender.prepare(now, &self.rate) {
                let number = self.job(Owner::Sender, job);
                self.sender.is_working(number, flow);
            }
            self.take_receiver_events();
        }
        self.events.pop_front()
    }

    /// The next bytes to send, when the connection takes some.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Bytes> {
        let link = self.link.as_mut()?;
        if let Some(bytes) = link.session.take_outbox() {
            self.report.sent_framing_bytes += bytes.len() as u64;
            return Some(bytes);
        }
        if !link.session.is_open() {
            return None;
        }
        let mut record = Record::default();
        record.messages.extend(link.beaten.take().map(Message::Beaten));
        let (mut size, mut is_greeting) = (0, false);
        while size < MESSAGES_MAX
            && !is_greeting
            && let Some(message) = link.next_message()
        {
            size += message.weight();
            // The other end reads nothing more before it has agreed.
            is_greeting = matches!(message, Message::Hello(_));
            link.supplying -= usize::from(matches!(message, Message::Unit(..)));
            record.messages.push(message);
        }
        // A flow's content must not overtake what opens it.
        if matches!(link.stage, Stage::Up) && link.queued().0 == 0 && !is_greeting {
            let room = self.rate.record_max().min(RECORD_MAX).saturating_sub(size);
            self.sender.fill(room, &mut record);
        }
        if record.messages.is_empty() && record.data.is_empty() {
            self.rate.is_idle();
            return None;
        }
        let Some(sealed) = self.seal(&record) else {
            self.close(None);
            return None;
        };
        match self.sender.is_ready() {
            true => self.rate.sent(now, sealed.len()),
            false => self.rate.is_idle(),
        }
        self.report.rate_bytes = self.rate.get().unwrap_or_default();
        Some(sealed)
    }

    fn seal(&mut self, record: &Record) -> Option<Bytes> {
        let link = self.link.as_mut()?;
        let control = match record.messages.is_empty() {
            true => Vec::new(),
            false => link.speaker.say(record.messages.iter())?,
        };
        let batches = record.messages.iter().filter(|message| message.has_payload()).count();
        let payloads = self.sender.payloads();
        let mut plain = Vec::with_capacity(control.len() + RECORD_MAX + 64);
        varint::write(control.len() as u64, &mut plain);
        plain.extend_from_slice(&control);
        let mut payload = 0;
        for (number, bytes) in &record.data {
            varint::write(payloads - number, &mut plain);
            varint::write(bytes.len() as u64, &mut plain);
            plain.extend_from_slice(bytes);
            payload += bytes.len() as u64;
        }
        debug_assert!(batches as u64 <= payloads, "a payload without a number");
        let sealed = link.session.seal(&plain)?;
        self.report.sent_control_bytes += control.len() as u64;
        self.report.sent_payload_bytes += payload;
        self.report.sent_framing_bytes += sealed.len() as u64 - control.len() as u64 - payload;
        Some(sealed)
    }

    /// When [`handle_timeout`](Self::handle_timeout) is due. `expects`: something of the other end is awaited.
    pub fn poll_timeout(&self, expects: bool) -> Option<Instant> {
        let link = self.link.as_ref()?;
        if link.is_paused {
            return Some(link.heard);
        }
        if !matches!(link.stage, Stage::Up) {
            return Some(link.since + HANDSHAKE);
        }
        let life = match link.beat {
            Some((_, sent)) => sent.max(link.heard) + if link.doubts { DOUBT } else { ANSWER },
            None => link.heard + if expects { QUIET_EXPECTING } else { QUIET_IDLE },
        };
        self.sender.poll_timeout().into_iter().chain([life]).min()
    }

    /// Handles what is due.
    pub fn handle_timeout(&mut self, now: Instant, expects: bool) {
        let due = |at: Instant| at <= now;
        let is_deaf = !self.may_receive();
        let Some(link) = &mut self.link else { return };
        if !matches!(link.stage, Stage::Up) {
            if due(link.since + HANDSHAKE) {
                self.close(None);
            }
            return;
        }
        self.sender.handle_timeout(now);
        if is_deaf {
            // What this end does not read yet says nothing of the other.
            link.heard = now;
        }
        match link.beat {
            Some((_, sent)) if due(sent.max(link.heard) + ANSWER) => self.close(None),
            Some((_, sent)) if link.doubts && due(sent.max(link.heard) + DOUBT) => {
                link.doubts = false;
                self.events.push_back(Event::Doubted);
            }
            Some(_) => {}
            None if due(link.heard + if expects { QUIET_EXPECTING } else { QUIET_IDLE }) => {
                self.beat(now);
            }
            None => {}
        }
    }

    /// All counters.
    pub fn report(&self) -> PairReport {
        let (ours, published) = (&self.sender.ours, &self.sender.published);
        let chunks = self.receiver.published.counts;
        PairReport {
            units_wanted: self.receiver.ours.wanted,
            flows_broken_off: self.receiver.ours.broken_off,
            sent_as_references: ours.as_references + published.as_references,
            sent_as_differences: ours.as_differences,
            sent_as_new: ours.as_new + published.as_new,
            sent_uncut: ours.uncut,
            sent_names_bytes: published.name_bytes,
            hints_wrong: self.receiver.published.wrong_hints,
            chunk_reads: chunks.reads,
            chunk_writes: chunks.writes,
            chunk_written_bytes: chunks.written,
            chunk_entries: chunks.entries,
            ..self.report
        }
    }
}
