//! The one place through which checks read the kernel's rules, which takes the programs `nft` and `ip`.

use host::intercept::offload::{Flowtable, flowtables};
use host::intercept::{Error, Report, Rules};

/// Which rules are set.
///
/// # Errors
/// If a program or a right is missing.
pub fn rules(rules: &Rules) -> Result<Report, Error> {
    rules.check()
}

/// The flow tables of other programs.
///
/// # Errors
/// If a program or a right is missing.
pub fn flow_tables() -> Result<Vec<Flowtable>, Error> {
    flowtables()
}
