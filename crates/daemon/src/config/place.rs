//! Where the store is.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// Where units are stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// In memory, until the daemon ends.
    Memory,
    /// In this directory.
    Dir(PathBuf),
}

impl FromStr for Place {
    type Err = std::io::Error;

    /// Parses `memory` or a directory; a relative one is below the working directory.
    fn from_str(text: &str) -> Result<Self, std::io::Error> {
        if text == "memory" { Ok(Self::Memory) } else { std::path::absolute(text).map(Self::Dir) }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory => f.write_str("memory"),
            Self::Dir(path) => path.display().fmt(f),
        }
    }
}
