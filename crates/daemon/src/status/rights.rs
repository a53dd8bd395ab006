//! The daemon's rights in the status: what the kernel holds it to, and the helper process.

use host::rights::InForce;
use serde::{Deserialize, Serialize};

/// What the daemon may still do.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rights {
    /// The limits in force.
    #[serde(flatten)]
    pub limits: InForce,
    /// Whether the helper process runs, which has the rights over the network; `null` if none was started, because there
    /// were none to keep.
    pub helper: Option<bool>,
    /// The helper's process.
    pub helper_process: Option<u32>,
    /// Whether the helper owes an answer that was waited for in vain.
    #[serde(default)]
    pub helper_silent: bool,
}

impl Rights {
    /// What it means that the helper has ended.
    pub const WITHOUT_HELPER: &str = "the helper process has ended: what is intercepted and overheard stays so, but no \
                                      rule can change, and rules may outlast this daemon. Restart it";
    /// What it means that the helper does not answer.
    pub const SILENT_HELPER: &str = "the helper process does not answer, as when `nft` hangs: no rule changes until it \
                                     does. If it stays so, restart the daemon";

    /// The limits in a few words each.
    pub fn items(&self) -> Vec<String> {
        let limits = &self.limits;
        let mut items = vec![match limits.capabilities.as_slice() {
            [] => "no capabilities".to_owned(),
            some => some.join(" "),
        }];
        let words = [
            (limits.no_new_privileges, "no new privileges"),
            (limits.seccomp, "seccomp"),
            (limits.landlock, "landlock"),
        ];
        items.extend(words.iter().filter(|(is_on, _)| *is_on).map(|(_, word)| (*word).to_owned()));
        items.push(match (self.helper, self.helper_process) {
            (Some(true), Some(process)) if self.helper_silent => {
                format!("helper {process}, silent")
            }
            (Some(true), Some(process)) => format!("helper {process}"),
            (Some(_), _) => "no helper any more".to_owned(),
            (None, _) => "no helper".to_owned(),
        });
        items
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_items_say_what_holds() {
        let limits = InForce {
            no_new_privileges: true,
            seccomp: true,
            landlock: true,
            ..InForce::default()
        };
        let all =
            Rights { limits, helper: Some(true), helper_process: Some(7), helper_silent: false };
        assert_eq!(
            all.items(),
            ["no capabilities", "no new privileges", "seccomp", "landlock", "helper 7"]
        );
        let silent = Rights { helper_silent: true, ..all };
        assert_eq!(silent.items().last().map(String::as_str), Some("helper 7, silent"));
        let limits = InForce { capabilities: vec!["CAP_NET_RAW".into()], ..InForce::default() };
        let few = Rights { limits, helper: Some(false), ..Rights::default() };
        assert_eq!(few.items(), ["CAP_NET_RAW", "no helper any more"]);
        assert_eq!(Rights::default().items(), ["no capabilities", "no helper"]);
    }
}
