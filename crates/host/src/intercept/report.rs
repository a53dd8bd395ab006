//! The result of checking the interception rules.

use std::fmt;

use super::Family;

/// The state of one address family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FamilyReport {
    /// The family.
    pub family: Family,
    /// Whether the kernel supports it; if not, no rules are expected.
    pub available: bool,
    /// Whether the nftables table redirects the wanted connections to the listener.
    pub redirect: bool,
    /// Whether marked packets are looked up in the daemon's routing table.
    pub rule: bool,
    /// Whether that table makes every destination local.
    pub route: bool,
}

impl FamilyReport {
    /// Whether no rule is missing.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        !self.available || (self.redirect && self.rule && self.route)
    }

    /// Whether there are no rules of the daemon.
    #[must_use]
    pub fn is_absent(&self) -> bool {
        !(self.redirect || self.rule || self.route)
    }
}

/// The result of [`Rules::check`](super::Rules::check).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// IPv4, then IPv6.
    pub families: Vec<FamilyReport>,
    /// Requested interfaces that do not exist on this machine.
    pub interfaces_missing: Vec<String>,
    /// Conditions under which clients bypass the proxy although the rules are set.
    pub warnings: Vec<String>,
}

impl Report {
    /// Whether everything requested is in force.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.interfaces_missing.is_empty() && self.families.iter().all(FamilyReport::is_complete)
    }

    /// Whether there are no rules of the daemon.
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
            writeln!(f, "interface {name}: MISSING; the rules take effect when it appears")?;
        }
        for warning in &self.warnings {
            writeln!(f, "warning: {warning}")?;
        }
        Ok(())
    }
}
