//! What a node can do beyond what every node of this version must: numbers in its hello.

use super::codec::{FrameError, Item, Part, Reader};
use crate::varint;

/// One capability, by its number. A node ignores those that it does not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Capability(pub u32);

impl Capability {
    /// It answers requests for `https` URIs, and forwards them.
    pub const HTTPS: Self = Self(1);
    /// It answers requests whose response is passed on, for a part of the content too.
    pub const PASSED: Self = Self(2);
    /// It passes on the digest that a request expects.
    pub const DIGEST: Self = Self(3);
    /// It passes on that redirects are to be followed.
    pub const FOLLOW: Self = Self(4);
    /// It understands ends that name other routers.
    pub const ELSEWHERE: Self = Self(5);

    /// Those of this version.
    pub const ALL: [Self; 5] =
        [Self::HTTPS, Self::PASSED, Self::DIGEST, Self::FOLLOW, Self::ELSEWHERE];

    /// The most in one hello.
    pub const COUNT_MAX: usize = 16;

    /// Its name; `None` if this version does not know it.
    #[must_use]
    pub fn name(self) -> Option<&'static str> {
        Some(match self {
            Self::HTTPS => "https",
            Self::PASSED => "passed",
            Self::DIGEST => "digest",
            Self::FOLLOW => "follow",
            Self::ELSEWHERE => "elsewhere",
            _ => return None,
        })
    }
}

impl Part for Capability {
    fn write(&self, out: &mut Vec<u8>) {
        varint::write(self.0.into(), out);
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, FrameError> {
        reader.number().map(Self)
    }

    fn check(&self) -> Result<(), FrameError> {
        Ok(())
    }
}

impl Item for Capability {
    const SHORTEST: usize = 1;
    const MOST: usize = Self::COUNT_MAX;
}
