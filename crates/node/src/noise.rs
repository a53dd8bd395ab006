//! Noise: the encryption of control connections. The crate `snow` implements it; its random numbers
//! come from the engine's seed, so that a run can be repeated.
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
/// The length of a Noise message's authentication tag, in bytes.
const TAG: usize = 16;
/// The longest message of a handshake: its keys, and an introduction with the longest name.
pub const HANDSHAKE_MAX: usize = 1024;

/// The public half of a node's Noise key. It is new at each start, so it identifies a run of the node.
pub type RunKey = [u8; 32];

/// The keys and the random numbers of all our handshakes.
pub struct Noise {
    seed: [u8; 32],
    drawn: u64,
    private: Vec<u8>,
    public: RunKey,
    mesh_key: Option<[u8; 32]>,
}

impl Noise {
    /// Derives the keys. All random numbers come from `seed`, which must not be used twice.
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

    /// Our public Noise key, the same on all connections of this run.
    pub fn public(&self) -> &RunKey {
        &self.public
    }

    /// A random token that cannot be guessed.
    pub fn token(&mut self) -> Token {
        let mut token = [0; Token::LEN];
        self.stream().fill(&mut token);
        Token(token)
    }

    /// Begins a handshake whose prologue is the preamble, so that a changed preamble makes it fail.
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

/// Reads a message of a handshake, and returns its payload; `None` if it is not valid.
pub fn read(handshake: &mut HandshakeState, message: &[u8]) -> Option<Vec<u8>> {
    let mut payload = vec![0; message.len()];
    let length = handshake.read_message(message, &mut payload).ok()?;
    payload.truncate(length);
    Some(payload)
}

/// Writes a message of a handshake, preceded by its length.
pub fn write(handshake: &mut HandshakeState, payload: &[u8]) -> Option<Vec<u8>> {
    let mut message = vec![0; 2 + HANDSHAKE_MAX];
    let length = handshake.write_message(payload, &mut message[2..]).ok()?;
    message[..2].copy_from_slice(&u16::try_from(length).ok()?.to_be_bytes());
    message.truncate(2 + length);
    Some(message)
}

/// The other side's public Noise key, once the handshake has proven it.
pub fn run_key(handshake: &HandshakeState) -> Option<RunKey> {
    handshake.get_remote_static()?.try_into().ok()
}

/// The encrypted session after a finished handshake. Messages of each direction must stay in order.
pub struct Session(TransportState);

impl Session {
    /// `None` if the handshake is not finished.
    pub fn new(handshake: HandshakeState) -> Option<Self> {
        Some(Self(handshake.into_transport_mode().ok()?))
    }

    /// Encrypts a message and appends it, preceded by its length; `false` if it is too long.
    pub fn seal(&mut self, message: &[u8], out: &mut BytesMut) -> bool {
        let start = out.len();
        let Ok(length) = u16::try_from(message.len() + TAG) else { return false };
        out.extend_from_slice(&length.to_be_bytes());
        out.resize(start + 2 + usize::from(length), 0);
        self.0.write_message(message, &mut out[start + 2..]).is_ok()
    }

    /// Decrypts a message; `None` if it is not the next one of this session.
    pub fn open(&mut self, sealed: &[u8]) -> Option<Vec<u8>> {
        let mut message = vec![0; sealed.len().checked_sub(TAG)?];
        let length = self.0.read_message(sealed, &mut message).ok()?;
        message.truncate(length);
        Some(message)
    }
}

/// Snow's default cryptography with our random numbers.
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

/// A stream of random bytes: BLAKE3's output for the seed and a number. Each number serves for one
/// handshake or one token.
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
