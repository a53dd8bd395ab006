//! Whether a mesh forwards below IP.
//!
//! batman-adv and 802.11s carry frames over many hops by themselves. All routers then seem to be one hop
//! apart: the gateway is the next hop, and routers on the way see nothing of what they forward.

use std::collections::BTreeMap;
use std::fmt;

use super::kernel::{Link, LinkKind, all_links, is_forwarding_mesh_point};

/// A bridge or VLAN is looked through to the interfaces below it, to this depth.
const DEPTH_MAX: usize = 4;

/// What forwards frames below IP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum BelowIp {
    /// batman-adv.
    BatmanAdv,
    /// 802.11s.
    MeshPoint,
}

impl BelowIp {
    /// The name of the protocol.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::BatmanAdv => "batman-adv",
            Self::MeshPoint => "802.11s",
        }
    }
}

impl fmt::Display for BelowIp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The interfaces among these that forward below IP now. The kernel answers immediately; none if it does
/// not.
#[must_use]
pub fn below_ip(interfaces: &[String]) -> BTreeMap<String, BelowIp> {
    let links = all_links().unwrap_or_default();
    search(interfaces, &links, &|link| is_forwarding_mesh_point(&link.name, link.index))
}

/// What an operator should know of such an interface, in a sentence.
#[must_use]
pub fn consequence(interface: &str, by: &str) -> String {
    format!(
        "{interface} forwards below IP ({by}): every router is one hop away, so no router on \
         the way stores what passes, as with thcp"
    )
}

fn search(
    interfaces: &[String],
    links: &BTreeMap<u32, Link>,
    is_mesh_point: &impl Fn(&Link) -> bool,
) -> BTreeMap<String, BelowIp> {
    let of_them = links.values().filter(|link| interfaces.contains(&link.name));
    let found = of_them.filter_map(|link| {
        let by = look(link, links, is_mesh_point, DEPTH_MAX)?;
        Some((link.name.clone(), by))
    });
    found.collect()
}

fn look(
    link: &Link,
    links: &BTreeMap<u32, Link>,
    is_mesh_point: &impl Fn(&Link) -> bool,
    depth: usize,
) -> Option<BelowIp> {
    let depth = depth.checked_sub(1)?;
    match link.kind {
        LinkKind::BatmanAdv => Some(BelowIp::BatmanAdv),
        LinkKind::Bridge => {
            let mut ports = links.values().filter(|it| it.master == Some(link.index));
            ports.find_map(|port| look(port, links, is_mesh_point, depth))
        }
        LinkKind::PartOf(lower) => look(links.get(&lower)?, links, is_mesh_point, depth),
        LinkKind::Other => is_mesh_point(link).then_some(BelowIp::MeshPoint),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(index: u32, name: &str, kind: LinkKind, master: Option<u32>) -> (u32, Link) {
        (index, Link { index, name: name.into(), works: (true, true), kind, master })
    }

    /// A router with batman-adv over `wl0`, in the bridge `br-mesh`, and with a VLAN on it; `mesh0` is a
    /// mesh point.
    fn router() -> BTreeMap<u32, Link> {
        [
            link(1, "eth0", LinkKind::Other, Some(4)),
            link(2, "wl0", LinkKind::Other, Some(3)),
            link(3, "bat0", LinkKind::BatmanAdv, Some(4)),
            link(4, "br-mesh", LinkKind::Bridge, None),
            link(5, "bat0.7", LinkKind::PartOf(3), None),
            link(6, "mesh0", LinkKind::Other, None),
            link(7, "eth0.2", LinkKind::PartOf(1), None),
            // A port of another kind of master, and a VLAN below itself.
            link(8, "odd0", LinkKind::PartOf(8), Some(3)),
            link(9, "lost0", LinkKind::PartOf(99), None),
        ]
        .into()
    }

    fn found(interfaces: &[&str]) -> Vec<String> {
        let interfaces: Vec<_> = interfaces.iter().map(ToString::to_string).collect();
        let is_mesh_point = |link: &Link| link.name == "mesh0";
        let found = search(&interfaces, &router(), &is_mesh_point);
        found.iter().map(|(name, by)| format!("{name} {by}")).collect()
    }

    #[test]
    fn a_bridge_and_a_vlan_are_looked_through() {
        let all = ["bat0", "bat0.7", "br-mesh", "mesh0"];
        let expected =
            ["bat0 batman-adv", "bat0.7 batman-adv", "br-mesh batman-adv", "mesh0 802.11s"];
        assert_eq!(found(&all), expected);
    }

    #[test]
    fn other_interfaces_do_not_forward_below_ip() {
        // Beside batman-adv, IP over its radio is not forwarded by it.
        assert_eq!(found(&["wl0", "eth0", "eth0.2", "odd0", "lost0", "ghost0"]), [""; 0]);
    }

    #[test]
    fn loopback_does_not_forward_below_ip() {
        assert_eq!(below_ip(&["lo".to_owned()]), BTreeMap::new());
        assert!(all_links().unwrap().contains_key(&1), "in each namespace it has the index 1");
    }
}
