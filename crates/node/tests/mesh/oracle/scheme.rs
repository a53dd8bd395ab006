//! A scheme that asks an oracle, which knows who holds what. docs/adding-a-scheme.md walks through it.

use bytes::Bytes;
use node::FetchId;
use node::select::{Answer, Here, Query, Said, Select, on_the_way};
use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;
use wire::{Instant, ObjectKey};

/// The oracle must answer within this time.
pub const TIMEOUT: Duration = Duration::from_millis(500);
/// The most questions that are open at once; further requests go towards the gateway.
pub const QUESTIONS_MAX: usize = 256;

/// A question to the oracle: the object's key, in 32 bytes. The answer repeats the key; the IPv4 address of the holder
/// follows, or nothing if there is no holder.
pub enum Question {
    Open { key: ObjectKey, until: Instant },
    Answered(Option<IpAddr>),
}

pub struct ByOracle {
    oracle: SocketAddr,
    /// By the request that it was asked for, until that ends.
    pub questions: BTreeMap<FetchId, Question>,
    said: VecDeque<Said>,
}

impl ByOracle {
    pub fn new(oracle: SocketAddr) -> Self {
        Self { oracle, questions: BTreeMap::new(), said: VecDeque::new() }
    }

    /// Answers the open questions that match `which`.
    fn answer(&mut self, holder: Option<IpAddr>, which: impl Fn(&ObjectKey, Instant) -> bool) {
        for (id, question) in &mut self.questions {
            if matches!(question, Question::Open { key, until } if which(key, *until)) {
                *question = Question::Answered(holder);
                self.said.push_back(Said::Known(*id));
            }
        }
    }
}

impl Select for ByOracle {
    fn choose(&self, query: &Query<'_>) -> Answer {
        let may = |holder: &IpAddr| (query.may)(*holder);
        match self.questions.get(&query.id) {
            // A peer that asks has asked the oracle itself.
            _ if query.per_hop.is_some() => on_the_way(query, true),
            None if self.questions.len() < QUESTIONS_MAX => Answer::Later,
            Some(Question::Open { .. }) => Answer::Later,
            Some(Question::Answered(Some(holder))) if may(holder) => Answer::Found(*holder),
            Some(Question::Answered(_)) | None => on_the_way(query, true),
        }
    }

    fn begin(&mut self, here: &Here<'_>, query: &Query<'_>) {
        let question = Question::Open { key: query.key, until: here.now + TIMEOUT };
        self.questions.insert(query.id, question);
        self.said.push_back(Said::Datagram(self.oracle, Bytes::copy_from_slice(&query.key.0)));
    }

    fn end(&mut self, _now: Instant, id: FetchId) {
        self.questions.remove(&id);
    }

    fn handle_datagram(&mut self, _here: &Here<'_>, from: SocketAddr, bytes: &[u8]) {
        let Some((key, holder)) = bytes.split_first_chunk().filter(|_| from == self.oracle) else {
            return;
        };
        let holder = <[u8; 4]>::try_from(holder).ok().map(IpAddr::from);
        self.answer(holder, |asked, _| asked.0 == *key);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.answer(None, |_, until| until <= now);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let until = |question: &Question| match question {
            Question::Open { until, .. } => Some(*until),
            Question::Answered(_) => None,
        };
        self.questions.values().filter_map(until).min()
    }

    fn poll(&mut self) -> Option<Said> {
        self.said.pop_front()
    }
}
