//! Table `[access]`: which destinations the daemon dials for clients and peers, besides those outside
//! the site.

use host::intercept::is_interface_name;
use node::Prefix;
use toml::Spanned;

use super::file;
use super::{ConfigError, Reader};

/// Which destinations are dialled for clients and peers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// Interfaces that lead out of the site, besides those with a default route.
    pub out: Vec<String>,
    /// Private destinations that explicit clients may reach.
    pub private: Vec<Prefix>,
    /// Ports that explicit clients and peers may reach besides those of the web.
    pub ports: Vec<u16>,
}

impl Access {
    /// The rules for the engine and the dialler; `direct` are the destinations in the mesh.
    pub fn rules(&self, direct: &[Prefix]) -> node::Access {
        let (private, direct) = (self.private.clone(), direct.to_vec());
        node::Access { private, direct, ports: self.ports.clone() }
    }

    pub(super) fn check(&self, wrong: &mut ConfigError) {
        for name in self.out.iter().filter(|name| !is_interface_name(name)) {
            let text = format!("{name:?} is not the name of an interface; see `ip link`");
            wrong.add("[access] out", text);
        }
    }

    /// Checks that this machine has each interface in `out`. The daemon does not start without them, but
    /// an interface may disappear while it runs.
    ///
    /// # Errors
    /// If an interface does not exist.
    pub fn check_interfaces(&self, is_there: impl Fn(&str) -> bool) -> Result<(), ConfigError> {
        let mut wrong = ConfigError::default();
        for name in self.out.iter().filter(|name| !is_there(name)) {
            let text = format!("this machine has no interface {name:?}; see `ip link`");
            wrong.add("[access] out", text);
        }
        wrong.unless(())
    }
}

impl Reader<'_> {
    pub(super) fn access(&mut self, file: file::Access) -> Access {
        let ports = file.ports.iter().filter_map(|port| self.access_port(port)).collect();
        let private = file.private.iter().filter_map(|text| self.parse(text)).collect();
        Access { out: file.out, private, ports }
    }

    fn access_port(&mut self, port: &Spanned<u16>) -> Option<u16> {
        if *port.get_ref() == 0 {
            self.complain(port, "0 is no port: 1 to 65535");
        }
        Some(*port.get_ref()).filter(|port| *port > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{complaint, load};
    use super::*;

    #[test]
    fn what_may_be_reached_is_read() {
        let text = "[access]\nout = [\"ppp0\"]\nprivate = [\"10.1.0.0/16\", \"fd01::/64\"]\nports = [8080]\n\
                    [mesh]\ndirect = [\"10.9.0.0/16\"]";
        let config = load(text).unwrap();
        assert_eq!(config.access.out, ["ppp0"]);
        let rules = config.access.rules(&config.mesh.direct);
        assert_eq!((rules.private.len(), rules.ports), (2, vec![8080]));
        assert_eq!(rules.direct, ["10.9.0.0/16".parse().unwrap()]);
        assert_eq!(load("").unwrap().access, Access::default());
    }

    #[test]
    fn what_is_wrong_with_it_names_its_line() {
        let prefix = complaint("[access]\nprivate = [\"lan\"]");
        assert!(prefix.starts_with("h.toml:2: \"lan\" is not an address prefix"), "{prefix}");
        assert_eq!(complaint("[access]\nports = [0]"), "h.toml:2: 0 is no port: 1 to 65535");
        let name = complaint("[access]\nout = [\"a b\"]");
        assert!(name.starts_with("h.toml:2: [access] out: \"a b\" is not the name"), "{name}");
    }

    #[test]
    fn an_interface_that_this_machine_does_not_have_is_refused() {
        let check = |out: &str| {
            let access = Access { out: vec![out.into()], ..Access::default() };
            access.check_interfaces(|name| name == "wan0").map_err(|wrong| wrong.to_string())
        };
        assert_eq!(check("wan0"), Ok(()));
        let said = check("wan9").unwrap_err();
        assert!(said.contains("this machine has no interface \"wan9\""), "{said}");
    }
}
