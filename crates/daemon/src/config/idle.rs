//! Settings that are allowed and do nothing, or not what they seem to: each is a warning.

use std::path::Path;

use super::file::Source;
use super::{Config, ConfigError, Place, Size};

/// What warnings depend on besides the settings.
pub trait Surroundings {
    /// Whether this machine has an interface.
    fn has_interface(&self, name: &str) -> bool;

    /// The size in bytes of the disk that a directory is on, or will be; `None` if that cannot be known.
    fn disk_bytes(&self, dir: &Path) -> Option<u64>;
}

/// This machine.
pub struct Here;

impl Surroundings for Here {
    fn has_interface(&self, name: &str) -> bool {
        host::egress::is_there(name)
    }

    fn disk_bytes(&self, dir: &Path) -> Option<u64> {
        let there = dir.ancestors().find(|it| it.exists())?;
        let disk = rustix::fs::statvfs(there).ok()?;
        Some(disk.f_blocks.saturating_mul(disk.f_frsize))
    }
}

impl Config {
    /// Says which settings do nothing, or not what they seem to.
    pub(super) fn idle(&self, source: Source<'_>, around: &impl Surroundings) -> ConfigError {
        let mut wrong = ConfigError::default();
        let in_vain = self.not_intercepted();
        let ports = if in_vain.is_some() { &[][..] } else { &["ports"] };
        if let Some(text) = in_vain {
            wrong.add("[intercept] ports", text);
        }
        if let Some(text) = self.intercept.unaided() {
            wrong.add("[intercept] ports", text);
        }
        let mut without = |is_without: bool, table: &str, keys: &[&str], why: &str| {
            for key in keys.iter().filter(|_| is_without) {
                let setting = format!("[{table}] {key}");
                if source.place_of_setting(&setting, "").is_some() {
                    wrong.add(setting, format!("does nothing, since {why}"));
                }
            }
        };
        let intercepts = self.rules().is_some();
        let none = "[intercept] has no `interfaces`: nothing is intercepted";
        without(!intercepts, "intercept", &["port", "http"], none);
        without(!intercepts, "intercept", ports, none);
        let mesh = ["babeld", "gateway", "scheme", "gateways", "port"];
        let is_alone = self.mesh.interfaces.is_empty();
        without(is_alone, "mesh", &mesh, "[mesh] has no `interfaces`: there is no mesh");
        let is_deaf = self.overhear.budget_bytes().is_none();
        without(is_deaf, "overhear", &["interface", "memory"], "[overhear] `mode` is \"off\"");
        let is_closed = self.mirror.listen.is_empty();
        without(is_closed, "mirror", &["allow"], "[mirror] has no `listen`: there is no mirror");
        let log = ["format", "clients", "size", "keep"];
        let is_off = self.requests.file.is_none();
        without(is_off, "log", &log, "[log] has no `requests`: requests are not logged");
        self.check_interfaces(around, &mut wrong);
        self.check_disk(around, &mut wrong);
        wrong
    }

    fn check_interfaces(&self, around: &impl Surroundings, wrong: &mut ConfigError) {
        let (intercept, mesh) = (&self.intercept.interfaces, &self.mesh.interfaces);
        let overhear =
            self.overhear.interface.iter().filter(|_| self.overhear.budget_bytes().is_some());
        let named = [
            ("[intercept] interfaces", intercept.iter().collect::<Vec<_>>(), "intercepted from it"),
            ("[mesh] interfaces", mesh.iter().collect(), "sent or heard over it"),
            ("[overhear] interface", overhear.collect(), "overheard"),
        ];
        for (setting, names, what) in named {
            for name in names.into_iter().filter(|it| !around.has_interface(it)) {
                let text = format!(
                    "this machine has no interface {name:?} now, and until it appears nothing is {what}; see `ip link`"
                );
                wrong.add(setting, text);
            }
        }
        for name in intercept.iter().filter(|it| mesh.contains(it)) {
            let text = format!(
                "{name:?} is in [mesh] `interfaces` as well: what routers send here for their clients would be intercepted \
                 once more. Name interfaces of clients here, and those to other routers there"
            );
            wrong.add("[intercept] interfaces", text);
        }
    }

    fn check_disk(&self, around: &impl Surroundings, wrong: &mut ConfigError) {
        let Place::Dir(dir) = &self.store.place else { return };
        let size = Size(self.store.size_bytes);
        if let Some(there) = around.disk_bytes(dir).filter(|there| size.0 > *there) {
            let (there, dir) = (there >> 20, dir.display());
            let text = format!(
                "{size}, and the whole disk of {dir} has {there}MiB: when it is full, nothing more is stored; take less"
            );
            wrong.add("[store] size", text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Overrides;
    use super::super::tests::load;
    use super::*;

    /// A machine with the interfaces `lan0` and `wl0`, and disks of 100 MiB.
    struct Small;

    impl Surroundings for Small {
        fn has_interface(&self, name: &str) -> bool {
            ["lan0", "wl0"].contains(&name)
        }

        fn disk_bytes(&self, _: &Path) -> Option<u64> {
            Some(100 << 20)
        }
    }

    /// The warnings, beside the one of the store's default size.
    fn said(text: &str) -> Vec<String> {
        let text = format!("{text}\n[store]\nsize = \"50MiB\"");
        let config = load(&text).unwrap_or_else(|error| panic!("{error}"));
        let source = Source { name: "h.toml", text: &text };
        let found = config.idle(source, &Small).locate(source, &Overrides::default());
        found.problems.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn what_does_nothing_is_named_with_its_line() {
        assert_eq!(
            said("[intercept]\ninterfaces = [\"lan0\"]\n[mesh]\ninterfaces = [\"wl0\"]"),
            [""; 0]
        );
        for (text, expected) in [
            (
                "[intercept]\ninterfaces = [\"lan0\"]\nports = [80, 443]",
                &["h.toml:3: [intercept] ports: 443: not intercepted, since"][..],
            ),
            (
                "[intercept]\nports = [80]\nhttp = [8080]",
                &[
                    "h.toml:3: [intercept] http: does nothing",
                    "h.toml:2: [intercept] ports: does nothing",
                ],
            ),
            (
                "[intercept]\nports = [80, 25]",
                &["h.toml:2: [intercept] ports: 25: not intercepted"],
            ),
            (
                "[mesh]\nscheme = \"thcp\"\nport = 3133",
                &["h.toml:2: [mesh] scheme: does nothing", "h.toml:3: [mesh] port: does nothing"],
            ),
            ("[overhear]\ninterface = \"mon0\"", &["h.toml:2: [overhear] interface: does nothing"]),
            ("[mirror]\nallow = [\"a.test\"]", &["h.toml:2: [mirror] allow: does nothing"]),
        ] {
            let said = said(text);
            assert_eq!(said.len(), expected.len(), "{said:?}");
            for (said, expected) in said.iter().zip(expected) {
                assert!(said.starts_with(expected), "{said}");
            }
        }
    }

    #[test]
    fn interfaces_that_are_not_there_and_those_named_twice_are_told() {
        let text = "[intercept]\ninterfaces = [\n \"lan0\",\n \"lan9\",\n \"wl0\"\n]\n[mesh]\ninterfaces = [\"wl0\", \"wl9\"]\n\
                    [overhear]\nmode = \"sniff\"\ninterface = \"mon9\"";
        let said = said(text);
        let begins = [
            "h.toml:4: [intercept] interfaces: this machine has no interface \"lan9\"",
            "h.toml:8: [mesh] interfaces: this machine has no interface \"wl9\"",
            "h.toml:11: [overhear] interface: this machine has no interface \"mon9\"",
            "h.toml:5: [intercept] interfaces: \"wl0\" is in [mesh]",
        ];
        assert_eq!(said.len(), begins.len(), "{said:?}");
        for (said, begin) in said.iter().zip(begins) {
            assert!(said.starts_with(begin), "{said}");
        }
    }

    #[test]
    fn a_store_that_its_disk_cannot_hold_is_told() {
        for (text, expected) in [
            ("[store]\nsize = \"101MiB\"", "h.toml:2: [store] size: 101MiB, and the whole disk"),
            ("", "[store] size: 1GiB, and the whole disk of /var/cache/hearsay has 100MiB"),
            ("[store]\npath = \"memory\"", ""),
        ] {
            let source = Source { name: "h.toml", text };
            let found = load(text).unwrap().idle(source, &Small);
            let said = found.locate(source, &Overrides::default()).to_string();
            assert!(said.starts_with(expected) && said.is_empty() == expected.is_empty(), "{said}");
        }
        assert!(Here.disk_bytes(Path::new("/nowhere/at/all")).is_some_and(|it| it > 0));
    }
}
