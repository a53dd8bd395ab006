//! Table `[overhear]`: whether chunks that neighbours send each other are stored, and the interface that
//! captures them.

use std::fmt;

use host::capture;
use host::intercept::is_interface_name;
use toml::Spanned;

use super::file;
use super::{ConfigError, Experiment, Mesh, Overrides, Reader, Size};

/// Room for the partly overheard chunks of about a dozen transfers at once.
const MEMORY_DEFAULT: Size = Size::mib(8);
/// The engine's minimum.
const MEMORY_MIN: Size = Size(node::overhear::Overhear::BUDGET_MIN as u64);

/// How chunks for other nodes are overheard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Nothing is overheard.
    #[default]
    Off,
    /// From the frames that an interface captures.
    Sniff,
}

/// The modes by their names.
const MODES: [(&str, Mode); 2] = [("off", Mode::Off), ("sniff", Mode::Sniff)];

/// The settings of overhearing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overhear {
    /// How chunks are overheard.
    pub mode: Mode,
    /// The interface that captures frames.
    pub interface: Option<String>,
    /// The budget of partly overheard chunks, in bytes.
    pub memory_bytes: u64,
}

impl Overhear {
    /// The settings of the capture; `None` without one. `port` is the port for peers.
    pub fn capture(&self, port: u16) -> Option<capture::Settings> {
        let interface = self.interface.clone().filter(|_| self.mode == Mode::Sniff)?;
        Some(capture::Settings { interface, port })
    }

    /// The budget of partly overheard chunks, in bytes; `None` if overhearing is off.
    pub fn budget_bytes(&self) -> Option<u64> {
        (self.mode != Mode::Off).then_some(self.memory_bytes)
    }

    pub(super) fn check(&self, mesh: &Mesh, wrong: &mut ConfigError) {
        if let Some(name) = self.interface.as_ref().filter(|it| !is_interface_name(it)) {
            let text = format!("{name:?} is not the name of an interface; see `ip link`");
            wrong.add("[overhear] interface", text);
        }
        if Size(self.memory_bytes) < MEMORY_MIN {
            let text = format!("{} is too little: at least {MEMORY_MIN}", Size(self.memory_bytes));
            wrong.add("[overhear] memory", text);
        }
        if self.mode == Mode::Off {
            return;
        }
        if self.interface.is_none() {
            let text = "where? Give `interface` a monitor interface; see `iw dev`";
            wrong.add("[overhear] mode", text);
        }
        if mesh.interfaces.is_empty() {
            let text = "there is no mesh whose nodes could be overheard: give [mesh] `interfaces`, \
                        or `run --mesh IFACE`";
            wrong.add("[overhear]", text);
        }
    }
}

/// One line.
impl fmt::Display for Overhear {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.mode, &self.interface) {
            (Mode::Sniff, Some(interface)) => {
                write!(f, "on {interface}, with {}", Size(self.memory_bytes))
            }
            _ => f.write_str("off"),
        }
    }
}

impl Reader<'_> {
    pub(super) fn overhear(
        &mut self,
        file: file::Overhear,
        overrides: &Overrides,
        experiment: &Experiment,
    ) -> Overhear {
        let mode = file.mode.and_then(|text| self.choice(&text, "is no mode", &MODES));
        let mode = mode.unwrap_or(if experiment.overhears() { Mode::Sniff } else { Mode::Off });
        let memory = file.memory.map_or(MEMORY_DEFAULT, Spanned::into_inner);
        Overhear {
            mode: if overrides.overhear.is_some() { Mode::Sniff } else { mode },
            interface: overrides.overhear.clone().or(file.interface),
            memory_bytes: memory.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{complaint, load, load_with};
    use super::*;

    const MESH: &str = "[mesh]\ninterfaces = [\"wl0\"]\n";

    fn capture(text: &str, overrides: &Overrides) -> Option<capture::Settings> {
        let config = load_with(text, overrides).unwrap();
        config.overhear.capture(config.mesh.port)
    }

    #[test]
    fn it_is_off_unless_it_is_asked_for() {
        let named = format!("{MESH}[overhear]\ninterface = \"mon0\"");
        for text in [MESH, &named, "[overhear]\nmode = \"off\""] {
            assert_eq!(capture(text, &Overrides::default()), None);
            let overhear = load(text).unwrap().overhear;
            assert_eq!((overhear.budget_bytes(), overhear.to_string()), (None, "off".into()));
        }
    }

    #[test]
    fn file_and_command_line_can_turn_it_on() {
        let text = format!(
            "{MESH}port = 7007\n[overhear]\nmode = \"sniff\"\ninterface = \"mon0\"\nmemory = \"2MiB\""
        );
        let expected = |name: &str| Some(capture::Settings { interface: name.into(), port: 7007 });
        assert_eq!(capture(&text, &Overrides::default()), expected("mon0"));
        let overrides = Overrides { overhear: Some("mon1".into()), ..Overrides::default() };
        assert_eq!(capture(&text, &overrides), expected("mon1"));
        assert_eq!(capture(&format!("{MESH}port = 7007"), &overrides), expected("mon1"));
        let overhear = load(&text).unwrap().overhear;
        assert_eq!(overhear.budget_bytes(), Some(2 << 20));
        assert_eq!(overhear.to_string(), "on mon0, with 2MiB");
    }

    #[test]
    fn what_is_wrong_with_it_says_what_to_do() {
        for (text, expected) in [
            ("mode = \"snif\"", "h.toml:4: \"snif\" is no mode: did you mean \"sniff\"?"),
            (
                "mode = \"sniff\"",
                "h.toml:4: [overhear] mode: where? Give `interface` a monitor interface; see `iw dev`",
            ),
            (
                "interface = \"a b\"",
                "h.toml:4: [overhear] interface: \"a b\" is not the name of an interface; see `ip link`",
            ),
            ("memory = \"1kB\"", "h.toml:4: [overhear] memory: 1000 is too little: at least 1MiB"),
            (
                "interfaces = \"mon0\"",
                "h.toml:4: unknown key `interfaces` in [overhear]: did you mean `interface`?",
            ),
            (
                "mode = \"sniff\"\ninterface = \"mon0\"\nmemory = \"1GiB\"",
                "h.toml:6: [overhear] memory: all that is in memory together would be 1040MiB, and this machine has 128MiB: take less",
            ),
        ] {
            assert_eq!(complaint(&format!("{MESH}[overhear]\n{text}")), expected);
        }
        let alone = complaint("[overhear]\nmode = \"sniff\"\ninterface = \"mon0\"");
        assert!(alone.contains("give [mesh] `interfaces`, or `run --mesh IFACE`"), "{alone}");
    }
}
