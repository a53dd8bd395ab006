//! What routers may do otherwise than they do by default, to see what it is worth.

use content::Profile;
use node::overhear;

use super::choice::Choice;

/// What is the same on all routers. The words are those of the daemon's table `[experiment]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Variant {
    /// How content is cut.
    pub units: Units,
    /// What is heard of a unit in several streams.
    pub streams: Streams,
    /// What is heard of a unit in part.
    pub halves: Halves,
}

/// How content is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Units {
    /// 4 to 16 KiB, 8 on average.
    Fine,
    /// 24 to 32 KiB.
    Coarse,
}

/// What is heard of a unit in several streams (Ditto, section 4.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Streams {
    /// Makes one unit.
    Joined,
    /// Stays apart.
    Alone,
}

/// What is heard of a unit in part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Halves {
    /// Need not be sent again.
    Repaired,
    /// Is of no use.
    Dropped,
}

impl Default for Variant {
    fn default() -> Self {
        Self { units: Units::Fine, streams: Streams::Joined, halves: Halves::Repaired }
    }
}

impl Variant {
    /// As engines have it.
    pub fn profile(&self) -> &'static Profile {
        match self.units {
            Units::Fine => Profile::DEFAULT,
            Units::Coarse => Profile::COARSE,
        }
    }

    /// As engines have it.
    pub fn overhear(&self) -> overhear::Options {
        overhear::Options {
            joins_streams: self.streams == Streams::Joined,
            repairs: self.halves == Halves::Repaired,
            ..overhear::Options::default()
        }
    }

    /// Keys and values, as the daemon's configuration has them.
    pub fn words(&self) -> [(&'static str, &'static str); 3] {
        [
            ("units", self.units.word()),
            ("streams", self.streams.word()),
            ("halves", self.halves.word()),
        ]
    }
}

impl Units {
    /// Its value of the key `units`.
    pub fn name(self) -> &'static str {
        self.word()
    }
}

impl Choice for Units {
    const ALL: &'static [(Self, &'static str)] = &[(Self::Fine, "8KiB"), (Self::Coarse, "32KiB")];
}

impl Choice for Streams {
    const ALL: &'static [(Self, &'static str)] =
        &[(Self::Joined, "joined"), (Self::Alone, "alone")];
}

impl Choice for Halves {
    const ALL: &'static [(Self, &'static str)] =
        &[(Self::Repaired, "repaired"), (Self::Dropped, "dropped")];
}
