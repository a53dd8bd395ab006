//! Bridges whose frames pass the firewall's rules for IP: with the kernel's br_netfilter, which Docker and libvirt load.
//!
//! A packet for this machine then passes these rules while it is still a frame of the bridge, with the bridge as its
//! interface; when IP receives it, `ip_sabotage_in` (the kernel's `net/bridge/br_netfilter_hooks.c`) leaves out all rules
//! behind itself. TPROXY in the first pass is of no use: IP lets go of the socket that it found (`ip_rcv_core`). So a
//! first segment passes us by in the first pass, and is redirected in the second, by a chain that the kernel has before
//! `ip_sabotage_in`: both have the least priority, and the one that was added later comes first. If it comes too late,
//! for example because br_netfilter was loaded again, packets are forwarded as if there were no rules.

use std::fs::{read_dir, read_to_string};
use std::path::Path;

use super::{Family, Rules};

/// The interfaces that are such bridges, as [`Family::ALL`] has the families.
pub type Bridged = [Vec<String>; Family::ALL.len()];

/// The kernel's word for a family in the names of these settings.
fn word(family: Family) -> &'static str {
    match family {
        Family::V4 => "iptables",
        Family::V6 => "ip6tables",
    }
}

impl Rules {
    /// The interfaces among those of the rules that are such bridges now.
    #[must_use]
    pub fn bridged(&self) -> Bridged {
        bridged_in(Path::new("/"), &self.all_interfaces())
    }

    /// What to do about an interface above such a bridge, as one for a VLAN: what comes by it may pass all rules, ours
    /// too. `None` if there is none.
    #[must_use]
    pub fn bridge_trap(&self) -> Option<String> {
        trap_in(Path::new("/"), &self.all_interfaces())
    }
}

fn bridged_in(root: &Path, names: &[String]) -> Bridged {
    let is_on = |name: &String, family| is_bridged(root, name, family);
    Family::ALL.map(|family| names.iter().filter(|name| is_on(name, family)).cloned().collect())
}

fn is_bridged(root: &Path, name: &str, family: Family) -> bool {
    let bridge = root.join("sys/class/net").join(name).join("bridge");
    let word = word(family);
    let all = read(&root.join(format!("proc/sys/net/bridge/bridge-nf-call-{word}")));
    let own = || read(&bridge.join(format!("nf_call_{word}")));
    // Without the first file there is no br_netfilter.
    bridge.is_dir() && all.is_some_and(|all| all != "0" || own().is_some_and(|own| own != "0"))
}

fn trap_in(root: &Path, names: &[String]) -> Option<String> {
    let (name, bridge, word) = names.iter().find_map(|name| {
        let entries = read_dir(root.join("sys/class/net").join(name)).into_iter().flatten();
        let entries = entries.flatten().filter_map(|it| it.file_name().into_string().ok());
        let mut lower = entries.filter_map(|it| it.strip_prefix("lower_").map(str::to_owned));
        lower.find_map(|bridge| {
            let family = Family::ALL.into_iter().find(|it| is_bridged(root, &bridge, *it))?;
            Some((name, bridge, word(family)))
        })
    })?;
    Some(format!(
        "{name} is above the bridge {bridge}, and br_netfilter is on (Docker and libvirt load it): what comes by {name} \
         may bypass the proxy. Turn it off: `sysctl -w net.bridge.bridge-nf-call-{word}=0`"
    ))
}

fn read(path: &Path) -> Option<String> {
    Some(read_to_string(path).ok()?.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{create_dir_all, write};

    /// The files of a kernel that has br_netfilter: a bridge with a port, an interface of a VLAN above it, and another
    /// interface.
    fn kernel(all: [&str; 2], own: [&str; 2]) -> tempfile::TempDir {
        let root = tempfile::tempdir().expect("a directory");
        let net = root.path().join("sys/class/net");
        let settings = root.path().join("proc/sys/net/bridge");
        for it in ["br-lan/bridge", "br-lan/lower_lan1", "br-lan.1/lower_br-lan", "lan1", "wan0"] {
            create_dir_all(net.join(it)).expect("mkdir");
        }
        create_dir_all(&settings).expect("mkdir");
        for (family, (all, own)) in Family::ALL.into_iter().zip(all.iter().zip(own)) {
            let word = word(family);
            write(settings.join(format!("bridge-nf-call-{word}")), format!("{all}\n")).unwrap();
            write(net.join(format!("br-lan/bridge/nf_call_{word}")), format!("{own}\n")).unwrap();
        }
        root
    }

    fn names() -> Vec<String> {
        ["wan0", "br-lan", "none"].map(str::to_owned).into()
    }

    #[test]
    fn a_bridge_counts_for_the_families_that_are_on_for_all_or_for_it() {
        let br = || vec!["br-lan".to_owned()];
        let none = Vec::new;
        for (all, own, expected) in [
            (["0", "0"], ["0", "0"], [none(), none()]),
            (["1", "0"], ["0", "0"], [br(), none()]),
            (["0", "1"], ["0", "0"], [none(), br()]),
            (["0", "0"], ["1", "0"], [br(), none()]),
            (["1", "1"], ["0", "0"], [br(), br()]),
        ] {
            let root = kernel(all, own);
            assert_eq!(bridged_in(root.path(), &names()), expected, "{all:?} {own:?}");
        }
    }

    #[test]
    fn without_br_netfilter_no_bridge_counts() {
        let root = kernel(["1", "1"], ["1", "1"]);
        std::fs::remove_dir_all(root.path().join("proc")).expect("removed");
        assert_eq!(bridged_in(root.path(), &names()), Bridged::default());
        assert_eq!(trap_in(root.path(), &["br-lan.1".to_owned()]), None);
    }

    #[test]
    fn an_interface_above_such_a_bridge_is_named_with_the_setting() {
        let above = ["br-lan.1".to_owned()];
        let said = trap_in(kernel(["0", "1"], ["0", "0"]).path(), &above).expect("a trap");
        assert!(said.contains("br-lan.1 is above the bridge br-lan"), "{said}");
        assert!(said.contains("net.bridge.bridge-nf-call-ip6tables=0"), "{said}");
        assert_eq!(trap_in(kernel(["0", "0"], ["0", "0"]).path(), &above), None);
        assert_eq!(trap_in(kernel(["1", "1"], ["0", "0"]).path(), &names()), None);
    }
}
