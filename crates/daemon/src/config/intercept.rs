//! Table `[intercept]`: which connections are intercepted.

use host::intercept::{FlowPorts, Flows, Rules};
use node::uplink::Reach;
use serde::Deserialize;

use super::experiment::Http;
use super::{Config, Overrides, file, some_or};

const HTTP: u16 = 80;
/// Ports that `"all"` leaves out. What they carry is encrypted, and gains nothing by the pair: SSH, HTTPS, SMTP, DNS, IMAP
/// and POP3 over TLS, and the connections that phones keep open for days (XMPP and MQTT over TLS, push services). Or a
/// router's own rules mean them: mail between servers, and DNS. Or the kernel reads them to let further connections in, and
/// sees those that we make in place of the client's: FTP, RTSP and SIP.
const LEFT_OUT: [u16; 16] =
    [21, 22, 25, 53, 443, 465, 554, 853, 993, 995, 5060, 5223, 5228, 5229, 5230, 8883];
/// Of these the protocols that name further connections, and what each is.
const NAMES_OTHERS: [(u16, &str); 3] = [(21, "FTP"), (554, "RTSP"), (5060, "SIP")];

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
    /// As the file and the command line say.
    pub(super) fn read(file: file::Intercept, overrides: &Overrides) -> Self {
        let default = Rules::default();
        let wanted = file.ports.unwrap_or(Ports::List(default.ports));
        let is_wanted = |port| match &wanted {
            Ports::List(ports) => ports.contains(&port),
            Ports::All(All::All) => true,
        };
        let mut http: Vec<_> = is_wanted(HTTP).then_some(HTTP).into_iter().collect();
        http.extend(file.http);
        unique(&mut http);
        let flows = match wanted {
            Ports::List(mut ports) => {
                ports.retain(|port| !http.contains(port));
                unique(&mut ports);
                FlowPorts::Only(ports)
            }
            Ports::All(All::All) => FlowPorts::AllBut([&LEFT_OUT, &http[..]].concat()),
        };
        Self {
            interfaces: some_or(&overrides.intercept, file.interfaces.unwrap_or_default()),
            port: overrides.intercept_port.or(file.port).unwrap_or(default.listen_port),
            ports: http,
            flows,
        }
    }

    /// Says which ports the file lists whose protocols need the kernel's help.
    pub(super) fn unaided(&self) -> Option<String> {
        let FlowPorts::Only(ports) = &self.flows else { return None };
        let listed = NAMES_OTHERS.iter().filter(|(port, _)| ports.contains(port));
        let listed: Vec<_> = listed.map(|(port, name)| format!("{port} ({name})")).collect();
        (!listed.is_empty()).then(|| {
            format!(
                "{}: further connections that these name do not pass a firewall that waits for them, and \
                 active FTP does not work: leave them out",
                listed.join(", ")
            )
        })
    }
}

impl Config {
    /// The firewall rules, still without what changes while the daemon runs; `None` if nothing is intercepted.
    pub fn rules(&self) -> Option<Rules> {
        Some(self.rules_of_any()).filter(Rules::is_on)
    }

    /// As [`rules`](Self::rules), also if nothing is intercepted.
    pub fn rules_of_any(&self) -> Rules {
        let Intercept { interfaces, port, .. } = self.intercept.clone();
        let (ports, flows) = (self.http_ports(), self.flows());
        let direct = self.mesh.direct.clone();
        Rules { interfaces, ports, flows, direct, listen_port: port, ..Rules::default() }
    }

    /// Destination ports of HTTP that is served from the store.
    fn http_ports(&self) -> Vec<u16> {
        match self.experiment.http {
            Http::Cached => self.intercept.ports.clone(),
            Http::Bypass => Vec::new(),
        }
    }

    /// Destination ports of what goes by the pair as TCP connections.
    pub fn flow_ports(&self) -> FlowPorts {
        let flows = self.intercept.flows.clone();
        match self.experiment.http {
            Http::Cached => flows,
            Http::Bypass => flows.with(&self.intercept.ports),
        }
    }

    /// What goes by the pair, still without the families that the far end reaches; `None` if nothing does. The gateway
    /// serves the clients of other routers, too, which come by the mesh.
    fn flows(&self) -> Option<Flows> {
        let (far, own) = (self.uplink.far.as_ref()?, &self.intercept.interfaces);
        let mut interfaces = own.clone();
        interfaces.extend(self.mesh.interfaces.iter().filter(|it| !own.contains(it)).cloned());
        let ports = match self.flow_ports() {
            // The routers' own connections.
            FlowPorts::AllBut(mut ports) => {
                ports.extend([self.intercept.port, self.mesh.port, far.port]);
                unique(&mut ports);
                FlowPorts::AllBut(ports)
            }
            only @ FlowPorts::Only(_) => only,
        };
        let is_on = !ports.is_empty() && !interfaces.is_empty();
        is_on.then_some(Flows { interfaces, ports, reach: Reach::default() })
    }

    /// Says which ports the file lists in vain.
    pub(super) fn not_intercepted(&self) -> Option<String> {
        let ports = self.flow_ports();
        if ports.is_empty() || self.flows().is_some() {
            return None;
        }
        let why = match &self.uplink.far {
            None => "they are not in `http`, and there is no far end of the uplink",
            Some(_) => "neither [intercept] nor [mesh] has `interfaces`",
        };
        Some(format!("{ports}: not intercepted, since {why}"))
    }
}

fn unique(ports: &mut Vec<u16>) {
    ports.sort_unstable();
    ports.dedup();
}

#[cfg(test)]
mod tests {
    use super::super::{Config, tests::load};
    use super::LEFT_OUT;
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
        let all = [&LEFT_OUT[..], &[80]].concat();
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
        assert!(![25, 80, 443, 4129, 3144, 3130].iter().any(|port| flows.ports.has(*port)));
        assert!(flows.ports.has(5432));
    }

    #[test]
    fn ports_that_are_listed_in_vain_are_named() {
        let alone = "ports = [80, 25]\ninterfaces = [\"lan0\"]";
        let why = read(&format!("[intercept]\n{alone}")).not_intercepted().expect("a warning");
        assert!(why.starts_with("25: ") && why.contains("no far end"), "{why}");
        assert_eq!(with_far(&format!("[intercept]\n{alone}")).not_intercepted(), None);
        let why = with_far("[intercept]\nports = [80, 25]").not_intercepted().expect("a warning");
        assert!(why.starts_with("25: ") && why.contains("`interfaces`"), "{why}");
        assert_eq!(with_far("").not_intercepted(), None);
        assert_eq!(
            with_far("[mesh]\ninterfaces = [\"wl0\"]\n[intercept]\nports = [25]").not_intercepted(),
            None
        );
    }

    #[test]
    fn ports_of_protocols_that_name_others_are_left_out_or_named() {
        let all = with_far("[intercept]\ninterfaces = [\"lan0\"]\nports = \"all\"").intercept;
        assert!([21, 554, 5060].iter().all(|port| !all.flows.has(*port)) && all.flows.has(20));
        assert_eq!(all.unaided(), None);
        let listed =
            |ports: &str| read(&format!("[intercept]\nports = {ports}")).intercept.unaided();
        assert_eq!(listed("[80, 22]"), None);
        let why = listed("[21, 22, 5060]").expect("a warning");
        assert!(why.starts_with("21 (FTP), 5060 (SIP): "), "{why}");
    }

    #[test]
    fn what_is_no_port_is_an_error() {
        for wrong in ["ports = \"al\"", "ports = [70000]", "http = \"all\"", "http = [0]"] {
            let text = format!("[intercept]\ninterfaces = [\"lan0\"]\n{wrong}");
            assert!(load(&text).is_err(), "{wrong}");
        }
    }
}
