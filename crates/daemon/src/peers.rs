//! `hearsay peers`: the other nodes of the mesh that the daemon is connected with, as a table.

use std::path::PathBuf;
use std::time::Duration;

use crate::ask;
use crate::exit::Failure;
use crate::out;
use crate::status::{PeerLine, Status};
use crate::term::{self, Style};

/// The width of a peer's name, at most, in columns.
const NAME_MAX: usize = 20;

/// Asks the daemon and prints the table.
pub async fn show(paths: &[PathBuf], json: bool) -> Result<(), Failure> {
    let peers = ask::peers(paths).await?;
    if json {
        out::json(&peers)
    } else if peers.is_empty() {
        out::line(why_none(&ask::status(paths).await?))
    } else {
        out::print(table(&peers, Style::of_stdout()))
    }
}

/// Why there are no peers, as far as the daemon's status shows it.
fn why_none(status: &Status) -> String {
    let Some(mesh) = &status.mesh else {
        return "no peers: there is no mesh here ([mesh] interfaces, or `run --mesh IFACE`)".into();
    };
    let route = status.route.clone().unwrap_or_default();
    let why = match (&route.error, &route.next_hop) {
        (Some(error), _) => format!("routes cannot be known: {error}"),
        _ if route.is_gateway => {
            format!("this is the gateway; no router has connected to its port {}", mesh.port)
        }
        (None, None) => {
            let interfaces = route.interfaces.join(", ");
            format!("there is no route over {interfaces} (see `ip route`)")
        }
        (None, Some(next_hop)) => format!(
            "{next_hop} is the next hop; it is asked when a client wants what is not here, and must \
             answer on port {}{}",
            mesh.port,
            if mesh.has_key { ", with the same key" } else { "" }
        ),
    };
    format!("no peers: {why}")
}

fn table(peers: &[PeerLine], style: Style) -> String {
    let mut rows = vec![[
        "NAME".to_owned(),
        "ADDRESS".into(),
        "ID".into(),
        "GATEWAY".into(),
        "SINCE".into(),
        "UNITS IN".into(),
        "OUT".into(),
        "OVERHEAD".into(),
    ]];
    rows.extend(peers.iter().map(row));
    let mut widths = [0; 8];
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut text = String::new();
    for (at, row) in rows.iter().enumerate() {
        // Words are aligned on the left, amounts on the right.
        let cells = row.iter().zip(widths).enumerate().map(|(column, (cell, width))| {
            if column < 4 { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
        });
        let line = cells.collect::<Vec<_>>().join("  ");
        text.push_str(&if at == 0 { style.strong(&line) } else { line });
        text.push('\n');
    }
    text
}

fn row(peer: &PeerLine) -> [String; 8] {
    let (overhead, all) = peer.overhead();
    let gateway = peer.gateway.map(|address| address.to_string()).unwrap_or_default();
    [
        term::tame(&peer.name, NAME_MAX),
        peer.address.map(|address| address.to_string()).unwrap_or_default(),
        peer.short_id().to_owned(),
        if peer.is_gateway { "yes".into() } else { gateway },
        term::duration(Duration::from_secs(peer.since_seconds)),
        term::bytes(peer.units_in_bytes),
        term::bytes(peer.units_out_bytes),
        term::percent(overhead, all),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::Route;
    use crate::status::tests::{busy, in_mesh, over_one, peer};

    #[test]
    fn peers_are_lines_of_a_table() {
        let gateway = PeerLine { is_gateway: true, ..peer("a-rather-long-name-of-a-router", 2) };
        let behind = PeerLine { gateway: "10.77.0.8".parse().ok(), ..peer("r\x1b2", 1) };
        let expected = "\
NAME                  ADDRESS    ID        GATEWAY      SINCE  UNITS IN  OUT  OVERHEAD
r?2                   10.77.0.4  01010101  10.77.0.8  1 min 1 s    98 MiB  0 B       2 %
a-rather-long-name-…  10.77.0.4  02020202  yes        1 min 1 s    98 MiB  0 B       2 %
";
        let shown = table(&[behind, gateway], Style { width: 80, colour: false });
        let squeezed = |text: &str| {
            let lines = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
            lines.map(|words| words.join(" ")).collect::<Vec<_>>()
        };
        assert_eq!(squeezed(&shown), squeezed(expected));
        let widths: Vec<_> = shown.lines().map(|line| line.chars().count()).collect();
        assert!(widths.iter().all(|width| *width == widths[0]), "{shown}");
    }

    #[test]
    fn without_peers_it_is_said_why() {
        let why = |route: Route| {
            why_none(&Status { route: Some(route), mesh: Some(in_mesh()), ..busy() })
        };
        assert!(why_none(&busy()).contains("there is no mesh here"));
        let nowhere = Route { interfaces: vec!["wl0".into()], ..Route::default() };
        assert!(why(nowhere).contains("no route over wl0"));
        assert!(why(over_one()).contains("10.77.0.4 is the next hop"));
        assert!(
            why(Route { is_gateway: true, ..Route::default() }).contains("this is the gateway")
        );
        assert!(why(Route::failed(&[], "no netlink".into())).contains("no netlink"));
    }
}
