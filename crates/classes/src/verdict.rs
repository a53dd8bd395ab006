//! What the tables say of a URL.

use wire::Digest;

/// The number of a class in its [`crate::Classes`]. [`ClassId::OTHER`]: no class has the URL.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClassId(pub u8);

impl ClassId {
    /// What no class has.
    pub const OTHER: Self = Self(0);
}

/// A URL in canonical form, as its parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Url<'a> {
    /// Whether its scheme is `https`; otherwise it is `http`.
    pub tls: bool,
    /// A name in lower case or an address literal, without port.
    pub host: &'a str,
    /// The port.
    pub port: u16,
    /// Path and query, from `/` on.
    pub path: &'a str,
}

/// What the tables say of a URL.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Its class.
    pub class: ClassId,
    /// Whether its content changes.
    pub kind: Kind,
    /// How long responses are kept.
    pub keep: Keep,
    /// The wishes of requests that count.
    pub heeds: Heeds,
    /// Whether the response depends on `Accept`, also if its `Vary` does not say so.
    pub negotiated: bool,
    /// The form of an index that promises digests of other files.
    pub index: Option<IndexFormat>,
}

/// The forms of indexes that promise digests of files on their own host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexFormat {
    /// Debian's `InRelease` or `Release`: digests of the indexes below its folder.
    AptRelease,
    /// Debian's `Packages`, plain or compressed: digests of packages below the archive's root.
    AptPackages,
    /// OpenWrt's `Packages`, plain or compressed: digests of packages below its folder.
    OpenwrtPackages,
}

impl Verdict {
    /// The content's digest, if the URL itself contains it.
    pub fn digest(&self) -> Option<Digest> {
        match self.kind {
            Kind::Immutable { digest } => digest,
            Kind::Undecided | Kind::Changing { .. } => None,
        }
    }
}

/// Whether the content under a URL changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// No table says so: the origin's fields decide.
    #[default]
    Undecided,
    /// It never changes.
    Immutable {
        /// The content's digest, if the URL itself contains it.
        digest: Option<Digest>,
    },
    /// It changes.
    Changing {
        /// For how many seconds it is fresh if the origin gives no lifetime.
        lifetime: u32,
        /// For how many seconds more it may be used while the origin cannot be reached.
        stale: u32,
    },
}

/// Which wishes for something fresh count that a request has in `Cache-Control` (RFC 9111 §5.2.1: they are advice). What a
/// class has is for everyone: there, `no-store` means `no-cache`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Heeds {
    /// All.
    #[default]
    All,
    /// `no-cache`; but a response may be as old as the class's lifetime, if `max-age` says less.
    NoCache,
    /// None.
    Nothing,
}

/// How long responses are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Keep {
    /// As any other.
    #[default]
    Default,
    /// They are not stored.
    Never,
    /// Those with at most this many bytes are stored.
    UpTo(u64),
    /// They are stored whatever their size, and evicted last.
    Always,
}
