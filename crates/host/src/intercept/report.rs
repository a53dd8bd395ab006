//! What is in force of the interception rules, and what is missing.

use std::fmt;

use super::Family;

/// What is there for one address family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FamilyReport {
    /// Which family.
    pub family: Family,
    /// Whether the kernel speaks it; if not, nothing else is expected.
    pub available: bool,
    /// Whether our nftables table hands the wanted connections to the listener.
    pub redirect: bool,
    /// Whether marked packets are routed by our table.
    pub rule: bool,
    /// Whether our table makes them local.
    pub route: bool,
}

impl FamilyReport {
    /// Whether nothing is missing.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        !self.available || (self.redirect && self.rule && self.route)
    }

    /// Whether nothing of ours is there.
    #[must_use]
    pub fn is_absent(&self) -> bool {
        !(self.redirect || self.rule || self.route)
    }
}

/// What [`Rules::check`](super::Rules::check) found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// IPv4, then IPv6.
    pub families: Vec<FamilyReport>,
    /// Interfaces that were asked for and are not on this machine.
    pub interfaces_missing: Vec<String>,
    /// What may make clients go past us although the rules are there.
    pub warnings: Vec<String>,
}

impl Report {
    /// Whether everything that was asked for is there.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.interfaces_missing.is_empty() && self.families.iter().all(FamilyReport::is_complete)
    }

    /// Whether nothing of ours is there.
    #[must_use]
    pub fn is_absent(&self) -> bool {
        self.families.iter().all(FamilyReport::is_absent)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = |there| if there { "ok" } else { "MISSING" };
        for it in &self.families {
            if it.available {
                writeln!(
                    f,
                    "{}: nftables {}, ip rule {}, route {}",
                    it.family,
                    word(it.redirect),
                    word(it.rule),
                    word(it.route)
                )?;
            } else {
                writeln!(f, "{}: off in this kernel, skipped", it.family)?;
            }
        }
        for name in &self.interfaces_missing {
            writeln!(f, "interface {name}: NOT THERE; the rules take effect when it appears")?;
        }
        for warning in &self.warnings {
            writeln!(f, "warning: {warning}")?;
        }
        Ok(())
    }
}
