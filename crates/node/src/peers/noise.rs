//! Noise: how two nodes come to a secret of their own. Snow does it; the chance it needs is ours.
//!
//! *Source:* Noise revision 34: pattern XX, with a mesh key XXpsk3; Curve25519, ChaCha20-Poly1305,
//! BLAKE2s.

use bytes::BytesMut;
use snow::params::{CipherChoice, DHChoice, HashChoice};
use snow::resolvers::{CryptoResolver, DefaultResolver};
use snow::types::{Cipher, Dh, Hash, Random};
use snow::{Builder, HandshakeState, TransportState};
use wire::Token;
use wire::peer::Preamble;

const OPEN: &str = "Noise_XX_25519_ChaChaPoly_BLAKE2s";
const SEALED: &str = "Noise_XXpsk3_25519_ChaChaPoly_BLAKE2s";
/// The bytes that a message of Noise has more than what it says.
const TAG: usize = 16;
/// The longest message of a handshake: its keys, and an introduction with the longest name.
pub const HANDSHAKE_MAX: usize = 1024;

/// A Noise key's public half, fresh at each start: which run of a node it is.
pub type RunKey = [u8; 32];

/// What all our handshakes have in common.
pub struct Noise {
    seed: [u8; 32],
    drawn: u64,
    private: Vec<u8>,
    public: RunKey,
    mesh_key: Option<[u8; 32]>,
}

impl Noise {
    /// All chance comes from `seed`, which must not be used twice.
    pub fn new(seed: &[u8; 32], mesh_key: Option<&[u8; 32]>) -> Self {
        let mut noise = Self {
            seed: blake3::derive_key("hearsay 2026 chance of peers", seed),
            drawn: 0,
            private: Vec::new(),
            public: [0; 32],
            mesh_key: mesh_key.map(|key| blake3::derive_key("hearsay 2026 peers' Noise psk", key)),
        };
        let pair =
            noise.builder().generate_keypair().expect("the resolver knows all of the pattern");
        noise.public.copy_from_slice(&pair.public);
        noise.private = pair.private;
        noise
    }

    /// Whether there is a mesh key.
    pub fn sealed(&self) -> bool {
        self.mesh_key.is_some()
    }

    /// Our key on all connections.
    pub fn public(&self) -> &RunKey {
        &self.public
    }

    /// A token that nobody guesses.
    pub fn token(&mut self) -> Token {
        let mut token = [0; Token::LEN];
        self.stream().fill(&mut token);
        Token(token)
    }

    /// Begins a handshake, bound to what was said in clear before it.
    pub fn handshake(
        &mut self,
        initiator: bool,
        preamble: &[u8; Preamble::LENGTH],
    ) -> HandshakeState {
        let (private, mesh_key) = (self.private.clone(), self.mesh_key);
        let built = (|| {
            let mut builder = self.builder().local_private_key(&private)?.prologue(preamble)?;
            if let Some(key) = &mesh_key {
                builder = builder.psk(3, key)?;
            }
            if initiator { builder.build_initiator() } else { builder.build_responder() }
        })();
        built.expect("the resolver knows all of the pattern, and all keys are there")
    }

    fn builder<'a>(&mut self) -> Builder<'a> {
        let pattern = if self.sealed() { SEALED } else { OPEN };
        let params = pattern.parse().expect("a pattern of snow's");
        Builder::with_resolver(params, Box::new(Resolver(self.stream())))
    }

    fn stream(&mut self) -> Stream {
        self.drawn += 1;
        let mut hasher = blake3::Hasher::new_keyed(&self.seed);
        hasher.update(&self.drawn.to_le_bytes());
        Stream(hasher.finalize_xof())
    }
}

/// Reads a handshake's message; `None` if it is not one.
pub fn read(handshake: &mut HandshakeState, message: &[u8]) -> Option<Vec<u8>> {
    let mut payload = vec![0; message.len()];
    let length = handshake.read_message(message, &mut payload).ok()?;
    payload.truncate(length);
    Some(payload)
}

/// Writes a handshake's message behind its length.
pub fn write(handshake: &mut HandshakeState, payload: &[u8]) -> Option<Vec<u8>> {
    let mut message = vec![0; 2 + HANDSHAKE_MAX];
    let length = handshake.write_message(payload, &mut message[2..]).ok()?;
    message[..2].copy_from_slice(&u16::try_from(length).ok()?.to_be_bytes());
    message.truncate(2 + length);
    Some(message)
}

/// The key that the other side has proven to have.
pub fn run_key(handshake: &HandshakeState) -> Option<RunKey> {
    handshake.get_remote_static()?.try_into().ok()
}

/// A handshake that has ended well: both directions, each in order.
pub struct Session(TransportState);

impl Session {
    /// `None` if it has not.
    pub fn new(handshake: HandshakeState) -> Option<Self> {
        Some(Self(handshake.into_transport_mode().ok()?))
    }

    /// Appends a message behind its length; `false` if it is too long.
    pub fn seal(&mut self, message: &[u8], out: &mut BytesMut) -> bool {
        let start = out.len();
        let Ok(length) = u16::try_from(message.len() + TAG) else { return false };
        out.extend_from_slice(&length.to_be_bytes());
        out.resize(start + 2 + usize::from(length), 0);
        self.0.write_message(message, &mut out[start + 2..]).is_ok()
    }

    /// What a message says; `None` if it is not of this session, or not the next.
    pub fn open(&mut self, sealed: &[u8]) -> Option<Vec<u8>> {
        let mut message = vec![0; sealed.len().checked_sub(TAG)?];
        let length = self.0.read_message(sealed, &mut message).ok()?;
        message.truncate(length);
        Some(message)
    }
}

/// Snow's own cryptography with our chance.
struct Resolver(Stream);

impl CryptoResolver for Resolver {
    fn resolve_rng(&self) -> Option<Box<dyn Random>> {
        Some(Box::new(self.0.clone()))
    }

    fn resolve_dh(&self, choice: &DHChoice) -> Option<Box<dyn Dh>> {
        DefaultResolver.resolve_dh(choice)
    }

    fn resolve_hash(&self, choice: &HashChoice) -> Option<Box<dyn Hash>> {
        DefaultResolver.resolve_hash(choice)
    }

    fn resolve_cipher(&self, choice: &CipherChoice) -> Option<Box<dyn Cipher>> {
        DefaultResolver.resolve_cipher(choice)
    }
}

/// The output of BLAKE3 under one number. Each is used for one purpose: one handshake, one token.
#[derive(Clone)]
struct Stream(blake3::OutputReader);

impl Stream {
    fn fill(&mut self, bytes: &mut [u8]) {
        self.0.fill(bytes);
    }
}

impl Random for Stream {
    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), snow::Error> {
        self.fill(bytes);
        Ok(())
    }
}
