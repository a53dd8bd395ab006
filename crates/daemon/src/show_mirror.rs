//! `hearsay mirror`: what a client must be told to use the mirror, and what the mirror has. No daemon needs to run; one
//! that runs knows best where it listens.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;

use classes::{Classes, Reach, Upstream};
use serde::Serialize;

use crate::ask;
use crate::cli::Mirror;
use crate::config::{Config, Overrides, control_paths};
use crate::exit::Failure;
use crate::out;
use crate::term::{self, Style};

/// What stands for the router where its address is not known.
const ROUTER: &str = "http://ROUTER:3142";

/// The most hosts of a class that the table shows.
const HOSTS_SHOWN: usize = 4;

/// One class, for `mirror list --json`.
#[derive(Debug, Serialize)]
struct ClassLine {
    class: String,
    /// The URL that clients are told, or the beginning of it.
    url: String,
    /// Where it leads; `None` if the URL names the host.
    upstream: Option<String>,
    hosts: Vec<String>,
    /// Paths whose content never changes.
    immutable: Vec<String>,
    /// Paths whose content changes.
    changing: Vec<String>,
}

/// Prints a client's lines, or what the mirror has. `control`: the control socket that the user named.
pub async fn run(action: &Mirror, control: Option<&Path>) -> Result<(), Failure> {
    let (Mirror::Setup { config: file, .. } | Mirror::List { config: file, .. }) = action;
    let config = Config::load(file.as_deref(), &Overrides::default()).map_err(Failure::usage)?;
    let paths = match (control, file) {
        // Another daemon than this file's would not know.
        (None, Some(_)) => vec![config.control.clone()],
        (control, _) => control_paths(control),
    };
    let (listen, interfaces) = match ask::status(&paths).await {
        Ok(status) => (status.mirrors, status.intercept.interfaces),
        Err(failure) if control.is_some() => return Err(failure),
        Err(_) => (config.mirror.listen.clone(), config.intercept.interfaces.clone()),
    };
    let found = || address(&listen, &interfaces);
    match action {
        Mirror::Setup { client, at, .. } => {
            let base = at.clone().or_else(found);
            if base.is_none() {
                out::remark(format_args!(
                    "hearsay: there is no [mirror] listen: put this router's address for {ROUTER}, or give --at"
                ));
            }
            let text = classes::setup(client, base.as_deref().unwrap_or(ROUTER));
            out::print(text.unwrap_or_default())
        }
        Mirror::List { json, .. } => {
            let base = found().unwrap_or_else(|| ROUTER.to_owned());
            let lines = lines(&config.reach(), &base);
            match json {
                true => out::json(&lines),
                false => out::print(table(&lines, Style::of_stdout())),
            }
        }
    }
}

/// The mirror's address, if it listens. The addresses of these interfaces, which clients are behind, come first.
fn address(listen: &[SocketAddr], interfaces: &[String]) -> Option<String> {
    let listen = listen.first()?;
    let own = || host::egress::own_addresses(interfaces);
    let address = if listen.ip().is_unspecified() { best(&own())? } else { listen.ip() };
    Some(format!("http://{}", SocketAddr::new(address, listen.port())))
}

/// The first address that clients can use: a private one of IPv4, else another one.
fn best(addresses: &[IpAddr]) -> Option<IpAddr> {
    let is_usable = |it: &&IpAddr| match it {
        IpAddr::V4(it) => !it.is_loopback() && !it.is_link_local(),
        // A link's address (fe80::/10) needs a zone, which URLs do not have.
        IpAddr::V6(it) => !it.is_loopback() && !it.is_unicast_link_local(),
    };
    let usable: Vec<_> = addresses.iter().filter(is_usable).copied().collect();
    let private = |it: &&IpAddr| matches!(it, IpAddr::V4(it) if Ipv4Addr::is_private(it));
    usable.iter().find(private).or_else(|| usable.first()).copied()
}

fn lines(reach: &Reach, base: &str) -> Vec<ClassLine> {
    let classes = &reach.classes;
    let mut lines: Vec<_> = classes.names().skip(1).map(|it| line(classes, it, base)).collect();
    let allowed = reach.allow.iter().map(ToString::to_string);
    let of_other = lines_of_other(base, allowed.collect());
    lines.extend(of_other);
    lines
}

fn line(classes: &Classes, name: &str, base: &str) -> ClassLine {
    let class = classes.find(name).unwrap_or_default();
    let texts = |changing| classes.paths(class, changing).map(str::to_owned).collect();
    let upstream = classes.upstream(name).map(|Upstream { host, port, root }| match port {
        443 => format!("https://{host}{root}"),
        port => format!("https://{host}:{port}{root}"),
    });
    ClassLine {
        class: name.to_owned(),
        url: format!("{base}{}", classes::entry(name)),
        upstream,
        hosts: classes.hosts(class).map(ToString::to_string).collect(),
        immutable: texts(false),
        changing: texts(true),
    }
}

/// The hosts that only the configuration allows.
fn lines_of_other(base: &str, hosts: Vec<String>) -> Option<ClassLine> {
    let url = format!("{base}{}", classes::entry("other"));
    let class = "other".to_owned();
    let (immutable, changing) = (Vec::new(), Vec::new());
    (!hosts.is_empty()).then_some(ClassLine {
        class,
        url,
        upstream: None,
        hosts,
        immutable,
        changing,
    })
}

fn table(lines: &[ClassLine], style: Style) -> String {
    let mut rows = vec![["CLASS".to_owned(), "URL".into(), "HOSTS".into()]];
    rows.extend(lines.iter().map(|it| {
        let mut hosts = it.hosts[..it.hosts.len().min(HOSTS_SHOWN)].join(" ");
        if it.hosts.len() > HOSTS_SHOWN {
            hosts += &format!(" and {} more", it.hosts.len() - HOSTS_SHOWN);
        }
        [it.class.clone(), it.url.clone(), term::tame(&hosts, 160)]
    }));
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let (first, second) = (width(0).unwrap_or(0), width(1).unwrap_or(0));
    let line = |row: &[String; 3]| format!("{:<first$}  {:<second$}  {}", row[0], row[1], row[2]);
    let mut text = style.strong(&line(&rows[0])) + "\n";
    rows[1..].iter().for_each(|row| text += &(line(row) + "\n"));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reach() -> Reach {
        let allow = ["files.example.org"].map(|it| it.parse().unwrap());
        Reach { classes: Classes::builtin().into(), allow: allow.into() }
    }

    #[test]
    fn clients_are_told_a_private_address() {
        let addresses = |texts: &[&str]| {
            let all: Vec<IpAddr> = texts.iter().map(|it| it.parse().unwrap()).collect();
            best(&all).map(|it| it.to_string())
        };
        let several = ["127.0.0.1", "fe80::1", "203.0.113.5", "192.168.1.1", "10.0.0.1"];
        assert_eq!(addresses(&several).as_deref(), Some("192.168.1.1"));
        assert_eq!(addresses(&["::1", "2001:db8::1"]).as_deref(), Some("2001:db8::1"));
        assert_eq!(addresses(&["127.0.0.1", "169.254.1.1"]), None);
    }

    #[test]
    fn every_class_is_a_line() {
        let lines = lines(&reach(), "http://192.0.2.1:3142");
        let pypi = lines.iter().find(|it| it.class == "pypi").unwrap();
        assert_eq!(pypi.url, "http://192.0.2.1:3142/pypi/simple/");
        assert_eq!(pypi.upstream.as_deref(), Some("https://pypi.org"));
        assert!(pypi.hosts.contains(&"files.pythonhosted.org".to_owned()));
        assert!(pypi.immutable.contains(&"/packages/**".to_owned()));
        let other = lines.last().unwrap();
        assert_eq!(
            (&*other.class, &*other.hosts),
            ("other", &["files.example.org".to_owned()][..])
        );
    }

    #[test]
    fn the_table_shows_a_few_hosts_of_each_class() {
        let text =
            table(&lines(&reach(), "http://192.0.2.1:3142"), Style { width: 80, colour: false });
        assert!(text.starts_with("CLASS    URL"), "{text}");
        assert!(text.contains("cargo    http://192.0.2.1:3142/cargo/"), "{text}");
        assert!(text.lines().any(|it| it.starts_with("oci") && it.ends_with(" more")), "{text}");
    }
}
