//! The reasons that events give, each an enum whose values have a name and a sentence.

use crate::input::{FetchError, PutError};
use wire::peer::Refusal;

wire::reasons! {
    /// Why a connection with a peer ended, or never was one.
    pub enum LinkEnd {
        /// Nothing answers there, or not in our protocol.
        Unreachable = "unreachable",
        /// The connection ended.
        Closed = "closed",
        /// The peer did not answer a ping.
        Silent = "silent",
        /// It broke the protocol.
        Misbehaved = "misbehaved",
        /// Refused: another version of the protocol.
        Version = "version",
        /// Refused: another mesh key.
        MeshKey = "mesh_key",
        /// Refused: the identity is not proven, or expelled.
        Identity = "identity",
        /// Refused: too many peers.
        Busy = "busy",
        /// Refused: a token for chunks that is unknown, or was used before.
        Token = "token",
        /// Refused: a kind of connection that it does not know.
        Kind = "kind",
    }
}

impl From<Refusal> for LinkEnd {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Version => Self::Version,
            Refusal::MeshKey => Self::MeshKey,
            Refusal::Identity => Self::Identity,
            Refusal::Busy => Self::Busy,
            Refusal::Token => Self::Token,
            Refusal::Kind => Self::Kind,
        }
    }
}

wire::reasons! {
    /// Why no source is left for a fetch.
    pub enum FetchEnd {
        /// The host has no address.
        Unresolved = "unresolved",
        /// The origin refused the connection.
        Refused = "refused",
        /// The access rules forbid to dial the address.
        Forbidden = "forbidden",
        /// The network is unreachable.
        Unreachable = "unreachable",
        /// The origin did not answer, or paused, for too long.
        TimedOut = "timed_out",
        /// The origin's response is not valid HTTP.
        Malformed = "malformed",
        /// The origin closed the connection before the response was complete.
        Truncated = "truncated",
        /// The request's content broke off or is not valid HTTP.
        Unsent = "unsent",
        /// Neither the gateway nor another node that could ask the origin can be reached.
        NoRoute = "no_route",
        /// No peer in reach has the published object.
        NoHolder = "no_holder",
        /// A router that was asked has named others.
        Elsewhere = "elsewhere",
        /// The node that would dial has no list of trusted CAs.
        NoTls = "no_tls",
        /// The origin's certificate does not prove that it is the host that was dialled.
        Untrusted = "untrusted",
        /// It sent a mirror's request where that may not go.
        Astray = "astray",
        /// The origin speaks no TLS, or none that is accepted.
        NotTls = "not_tls",
        /// The node that would dial has no room for more connections, and has not dialled.
        NoRoom = "no_room",
    }
}

impl From<FetchError> for FetchEnd {
    fn from(error: FetchError) -> Self {
        match error {
            FetchError::Unresolved => Self::Unresolved,
            FetchError::Forbidden(_) => Self::Forbidden,
            FetchError::Refused => Self::Refused,
            FetchError::Unreachable => Self::Unreachable,
            FetchError::TimedOut => Self::TimedOut,
            FetchError::Malformed => Self::Malformed,
            FetchError::Truncated => Self::Truncated,
            FetchError::Unsent => Self::Unsent,
            FetchError::NoRoute => Self::NoRoute,
            FetchError::NoHolder => Self::NoHolder,
            FetchError::Elsewhere => Self::Elsewhere,
            FetchError::NoTls => Self::NoTls,
            FetchError::Untrusted => Self::Untrusted,
            FetchError::Astray => Self::Astray,
            FetchError::NotTls => Self::NotTls,
            FetchError::NoRoom => Self::NoRoom,
        }
    }
}

wire::reasons! {
    /// Why a file was not published, or an object not withdrawn.
    pub enum PutEnd {
        /// The file is larger than any object may be.
        TooLarge = "too_large",
        /// The file's manifest is longer than a name can certify.
        TooLong = "too_long",
        /// Published objects would exceed their part of the store.
        Full = "full",
        /// As many objects are published as may be.
        TooMany = "too_many",
        /// The store did not take all of it.
        Store = "store",
        /// The file ended before its announced length, or continued after it.
        Broken = "broken",
        /// No object of this name is published here.
        Unknown = "unknown",
        /// The list of published objects cannot be read.
        Unlisted = "unlisted",
    }
}

impl From<PutError> for PutEnd {
    fn from(error: PutError) -> Self {
        match error {
            PutError::TooLarge(_) => Self::TooLarge,
            PutError::TooLong(_) => Self::TooLong,
            PutError::Full(_) => Self::Full,
            PutError::TooMany(_) => Self::TooMany,
            PutError::Store => Self::Store,
            PutError::Broken => Self::Broken,
            PutError::Unknown => Self::Unknown,
            PutError::Unlisted => Self::Unlisted,
        }
    }
}

wire::reasons! {
    /// What came as an input for something that is over, or in a state that does not expect it.
    pub enum Stale {
        /// Credit of a client whose request is over.
        ClientCredit = "client_credit",
        /// The head of a response to a fetch that is over.
        OriginHead = "origin_head",
        /// Content of a response to a fetch that is over.
        OriginBody = "origin_body",
        /// The end of a response to a fetch that is over.
        OriginEnd = "origin_end",
        /// A peer's answer to a request of ours that is over.
        PeerAnswer = "peer_answer",
        /// A peer's message about a request of its own that is over.
        PeerRequest = "peer_request",
        /// An event of a connection with a peer that is closed.
        Link = "link",
        /// A chunk that is held already, or a part of one that was not asked for.
        Chunk = "chunk",
        /// The addresses of a name, for a request that is over.
        Name = "name",
        /// A row of the catalogue, for a request that is over.
        Row = "row",
        /// A segment of a manifest, for a request that is over.
        Segment = "segment",
        /// Chunks that the disk read, for a request that is over.
        Chunks = "chunks",
        /// The answer of the disk to writing chunks that it was not asked to write.
        Written = "written",
    }
}
