//! Real programs over a slow uplink with a real far end: what they get is exact, and what crosses again crosses as
//! references, ours and as published.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::world::network::{self, CLIENT, ORIGIN, there};
use crate::world::{
    Curl, Nginx, Process, Script, Site, TIMEOUT, assert_same, noise, sh, wait_until,
};

/// Puts a link of 4 Mbit/s and a round trip of 100 ms between the gateway and its far end.
fn slow_link() -> Process {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/bench.d/slow_link.py");
    sh(&format!("ip netns attach gateway {}", std::process::id()));
    let mut child = Command::new("python3")
        .arg(script)
        .args(["gateway", "10.3.0.1", "origin", "10.3.0.2", "4000", "100", "100"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .expect("python3 starts");
    let mut said = String::new();
    let out = child.stdout.take().expect("its output");
    BufReader::new(out).read_line(&mut said).expect("it says something");
    assert_eq!(said.trim(), "ready");
    // More specific than the network that the two share.
    sh("ip route add 10.2.0.2/32 dev slow0");
    Process(child)
}

/// What `part` of a test makes cross towards the gateway.
fn crossed(site: &Site, part: impl FnOnce()) -> u64 {
    let before = site.counter("crossed_in_bytes");
    part();
    site.counter("crossed_in_bytes") - before
}

/// Files of a source tree, whose text compresses by about half.
fn write_tree(dir: &Path) {
    fs::create_dir_all(dir).expect("a directory");
    for number in 0..40u64 {
        let noise = noise(number, 5_000);
        let text: String = noise.iter().map(|byte| format!("{byte:02x} ")).collect();
        fs::write(dir.join(format!("file{number}.c")), text).expect("a file");
    }
}

/// An rsync daemon on the origin's machine.
fn rsync_daemon(site: &Site, tree: &Path) -> Process {
    let text = format!("use chroot = no\nread only = yes\n[tree]\npath = {}\n", tree.display());
    let file = site.world.write("rsyncd.conf", text.as_bytes());
    let child = ORIGIN
        .command("rsync")
        .args(["--daemon", "--no-detach", "--port", "873", "--config"])
        .arg(file)
        .stdin(Stdio::null())
        .spawn()
        .expect("rsync starts: is it installed?");
    wait_until("rsync to listen", || there(ORIGIN, || TcpStream::connect("127.0.0.1:873")).is_ok());
    Process(child)
}

fn rsync(to: &Path) {
    let status = CLIENT
        .command("rsync")
        .args(["-r", "--timeout", "60", "rsync://198.51.100.7/tree/"])
        .arg(to)
        .stdin(Stdio::null())
        .status()
        .expect("rsync starts");
    assert!(status.success(), "{status}");
}

#[track_caller]
fn assert_trees_are_equal(one: &Path, other: &Path) {
    let output = Command::new("diff").arg("-r").args([one, other]).output().expect("diff starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

/// rsync, a server that speaks first, and curl whose HTTP is not parsed.
fn real_programs(experiment: &str) {
    let site = Site::start(&format!("ports = \"all\"\n[experiment]\n{experiment}"));
    // HTTP has no rules of its own.
    site.wait_for_rules(2);
    let _link = slow_link();
    rsync_gets_a_tree_twice(&site);
    a_server_speaks_first(&site);
    curl_gets_a_file_twice(&site);
    assert_eq!(site.counter("requests"), 0, "nothing was parsed");
    assert_eq!(site.counter("tcp_flows_past") + site.counter("tcp_flows_broken"), 0);
}

fn rsync_gets_a_tree_twice(site: &Site) {
    let (tree, one, two) =
        (site.world.path("tree"), site.world.path("one"), site.world.path("two"));
    write_tree(&tree);
    let _daemon = rsync_daemon(site, &tree);
    let first = crossed(site, || rsync(&one));
    let again = crossed(site, || rsync(&two));
    assert_trees_are_equal(&tree, &one);
    assert_trees_are_equal(&tree, &two);
    assert!(first > 200_000 && again < first / 10, "{first}, then {again}");
    // A new version over the old one: rsync sends what differs.
    fs::write(tree.join("file7.c"), "another version").expect("a file");
    rsync(&two);
    assert_trees_are_equal(&tree, &two);
}

fn a_server_speaks_first(site: &Site) {
    let listener = there(ORIGIN, || TcpListener::bind("198.51.100.7:2525")).expect("a free port");
    let _server = Script::on(listener, |visit| {
        visit.send("220 ready\r\n");
        for _ in 0..3 {
            let Some(said) = visit.body(6) else { return };
            visit.send([b"250 ", &said[..]].concat());
        }
    });
    let flows = site.counter("tcp_flows");
    let to = "198.51.100.7:2525".parse().expect("an address");
    let mut client =
        there(CLIENT, || TcpStream::connect_timeout(&to, TIMEOUT)).expect("it is accepted");
    client.set_read_timeout(Some(TIMEOUT)).expect("a timeout");
    let mut said = [0; 11];
    client.read_exact(&mut said).expect("a greeting");
    assert_eq!(&said, b"220 ready\r\n");
    for word in ["first\n", "again\n", "leave\n"] {
        client.write_all(word.as_bytes()).expect("sent");
        let mut said = [0; 10];
        client.read_exact(&mut said).expect("an answer");
        assert_eq!(said, format!("250 {word}").as_bytes());
    }
    assert_eq!(client.read(&mut said).expect("the end"), 0);
    assert_eq!(site.counter("tcp_flows"), flows + 1);
}

fn curl_gets_a_file_twice(site: &Site) {
    let nginx = Nginx::start_in(&site.world, ORIGIN, "");
    let text: String = noise(77, 100_000).iter().map(|byte| format!("{byte:02x}\n")).collect();
    nginx.put("file", text.as_bytes());
    let get = || {
        let reply = Curl::new(CLIENT, "http://198.51.100.7/file").run().expect(200);
        assert_same(&reply.body, text.as_bytes());
        assert!(reply.field("via").is_empty(), "it was parsed");
    };
    let first = crossed(site, get);
    let again = crossed(site, get);
    assert!(first > 100_000 && again < first / 10, "{first}, then {again}");
}

#[test]
fn real_programs_over_a_slow_uplink_are_exact_and_counted() {
    network::inside("real_programs_over_a_slow_uplink_are_exact_and_counted", || {
        real_programs("http = \"bypass\"");
    });
}

#[test]
fn the_same_as_wanax_was_published() {
    network::inside("the_same_as_wanax_was_published", || real_programs("paper = \"wanax\""));
}
