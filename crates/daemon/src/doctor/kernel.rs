//! The one place through which checks read the kernel's rules, which takes the programs `nft` and `ip`, and rights.

use host::helper::{Helper, HelperError};
use host::intercept::offload::{Flowtable, flowtables};
use host::intercept::{Error, FamilyReport, Rules};

/// Who reads them.
#[derive(Clone, Debug)]
pub enum Kernel {
    /// This process.
    Own,
    /// The daemon's helper: the daemon itself may not.
    Helper(Helper),
}

/// Why they could not be read.
#[derive(Debug, thiserror::Error)]
pub enum Unread {
    /// A program, or a right of this process, is missing.
    #[error(transparent)]
    Own(#[from] Error),
    /// The helper could not.
    #[error(transparent)]
    Helper(#[from] HelperError),
}

impl Kernel {
    /// Which rules are set.
    ///
    /// # Errors
    /// If a program, a right or the helper is missing.
    pub fn rules(&self, rules: &Rules) -> Result<Vec<FamilyReport>, Unread> {
        match self {
            Self::Own => Ok(rules.families()?),
            Self::Helper(helper) => Ok(helper.check(rules.moment())?.families),
        }
    }

    /// The flow tables of other programs.
    ///
    /// # Errors
    /// As of [`Kernel::rules`].
    pub fn flow_tables(&self) -> Result<Vec<Flowtable>, Unread> {
        match self {
            Self::Own => Ok(flowtables()?),
            Self::Helper(helper) => Ok(helper.flow_tables()?),
        }
    }
}
