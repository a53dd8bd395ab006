//! What a check can find, and what the daemon's own checks found: at the start, and every hour.

use serde::{Deserialize, Serialize};
use std::fmt;

wire::reasons! {
    /// What is checked, in the order in which people are told.
    pub enum Check {
        /// A daemon runs, and answers.
        Daemon = "daemon",
        /// No other program has one of our ports.
        Ports = "ports",
        /// The machine's clock can be right.
        Clock = "clock",
        /// The store's disk can be written, and has room for the store.
        Disk = "disk",
        /// There is memory for what the settings allow.
        Memory = "memory",
        /// The interception rules are set.
        Rules = "rules",
        /// An object of the check's own comes through, by IPv4.
        Ipv4 = "ipv4",
        /// An object of the check's own comes through, by IPv6.
        Ipv6 = "ipv6",
        /// The interfaces are there, and up.
        Interfaces = "interfaces",
        /// No flow table carries connections past us.
        Offload = "offload",
        /// Packets of a usual size fit the interfaces.
        Mtu = "mtu",
        /// The mesh forwards by IP, hop by hop, where the scheme needs that.
        Forwarding = "forwarding",
        /// There is a route out, and the routing daemon answers.
        Route = "route",
        /// Other routers are connected, or can be: same key, same version.
        Peers = "peers",
        /// Neighbours can be overheard.
        Overhearing = "overhearing",
        /// The resolver answers.
        Dns = "dns",
        /// Origins can be reached, and prove their names by TLS.
        Upstream = "upstream",
        /// The uplink's far end is connected.
        FarEnd = "far-end",
        /// The rights with which the daemon runs.
        Rights = "rights",
    }
}

impl Check {
    /// Those that the daemon makes itself. The others need a namespace, or ask machines beyond this site.
    pub const OWN: [Self; 14] = [
        Self::Clock,
        Self::Disk,
        Self::Memory,
        Self::Rules,
        Self::Interfaces,
        Self::Offload,
        Self::Mtu,
        Self::Forwarding,
        Self::Route,
        Self::Peers,
        Self::Overhearing,
        Self::Dns,
        Self::FarEnd,
        Self::Rights,
    ];
}

/// What a check came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// All is well.
    Fine,
    /// Something is wrong.
    Broken,
    /// It could not be looked at: a right or a program is missing, or something else is broken.
    #[default]
    Unknown,
    /// It is not configured, or none of this node's business.
    Off,
}

/// What a check found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The check.
    pub check: Check,
    /// What it came to.
    pub verdict: Verdict,
    /// What was found, in a line.
    pub text: String,
    /// What to do next, in a line; always given if something is broken.
    pub next: Option<String>,
}

impl Finding {
    /// All is well.
    pub fn fine(check: Check, text: impl Into<String>) -> Self {
        Self { check, verdict: Verdict::Fine, text: text.into(), next: None }
    }

    /// Something is wrong, and what to do.
    pub fn broken(check: Check, text: impl Into<String>, next: impl Into<String>) -> Self {
        Self { check, verdict: Verdict::Broken, text: text.into(), next: Some(next.into()) }
    }

    /// It could not be looked at, and what to do.
    pub fn unknown(check: Check, text: impl Into<String>, next: impl Into<String>) -> Self {
        Self { check, verdict: Verdict::Unknown, text: text.into(), next: Some(next.into()) }
    }

    /// It is none of this node's business.
    pub fn off(check: Check, text: impl Into<String>) -> Self {
        Self { check, verdict: Verdict::Off, text: text.into(), next: None }
    }

    /// The same, with advice.
    pub fn advise(self, next: impl Into<String>) -> Self {
        Self { next: Some(next.into()), ..self }
    }
}

/// One line, for the log.
impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.check.name(), self.text)?;
        self.next.iter().try_for_each(|next| write!(f, "; {next}"))
    }
}

wire::counters! {
    /// What one of the daemon's own checks found last.
    pub struct SelfTest, "selftest_" {
        Process () {
            /// Whether the daemon's own check found all well, at its start or within the last hour; absent if it could not look, or if there is nothing to look at.
            success: Maybe, Flag;
        }
        + {
            /// What was found, in a line.
            pub text: String,
            /// What to do next, in a line.
            pub next: Option<String>,
        }
    }
}

impl From<Finding> for SelfTest {
    fn from(it: Finding) -> Self {
        let success = match it.verdict {
            Verdict::Fine => Some(1),
            Verdict::Broken => Some(0),
            Verdict::Unknown | Verdict::Off => None,
        };
        Self { success, text: it.text, next: it.next }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_not_be_looked_at_is_neither_well_nor_broken() {
        let of = |finding: Finding| SelfTest::from(finding).success;
        assert_eq!(of(Finding::fine(Check::Disk, "")), Some(1));
        assert_eq!(of(Finding::broken(Check::Disk, "", "")), Some(0));
        assert_eq!(of(Finding::unknown(Check::Disk, "", "")), None);
        assert_eq!(of(Finding::off(Check::Disk, "")), None);
    }

    #[test]
    fn the_log_gets_the_next_step_too() {
        let found = Finding::broken(Check::FarEnd, "it is silent", "start it");
        assert_eq!(found.to_string(), "far-end: it is silent; start it");
    }
}
