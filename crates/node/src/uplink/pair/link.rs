//! One connection of a pair, and how far its two ends agree.

use crate::uplink::control::{Reader, Speaker};
use crate::uplink::messages::{Hello, Message};
use crate::uplink::session::Session;
use std::collections::VecDeque;
use wire::Instant;

/// A connection.
pub struct Link {
    pub session: Session,
    pub speaker: Speaker,
    pub reader: Reader,
    queue: VecDeque<Message>,
    /// Bytes of the plain text of `queue`, about.
    queued_bytes: usize,
    pub stage: Stage,
    pub since: Instant,
    pub heard: Instant,
    /// The beat that is not answered, and when it was sent.
    pub beat: Option<(u32, Instant)>,
    /// It is still to be told that this beat is not answered for a while.
    pub doubts: bool,
    pub beats: u32,
    /// The newest beat of the other end's that is to be answered.
    pub beaten: Option<u32>,
    /// Much was handled at one time, and the rest waits for the next.
    pub is_paused: bool,
    /// Units that the other end wants and that are not sent.
    pub supplying: usize,
}

/// How far the histories are brought to agree.
pub enum Stage {
    /// The session is not open, or the other end is not trusted yet.
    Handshake,
    /// The worker says what is held.
    Looking(Option<Hello>),
    /// Our hello is sent.
    Greeting(Hello),
    /// The worker makes both histories agree.
    Agreeing {
        ends: [Option<u64>; 2],
        floor: u64,
        left: u8,
    },
    Up,
}

impl Link {
    /// A connection that begins.
    pub fn new(now: Instant, session: Session) -> Self {
        Self {
            session,
            speaker: Speaker::default(),
            reader: Reader::default(),
            queue: VecDeque::new(),
            queued_bytes: 0,
            stage: Stage::Handshake,
            since: now,
            heard: now,
            beat: None,
            doubts: false,
            beats: 0,
            beaten: None,
            is_paused: false,
            supplying: 0,
        }
    }

    /// A message waits to be sent.
    pub fn say(&mut self, message: Message) {
        self.queued_bytes += message.weight();
        self.queue.push_back(message);
    }

    /// A message goes before all that wait.
    pub fn say_first(&mut self, message: Message) {
        self.queued_bytes += message.weight();
        self.queue.push_front(message);
    }

    /// Takes the next message.
    pub fn next_message(&mut self) -> Option<Message> {
        let message = self.queue.pop_front()?;
        self.queued_bytes -= message.weight();
        Some(message)
    }

    /// Messages that wait to be sent, and their bytes, about.
    pub fn queued(&self) -> (usize, usize) {
        (self.queue.len(), self.queued_bytes)
    }
}
