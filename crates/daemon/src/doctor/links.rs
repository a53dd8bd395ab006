//! Checks of interfaces: there and up, their size, and what forwards below IP.

use std::collections::BTreeMap;

use host::routing::{Device, below_ip, consequence, devices};

use super::view::View;
use crate::status::{Check, Finding};

/// The smallest packet that every IPv6 link takes (RFC 8200 §5).
const MTU_IPV6: u32 = 1280;
/// What batman-adv needs below it to carry packets of 1500 bytes in one frame.
const MTU_BATMAN: u32 = 1532;

/// The checks of interfaces, by one reading.
pub fn check(view: &View) -> Vec<Finding> {
    let names = view.interfaces();
    match devices() {
        Ok(found) => vec![
            there(&names, &found),
            mtu(&names, &view.out, &found),
            forwarding(&view.mesh(), view.scheme().as_deref()),
        ],
        Err(error) => {
            let text = format!("the kernel does not list interfaces: {error}");
            let unknown = |check| Finding::unknown(check, text.clone(), "try `ip link`");
            [Check::Interfaces, Check::Mtu, Check::Forwarding].map(unknown).into()
        }
    }
}

/// Judges whether interfaces are there and up.
pub fn there(names: &[String], found: &BTreeMap<String, Device>) -> Finding {
    if names.is_empty() {
        let text = "no interface is intercepted, and none is in a mesh";
        return Finding::off(Check::Interfaces, text);
    }
    let missing: Vec<_> = names.iter().filter(|name| !found.contains_key(*name)).cloned().collect();
    if !missing.is_empty() {
        let text = format!("not there: {}", missing.join(", "));
        let next =
            "see `ip link`; correct [intercept] and [mesh] `interfaces`, or wait until they appear";
        return Finding::broken(Check::Interfaces, text, next);
    }
    let of = |works: fn(&Device) -> bool| -> Vec<_> {
        names.iter().filter(|name| !works(&found[*name])).cloned().collect()
    };
    let down = of(|it| it.works.0);
    if let Some(first) = down.first() {
        let next = format!("`ip link set {first} up`");
        return Finding::broken(Check::Interfaces, format!("down: {}", down.join(", ")), next);
    }
    let fine = Finding::fine(Check::Interfaces, format!("up: {}", names.join(", ")));
    match of(|it| it.works.1) {
        dark if dark.is_empty() => fine,
        dark => fine.advise(format!(
            "without a carrier: {}; is the cable in, the radio on?",
            dark.join(", ")
        )),
    }
}

/// Judges the sizes of packets.
pub fn mtu(names: &[String], out: &[String], found: &BTreeMap<String, Device>) -> Finding {
    let mut named: Vec<_> = names.iter().chain(out).filter_map(|name| found.get(name)).collect();
    named.sort_by_key(|it| it.index);
    named.dedup();
    if named.is_empty() {
        return Finding::off(Check::Mtu, "no interface to look at");
    }
    if let Some(small) = named.iter().find(|it| it.mtu < MTU_IPV6) {
        let text = format!("{} takes only {} bytes, too few for IPv6", small.name, small.mtu);
        let next = format!("`ip link set {} mtu 1500`, or at least {MTU_IPV6}", small.name);
        return Finding::broken(Check::Mtu, text, next);
    }
    let sizes: Vec<_> = named.iter().map(|it| format!("{} {}", it.name, it.mtu)).collect();
    let fine = Finding::fine(Check::Mtu, sizes.join(", "));
    let masters: Vec<_> = named.iter().filter(|it| it.is_batman_adv).map(|it| it.index).collect();
    let of_batman = |it: &&Device| it.master.is_some_and(|master| masters.contains(&master));
    match found.values().filter(of_batman).find(|it| it.mtu < MTU_BATMAN) {
        Some(low) => fine.advise(format!(
            "batman-adv splits packets on {0}: `ip link set {0} mtu {MTU_BATMAN}`, if its driver can",
            low.name
        )),
        None => fine,
    }
}

fn forwarding(mesh: &[String], scheme: Option<&str>) -> Finding {
    let Some(scheme) = scheme else {
        return Finding::off(Check::Forwarding, "there is no mesh here");
    };
    let found = below_ip(mesh);
    let found = found.iter().map(|(name, by)| (name.as_str(), by.as_str()));
    judge_forwarding(mesh, scheme, &found.collect::<Vec<_>>())
}

/// Judges what forwards below IP: interfaces, each with the protocol.
pub fn judge_forwarding(mesh: &[String], scheme: &str, found: &[(&str, &str)]) -> Finding {
    let Some((name, by)) = found.first() else {
        return Finding::fine(Check::Forwarding, format!("by IP, on {}", mesh.join(", ")));
    };
    let text = consequence(name, by);
    if scheme.starts_with("ph-") {
        let next =
            "choose another `[mesh] scheme` (auto), or route by IP: babeld over the radio itself";
        return Finding::broken(Check::Forwarding, text, next);
    }
    Finding::fine(Check::Forwarding, text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::Verdict;

    fn device(name: &str, index: u32) -> (String, Device) {
        let it = Device {
            name: name.into(),
            index,
            works: (true, true),
            mtu: 1500,
            ..Device::default()
        };
        (name.to_owned(), it)
    }

    fn changed(name: &str, change: impl FnOnce(&mut Device)) -> BTreeMap<String, Device> {
        let mut found = BTreeMap::from([device("lan0", 2), device("wl0", 3), device("bat0", 4)]);
        change(found.get_mut(name).unwrap());
        found
    }

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|&it| it.to_owned()).collect()
    }

    #[test]
    fn interfaces_are_missing_down_or_dark() {
        let wanted = names(&["lan0", "wl0"]);
        let judge = |found: &BTreeMap<String, Device>| there(&wanted, found);
        assert_eq!(judge(&changed("lan0", |_| ())).verdict, Verdict::Fine);
        let down = judge(&changed("wl0", |it| it.works = (false, false)));
        assert_eq!((down.verdict, down.text.as_str()), (Verdict::Broken, "down: wl0"));
        assert_eq!(down.next.as_deref(), Some("`ip link set wl0 up`"));
        let dark = judge(&changed("wl0", |it| it.works = (true, false)));
        assert!(dark.verdict == Verdict::Fine && dark.next.unwrap().contains("carrier: wl0"));
        let missing = there(&names(&["lan0", "lan9"]), &changed("lan0", |_| ()));
        assert_eq!((missing.verdict, missing.text.as_str()), (Verdict::Broken, "not there: lan9"));
        assert_eq!(there(&[], &BTreeMap::new()).verdict, Verdict::Off);
    }

    #[test]
    fn packets_must_fit() {
        let judge = |found: &BTreeMap<String, Device>| mtu(&names(&["lan0", "bat0"]), &[], found);
        let fine = judge(&changed("lan0", |_| ()));
        assert_eq!((fine.verdict, fine.text.as_str()), (Verdict::Fine, "lan0 1500, bat0 1500"));
        let small = judge(&changed("lan0", |it| it.mtu = 1000));
        assert!(small.verdict == Verdict::Broken && small.text.contains("lan0 takes only 1000"));
        let mut batman = changed("wl0", |it| it.master = Some(4));
        batman.get_mut("bat0").unwrap().is_batman_adv = true;
        let split = judge(&batman);
        assert!(
            split.verdict == Verdict::Fine
                && split.next.unwrap().contains("`ip link set wl0 mtu 1532`")
        );
    }

    #[test]
    fn hop_by_hop_schemes_need_hops() {
        let judge = |scheme| judge_forwarding(&names(&["bat0"]), scheme, &[("bat0", "batman-adv")]);
        for scheme in ["ph-thcp", "ph-bcp"] {
            assert!(
                judge(scheme).verdict == Verdict::Broken
                    && judge(scheme).text.contains("batman-adv")
            );
        }
        for scheme in ["auto", "thcp"] {
            assert_eq!(judge(scheme).verdict, Verdict::Fine);
        }
        assert_eq!(judge_forwarding(&names(&["wl0"]), "ph-thcp", &[]).verdict, Verdict::Fine);
    }
}
