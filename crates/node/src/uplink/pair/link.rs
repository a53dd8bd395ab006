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
    pub queue: VecDeque<Message>,
    pub stage: Stage,
    pub since: Instant,
    pub heard: Instant,
    /// The beat that is not answered, and when it was sent.
    pub beat: Option<(u32, Instant)>,
    pub beats: u32,
    /// The newest beat of the other end's that is to be answered.
    pub beaten: Option<u32>,
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
            stage: Stage::Handshake,
            since: now,
            heard: now,
            beat: None,
            beats: 0,
            beaten: None,
            supplying: 0,
        }
    }
}
