//! Checks of the mesh: the route and the routing daemon, peers with their keys and versions, overhearing.

use std::net::{IpAddr, SocketAddr, TcpStream};
use std::time::Duration;

use host::capture;
use host::routing::devices;
use node::Refused;

use super::view::View;
use super::words;
use crate::status::{Check, Finding, PeerLine, Route, Status};
use crate::term;

/// How long a next hop may take to accept a connection.
const DIAL_MAX: Duration = Duration::from_secs(3);

/// The check of the route.
pub fn route(view: &View) -> Finding {
    match view.status.as_ref().and_then(|it| it.route.as_ref()) {
        Some(route) => judge_route(route),
        None => judge_out(&view.out, !view.config.mesh.interfaces.is_empty()),
    }
}

/// Judges the route of a router in a mesh.
pub fn judge_route(route: &Route) -> Finding {
    let interfaces = route.interfaces.join(", ");
    if let Some(error) = &route.error {
        return Finding::broken(
            Check::Route,
            format!("routes cannot be known: {error}"),
            "restart the daemon",
        );
    }
    if !route.up {
        let text = format!("no route: nothing leads over {interfaces}, or out");
        let next = "`ip route`: a default route must lead over the mesh or out; does the routing daemon run?";
        return Finding::broken(Check::Route, text, next);
    }
    if let Some(warning) = route.warning() {
        return Finding::broken(
            Check::Route,
            warning,
            "start babeld again: it must have `local-port 33123`",
        );
    }
    Finding::fine(Check::Route, route.to_string())
}

/// Judges what leads out, for a router without a mesh, or without a daemon that knows the mesh's routes.
pub fn judge_out(out: &[String], has_mesh: bool) -> Finding {
    if !out.is_empty() {
        return Finding::fine(Check::Route, format!("{} leads out", out.join(", ")));
    }
    let next = match has_mesh {
        true => {
            "`ip route`: a default route must lead over the mesh or out; does the routing daemon run?"
        }
        false => {
            "`ip route`: there must be a default route; or name what leads out in `[access] out`"
        }
    };
    Finding::broken(Check::Route, "no default route: nothing leads out", next)
}

/// The check of peers.
pub fn peers(view: &View) -> Finding {
    let Some(status) = &view.status else {
        return match view.config.mesh.interfaces.is_empty() {
            true => Finding::off(Check::Peers, "there is no mesh here"),
            false => Finding::unknown(
                Check::Peers,
                "no daemon answers",
                "start the daemon, then look again",
            ),
        };
    };
    let probe = |address: IpAddr, port| {
        let address = SocketAddr::new(address, port);
        (!view.is_daemon()).then(|| {
            TcpStream::connect_timeout(&address, DIAL_MAX).map(drop).map_err(|error| words(&error))
        })
    };
    judge_peers(status, &view.peers, &probe)
}

/// Judges peers. `probe` dials a next hop; `None`: it was not dialled. A refusal is a fault only where it costs
/// something: any stranger in radio range can be refused as often as it likes.
pub fn judge_peers(
    status: &Status,
    peers: &[PeerLine],
    probe: &dyn Fn(IpAddr, u16) -> Option<Result<(), String>>,
) -> Finding {
    let (Some(mesh), Some(route)) = (&status.mesh, &status.route) else {
        return Finding::off(Check::Peers, "there is no mesh here");
    };
    let refusals = &status.report.refusals;
    if let Some(refused) = refusals.iter().find(|it| is_costly(it, route, peers)) {
        let (text, next) = explain(refused);
        return Finding::broken(Check::Peers, text, next);
    }
    let key = if mesh.has_key { "with a mesh key" } else { "without a mesh key" };
    let names: Vec<_> = peers.iter().map(|peer| term::tame(&peer.name, 20)).collect();
    let found = match (names.is_empty(), route.next_hop) {
        (false, _) => {
            Finding::fine(Check::Peers, format!("{}: {}, {key}", names.len(), names.join(", ")))
        }
        (true, None) => Finding::fine(Check::Peers, format!("none yet, {key}")),
        (true, Some(hop)) => match probe(hop, mesh.port) {
            Some(Err(why)) => {
                let text = format!(
                    "{hop} is the next hop, and does not answer on port {}: {why}",
                    mesh.port
                );
                let next = format!(
                    "start the daemon there, and let its firewall accept TCP port {}",
                    mesh.port
                );
                return Finding::broken(Check::Peers, text, next);
            }
            Some(Ok(())) => Finding::fine(Check::Peers, format!("none yet; {hop} answers, {key}")),
            None => Finding::fine(Check::Peers, format!("none yet; {hop} is the next hop, {key}")),
        },
    };
    let temporary = mesh.is_temporary.as_ref();
    let temporary =
        temporary.map(|why| format!("this node's identity changes at the next start: {why}"));
    let refused = refusals.first().map(|refused| {
        let (text, next) = explain(refused);
        format!("{text}; if that is a router of yours: {next}")
    });
    let advice: Vec<_> = temporary.into_iter().chain(refused).collect();
    if advice.is_empty() { found } else { found.advise(advice.join("; ")) }
}

/// Whether a refusal costs something: no peer is connected, or it is the way out that is not.
fn is_costly(refused: &Refused, route: &Route, peers: &[PeerLine]) -> bool {
    let Some(address) = refused.address else { return peers.is_empty() };
    let is_connected = peers.iter().any(|peer| peer.address == Some(address));
    let leads_out = [route.next_hop, route.gateway].contains(&Some(address));
    peers.is_empty() || (leads_out && !is_connected)
}

/// A refusal in words, and what to do.
fn explain(it: &Refused) -> (String, &'static str) {
    let address = it.address.map_or("another router".to_owned(), |address| address.to_string());
    let ago = term::duration(Duration::from_secs(it.seconds_ago));
    let (why, next) = match it.reason.as_str() {
        "mesh_key" => (
            "the mesh keys differ",
            "give both routers the same `[mesh] key-file`, then restart the daemon",
        ),
        "version" | "kind" => (
            "the versions of the protocol differ",
            "install the same version of hearsay on both routers",
        ),
        "identity" => (
            "an identity is not proven",
            "see both logs; has a router's store been copied to another one?",
        ),
        "busy" => ("too many peers are connected", "nothing, if it does not last"),
        _ => ("a connection was refused", "see both logs"),
    };
    let who =
        if it.by_us { format!("{address} was refused") } else { format!("{address} refuses us") };
    (format!("{who}: {why} ({ago} ago)"), next)
}

/// The check of overhearing.
pub fn overhearing(view: &View) -> Finding {
    if let Some(status) = &view.status {
        return judge_overhearing(status);
    }
    let overhear = &view.config.overhear;
    let (Some(name), true) = (&overhear.interface, overhear.budget_bytes().is_some()) else {
        return Finding::off(Check::Overhearing, "off");
    };
    match devices().unwrap_or_default().get(name) {
        None => missing_ear(name),
        Some(it) if !capture::can_read(it.frames) => {
            let text = format!("{name} shows no frames that can be read");
            Finding::broken(
                Check::Overhearing,
                text,
                "give a monitor interface: `iw dev` lists them",
            )
        }
        Some(_) => Finding::fine(Check::Overhearing, format!("{name} can be captured on")),
    }
}

fn missing_ear(name: &str) -> Finding {
    let next = format!(
        "`iw dev wlan0 interface add {name} type monitor`, or correct `[overhear] interface`"
    );
    Finding::broken(Check::Overhearing, format!("there is no interface {name}"), next)
}

/// Judges overhearing by what the daemon says.
pub fn judge_overhearing(status: &Status) -> Finding {
    let Some(it) = &status.overhear else { return Finding::off(Check::Overhearing, "off") };
    let name = &it.interface;
    match &it.note {
        Some(note) if !it.works && note.contains("no interface") => missing_ear(name),
        Some(note) if !it.works => Finding::broken(
            Check::Overhearing,
            note.clone(),
            format!("see `ip link show {name}`, and the log"),
        ),
        Some(note) => Finding::broken(
            Check::Overhearing,
            note.clone(),
            "overhear where the link is not encrypted: a mesh key seals units instead",
        ),
        None => {
            let link = it.link.as_deref().unwrap_or("unknown frames");
            let text =
                format!("{name} ({link}), {} segments heard", term::count(it.counts.segments));
            Finding::fine(Check::Overhearing, text)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::tests::{busy, hearing, in_mesh, over_one, peer};
    use crate::status::{Overhear, Verdict};

    fn meshed() -> Status {
        Status { mesh: Some(in_mesh()), route: Some(over_one()), ..busy() }
    }

    fn judge(status: &Status, peers: &[PeerLine], probed: Option<Result<(), String>>) -> Finding {
        judge_peers(status, peers, &|_, _| probed.clone())
    }

    #[test]
    fn peers_are_counted_or_their_absence_is_explained() {
        assert_eq!(judge(&busy(), &[], None).verdict, Verdict::Off);
        let fine = judge(&meshed(), &[peer("r2", 1), peer("r3", 2)], None);
        assert_eq!(
            (fine.verdict, fine.text.as_str()),
            (Verdict::Fine, "2: r2, r3, without a mesh key")
        );
        assert_eq!(judge(&meshed(), &[], Some(Ok(()))).verdict, Verdict::Fine);
        let dead = judge(&meshed(), &[], Some(Err("refused".into())));
        assert!(
            dead.verdict == Verdict::Broken && dead.text.contains("10.77.0.4 is the next hop"),
            "{dead}"
        );
    }

    #[test]
    fn a_refusal_is_named_with_its_cause() {
        let refused = |reason: &str, by_us| {
            let mut status = meshed();
            let (address, reason) = ("10.77.0.4".parse().ok(), reason.to_owned());
            status.report.refusals = vec![Refused { address, by_us, reason, seconds_ago: 61 }];
            judge(&status, &[], None)
        };
        let key = refused("mesh_key", false);
        assert_eq!(key.text, "10.77.0.4 refuses us: the mesh keys differ (1 min 1 s ago)");
        let version = refused("version", true);
        assert!(
            version.text.starts_with("10.77.0.4 was refused: the versions of the protocol differ")
        );
        assert!(version.next.unwrap().contains("same version"));
        // A reason of a later version.
        assert_eq!(refused("of-tomorrow", true).verdict, Verdict::Broken);
    }

    #[test]
    fn a_refusal_is_a_fault_only_where_it_costs_something() {
        let other = PeerLine { address: "10.77.0.5".parse().ok(), ..peer("r5", 2) };
        let refused = |address: &str, peers: &[PeerLine]| {
            let (address, reason) = (address.parse().ok(), "mesh_key".to_owned());
            let mut status = meshed();
            status.report.refusals =
                vec![Refused { address, by_us: true, reason, seconds_ago: 61 }];
            judge(&status, peers, None)
        };
        // The next hop and the gateway of `over_one`, while a third router is connected.
        for way_out in ["10.77.0.4", "10.77.0.8"] {
            let found = refused(way_out, std::slice::from_ref(&other));
            assert!(found.verdict == Verdict::Broken && found.text.contains(way_out), "{found}");
        }
        let stranger = refused("10.77.0.99", &[other]);
        assert_eq!(
            (stranger.verdict, stranger.text.as_str()),
            (Verdict::Fine, "1: r5, without a mesh key")
        );
        assert!(stranger.next.unwrap().starts_with("10.77.0.99 was refused: the mesh keys differ"));
        assert_eq!(refused("10.77.0.99", &[]).verdict, Verdict::Broken);
        // The next hop itself is connected.
        assert_eq!(refused("10.77.0.4", &[peer("r2", 1)]).verdict, Verdict::Fine);
    }

    #[test]
    fn a_route_is_there_or_what_lacks_is_said() {
        assert_eq!(judge_route(&over_one()).verdict, Verdict::Fine);
        let gone = judge_route(&Route { up: false, ..over_one() });
        assert!(gone.verdict == Verdict::Broken && gone.text.contains("no route"), "{gone}");
        let silent = judge_route(&Route { babeld_silent_seconds: Some(90), ..over_one() });
        assert!(
            silent.verdict == Verdict::Broken && silent.text.contains("babeld has not answered")
        );
        assert_eq!(judge_out(&["wan".into()], false).verdict, Verdict::Fine);
        assert_eq!(judge_out(&[], false).verdict, Verdict::Broken);
    }

    #[test]
    fn overhearing_works_or_says_why_not() {
        let judge = |overhear| judge_overhearing(&Status { overhear: Some(overhear), ..busy() });
        assert_eq!(judge_overhearing(&busy()).verdict, Verdict::Off);
        assert_eq!(judge(hearing()).verdict, Verdict::Fine);
        let missing = Overhear::failed("mon0".into(), 1, "there is no interface mon0 yet".into());
        let missing = judge(missing);
        assert_eq!(
            (missing.verdict, missing.text.as_str()),
            (Verdict::Broken, "there is no interface mon0")
        );
        let encrypted =
            judge(Overhear { note: Some("frames that are encrypted".into()), ..hearing() });
        assert!(encrypted.verdict == Verdict::Broken && encrypted.text.contains("encrypted"));
    }
}
