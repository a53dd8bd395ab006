//! Checks of the interception: the rules, an object that comes through them, and what carries connections past them.

use std::path::Path;

use host::intercept::offload::Flowtable;
use host::intercept::trial::{self, TrialError, Tried};
use host::intercept::{Error, Family, FamilyReport, Rules};

use super::kernel::Unread;
use super::view::View;
use crate::status::{Check, Finding};

const AS_ROOT: &str = "run `hearsay doctor` as root";
const APPLY: &str = "`hearsay intercept apply`, or restart the daemon; what removed them may do so again: \
                     a firewall that flushes all tables";

/// The check of the rules.
pub fn set(view: &View) -> Finding {
    let Some(rules) = view.rules() else {
        return Finding::off(
            Check::Rules,
            "nothing is intercepted: [intercept] `interfaces` is empty",
        );
    };
    if rules.out.is_empty() && rules.direct.is_empty() {
        let text = "nothing leads out, so nothing is to be intercepted";
        return Finding::unknown(Check::Rules, text, "see the check `route`");
    }
    match view.kernel.rules(&rules) {
        Ok(families) => judge_set(&rules, &families, trap(&rules)),
        Err(error) => unread(Check::Rules, &error),
    }
}

/// What keeps rules that are set from working, and the next step.
type Trap = (&'static str, String);

fn trap(rules: &Rules) -> Option<Trap> {
    let dropped = rules.mark_trap().map(|next| ("the kernel drops what is intercepted", next));
    dropped.or_else(|| Some(("a bridge hides packets from the rules", rules.bridge_trap()?)))
}

/// Judges which rules are set.
pub fn judge_set(rules: &Rules, families: &[FamilyReport], trap: Option<Trap>) -> Finding {
    let missing = families.iter().filter(|it| !it.is_complete()).map(|it| {
        let parts = [(it.redirect, "nftables rules"), (it.rule, "ip rule"), (it.route, "route")];
        let parts = parts.iter().filter(|(is_there, _)| !is_there).map(|(_, name)| *name);
        format!("{} lacks {}", it.family, parts.collect::<Vec<_>>().join(", "))
    });
    let missing: Vec<_> = missing.collect();
    if families.iter().all(FamilyReport::is_absent) {
        return Finding::broken(Check::Rules, "none are set: nothing is intercepted", APPLY);
    }
    if !missing.is_empty() {
        return Finding::broken(Check::Rules, missing.join("; "), APPLY);
    }
    if let Some((text, next)) = trap {
        return Finding::broken(Check::Rules, text, next);
    }
    let there: Vec<_> =
        families.iter().filter(|it| it.available).map(|it| it.family.to_string()).collect();
    let ports: Vec<_> = rules.ports.iter().map(u16::to_string).collect();
    let (there, ports) = (there.join(" and "), ports.join(" "));
    Finding::fine(
        Check::Rules,
        match rules.interfaces.is_empty() {
            true => format!("set for {there}, for the far end alone"),
            false => format!("set for {there}, port {ports}, on {}", rules.interfaces.join(", ")),
        },
    )
}

/// The check of both address families, end to end. Needs root.
pub fn through(view: &View) -> Vec<Finding> {
    const CHECKS: [Check; 2] = [Check::Ipv4, Check::Ipv6];
    let Some(rules) = view.rules() else {
        return CHECKS.map(|check| Finding::off(check, "nothing is intercepted")).into();
    };
    if view.status.is_none() {
        let next = "start the daemon, then look again";
        return CHECKS.map(|check| Finding::unknown(check, "no daemon answers", next)).into();
    }
    if rules.out.is_empty() {
        let next = "see the check `route`";
        return CHECKS.map(|check| Finding::unknown(check, "nothing leads out", next)).into();
    }
    match trial::attempt(&rules, view.asks_origins()) {
        Ok(tries) => {
            let others = trial::other_input_chains().unwrap_or_default();
            let found = CHECKS.iter().zip(tries).zip(Family::ALL);
            found
                .map(|((check, tried), family)| judge_tried(*check, family, &tried, &others))
                .collect()
        }
        Err(error) => CHECKS.map(|check| untried(check, &error)).into(),
    }
}

/// Judges what came of a trial. `others`: chains of other programs that may have refused it.
pub fn judge_tried(check: Check, family: Family, tried: &Tried, others: &[String]) -> Finding {
    match tried {
        Tried::Served { stored: Some(true) } => Finding::fine(
            check,
            "an object of the check's own came through, and a second time from the store",
        ),
        Tried::Served { stored: None } => {
            Finding::fine(check, "a request of the check's own came through")
        }
        Tried::Served { stored: Some(false) } => Finding::broken(
            check,
            "an object of the check's own came through, but not from the store the second time",
            "see the checks `disk` and `memory`, and `hearsay status`",
        ),
        Tried::Silent(why) if !others.is_empty() => Finding::unknown(
            check,
            format!(
                "no answer ({why}): a chain of the firewall may refuse the check's own interface ({})",
                others.join(", ")
            ),
            "try it from a client: `curl -sI http://HOST/` must show `via`. If there is no answer, the chain must \
             accept `meta mark & 0x04000000 != 0`",
        ),
        Tried::Silent(why) => Finding::broken(
            check,
            format!("no answer came through the rules: {why}"),
            "see the checks `rules` and `route`; then the daemon's log, at `--log debug`",
        ),
        Tried::Strange(line) => Finding::broken(
            check,
            format!("another answer than the object came: {line}"),
            "see the daemon's log, at `--log debug`",
        ),
        Tried::Off => Finding::off(check, format!("{family} is off in this kernel")),
        Tried::Unrouted => Finding::off(
            check,
            format!("no {family} route leads out: its connections are not intercepted"),
        ),
    }
}

fn untried(check: Check, error: &TrialError) -> Finding {
    match error {
        TrialError::Command(error) => unreadable(check, error),
        TrialError::NoRules => Finding::unknown(check, error.to_string(), "see the check `rules`"),
        TrialError::Busy | TrialError::Io(_) => {
            Finding::unknown(check, error.to_string(), "look again")
        }
    }
}

/// The check of flow tables.
pub fn offload(view: &View) -> Finding {
    let Some(rules) = view.rules() else {
        return Finding::off(Check::Offload, "nothing is intercepted");
    };
    match view.kernel.flow_tables() {
        Ok(tables) => judge_offload(&tables, &with_lower(&rules.interfaces, &lower)),
        Err(error) => unread(Check::Offload, &error),
    }
}

/// These interfaces, and those below them, which are what firewalls name in flow tables: the ports of a bridge, the
/// interface that carries a VLAN. `lower`: those just below one.
fn with_lower(names: &[String], lower: &dyn Fn(&str) -> Vec<String>) -> Vec<String> {
    let (mut found, mut next) = (names.to_vec(), 0);
    while let Some(name) = found.get(next) {
        let new = lower(name);
        new.into_iter().for_each(|name| {
            if !found.contains(&name) {
                found.push(name);
            }
        });
        next += 1;
    }
    found
}

/// The interfaces just below one, as the kernel links them in sysfs.
fn lower(name: &str) -> Vec<String> {
    let entries = std::fs::read_dir(Path::new("/sys/class/net").join(name)).into_iter().flatten();
    let names = entries.flatten().filter_map(|it| it.file_name().into_string().ok());
    names.filter_map(|name| name.strip_prefix("lower_").map(str::to_owned)).collect()
}

/// Judges flow tables. `intercepted`: interfaces by which intercepted packets come in, and those below them. A table
/// that takes no packets from them carries nothing past the daemon. A table for which no interface is listed takes no
/// packets at all: nft names whatever the table is attached to.
pub fn judge_offload(tables: &[Flowtable], intercepted: &[String]) -> Finding {
    let takes = |it: &&Flowtable| intercepted.iter().any(|name| it.takes_from(name));
    let hit = tables.iter().find(takes);
    let Some(shown) = hit.or(tables.first()) else {
        return Finding::fine(Check::Offload, "off: the kernel has no flow table");
    };
    let hard = if shown.in_hardware { ", in hardware too" } else { "" };
    let devices =
        if shown.devices.is_empty() { "no interface".to_owned() } else { shown.devices.join(", ") };
    let on = format!("on ({}, for {devices}{hard})", shown.name);
    if hit.is_none() {
        let found = Finding::fine(Check::Offload, format!("{on}: not where clients are"));
        return found.advise("leave the interfaces of `[intercept]` out of it");
    }
    let text = format!("{on}: connections that it carries bypass the daemon, and are not counted");
    let next = "turn it off: OpenWrt: `uci set firewall.@defaults[0].flow_offloading=0`, \
                `uci commit firewall`, `service firewall restart`";
    Finding::broken(Check::Offload, text, next)
}

fn unread(check: Check, error: &Unread) -> Finding {
    match error {
        Unread::Own(error) => unreadable(check, error),
        Unread::Helper(error) => Finding::unknown(check, error.to_string(), AS_ROOT),
    }
}

fn unreadable(check: Check, error: &Error) -> Finding {
    let (text, next) = match error {
        Error::NotPermitted { command } => (format!("`{command}` is not permitted"), AS_ROOT),
        Error::ProgramMissing { .. } => (error.to_string(), "install it, then look again"),
        _ => (error.to_string(), "try the command by hand"),
    };
    Finding::unknown(check, text, next)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::Verdict;
    use host::intercept::offload;

    fn rules() -> Rules {
        Rules { interfaces: vec!["lan0".into()], ..Rules::default() }
    }

    fn family(family: Family, redirect: bool, rule: bool, route: bool) -> FamilyReport {
        FamilyReport { family, available: true, redirect, rule, route }
    }

    #[test]
    fn missing_rules_are_named() {
        let judge = |families: &[FamilyReport]| judge_set(&rules(), families, None);
        let whole = Family::ALL.map(|it| family(it, true, true, true));
        let fine = judge(&whole);
        assert_eq!(
            (fine.verdict, fine.text.as_str()),
            (Verdict::Fine, "set for IPv4 and IPv6, port 80, on lan0")
        );
        let flushed = judge(&Family::ALL.map(|it| family(it, false, true, true)));
        assert_eq!(flushed.text, "IPv4 lacks nftables rules; IPv6 lacks nftables rules");
        let none = judge(&Family::ALL.map(|it| family(it, false, false, false)));
        assert!(none.verdict == Verdict::Broken && none.text.contains("none are set"));
        let off = [
            whole[0],
            FamilyReport { available: false, ..family(Family::V6, false, false, false) },
        ];
        assert_eq!(judge(&off).text, "set for IPv4, port 80, on lan0");
        let trapped = judge_set(&rules(), &whole, Some(("dropped", "set it to 0".into())));
        assert_eq!(
            (trapped.verdict, trapped.text.as_str(), trapped.next.as_deref()),
            (Verdict::Broken, "dropped", Some("set it to 0"))
        );
    }

    #[test]
    fn a_foreign_firewall_is_no_proof_against_us() {
        let judge = |tried: Tried, others: &[String]| {
            judge_tried(Check::Ipv4, Family::V4, &tried, others).verdict
        };
        let silent = || Tried::Silent("connection refused".into());
        assert_eq!(judge(silent(), &[]), Verdict::Broken);
        assert_eq!(judge(silent(), &["inet fw4 input".into()]), Verdict::Unknown);
        assert_eq!(judge(Tried::Strange("HTTP/1.1 502".into()), &[]), Verdict::Broken);
        for (stored, verdict) in
            [(Some(true), Verdict::Fine), (None, Verdict::Fine), (Some(false), Verdict::Broken)]
        {
            assert_eq!(judge(Tried::Served { stored }, &[]), verdict);
        }
        assert_eq!(
            (judge(Tried::Off, &[]), judge(Tried::Unrouted, &[])),
            (Verdict::Off, Verdict::Off)
        );
    }

    #[test]
    fn flow_offload_on_a_recorded_list_is_named() {
        let listing = "table inet fw4 {\n\tflowtable ft {\n\t\thook ingress priority filter\n\t\t\
                       devices = { \"br-lan\", \"eth1\" }\n\t\tflags offload\n\t\tcounter\n\t}\n}\n";
        let judge = |interfaces: &[&str]| {
            let names: Vec<_> = interfaces.iter().map(|it| (*it).to_owned()).collect();
            judge_offload(&offload::read(listing), &names)
        };
        let found = judge(&["br-lan"]);
        assert_eq!(found.verdict, Verdict::Broken);
        assert!(found.text.contains("inet fw4 ft, for br-lan, eth1, in hardware too"), "{found}");
        assert_eq!(judge(&["br-guest", "eth1"]).verdict, Verdict::Broken);
        // It takes nothing from where clients are, or from anywhere.
        let elsewhere = judge(&["br-guest"]);
        assert!(elsewhere.verdict == Verdict::Fine && elsewhere.next.is_some(), "{elsewhere}");
        assert!(elsewhere.text.contains("inet fw4 ft, for br-lan, eth1"), "{elsewhere}");
        let idle = offload::read("table inet fw4 {\n\tflowtable ft {\n\t}\n}\n");
        let idle = judge_offload(&idle, &["br-lan".to_owned()]);
        assert!(idle.verdict == Verdict::Fine && idle.next.is_some(), "{idle}");
        assert_eq!(judge_offload(&[], &["br-lan".to_owned()]).next, None);
    }

    #[test]
    fn a_flow_table_on_a_port_of_an_intercepted_bridge_counts() {
        // A VLAN over a bridge; the circle is no kernel's, and ends nevertheless.
        let lower = |name: &str| match name {
            "br-lan.1" => vec!["br-lan".to_owned()],
            "br-lan" => vec!["lan1".to_owned(), "lan2".to_owned()],
            "lan2" => vec!["br-lan".to_owned()],
            _ => Vec::new(),
        };
        let all = with_lower(&["br-lan.1".to_owned()], &lower);
        assert_eq!(all, ["br-lan.1", "br-lan", "lan1", "lan2"]);
        let port = Flowtable { devices: vec!["lan2".to_owned()], ..Flowtable::default() };
        assert_eq!(judge_offload(&[port], &all).verdict, Verdict::Broken);
    }
}
