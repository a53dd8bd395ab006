//! Table `[intercept]`: which connections are intercepted.

use host::intercept::{FlowPorts, Flows, Rules};
use node::Prefix;
use node::uplink::Reach;
use serde::Deserialize;

use super::{Mesh, Overrides, Uplink, file, some_or};

const HTTP: u16 = 80;
/// Ports that `"all"` leaves out: what they carry is encrypted, and gains nothing by the pair (SSH, HTTPS, SMTP, DNS,
/// IMAP and POP3 over TLS).
const ENCRYPTED: [u16; 6] = [22, 443, 465, 853, 993, 995];

/// Which connections are intercepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Intercept {
    /// Interfaces whose clients' connections are intercepted; if empty, HTTP is not.
    pub interfaces: Vec<String>,
    /// The port of the transparent listener.
    pub port: u16,
    /// Destination ports of HTTP.
    pub ports: Vec<u16>,
    /// Destination ports of other protocols, which go by the uplink's pair.
    pub flows: FlowPorts,
}

/// `ports`: a list, or `"all"`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged, expecting = "a list of ports, or \"all\"")]
pub enum Ports {
    List(Vec<u16>),
    All(All),
}

/// The word `"all"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum All {
    All,
}

impl Intercept {
    /// As the file and the command line say. `has_http`: whether HTTP is anything else than a TCP flow here.
    pub(super) fn read(file: file::Intercept, overrides: &Overrides, has_http: bool) -> Self {
        let default = Rules::default();
        let wanted = file.ports.unwrap_or(Ports::List(default.ports));
        let is_wanted = |port| match &wanted {
            Ports::List(ports) => ports.contains(&port),
            Ports::All(All::All) => true,
        };
        let mut http: Vec<_> = is_wanted(HTTP).then_some(HTTP).into_iter().collect();
        http.extend(file.http);
        unique(&mut http);
        let bypassing = if has_http { Vec::new() } else { std::mem::take(&mut http) };
        let flows = match wanted {
            Ports::List(mut ports) => {
                ports.extend(bypassing);
                ports.retain(|port| !http.contains(port));
                unique(&mut ports);
                FlowPorts::Only(ports)
            }
            Ports::All(All::All) => FlowPorts::AllBut([&ENCRYPTED, &http[..]].concat()),
        };
        Self {
            interfaces: some_or(&overrides.intercept, file.interfaces.unwrap_or_default()),
            port: overrides.intercept_port.or(file.port).unwrap_or(default.listen_port),
            ports: http,
            flows,
        }
    }

    /// Whether anything is intercepted.
    pub fn is_on(&self) -> bool {
        !self.interfaces.is_empty()
    }

    /// The firewall rules, still without what changes while the daemon runs; `None` if nothing is intercepted.
    /// `direct` are the destinations in the mesh.
    pub fn rules(&self, direct: &[Prefix], flows: Option<Flows>) -> Option<Rules> {
        let is_on = self.is_on() || flows.as_ref().is_some_and(|it| !it.interfaces.is_empty());
        is_on.then(|| Rules {
            interfaces: self.interfaces.clone(),
            ports: self.ports.clone(),
            flows,
            direct: direct.to_vec(),
            listen_port: self.port,
            ..Rules::default()
        })
    }

    /// What goes by the pair, still without the families that the far end reaches; `None` if nothing does. The gateway
    /// serves the clients of other routers, too, which come by the mesh.
    pub(super) fn flows(&self, mesh: &Mesh, uplink: &Uplink) -> Option<Flows> {
        let far = uplink.far.as_ref()?;
        let mut interfaces = self.interfaces.clone();
        interfaces
            .extend(mesh.interfaces.iter().filter(|it| !self.interfaces.contains(it)).cloned());
        let ports = match self.flows.clone() {
            // The routers' own connections.
            FlowPorts::AllBut(mut ports) => {
                ports.extend([self.port, mesh.port, far.port]);
                unique(&mut ports);
                FlowPorts::AllBut(ports)
            }
            only @ FlowPorts::Only(_) => only,
        };
        (!ports.is_empty()).then_some(Flows { interfaces, ports, reach: Reach::default() })
    }
}

fn unique(ports: &mut Vec<u16>) {
    ports.sort_unstable();
    ports.dedup();
}

#[cfg(test)]
mod tests {
    use super::super::{Config, tests::load};
    use host::intercept::FlowPorts;

    fn read(text: &str) -> Config {
        load(text).unwrap_or_else(|error| panic!("{error:?}"))
    }

    fn with_far(text: &str) -> Config {
        let key = "00".repeat(32);
        read(&format!("{text}\n[uplink]\nfar = \"far.example.org\"\nfar-key = \"{key}\""))
    }

    #[test]
    fn port_80_and_those_named_so_are_http() {
        let ports =
            |text: &str| read(&format!("[intercept]\ninterfaces = [\"lan0\"]\n{text}")).intercept;
        let of = |text: &str| (ports(text).ports, ports(text).flows);
        let none = FlowPorts::default();
        assert_eq!(of(""), (vec![80], none.clone()));
        assert_eq!(of("ports = [80, 25]"), (vec![80], FlowPorts::Only(vec![25])));
        assert_eq!(of("ports = [8080]\nhttp = [8080]"), (vec![8080], none.clone()));
        assert_eq!(of("http = [8080]"), (vec![80, 8080], none));
        let all = vec![22, 443, 465, 853, 993, 995, 80];
        assert_eq!(of("ports = \"all\""), (vec![80], FlowPorts::AllBut(all)));
    }

    #[test]
    fn other_ports_need_a_far_end() {
        let text = "[intercept]\ninterfaces = [\"lan0\"]\nports = [80, 25]\n[mesh]\ninterfaces = [\"wl0\"]";
        assert_eq!(read(text).rules().expect("rules").flows, None);
        let flows = with_far(text).rules().expect("rules").flows.expect("flows");
        assert_eq!(flows.interfaces, ["lan0", "wl0"], "clients of other routers, too");
        assert_eq!(flows.ports, FlowPorts::Only(vec![25]));
    }

    #[test]
    fn a_gateway_without_clients_of_its_own_serves_those_of_the_mesh() {
        let text = "[intercept]\nports = \"all\"\n[mesh]\ninterfaces = [\"wl0\"]\nport = 4129";
        let rules = with_far(text).rules().expect("rules");
        assert!(rules.interfaces.is_empty());
        let flows = rules.flows.expect("flows");
        assert_eq!(flows.interfaces, ["wl0"]);
        assert!(![80, 443, 4129, 3144, 3130].iter().any(|port| flows.ports.has(*port)));
        assert!(flows.ports.has(25));
    }

    #[test]
    fn what_is_no_port_is_an_error() {
        for wrong in ["ports = \"al\"", "ports = [70000]", "http = \"all\"", "http = [0]"] {
            let text = format!("[intercept]\ninterfaces = [\"lan0\"]\n{wrong}");
            assert!(load(&text).is_err(), "{wrong}");
        }
    }
}
