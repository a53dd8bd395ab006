//! The helper as a process of its own, in a private network: this program starts itself again, and is both ends.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd as _;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use host::helper::{Charge, Helper, HelperError, serve};
use host::intercept::{Moment, Rules};
use host::rights::{Limits, Places};
use rustix::net::SocketType;
use rustix::net::sockopt::socket_type;
use rustix::thread::CapabilitySet;
use socket2::SockRef;

use crate::namespace::{inside, sh, skipped};

const NETWORK: &str = "ip link set lo up
    ip link add lan0 type veth peer name lan1; ip link set lan0 up; ip link set lan1 up
    ip link add wan0 type veth peer name wan1; ip link set wan0 up; ip link set wan1 up";

/// After this long a test that waits in vain is ended.
const PATIENCE: Duration = Duration::from_secs(120);

/// A file with the names of the interfaces to intercept, as a configuration that can be read again.
const FILE: &str = "/run/interfaces";

fn charge() -> Result<Charge, String> {
    let text = fs::read_to_string(FILE).map_err(|error| error.to_string())?;
    let interfaces = text.split_whitespace().map(ToOwned::to_owned).collect();
    let rules = Rules { interfaces, ..Rules::default() };
    Ok(Charge { rules, capture: Some("wan0".into()), lock: Some("/run/control.sock.lock".into()) })
}

/// The other end: it serves if this process was started as the helper, and else there is nothing to do.
#[test]
fn the_other_end() {
    if matches!(socket_type(std::io::stdin()), Ok(SocketType::SEQPACKET)) {
        serve(charge).expect("a helper");
    }
}

fn start() -> Helper {
    let args = ["--exact", "helper::the_other_end", "--test-threads=1"].map(Into::into);
    Helper::start(args).expect("a second process")
}

/// From here on, this thread has no capabilities, as the daemon.
fn give_up() {
    let places = Places { execute: vec!["/".into()], ..Places::default() };
    let limits = Limits { keeps: CapabilitySet::empty(), places };
    assert_eq!(limits.impose().capabilities, Vec::<String>::new());
}

/// A moment at which these interfaces lead out.
fn with(out: &[&str]) -> Moment {
    Moment { out: out.iter().map(|&it| it.to_owned()).collect(), ..Moment::default() }
}

fn output(program: &str, args: &[&str]) -> String {
    let output = Command::new(program).args(args).output().expect("it starts");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn prepare(interfaces: &str) {
    sh("mount -t tmpfs none /run");
    sh(NETWORK);
    fs::write(FILE, interfaces).expect("a file");
}

#[test]
fn it_sets_checks_and_removes_rules() {
    inside("it_sets_checks_and_removes_rules", "nft list tables", || {
        prepare("lan0");
        let helper = start();
        let out = || with(&["wan0"]);
        assert!(!helper.check(out()).expect("a report").is_complete());
        assert_eq!(helper.forwarded().expect("no failure"), None);
        assert_eq!(helper.apply(out()).expect("rules").notes, Vec::<String>::new());
        let _listener = helper.transparent().expect("the port");
        let report = helper.check(out()).expect("a report");
        assert!(report.is_complete(), "{report}");
        assert!(!helper.check(with(&["lan1"])).expect("a report").is_complete(), "{report}");
        assert!(helper.forwarded().expect("counters").is_some());
        assert_eq!(helper.flow_tables().expect("a list"), []);
        helper.release().expect("no new connections");
        assert!(!helper.check(out()).expect("a report").is_complete());
        helper.remove().expect("no rules");
        assert!(helper.check(out()).expect("a report").is_absent());
        assert_eq!(helper.works(), Some(true));
    });
}

#[test]
fn it_removes_the_rules_when_the_daemon_is_gone() {
    inside("it_removes_the_rules_when_the_daemon_is_gone", "nft list tables", || {
        prepare("lan0");
        let before = output("nft", &["list", "ruleset"]) + &output("ip", &["rule"]);
        let helper = start();
        helper.apply(with(&["wan0"])).expect("rules");
        let process = helper.process().expect("it runs");
        drop(helper);
        let begun = Instant::now();
        let is_alive = || {
            let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
            !status.is_empty() && !status.contains("\nState:\tZ")
        };
        while is_alive() {
            assert!(begun.elapsed() < PATIENCE, "it does not end");
            std::thread::sleep(Duration::from_millis(10));
        }
        assert_eq!(output("nft", &["list", "ruleset"]) + &output("ip", &["rule"]), before);
    });
}

#[test]
fn it_reads_the_configuration_and_not_the_daemons_words() {
    inside("it_reads_the_configuration_and_not_the_daemons_words", "nft list tables", || {
        prepare("lan0");
        let helper = start();
        helper.apply(with(&["wan0"])).expect("rules");
        fs::write(FILE, "lan1").expect("a file");
        helper.apply(with(&["wan0"])).expect("the same rules");
        assert!(!output("nft", &["list", "ruleset"]).contains("lan1"));
        helper.reload().expect("a right file");
        helper.apply(with(&["wan0"])).expect("new rules");
        assert!(output("nft", &["list", "ruleset"]).contains("lan1"));
        fs::remove_file(FILE).expect("it was there");
        assert!(matches!(helper.reload(), Err(HelperError::Refused(_))));
        helper.apply(with(&["wan0"])).expect("the rules stay as they were");
        let wrong = helper.apply(with(&["wan0; drop"]));
        assert!(matches!(wrong, Err(HelperError::Refused(_))), "{wrong:?}");
        let many = (0..33).map(|it| format!("wan{it}")).collect();
        let many = Moment { out: many, ..Moment::default() };
        assert!(matches!(helper.apply(many), Err(HelperError::Refused(_))));
        assert!(matches!(helper.packet_socket("lan0"), Err(HelperError::Refused(_))));
    });
}

#[test]
fn it_opens_and_changes_sockets_that_the_daemon_may_not() {
    inside("it_opens_and_changes_sockets_that_the_daemon_may_not", "nft list tables", || {
        prepare("lan0");
        let helper = start();
        give_up();
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("its address");
        let bound = TcpStream::connect(address).expect("a connection");
        let socket = SockRef::from(&bound);
        socket.bind_device(Some(b"lo")).expect("a first time takes no right");
        assert!(socket.bind_device(None).is_err(), "this thread may");
        helper.unbind(&bound).expect("unbound");
        assert_eq!(socket.device().expect("no device"), None);

        let raw = |kind| socket2::Socket::new(socket2::Domain::PACKET, kind, None);
        assert!(raw(socket2::Type::RAW).is_err(), "this thread may");
        let packets = helper.packet_socket("wan0").expect("a packet socket");
        assert!(matches!(socket_type(packets.as_fd()), Ok(SocketType::RAW)));
        let port = helper.transparent().expect("a listener").local_addr().expect("its address");
        assert_eq!(port.port(), Rules::default().listen_port);
        let twice = helper.transparent().map(drop);
        assert!(twice.is_ok(), "the first is closed: {twice:?}");

        if !fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control")
            .is_ok_and(|names| names.contains("bbr"))
        {
            return skipped("set_bbr", "this kernel has no BBR");
        }
        socket.set_tcp_congestion(b"reno").expect("everybody may");
        helper.set_bbr(&bound).expect("BBR");
        assert!(socket.tcp_congestion().expect("a name").starts_with(b"bbr"));
        let udp = std::net::UdpSocket::bind("127.0.0.1:0").expect("a port");
        assert!(matches!(helper.set_bbr(&udp), Err(HelperError::Refused(_))));
    });
}

#[test]
fn calls_fail_at_once_when_it_is_gone() {
    inside("calls_fail_at_once_when_it_is_gone", "nft list tables", || {
        prepare("lan0");
        let helper = start();
        helper.apply(with(&["wan0"])).expect("rules");
        let process = helper.process().expect("it runs");
        sh(&format!("kill -s KILL {process}"));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(async {
            tokio::time::timeout(PATIENCE, helper.ended()).await.expect("it is noticed");
        });
        assert_eq!((helper.works(), helper.process()), (Some(false), None));
        assert!(matches!(helper.remove(), Err(HelperError::Ended)));
        assert!(matches!(helper.packet_socket("wan0"), Err(HelperError::Ended)));
        assert!(!Path::new(&format!("/proc/{process}")).exists(), "a zombie stays");
        // The rules outlast it.
        assert!(output("nft", &["list", "ruleset"]).contains("table inet hearsay"));
    });
}

#[test]
fn only_the_first_call_waits_for_one_that_is_silent() {
    inside("only_the_first_call_waits_for_one_that_is_silent", "nft list tables", || {
        prepare("lan0");
        let helper = start();
        helper.apply(with(&["wan0"])).expect("rules");
        let process = helper.process().expect("it runs");
        sh(&format!("kill -s STOP {process}"));
        let begun = Instant::now();
        assert!(matches!(helper.forwarded(), Err(HelperError::Silent)));
        let wait = begun.elapsed();
        for _ in 0..1000 {
            assert!(matches!(helper.forwarded(), Err(HelperError::Silent)));
        }
        let others = begun.elapsed() - wait;
        assert!(others < wait, "a thousand calls take {others:?}, and the first {wait:?}");
        sh(&format!("kill -s CONT {process}"));
        let begun = Instant::now();
        while helper.forwarded().is_err() {
            assert!(begun.elapsed() < PATIENCE, "it stays silent");
            std::thread::sleep(Duration::from_millis(10));
        }
        assert_eq!(helper.works(), Some(true));
        helper.remove().expect("no rules");
    });
}

#[test]
fn without_a_helper_the_reason_is_told() {
    let helper = Helper::none("no rights");
    assert_eq!((helper.works(), helper.process()), (None, None));
    assert_eq!(helper.remove().expect_err("nobody is there").to_string(), "no rights");
}
