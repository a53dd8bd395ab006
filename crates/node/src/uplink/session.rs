//! One connection of a pair: preamble, handshake with pinned keys, then encrypted records.
//!
//! *What it is:* the states of a connection, as bytes in and bytes out. *What it never does:* know what a record
//! says. *Source:* Noise XX with ed25519 keys that sign the Noise keys, as between peers (`crate::noise`).
//!
//! # Bytes
//!
//! The near end begins with 8 bytes: `HSUP`, the version 3, three zeros; they are the prologue of the handshake.
//! 16 bytes of proof follow (`proof.rs`), then the first handshake message. Each handshake message and record follows
//! its length (2 bytes, big-endian). A refusal is two zeros and a code: 1 version, 2 key, 3 busy.

mod proof;

use crate::identity::{Identity, verify};
use crate::noise::{self, Noise};
use bytes::{Buf as _, Bytes, BytesMut};
use snow::HandshakeState;
use wire::{PublicKey, Signature};

const MARKER: [u8; 4] = *b"HSUP";
const VERSION: u8 = 3;
const PREAMBLE: usize = 8;
/// The first handshake message with its length at most; it has 34 bytes.
const FIRST_MAX: usize = 256;
/// What the introduction of each side is: its key, and the signature of its Noise key.
const INTRODUCTION: usize = PublicKey::LEN + Signature::LEN;
/// The length of a refusal.
const REFUSAL: usize = 3;

/// Why one end did not accept the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The other end speaks another version of the protocol, or no such protocol.
    Version,
    /// The other end does not know our key.
    Key,
    /// The other end has no room for us now.
    Busy,
    /// The other end's key is not the one that was configured.
    NotPinned,
    /// The other end closed the connection without a word. Nobody says so: a near end concludes it.
    Silent,
}

impl Refused {
    fn code(self) -> u8 {
        match self {
            Self::Version => 1,
            Self::Key | Self::NotPinned | Self::Silent => 2,
            Self::Busy => 3,
        }
    }

    fn of(code: u8) -> Self {
        match code {
            2 => Self::Key,
            3 => Self::Busy,
            _ => Self::Version,
        }
    }

    /// For the operator.
    pub fn sentence(self) -> &'static str {
        match self {
            Self::Version => {
                "it speaks another version of the pair's protocol, or another protocol"
            }
            Self::Key => "it does not know this node's key: give it to `hearsay far --near`",
            Self::Busy => "it is busy",
            Self::NotPinned => "its key is not the one in [uplink] far-key",
            Self::Silent => {
                "it closes connections without a word, as one does whose key is not the one in [uplink] far-key"
            }
        }
    }
}

/// What one end proves its identity with, on all its connections.
pub struct PairKeys {
    pub(super) noise: Noise,
    pub(super) identity: Identity,
}

impl PairKeys {
    /// The keys of the identity with this seed. All random numbers come from `chance`, which must not be used
    /// twice.
    pub fn new(identity: &[u8; 32], chance: &[u8; 32]) -> Self {
        let chance = blake3::derive_key("hearsay 2026 chance of an uplink's end", chance);
        Self { noise: Noise::new(&chance, None), identity: Identity::new(identity) }
    }

    /// The public key, which the other end pins.
    pub fn key(&self) -> PublicKey {
        self.identity.key()
    }
}

/// A connection at one of its stages.
pub struct Session {
    stage: Stage,
    inbox: BytesMut,
    outbox: BytesMut,
}

enum Stage {
    /// Far: waits for the preamble, the proof, and the first handshake message.
    Beginning,
    Handshake {
        noise: Box<HandshakeState>,
        is_initiator: bool,
    },
    /// Far: who is there is known, and not decided upon.
    Proven(noise::Session),
    Open(noise::Session),
    Refused,
}

/// What came in.
#[derive(Debug, PartialEq, Eq)]
pub enum Came {
    /// Nothing yet.
    Nothing,
    /// Near: the far end has proven its key. Far: so has this near end, who is to be accepted or refused.
    Known(PublicKey),
    /// A record's plain text.
    Record(Vec<u8>),
    /// The other end refused, or is refused: after the outbox is sent, the connection ends.
    Refused(Refused),
    /// Far: who begins has not proven that it knows this end's key. It gets no answer.
    Unproven,
    /// What came is no sound continuation.
    Broken,
}

impl Session {
    /// The near end of a new connection with the far end that has this key.
    pub fn near(keys: &mut PairKeys, far: &PublicKey) -> Self {
        let (preamble, noise) = (preamble(), &mut keys.noise);
        let mut handshake = Box::new(noise.handshake(true, &preamble));
        let mut outbox = BytesMut::from(&preamble[..]);
        if let Some(first) = noise::write(&mut handshake, &[]) {
            outbox.extend_from_slice(&proof::of(far, &preamble, &first));
            outbox.extend_from_slice(&first);
        }
        let stage = Stage::Handshake { noise: handshake, is_initiator: true };
        Self { stage, inbox: BytesMut::new(), outbox }
    }

    /// The far end of a new connection.
    pub fn far() -> Self {
        Self { stage: Stage::Beginning, inbox: BytesMut::new(), outbox: BytesMut::new() }
    }

    /// Whether records can be sent.
    pub fn is_open(&self) -> bool {
        matches!(self.stage, Stage::Open(_))
    }

    /// Whether the other end has proven that it knows this end's key, or said anything at all to a near end.
    pub fn is_begun(&self) -> bool {
        match &self.stage {
            Stage::Handshake { is_initiator, .. } => !is_initiator,
            Stage::Beginning => false,
            Stage::Proven(_) | Stage::Open(_) | Stage::Refused => true,
        }
    }

    /// Bytes that have arrived and are not read.
    pub fn waiting(&self) -> usize {
        self.inbox.len()
    }

    /// Bytes have arrived.
    pub fn receive(&mut self, bytes: &[u8]) {
        self.inbox.extend_from_slice(bytes);
    }

    /// Bytes that are to be sent before any record.
    pub fn take_outbox(&mut self) -> Option<Bytes> {
        (!self.outbox.is_empty()).then(|| self.outbox.split().freeze())
    }

    /// Encrypts a record.
    pub fn seal(&mut self, plain: &[u8]) -> Option<Bytes> {
        let Stage::Open(session) = &mut self.stage else { return None };
        let mut out = BytesMut::with_capacity(plain.len() + 18);
        session.seal(plain, &mut out).then(|| out.freeze())
    }

    /// Far: accepts who is known.
    pub fn accept(&mut self) {
        self.stage = match std::mem::replace(&mut self.stage, Stage::Refused) {
            Stage::Proven(session) => Stage::Open(session),
            other => other,
        };
    }

    /// Refuses the other end.
    pub fn refuse(&mut self, why: Refused) {
        self.stage = Stage::Refused;
        self.outbox.extend_from_slice(&[0, 0, why.code()]);
    }

    /// What has come next.
    pub fn poll(&mut self, keys: &mut PairKeys) -> Came {
        let PairKeys { noise, identity } = keys;
        match &self.stage {
            Stage::Beginning => self.begin(noise, identity),
            Stage::Handshake { .. } | Stage::Open(_) => {
                if self.inbox.len() < 2 {
                    return Came::Nothing;
                }
                let length = usize::from(u16::from_be_bytes([self.inbox[0], self.inbox[1]]));
                if length == 0 {
                    return self.read_refusal();
                }
                if self.inbox.len() < 2 + length {
                    return Came::Nothing;
                }
                self.inbox.advance(2);
                let message = self.inbox.split_to(length).freeze();
                self.read_message(&message, noise, identity)
            }
            Stage::Proven(_) | Stage::Refused => Came::Nothing,
        }
    }

    /// Far: reads what a near end begins with, and does no work for who does not know this end's key.
    fn begin(&mut self, noise: &mut Noise, identity: &Identity) -> Came {
        let Some((preamble, rest)) = self.inbox.split_first_chunk::<PREAMBLE>() else {
            // Someone who speaks another protocol may wait for an answer.
            let begun = self.inbox.len().min(MARKER.len());
            return match self.inbox[..begun] == MARKER[..begun] {
                true => Came::Nothing,
                false => self.refuses(Refused::Version),
            };
        };
        if *preamble != self::preamble() {
            return self.refuses(Refused::Version);
        }
        let Some((proof, rest)) = rest.split_first_chunk::<{ proof::LEN }>() else {
            return Came::Nothing;
        };
        let Some((length, _)) = rest.split_first_chunk() else { return Came::Nothing };
        let length = 2 + usize::from(u16::from_be_bytes(*length));
        if length > FIRST_MAX {
            return self.unproven();
        }
        let Some(first) = rest.get(..length) else { return Came::Nothing };
        if !proof::proves(proof, &identity.key(), preamble, first) {
            return self.unproven();
        }
        let handshake = Box::new(noise.handshake(false, preamble));
        let message = Bytes::copy_from_slice(&first[2..]);
        self.inbox.advance(PREAMBLE + proof::LEN + length);
        self.stage = Stage::Handshake { noise: handshake, is_initiator: false };
        self.read_message(&message, noise, identity)
    }

    fn unproven(&mut self) -> Came {
        self.stage = Stage::Refused;
        Came::Unproven
    }

    fn refuses(&mut self, why: Refused) -> Came {
        self.refuse(why);
        Came::Refused(why)
    }

    fn read_refusal(&mut self) -> Came {
        if self.inbox.len() < REFUSAL {
            return Came::Nothing;
        }
        let code = self.inbox[REFUSAL - 1];
        self.stage = Stage::Refused;
        Came::Refused(Refused::of(code))
    }

    fn read_message(&mut self, message: &[u8], noise: &mut Noise, identity: &Identity) -> Came {
        match std::mem::replace(&mut self.stage, Stage::Refused) {
            Stage::Open(mut session) => {
                let plain = session.open(message);
                self.stage = Stage::Open(session);
                plain.map_or(Came::Broken, Came::Record)
            }
            Stage::Handshake { noise: handshake, is_initiator } => {
                let shaken = match is_initiator {
                    true => self.second(handshake, message, noise, identity),
                    false => self.first_or_third(handshake, message, noise, identity),
                };
                shaken.unwrap_or(Came::Broken)
            }
            other => {
                self.stage = other;
                Came::Broken
            }
        }
    }

    /// Near: the far end's key has come; ours goes out.
    fn second(
        &mut self,
        mut handshake: Box<HandshakeState>,
        message: &[u8],
        noise: &Noise,
        identity: &Identity,
    ) -> Option<Came> {
        let payload = noise::read(&mut handshake, message)?;
        let key = introduced(&payload, &noise::run_key(&handshake)?, FAR)?;
        let own = introduction(identity, noise, NEAR);
        self.outbox.extend_from_slice(&noise::write(&mut handshake, &own)?);
        self.stage = Stage::Open(noise::Session::new(*handshake)?);
        Some(Came::Known(key))
    }

    /// Far: the near end has begun, or has sent its key.
    fn first_or_third(
        &mut self,
        mut handshake: Box<HandshakeState>,
        message: &[u8],
        noise: &Noise,
        identity: &Identity,
    ) -> Option<Came> {
        let payload = noise::read(&mut handshake, message)?;
        if handshake.is_handshake_finished() {
            let key = introduced(&payload, &noise::run_key(&handshake)?, NEAR)?;
            self.stage = Stage::Proven(noise::Session::new(*handshake)?);
            return Some(Came::Known(key));
        }
        let own = introduction(identity, noise, FAR);
        self.outbox.extend_from_slice(&noise::write(&mut handshake, &own)?);
        self.stage = Stage::Handshake { noise: handshake, is_initiator: false };
        Some(Came::Nothing)
    }
}

/// A beginning as if its sender knew the far end with this key.
pub fn proven(beginning: &[u8], far: &PublicKey) -> Option<Vec<u8>> {
    let (preamble, rest) = beginning.split_at_checked(PREAMBLE)?;
    let (_, first) = rest.split_at_checked(proof::LEN)?;
    Some([preamble, &proof::of(far, preamble, first), first].concat())
}

const NEAR: &[u8] = b"hearsay 2026 Noise key of an uplink's near end";
const FAR: &[u8] = b"hearsay 2026 Noise key of an uplink's far end";

fn preamble() -> [u8; PREAMBLE] {
    let [a, b, c, d] = MARKER;
    [a, b, c, d, VERSION, 0, 0, 0]
}

fn introduction(identity: &Identity, noise: &Noise, side: &[u8]) -> Vec<u8> {
    let signature = identity.sign(&[side, noise.public()].concat());
    [&identity.key().as_bytes()[..], &signature.as_bytes()[..]].concat()
}

/// The key of who introduces itself, if it has signed this Noise key.
fn introduced(payload: &[u8], run_key: &noise::RunKey, side: &[u8]) -> Option<PublicKey> {
    let payload: &[u8; INTRODUCTION] = payload.try_into().ok()?;
    let (key, signature) = payload.split_at(PublicKey::LEN);
    let key = PublicKey(key.try_into().ok()?);
    let signature = Signature(signature.try_into().ok()?);
    verify(&key, &[side, run_key].concat(), &signature).then_some(key)
}

/// Why a guest's connection must end, once what is in its outbox is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It speaks another version of the protocol, or another protocol: the outbox says so.
    Version,
    /// It does not know this end's key, and gets no answer.
    Unproven,
    /// It knows this end's key, and broke the protocol.
    Broken,
}

/// A connection that a near end has made, before it is known who it is.
pub struct Guest {
    session: Session,
}

impl Default for Guest {
    fn default() -> Self {
        Self { session: Session::far() }
    }
}

impl Guest {
    /// Bytes have arrived: says who it is, once that is proven.
    ///
    /// # Errors
    /// If the connection must end, once [`Guest::take_outbox`] is sent.
    pub fn receive(
        &mut self,
        bytes: &[u8],
        keys: &mut PairKeys,
    ) -> Result<Option<PublicKey>, Ended> {
        self.session.receive(bytes);
        loop {
            let before = self.session.inbox.len();
            match self.session.poll(keys) {
                Came::Known(key) => return Ok(Some(key)),
                Came::Nothing if self.session.inbox.len() < before => {}
                Came::Nothing => return Ok(None),
                Came::Refused(_) => return Err(Ended::Version),
                Came::Unproven => return Err(Ended::Unproven),
                Came::Record(_) | Came::Broken => return Err(Ended::Broken),
            }
        }
    }

    /// Whether it has proven that it knows this end's key.
    pub fn is_begun(&self) -> bool {
        self.session.is_begun()
    }

    /// Bytes to send.
    pub fn take_outbox(&mut self) -> Option<Bytes> {
        self.session.take_outbox()
    }

    /// Refuses it: the connection ends once the outbox is sent.
    pub fn refuse(&mut self, why: Refused) {
        self.session.refuse(why);
    }

    /// Accepts it.
    pub(super) fn accept(mut self) -> Session {
        self.session.accept();
        self.session
    }
}
