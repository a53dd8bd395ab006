//! An exchange like that of ssh: a person types, the server echoes, and now and then prints something.
//!
//! *What this is:* [`Typist`], the client's end, and [`Shell`], the server's. A key stroke and its echo have 48
//! bytes each, about an encrypted packet of SSH with one character (RFC 4253, section 6). Think times before
//! key strokes are exponentially distributed with a mean of 0.2 s, a fast typist's. One key stroke in twenty is
//! followed by output, exponentially distributed with a mean of 4000 bytes. *What it never does:* send lengths:
//! both ends draw the output after a key stroke from the same seed.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{RngCore as _, SeedableRng as _};
use wire::Instant;

use super::NOTHING;
use crate::net::{Host, SocketId};
use crate::world::draws::exponential;
use crate::world::times::Times;

/// Length of a key stroke, and of its echo.
pub(super) const KEY_BYTES: u64 = 48;
/// Mean think time before a key stroke.
const THINK: Duration = Duration::from_millis(200);
/// One in this many key strokes is followed by output, on average.
const OUTPUT_EVERY: u64 = 20;
/// Mean length of output.
const OUTPUT_BYTES: f64 = 4000.0;
/// With this many key strokes without an echo, the person waits: 20 s of typing.
const AHEAD_MAX: usize = 100;

/// Bytes that the server prints after the echo of a key stroke.
fn output_bytes(seed: u64, key: u64) -> u64 {
    let mut chance = Xoshiro256PlusPlus::seed_from_u64(seed ^ key);
    if chance.next_u64() % OUTPUT_EVERY != 0 {
        return 0;
    }
    // A second of the mean is a byte of the output.
    exponential(&mut chance, Duration::from_secs_f64(OUTPUT_BYTES)).as_secs() + 1
}

/// The client's end.
#[derive(Debug)]
pub(in crate::world) struct Typist {
    seed: u64,
    chance: Xoshiro256PlusPlus,
    /// When the next key is struck; `None` before the connection is open, and after the end.
    pub next: Option<Instant>,
    /// Key strokes sent, and echoes received.
    pub keys: u64,
    pub echoes: u64,
    /// Times from key strokes to their echoes.
    pub delays: Times,
    /// Bytes received.
    pub bytes: u64,
    /// When the key strokes without an echo were sent.
    waiting: VecDeque<Instant>,
    /// Bytes that are still to come of the next echo, and of output before it.
    echo_left: u64,
    output_left: u64,
}

impl Typist {
    /// A person whose think times and output come from this seed.
    pub fn new(seed: u64) -> Self {
        Self {
            seed,
            chance: Xoshiro256PlusPlus::seed_from_u64(!seed),
            next: None,
            keys: 0,
            echoes: 0,
            delays: Times::default(),
            bytes: 0,
            waiting: VecDeque::new(),
            echo_left: KEY_BYTES,
            output_left: 0,
        }
    }

    /// The connection is open: the person thinks about the first key.
    pub fn begin(&mut self, now: Instant, host: &mut Host, id: SocketId) {
        // As OpenSSH does: a key stroke does not wait for the acknowledgement of the one before.
        host.set_nodelay(id, true);
        self.think(now);
    }

    /// Strikes the next key.
    pub fn strike(&mut self, now: Instant, host: &mut Host, id: SocketId) {
        let fits = host.writable(id) as u64 >= KEY_BYTES;
        if fits && self.waiting.len() < AHEAD_MAX {
            host.write(now, id, &mut Bytes::from_static(&NOTHING[..KEY_BYTES as usize]));
            self.waiting.push_back(now);
            self.keys += 1;
        }
        self.think(now);
    }

    /// Reads echoes and output.
    pub fn read(&mut self, now: Instant, host: &mut Host, id: SocketId) {
        while let Some(data) = host.read(now, id, usize::MAX) {
            self.bytes += data.len() as u64;
            self.take(now, data.len() as u64);
        }
    }

    fn take(&mut self, now: Instant, mut bytes: u64) {
        while bytes > 0 {
            let output = bytes.min(self.output_left);
            self.output_left -= output;
            let echo = (bytes - output).min(self.echo_left);
            self.echo_left -= echo;
            bytes -= output + echo;
            if self.echo_left == 0 {
                let struck = self.waiting.pop_front().unwrap_or(now);
                self.delays.record(now - struck);
                self.output_left = output_bytes(self.seed, self.echoes);
                self.echoes += 1;
                self.echo_left = KEY_BYTES;
            }
        }
    }

    fn think(&mut self, now: Instant) {
        self.next = Some(now + exponential(&mut self.chance, THINK));
    }
}

/// The server's end.
#[derive(Debug)]
pub(super) struct Shell {
    seed: u64,
    /// Bytes of key strokes received, and key strokes answered.
    received: u64,
    answered: u64,
    /// Bytes of echoes and output that are not written yet.
    owed: u64,
    peer_closed: bool,
}

impl Shell {
    /// A shell whose output comes from this seed, the typist's.
    pub fn new(seed: u64) -> Self {
        Self { seed, received: 0, answered: 0, owed: 0, peer_closed: false }
    }

    /// Bytes of key strokes have arrived.
    pub fn take(&mut self, now: Instant, host: &mut Host, id: SocketId, bytes: u64) {
        self.received += bytes;
        while self.answered < self.received / KEY_BYTES {
            self.owed += KEY_BYTES + output_bytes(self.seed, self.answered);
            self.answered += 1;
        }
        self.write(now, host, id);
    }

    /// Writes what is owed, and closes after it if the client has closed.
    pub fn write(&mut self, now: Instant, host: &mut Host, id: SocketId) {
        while self.owed > 0 {
            let bytes = NOTHING.len().min(self.owed as usize);
            match host.write(now, id, &mut Bytes::from_static(&NOTHING[..bytes])) {
                0 => return,
                written => self.owed -= written as u64,
            }
        }
        if self.peer_closed {
            host.close(now, id);
        }
    }

    /// The client has closed.
    pub fn end(&mut self, now: Instant, host: &mut Host, id: SocketId) {
        self.peer_closed = true;
        self.write(now, host, id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_comes_after_one_key_in_twenty() {
        let outputs: Vec<_> = (0..20_000).map(|key| output_bytes(7, key)).collect();
        let some: Vec<_> = outputs.into_iter().filter(|it| *it > 0).collect();
        // Three standard deviations of a binomial distribution are 93.
        assert!((907..=1_093).contains(&some.len()), "{}", some.len());
        let mean = some.iter().sum::<u64>() as f64 / some.len() as f64;
        assert!((mean / OUTPUT_BYTES - 1.0).abs() < 0.15, "{mean}");
    }

    #[test]
    fn echoes_are_told_from_output_however_bytes_arrive() {
        let whole = KEY_BYTES * 200 + (0..200).map(|key| output_bytes(3, key)).sum::<u64>();
        for piece in [1, 47, 48, 49, 1460, whole] {
            let mut typist = Typist::new(3);
            let mut left = whole;
            while left > 0 {
                let bytes = piece.min(left);
                typist.take(Instant::ZERO, bytes);
                left -= bytes;
            }
            let state = (typist.echoes, typist.echo_left, typist.output_left);
            assert_eq!(state, (200, KEY_BYTES, 0), "{piece}");
        }
    }
}
