//! The status as a page for people: first what was saved, then why some responses were not stored, then
//! the daemon's state.

use super::{Clients, Mesh, Overhear, RequestLog, Rights, SelfTest, Status, StoreKind, whence};
use crate::ledger::{Saved, Summary, total};
use crate::term::{self, Style};
use node::account::ClassBytes;
use node::{NotStored, Recent, Report};
use std::collections::BTreeMap;
use std::time::Duration;
use wire::counters::{Counters, Reason as _};

/// Where the values begin, in columns.
const INDENT: usize = 13;

/// How many reasons for not storing are listed; the others are summed.
const REASONS_MAX: usize = 6;

/// How many of the latest objects are listed.
const RECENT_MAX: usize = 8;

impl Status {
    /// A compact overview in aligned lines.
    pub fn page(&self, style: Style) -> String {
        let mut page = Page { style, text: String::new() };
        let title = format!("hearsay {} on {}", self.version, self.name);
        let uptime = term::duration(self.process.uptime());
        page.text.push_str(&format!("{}, up {uptime}\n\n", style.strong(&title)));
        page.outage(&self.report);
        page.saved(&total(&self.classes));
        if let Some(ledger) = &self.ledger {
            page.ledger(ledger);
        }
        page.requests(&self.report);
        page.relayed(self.relayed_bytes);
        page.not_stored(&self.report);
        page.store(self);
        page.memory(self);
        if let Some(rights) = &self.rights {
            page.rights(rights);
        }
        page.clients(&self.clients);
        page.row("listening", &self.listening());
        if let Some(log) = &self.request_log {
            page.request_log(log);
        }
        page.intercept(self);
        page.route(self);
        if let Some(mesh) = &self.mesh {
            page.mesh(mesh, &self.report);
        }
        if let Some(overhear) = &self.overhear {
            page.overhear(overhear, &self.report);
        }
        page.selftest(&self.selftest);
        page.recent(&self.report.recent);
        page.text
    }

    fn listening(&self) -> Vec<String> {
        let mut items: Vec<_> = self.listeners.iter().map(ToString::to_string).collect();
        items.extend(self.mirrors.iter().map(|address| format!("mirror http://{address}")));
        items.extend(self.metrics.map(|address| format!("metrics {address}")));
        items
    }
}

/// A reason with its meaning.
fn in_words(reason: NotStored) -> String {
    format!("{}: {}", reason.name(), reason.clause())
}

struct Page {
    style: Style,
    text: String,
}

impl Page {
    /// Since when no origin is reached, first of all: it explains the rest.
    fn outage(&mut self, report: &Report) {
        // An older daemon says nothing of it.
        if report.uplink_down_seconds > 0 {
            let down = term::duration(Duration::from_secs(report.uplink_down_seconds));
            let down = self.style.strong(&format!("down for {down}"));
            self.row("uplink", &[down, "what is stored is served".to_owned()]);
        }
    }

    /// The bytes saved since the start, as the ledger counts them.
    fn saved(&mut self, all: &ClassBytes) {
        let overheard = all.served_overheard_bytes + all.served_repaired_bytes;
        let (served, it) = (all.served(), Saved::from(all));
        let amount = self.style.strong(&term::bytes(it.saved()));
        let share = term::percent(it.saved(), it.given_bytes);
        let fetched = all.fetched_origin_bytes + all.fetched_far_difference_bytes;
        let mut items = vec![
            format!("{amount}: {share} of {} served", term::bytes(it.given_bytes)),
            format!("{} fetched from origins", term::bytes(fetched)),
        ];
        if all.fetched_far_reference_bytes > 0 {
            let bytes = term::bytes(all.fetched_far_reference_bytes);
            items.push(format!("{bytes} only referred to by the far end"));
        }
        if all.fetched_peer_bytes > 0 {
            items.push(format!("{} from peers", term::bytes(all.fetched_peer_bytes)));
        }
        self.row("saved", &items);
        let mut part = |label, bytes| {
            let share = term::percent(bytes, served);
            self.row(label, &[format!("{} ({share} of bytes)", term::bytes(bytes))]);
        };
        part("from here", all.served_local_bytes);
        if all.served_peer_bytes > 0 {
            part("from peers", all.served_peer_bytes);
        }
        if overheard > 0 {
            part("overheard", overheard);
        }
    }

    /// What the ledger has, which restarts do not end.
    fn ledger(&mut self, ledger: &Summary) {
        for (label, it) in
            [("today", ledger.today), ("30 days", ledger.days_30), ("ever", ledger.ever)]
        {
            let (saved, given) = (term::bytes(it.saved()), term::bytes(it.given_bytes));
            let share = term::percent(it.saved(), it.given_bytes);
            self.row(label, &[format!("{saved} saved: {share} of {given}")]);
        }
    }

    fn requests(&mut self, report: &Report) {
        let requests = &report.requests;
        let results = labelled(requests, "hearsay_requests_total");
        let all = results.iter().map(|(_, count)| count).sum();
        let share = term::percent(requests.local(), requests.visible());
        let mut items = vec![format!("{}, {share} answered from here", term::count(all))];
        let seen = results.into_iter().filter(|(_, count)| *count > 0);
        items.extend(seen.map(|(name, count)| format!("{} {name}", term::count(count))));
        self.row("requests", &items);
    }

    fn relayed(&mut self, bytes: u64) {
        if bytes > 0 {
            self.row(
                "passed on",
                &[format!("{} without parsing (tunnels and the like)", term::bytes(bytes))],
            );
        }
    }

    fn not_stored(&mut self, report: &Report) {
        let mut reasons: Vec<_> = report.not_stored.occurred().collect();
        if reasons.is_empty() {
            return;
        }
        reasons.sort_by_key(|(_, it)| std::cmp::Reverse((it.bytes, it.responses)));
        let total = reasons.iter().map(|(_, it)| it.bytes).sum();
        let responses = reasons.iter().map(|(_, it)| it.responses).sum();
        let first = format!("{} in {} responses", term::bytes(total), term::count(responses));
        self.row("not stored", &[first]);
        let rest = reasons.split_off(reasons.len().min(REASONS_MAX));
        for (reason, it) in reasons {
            self.reason(&in_words(reason), it.bytes, it.responses);
        }
        if !rest.is_empty() {
            let bytes = rest.iter().map(|(_, it)| it.bytes).sum();
            self.reason("others", bytes, rest.iter().map(|(_, it)| it.responses).sum());
        }
    }

    fn reason(&mut self, reason: &str, bytes: u64, responses: u64) {
        let (bytes, responses) = (term::bytes(bytes), term::count(responses));
        let start = format!("{bytes:>9} {responses:>9}  ");
        let room = self.room().saturating_sub(start.len()).max(16);
        self.line("", &format!("{start}{}", term::tame(reason, room)));
    }

    fn store(&mut self, status: &Status) {
        let (store, index) = (&status.store, &status.report.index);
        let place = match (&store.kind, &store.path) {
            (StoreKind::Disk, Some(path)) => path.display().to_string(),
            (StoreKind::Disk, None) => "disk".to_owned(),
            (StoreKind::Memory, _) => "in memory".to_owned(),
        };
        let (used, size) = (term::bytes(store.used_bytes), term::bytes(store.size_bytes));
        let mut items =
            vec![place, format!("{used} of {size}"), format!("{} units", term::count(index.units))];
        if index.evicted_units > 0 {
            items.push(format!("{} evicted", term::count(index.evicted_units)));
        }
        if status.report.units_bad > 0 {
            items.push(format!("{} bad", term::count(status.report.units_bad)));
        }
        self.row("store", &items);
        if !store.works {
            let why = store.error.as_deref().unwrap_or("writes fail");
            let text = format!("does not work: {why}; requests are passed on");
            self.alarm(&text);
        }
        if status.report.units_known > 0 {
            let share = term::percent(status.report.units_known, status.report.units_cut);
            let bytes = term::bytes(status.report.known_bytes);
            self.row("", &[format!("{share} of new units were there already ({bytes})")]);
        }
    }

    fn memory(&mut self, status: &Status) {
        let report = &status.report;
        let mut items = vec![
            format!("{} resident", term::bytes(status.process.rss_bytes)),
            format!("budget {}", term::bytes(status.memory_budget_bytes)),
        ];
        let memory = "hearsay_memory_bytes";
        let index = labelled(&report.index, memory).into_iter();
        let uses = index.chain(labelled(report, memory));
        let uses = uses.chain(labelled(&report.overheard.heard, memory));
        let uses = uses.filter(|(_, bytes)| *bytes > 0);
        items.extend(uses.map(|(what, bytes)| format!("{what} {}", term::bytes(bytes))));
        self.row("memory", &items);
        self.row(
            "now",
            &[format!("{} requests", report.exchanges), format!("{} fetches", report.fetches)],
        );
    }

    fn intercept(&mut self, status: &Status) {
        let it = &status.intercept;
        if !it.is_on() {
            return self.row("intercept", &["off".to_owned()]);
        }
        let ports: Vec<_> = it.ports.iter().map(u16::to_string).collect();
        let what = match it.interfaces.is_empty() || ports.is_empty() {
            true => "no HTTP".to_owned(),
            false => format!("{} port {}", it.interfaces.join(" "), ports.join(" ")),
        };
        self.row("intercept", &[what, format!("to port {}", it.port), leading_out(&it.out)]);
        if let Some(flows) = &it.flows {
            let families = match (flows.reach.v4, flows.reach.v6) {
                (true, true) => "IPv4 and IPv6",
                (true, false) => "IPv4",
                (false, true) => "IPv6",
                (false, false) => "nothing now: it does not answer, or there is no room",
            };
            let what = format!("{} port {}", flows.interfaces.join(" "), flows.ports);
            self.row("", &[what, format!("for the far end, which reaches {families}")]);
        }
        self.standing(it.works, it.note.as_ref());
        for name in &it.interfaces_missing {
            self.alarm(&format!("there is no interface {name}: nothing is intercepted from it"));
        }
    }

    /// The log of requests: it tells about people, so that it is on is to be seen.
    fn request_log(&mut self, log: &RequestLog) {
        let mut items = vec![format!("of requests, in {}", log.file.display())];
        items.push(format!("{} lines", term::count(log.lines)));
        if log.dropped_lines > 0 {
            items.push(format!("{} dropped", term::count(log.dropped_lines)));
        }
        self.row("log", &items);
        self.standing(log.error.is_none(), log.error.as_ref());
    }

    /// Says that a feature does not work and why, or adds its note.
    fn standing(&mut self, works: bool, note: Option<&String>) {
        match (note, works) {
            (note, false) => {
                let why = note.map_or("see the log", String::as_str);
                self.alarm(&format!("does not work: {why}"));
            }
            (Some(note), true) => self.row("", std::slice::from_ref(note)),
            (None, true) => {}
        }
    }

    fn rights(&mut self, it: &Rights) {
        self.row("rights", &it.items());
        if it.helper == Some(false) {
            self.alarm(Rights::WITHOUT_HELPER);
        } else if it.helper_silent {
            self.alarm(Rights::SILENT_HELPER);
        }
        it.limits.skipped.iter().for_each(|sentence| self.alarm(sentence));
    }

    /// Which of the daemon's own checks found something broken; nothing if none did.
    fn selftest(&mut self, checks: &BTreeMap<String, SelfTest>) {
        let broken = checks.iter().filter(|(_, it)| it.success == Some(0));
        let broken: Vec<_> = broken.map(|(name, _)| name.as_str()).collect();
        if !broken.is_empty() {
            self.row("self-test", &["`hearsay doctor` says what to do".to_owned()]);
            self.alarm(&format!("broken: {}", broken.join(", ")));
        }
    }

    fn clients(&mut self, it: &Clients) {
        let closed = it.closed_idle + it.closed_head + it.closed_tunnel + it.closed_slow;
        let mut items = vec![
            format!("{} connections", term::count(it.connections)),
            format!("up to {} for them", term::bytes(it.bytes)),
        ];
        if closed > 0 {
            items.push(format!("{} closed for want of room", term::count(closed)));
        }
        if it.refused + it.over_share > 0 {
            items.push(format!("{} refused", term::count(it.refused + it.over_share)));
        }
        if it.past > 0 {
            items.push(format!("bypassed the daemon {} times", term::count(it.past)));
        }
        self.row("clients", &items);
    }

    fn route(&mut self, status: &Status) {
        let Some(route) = &status.route else { return };
        self.row("route", &[route.to_string()]);
        if let Some(error) = &route.error {
            self.alarm(&format!("cannot be known: {error}"));
        }
        if let Some(warning) = route.warning() {
            self.alarm(&warning);
        }
        for note in route.notes() {
            term::wrap(&note, self.room()).iter().for_each(|line| self.line("", line));
        }
    }

    fn mesh(&mut self, mesh: &Mesh, report: &Report) {
        let (units_in, units_out) = (report.peer_units_in_bytes, report.peer_units_out_bytes);
        let all = report.peer_in_bytes + report.peer_out_bytes;
        let mut items = vec![
            format!("{} ({})", report.peers, mesh.scheme),
            format!("{} of units in", term::bytes(units_in)),
            format!("{} out", term::bytes(units_out)),
        ];
        if all > 0 {
            let overhead = all.saturating_sub(units_in + units_out);
            items.push(format!("{} overhead", term::percent(overhead, all)));
        }
        self.row("peers", &items);
        self.row("identity", std::slice::from_ref(&mesh.id));
        self.row("public key", std::slice::from_ref(&mesh.public_key));
        self.row("sealing", &[mesh.sealing().to_owned()]);
        if let Some(why) = &mesh.is_temporary {
            self.alarm(&format!("holds until this daemon stops: {why}"));
        }
    }

    fn overhear(&mut self, it: &Overhear, report: &Report) {
        let link = it.link.as_ref().map_or(String::new(), |link| format!(" ({link})"));
        let mut items = vec![
            format!("{}{link}", it.interface),
            format!("{} captured", term::bytes(it.counts.payload_bytes)),
        ];
        let dropped = it.counts.dropped_frames + it.counts.dropped_segments;
        if dropped > 0 {
            items.push(format!("{} segments dropped", term::count(dropped)));
        }
        self.row("overhear", &items);
        let heard = &report.overheard;
        if heard.units + heard.cancelled_units + heard.repaired_units > 0 {
            let mut items =
                vec![format!("{} units ({})", term::count(heard.units), term::bytes(heard.bytes))];
            items.push(format!("{} came sooner than asked", term::count(heard.cancelled_units)));
            let spared = term::bytes(heard.repaired_bytes);
            items.push(format!("{} mended ({spared} spared)", term::count(heard.repaired_units)));
            self.row("", &items);
        }
        self.standing(it.works, it.note.as_ref());
    }

    /// The latest objects, the newest first.
    fn recent(&mut self, recent: &[Recent]) {
        let mut label = "latest";
        for it in recent.iter().rev().take(RECENT_MAX) {
            let from = whence(it);
            let start = format!("{:>9}  {from:<20}  ", term::bytes(it.bytes));
            let room = self.room().saturating_sub(start.chars().count()).max(16);
            let uri = term::tame(&it.uri, room);
            self.line(std::mem::take(&mut label), &format!("{start}{uri}"));
        }
    }

    fn alarm(&mut self, text: &str) {
        for line in term::wrap(text, self.room()) {
            let line = self.style.alarm(&line);
            self.line("", &line);
        }
    }

    /// Adds a label and items with commas between them, wrapped to the page's width.
    fn row(&mut self, label: &str, items: &[String]) {
        let mut line = String::new();
        let mut label = label;
        for (at, item) in items.iter().enumerate() {
            let comma = if at + 1 < items.len() { "," } else { "" };
            let width = console::measure_text_width(&line) + console::measure_text_width(item) + 2;
            if !line.is_empty() && width > self.room() {
                self.line(std::mem::take(&mut label), &line);
                line.clear();
            }
            let space = if line.is_empty() { "" } else { " " };
            line.push_str(&format!("{space}{item}{comma}"));
        }
        self.line(label, &line);
    }

    fn line(&mut self, label: &str, text: &str) {
        let line = format!("{label:<INDENT$}{text}");
        self.text.push_str(line.trim_end());
        self.text.push('\n');
    }

    fn room(&self) -> usize {
        self.style.width.saturating_sub(INDENT).max(8)
    }
}

/// The figures of one metric in a table, by the values of its label.
fn labelled<T: Counters>(it: &T, metric: &str) -> Vec<(&'static str, u64)> {
    let rows = T::ROWS.iter().zip(it.figures()).filter(|(row, _)| row.metric == metric);
    rows.filter_map(|(row, figure)| Some((row.label?.1, figure.values().first()?.1))).collect()
}

/// The interfaces through which intercepted connections lead out.
fn leading_out(interfaces: &[String]) -> String {
    if interfaces.is_empty() {
        return "nothing leads out".to_owned();
    }
    format!("what leads out by {}", interfaces.join(" "))
}

#[cfg(test)]
mod tests {
    use super::super::route::BelowIp;
    use super::super::tests::{busy, heard, hearing, in_mesh, over_one};
    use super::*;

    const PLAIN: Style = Style { width: 80, colour: false };

    #[test]
    fn the_page_says_first_what_was_saved() {
        let expected = "\
hearsay 0.1.0 on router-12, up 3 d 4 h

saved        1.0 GiB: 25 % of 4.0 GiB served, 3.0 GiB fetched from origins
from here    1.0 GiB (25 % of bytes)
today        1.0 GiB saved: 25 % of 4.0 GiB
30 days      30 GiB saved: 75 % of 40 GiB
ever         100 GiB saved: 25 % of 400 GiB
requests     1 050, 40 % answered from here, 400 hit, 500 miss, 100 pass,
             50 tunnel
passed on    7.0 MiB without parsing (tunnels and the like)
not stored   1.0 GiB in 100 responses
               1.0 GiB        80  no-store: client or origin forbid it
               1.0 MiB        20  private: for one user only
store        /var/cache/hearsay, 512 MiB of 1.0 GiB, 65 432 units, 123 evicted
             12 % of new units were there already (96 MiB)
memory       23 MiB resident, budget 16 MiB, index 1.0 MiB
now          0 requests, 0 fetches
clients      40 connections, up to 1.0 MiB for them
listening    127.0.0.1:3128, mirror http://127.0.0.1:3142
intercept    br-lan port 80, to port 3130, what leads out by wan
";
        assert_eq!(busy().page(PLAIN), expected);
    }

    #[test]
    fn each_reason_for_not_storing_is_explained() {
        let mut status = busy();
        status.report.not_stored.of(NotStored::Unusable).bytes = 1 << 40;
        let page = status.page(PLAIN);
        assert!(page.contains("0  unusable: neither lifetime nor validator\n"), "{page}");
        let widest = NotStored::ALL.map(|reason| in_words(reason).len()).into_iter().max();
        assert!(widest <= Some(PLAIN.width - INDENT - 21), "cut on a terminal: {widest:?}");
    }

    #[test]
    fn a_narrow_terminal_gets_narrow_lines() {
        let page = busy().page(Style { width: 50, colour: false });
        let widest = page.lines().map(|line| line.chars().count()).max();
        assert!(widest.is_some_and(|widest| widest <= 60), "{page}");
    }

    #[test]
    fn colours_change_no_column() {
        let colourful = busy().page(Style { width: 80, colour: true });
        assert!(colourful.contains("\x1b[1m"));
        assert_eq!(console::strip_ansi_codes(&colourful), busy().page(PLAIN));
    }

    #[test]
    fn in_a_mesh_the_way_is_said() {
        let route = over_one();
        let page = Status { route: Some(route.clone()), ..busy() }.page(PLAIN);
        let line = "route        gateway 10.77.0.8 over 10.77.0.4 (wl0), metric 512, babeld\n";
        assert!(page.ends_with(line), "{page}");
        let old = super::super::Route { babeld_silent_seconds: Some(180), ..route.clone() };
        let page = Status { route: Some(old), ..busy() }.page(PLAIN);
        let warning = "             babeld has not answered for 3 min: its last routes are used\n";
        assert!(page.ends_with(&format!("{line}{warning}")), "{page}");
        let mut below = route.clone();
        below.below_ip = vec![BelowIp { interface: "wl0".into(), by: "batman-adv".into() }];
        let page = Status { route: Some(below), ..busy() }.page(PLAIN);
        let note =
            "\x20            wl0 forwards below IP (batman-adv): every router is one hop away,
             so no router on the way stores what passes, as with thcp
";
        assert!(page.ends_with(&format!("{line}{note}")), "{page}");
        let failed = super::super::Route::failed(&route.interfaces, "no netlink".into());
        let page = Status { route: Some(failed), ..busy() }.page(PLAIN);
        assert!(
            page.contains("no route\n") && page.contains("cannot be known: no netlink"),
            "{page}"
        );
    }

    #[test]
    fn in_a_mesh_peers_and_sources_are_said() {
        let mut status = Status { mesh: Some(in_mesh()), ..busy() };
        let apt = status.classes.get_mut("apt").expect("it is there");
        (apt.served_peer_bytes, apt.fetched_far_reference_bytes) = (1 << 30, 1 << 30);
        let report = &mut status.report;
        report.peers = 2;
        (report.peer_units_in_bytes, report.peer_in_bytes) = (95 << 20, 100 << 20);
        let recent = |uri: &str, peer_bytes, source: &str| {
            let (uri, source) = (uri.into(), source.into());
            Recent { uri, bytes: 5 << 20, peer_bytes, source, ..Recent::default() }
        };
        report.recent = (0..9).map(|at| recent(&format!("http://a/{at}"), 5 << 20, "r2")).collect();
        let page = status.page(PLAIN);
        let expected = "\
from here    1.0 GiB (20 % of bytes)
from peers   1.0 GiB (20 % of bytes)
";
        assert!(page.contains(expected), "{page}");
        let expected = "\
saved        2.0 GiB: 40 % of 5.0 GiB served, 3.0 GiB fetched from origins,
             1.0 GiB only referred to by the far end
";
        assert!(page.contains(expected), "{page}");
        let expected = "\
peers        2 (ph-thcp), 95 MiB of units in, 0 B out, 5 % overhead
identity     1a2b3c4d5e6f70819a2b3c4d5e6f7081
public key   abababababababababababababababababababababababababababababababab
sealing      off: without a mesh key any node that overhears units can read them
latest         5.0 MiB  r2                    http://a/8
               5.0 MiB  r2                    http://a/7
";
        assert!(page.contains(expected), "{page}");
        assert!(page.ends_with("http://a/1\n"), "{page}");
        status.mesh = Some(Mesh { has_key: true, ..in_mesh() });
        let line = "sealing      on: units are kept and sent sealed with the mesh's key\n";
        assert!(status.page(PLAIN).contains(line), "{page}");
        status.mesh = Some(Mesh { is_temporary: Some("no disk".into()), ..in_mesh() });
        assert!(status.page(PLAIN).contains("holds until this daemon stops: no disk"));
    }

    #[test]
    fn what_is_overheard_is_said() {
        let mut status = Status { overhear: Some(hearing()), ..busy() };
        status.report.overheard = heard();
        let apt = status.classes.get_mut("apt").expect("it is there");
        apt.served_overheard_bytes = 1 << 30;
        let page = status.page(PLAIN);
        let expected = "\
overhear     mon0 (radiotap), 16 MiB captured, 7 segments dropped
             1 500 units (12 MiB), 20 came sooner than asked,
             30 mended (120 KiB spared)
";
        assert!(page.ends_with(expected), "{page}");
        assert!(page.contains("overheard    1.0 GiB (20 % of bytes)\n"), "{page}");
        assert!(page.contains("overhearing 2.0 MiB"), "{page}");
        let failed = Overhear::failed("mon0".into(), 1, "mon0 is down".into());
        let page = Status { overhear: Some(failed), ..busy() }.page(PLAIN);
        assert!(page.contains("does not work: mon0 is down\n"), "{page}");
    }

    #[test]
    fn the_log_of_requests_is_said_with_what_it_lacks() {
        let file = "/var/log/hearsay/requests.log".into();
        let mut log = RequestLog { file, lines: 1200, ..RequestLog::default() };
        let page =
            |log: &RequestLog| Status { request_log: Some(log.clone()), ..busy() }.page(PLAIN);
        let line = "log          of requests, in /var/log/hearsay/requests.log, 1 200 lines";
        let well = page(&log);
        assert!(well.contains(&format!("{line}\n")) && !well.contains("does not work"), "{well}");
        (log.dropped_lines, log.error) = (7, Some("No space left on device".into()));
        let ill = page(&log);
        assert!(ill.contains("7 dropped\n"), "{ill}");
        assert!(ill.contains("does not work: No space left on device\n"), "{ill}");
        assert!(!busy().page(PLAIN).contains("of requests, in"));
    }

    #[test]
    fn want_of_room_is_said() {
        let clients = Clients { connections: 9, closed_head: 1200, past: 2, ..Clients::default() };
        let page = Status { clients, ..busy() }.page(PLAIN);
        let expected = "9 connections, up to 0 B for them, 1 200 closed for want of room,\n";
        assert!(
            page.contains(expected) && page.contains("bypassed the daemon 2 times\n"),
            "{page}"
        );
    }

    #[test]
    fn what_does_not_work_is_said() {
        let mut status = busy();
        status.store.works = false;
        status.store.error = Some("No space left on device".into());
        status.intercept.works = false;
        status.intercept.note = Some("nft is not installed".into());
        let page = status.page(PLAIN);
        assert!(page.contains("does not work: No space left on device"), "{page}");
        assert!(page.contains("does not work: nft is not installed"), "{page}");
        assert!(Status::default().page(PLAIN).contains("– of 0 B served"));
    }
}
