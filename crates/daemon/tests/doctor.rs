//! `hearsay doctor`: on a sound router nothing is broken, and each fault made on purpose is found and
//! named. Real daemons, in network namespaces.
//!
//! The wrong clock is that of another machine: the test machine's own is not changed. Kernels without flow tables
//! judge a recorded list (`doctor/rules.rs`, `a_recorded_list_is_read` in `host`), and this test says so.

use std::net::{TcpListener, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

use serde_json::Value;

use crate::world::network::{self, ORIGIN, there};
use crate::world::schema::check_schema;
use crate::world::{self, Hearsay, Nginx, Script, World, row, sh, skipped, wait_until};

const BINARY: &str = env!("CARGO_BIN_EXE_hearsay");

/// The host whose date and certificate are looked at.
const UPSTREAM: &str = "deb.debian.org";

/// What the program said.
struct Said {
    code: Option<i32>,
    json: Value,
}

impl Said {
    #[track_caller]
    fn of(code: Option<i32>, text: &str) -> Self {
        let json = serde_json::from_str(text).unwrap_or_else(|_| panic!("no JSON: {text}"));
        Self { code, json }
    }

    /// Panics unless a check came to a verdict; returns its text and its next step.
    #[track_caller]
    fn is(&self, check: &str, verdict: &str) -> (String, String) {
        let all = self.json["checks"].as_array().expect("a list");
        let it = all.iter().find(|it| it["check"] == check);
        let it = it.unwrap_or_else(|| panic!("no check {check}: {}", self.json));
        assert_eq!(it["verdict"], verdict, "{check}: {}", self.json);
        let text = |name: &str| it[name].as_str().unwrap_or_default().to_owned();
        (text("text"), text("next"))
    }

    /// Panics unless this check is broken, with these words in its text; the exit code must say so, and there must be a
    /// next step.
    #[track_caller]
    fn names(&self, check: &str, words: &str) {
        let (text, next) = self.is(check, "broken");
        assert!(text.contains(words) && !next.is_empty(), "{check}: {text}; {next}");
        assert_eq!(self.code, Some(1), "{}", self.json);
    }
}

/// A sound surrounding: a resolver on the router, and beyond the uplink an origin that proves its name.
struct Sound {
    world: World,
    _nginx: Nginx,
}

impl Sound {
    /// `None` without openssl, which makes the certificate.
    fn new(test: &str) -> Option<Self> {
        if Command::new("openssl").arg("version").output().is_err() {
            skipped(test, "openssl is not installed");
            return None;
        }
        let world = World::new();
        let dir = world.path("tls");
        std::fs::create_dir(&dir).expect("mkdir");
        let key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";
        sh(&format!(
            "cd {}
             openssl req -x509 {key} -keyout ca.key -out ca.pem -days 2 -subj /CN=ca 2>/dev/null
             openssl req -new {key} -keyout key.pem -out asked.pem -subj /CN={UPSTREAM} 2>/dev/null
             echo subjectAltName=DNS:{UPSTREAM} >names
             openssl x509 -req -in asked.pem -CA ca.pem -CAkey ca.key -days 2 -extfile names -out own.pem 2>/dev/null
             echo '10.2.0.2 {UPSTREAM}' >>/run/hosts",
            dir.display()
        ));
        let tls = format!(
            "listen 443 ssl; ssl_certificate {0}/own.pem; ssl_certificate_key {0}/key.pem;",
            dir.display()
        );
        let nginx = Nginx::start_in(&world, ORIGIN, &tls);
        resolve();
        Some(Self { world, _nginx: nginx })
    }

    fn certificates(&self) -> PathBuf {
        self.world.path("tls/ca.pem")
    }

    /// A daemon that intercepts the client.
    fn daemon(&self, more: &[&str]) -> Hearsay {
        Hearsay::start_with(&self.world, &[&["--intercept", "lan0"], more].concat())
    }
}

/// A resolver on the router that answers each question, until the test ends.
fn resolve() {
    let socket = UdpSocket::bind("127.0.0.1:53").expect("the router's port 53 is free");
    thread::spawn(move || {
        let mut bytes = [0; 512];
        while let Ok((length, from)) = socket.recv_from(&mut bytes) {
            // An answer without records.
            if length > 3 {
                bytes[2..4].copy_from_slice(&[0x81, 0x80]);
                let _ = socket.send_to(&bytes[..length], from);
            }
        }
    });
}

/// The exit code and the output of the doctor; these words start the program.
fn doctor_as(
    words: &[&str],
    control: &Path,
    args: &[&str],
    certificates: Option<PathBuf>,
) -> (Option<i32>, String) {
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).arg("--control").arg(control).arg("doctor").args(args);
    command.stdin(Stdio::null());
    if let Some(file) = certificates {
        command.env("SSL_CERT_FILE", file);
    }
    let output = command.output().expect("the program starts");
    (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
}

fn doctor_by(
    control: &Path,
    args: &[&str],
    certificates: Option<PathBuf>,
) -> (Option<i32>, String) {
    doctor_as(&[BINARY], control, args, certificates)
}

/// Asks about a daemon.
fn doctor(hearsay: &Hearsay, certificates: Option<PathBuf>) -> Said {
    let (code, text) = doctor_by(hearsay.control(), &["--json"], certificates);
    Said::of(code, &text)
}

/// Everything that a trial could leave behind.
fn kernel() -> String {
    sh("nft list ruleset | sed 's/packets [0-9]* bytes [0-9]*//'; ip -br link; ip netns list | sort; ip rule; ip -6 rule
        ip route show table all | sort; ip -6 route show table all | sort")
}

#[test]
fn on_a_sound_router_nothing_is_broken_and_nothing_is_left_behind() {
    const TEST: &str = "on_a_sound_router_nothing_is_broken_and_nothing_is_left_behind";
    network::inside(TEST, || {
        let Some(sound) = Sound::new(TEST) else { return };
        let hearsay = sound.daemon(&["--store-size", "64MiB"]);
        let before = kernel();
        let said = doctor(&hearsay, Some(sound.certificates()));
        assert_eq!(kernel(), before);
        assert_eq!((said.code, &said.json["verdict"]), (Some(0), &"fine".into()), "{}", said.json);
        for check in ["ipv4", "ipv6"] {
            assert!(
                said.is(check, "fine").0.contains("second time from the store"),
                "{}",
                said.json
            );
        }
        for check in
            ["daemon", "ports", "clock", "disk", "memory", "rules", "interfaces", "offload"]
        {
            said.is(check, "fine");
        }
        for check in ["mtu", "route", "dns", "upstream", "rights"] {
            said.is(check, "fine");
        }
        for check in ["forwarding", "peers", "overhearing", "far-end"] {
            said.is(check, "off");
        }
        assert!(said.is("clock", "fine").0.contains(UPSTREAM), "{}", said.json);
        assert!(said.is("daemon", "fine").0.contains(&format!("process {}", hearsay.id())));
        assert_eq!(said.json["checks"].as_array().expect("a list").len(), 19);
        let schema = include_str!("../../../docs/schema/doctor-1.json");
        let schema: Value = serde_json::from_str(schema).expect("JSON");
        check_schema(&schema, &schema, &said.json, "page");

        // What a killed one left is removed. Without rights, what cannot be looked at is said, and is not broken.
        sh("ip netns add hearsay-doctor; ip link add hsdoc0 type veth peer name eth0 netns hearsay-doctor
            nft add table ip hearsay-doctor; nft add rule inet hearsay intercept iifname hsdoc0 accept");
        let again = doctor(&hearsay, Some(sound.certificates()));
        assert_eq!((again.code, kernel()), (Some(0), before), "{}", again.json);
        let words = ["setpriv", "--bounding-set=-all", "--inh-caps=-all", BINARY];
        let (code, text) =
            doctor_as(&words, hearsay.control(), &["--json"], Some(sound.certificates()));
        let bare = Said::of(code, &text);
        assert_eq!((bare.code, &bare.json["verdict"]), (Some(2), &"unknown".into()), "{text}");
        for check in ["rules", "ipv4", "ipv6", "offload"] {
            assert!(bare.is(check, "unknown").1.contains("as root"), "{text}");
        }

        // For people: every check in a line, and no line is too long.
        let (code, page) = doctor_by(hearsay.control(), &[], Some(sound.certificates()));
        assert_eq!(code, Some(0), "{page}");
        assert!(
            page.lines().count() >= 19 && page.lines().all(|it| it.chars().count() <= 80),
            "{page}"
        );
        assert!(!page.contains('\x1b'), "colours without a terminal");

        // The daemon's own checks, as metrics.
        let metric = |check: &str| {
            let series = format!("hearsay_selftest_success{{check=\"{check}\"}}");
            hearsay.metric(&series)?.parse::<u64>().ok()
        };
        wait_until("the first round", || metric("disk") == Some(1));
        assert_eq!((metric("rules"), metric("dns"), metric("ipv4")), (Some(1), Some(1), None));
        assert_eq!((metric("peers"), metric("rights")), (None, Some(1)));
        let own = hearsay.status()["selftest"].as_object().expect("by check").clone();
        assert!(
            own.keys()
                .all(|name| !["daemon", "ports", "ipv4", "ipv6", "upstream"].contains(&&**name))
        );
        assert_eq!(own.len(), 14, "{own:?}");
    });
}

#[test]
fn without_a_daemon_it_is_said_first_and_the_rest_is_looked_at() {
    network::inside("without_a_daemon_it_is_said_first_and_the_rest_is_looked_at", || {
        let world = World::new();
        let config = world.write("hearsay.toml", b"[intercept]\ninterfaces = [\"lan0\"]\n");
        let config = config.display().to_string();
        let (code, text) =
            doctor_by(&world.path("control"), &["--json", "--config", &config], None);
        let said = Said::of(code, &text);
        assert_eq!(said.json["checks"][0]["check"], "daemon");
        said.names("daemon", "no hearsay answers");
        said.names("rules", "none are set");
        said.is("interfaces", "fine");
        said.is("ipv4", "unknown");
    });
}

#[test]
fn removed_rules_an_interface_that_is_down_and_a_route_that_is_gone_are_named() {
    const TEST: &str = "removed_rules_an_interface_that_is_down_and_a_route_that_is_gone_are_named";
    network::inside(TEST, || {
        let Some(sound) = Sound::new(TEST) else { return };
        let hearsay = sound.daemon(&[]);
        let look = || doctor(&hearsay, Some(sound.certificates()));
        // If only a part were gone, the daemon would set it again.
        assert!(hearsay.command(&["intercept", "remove"]).status.success());
        let removed = look();
        removed.names("rules", "none are set");
        removed.is("ipv4", "unknown");
        assert!(removed.is("rules", "broken").1.contains("hearsay intercept apply"));
        assert!(hearsay.command(&["intercept", "apply"]).status.success());
        look().is("rules", "fine");

        sh("ip link set lan0 down");
        look().names("interfaces", "down: lan0");
        sh("ip link set lan0 up");
        look().is("interfaces", "fine");

        sh("ip route del default; ip -6 route del default");
        wait_until("the daemon to notice", || {
            hearsay.status()["intercept"]["out"] == serde_json::json!([])
        });
        let gone = look();
        gone.names("route", "nothing leads out");
        assert!(gone.is("rules", "unknown").1.contains("`route`"), "the rules are not to blame");
    });
}

#[test]
fn a_wrong_clock_and_a_dead_resolver_are_named() {
    network::inside("a_wrong_clock_and_a_dead_resolver_are_named", || {
        let world = World::new();
        sh(&format!("echo '10.2.0.2 {UPSTREAM}' >>/run/hosts"));
        // Ten years after this was written; nobody answers on port 443, nor on the resolver's port.
        let listener = there(ORIGIN, || TcpListener::bind("[::]:80")).expect("port 80 is free");
        let _origin = Script::on(listener, |visit| {
            if visit.head().is_some() {
                visit.send("HTTP/1.1 200 OK\r\nDate: Thu, 27 Nov 2036 08:00:00 GMT\r\nContent-Length: 0\r\n\r\n");
            }
        });
        let hearsay = Hearsay::start(&world);
        let said = doctor(&hearsay, None);
        said.names("clock", &format!("behind {UPSTREAM}"));
        said.names("dns", "127.0.0.1 does not answer");
    });
}

#[test]
fn a_disk_that_is_full_or_read_only_is_named() {
    network::inside("a_disk_that_is_full_or_read_only_is_named", || {
        let (world, other) = (World::new(), World::new());
        let disk = world.path("disk");
        std::fs::create_dir_all(disk.join("store")).expect("mkdir");
        let shown = disk.display();
        // The namespace of mounts ends with the test.
        sh(&format!("mount -t tmpfs -o size=48m none {shown}; fallocate -l 44m {shown}/ballast"));
        let store = disk.join("store").display().to_string();
        let args = ["--store", &store, "--store-size", "32MiB"];
        let hearsay = Hearsay::start_with(&world, &args);
        doctor(&hearsay, None).names("disk", "is full");
        drop(hearsay);
        sh(&format!("rm {shown}/ballast; mount -o remount,ro {shown}"));
        let hearsay = Hearsay::start_with(&other, &args);
        doctor(&hearsay, None).names("disk", "is read-only");
    });
}

#[test]
fn another_program_on_the_port_is_named() {
    network::inside("another_program_on_the_port_is_named", || {
        let world = World::new();
        let taken =
            TcpListener::bind("127.0.0.1:3128").expect("the port is free in a new namespace");
        let config =
            world.write("hearsay.toml", b"listen = [\"127.0.0.1:3128\"]\n").display().to_string();
        let (status, log) = Hearsay::try_start(&world, &["--config", &config]);
        assert!(!status.success() && log.contains("in use"), "{log}");
        let (code, text) =
            doctor_by(&world.path("control"), &["--json", "--config", &config], None);
        let said = Said::of(code, &text);
        said.names("ports", "127.0.0.1:3128 is needed (`listen`)");
        said.names("ports", &format!("process {}", std::process::id()));
        drop(taken);
        let (code, text) =
            doctor_by(&world.path("control"), &["--json", "--config", &config], None);
        let said = Said::of(code, &text);
        assert!(said.is("ports", "fine").0.contains("free"));
    });
}

#[test]
fn a_peer_with_another_key_is_named() {
    network::inside("a_peer_with_another_key_is_named", || {
        row::build();
        let [near, middle] = [(); 2].map(|()| World::new());
        let first = row::router(&near, "r1", "key = \"the key of this mesh\"");
        let _second = row::router(&middle, "r2", "key = \"the key of another mesh\"");
        wait_until("a refusal", || first.status()["report"]["refusals"] != serde_json::json!([]));
        let said = doctor(&first, None);
        said.names("peers", "10.77.0.2 refuses us: the mesh keys differ");
        said.is("route", "fine");
        said.is("upstream", "off");
        assert!(said.is("ipv4", "fine").0.contains("came through"), "{}", said.json);
    });
}

#[test]
fn a_peer_of_another_version_is_named() {
    network::inside("a_peer_of_another_version_is_named", || {
        row::build();
        let world = World::new();
        // What answers on r2 refuses each connection because of the version: in place of a handshake message a length
        // of zero, and the code.
        let listener = there(world::Place::In("r2"), || TcpListener::bind("0.0.0.0:3131"));
        let _second = Script::on(listener.expect("the port is free"), |visit| {
            visit.body(8);
            visit.send([0, 0, 1]);
            visit.wait_for_end();
        });
        let first = row::router(&world, "r1", "");
        wait_until("a refusal", || first.status()["report"]["refusals"] != serde_json::json!([]));
        doctor(&first, None)
            .names("peers", "10.77.0.2 refuses us: the versions of the protocol differ");
    });
}

#[test]
fn an_overhearing_interface_that_is_missing_is_named() {
    network::inside("an_overhearing_interface_that_is_missing_is_named", || {
        let world = World::new();
        let hearsay = Hearsay::start_with(&world, &["--mesh", "wan0", "--overhear", "mon0"]);
        let said = doctor(&hearsay, None);
        said.names("overhearing", "there is no interface mon0");
        assert!(said.is("overhearing", "broken").1.contains("type monitor"));
    });
}

#[test]
fn a_far_end_that_does_not_answer_is_named() {
    network::inside("a_far_end_that_does_not_answer_is_named", || {
        let world = World::new();
        let text = format!("[uplink]\nfar = \"10.2.0.2\"\nfar-key = \"{}\"\n", "ab".repeat(32));
        let config = world.write("hearsay.toml", text.as_bytes()).display().to_string();
        let hearsay =
            Hearsay::start_with(&world, &["--config", &config, "--listen", "127.0.0.1:0"]);
        doctor(&hearsay, None).names("far-end", "10.2.0.2:3144 is not connected");
    });
}

#[test]
fn flow_offload_is_named() {
    const TEST: &str = "flow_offload_is_named";
    network::inside(TEST, || {
        let world = World::new();
        let hearsay = Hearsay::start_with(&world, &["--intercept", "lan0"]);
        let set = "nft add table inet fw4 && nft add flowtable inet fw4 ft \
                   '{ hook ingress priority filter; devices = { lan0, wan0 }; }'";
        let path = format!("PATH=$PATH:/usr/sbin:/sbin; {set}");
        let is_set =
            Command::new("sh").args(["-ec", &path]).output().is_ok_and(|it| it.status.success());
        if !is_set {
            skipped(
                TEST,
                "this kernel has no flow tables: only a recorded list is judged, by unit tests",
            );
            doctor(&hearsay, None).is("offload", "fine");
            return;
        }
        doctor(&hearsay, None).names("offload", "inet fw4 ft");
    });
}
