//! A real far end behind the emulated uplink: what has crossed it once does not cross it again, and whatever
//! ends, no client gets wrong bytes.

use std::fs;
use std::process::Command;

use crate::lab::{self, Kept, World, can_run, missing, skipped};

const BYTES: usize = 600_000;
/// An uplink on which the files take some seconds.
const RUN: [&str; 10] = [
    "run",
    "uplink",
    "--set",
    "far=pair",
    "--set",
    "bytes=20_000",
    "--set",
    "uplink_mbps=2",
    "--set",
    "uplink_up_mbps=0.5",
];

/// The next version of a file: one place in every ten thousand bytes is another.
fn next_version(bytes: &[u8]) -> Vec<u8> {
    let mut next = bytes.to_vec();
    let places = next.chunks_mut(10_000).flat_map(|part| &mut part[..64]);
    places.for_each(|byte| *byte = byte.wrapping_add(1));
    next
}

#[track_caller]
fn assert_whole(cost: u64) {
    assert!((BYTES as u64..BYTES as u64 * 11 / 10).contains(&cost), "{cost}");
}

#[track_caller]
fn assert_little(cost: u64) {
    assert!(cost < BYTES as u64 / 10, "{cost}");
}

#[test]
fn a_new_version_crosses_as_little() {
    if !can_run("a_new_version_crosses_as_little") {
        return;
    }
    let world = World::new();
    let mesh = Kept::start(&world, &RUN);
    let first = mesh.publish("first", BYTES);
    let second = next_version(&first);
    mesh.publish_as("second", &second);
    mesh.publish_as("again", &second);
    assert_whole(mesh.cost("first", &first));
    assert_little(mesh.cost("second", &second));
    let again = mesh.cost("again", &second);
    assert!(again < BYTES as u64 / 100, "{again}");
    // All of them went by the pair, and what is kept does not cross.
    let pair = mesh.pair();
    assert_eq!(pair["counts"]["requests"], 4, "{pair:#}");
    assert_eq!(pair["counts"]["requests_past"], 0, "{pair:#}");
    assert!(mesh.cost("second", &second) < 1_000);
    mesh.end().expect(0);
    world.nothing_is_left();
}

#[test]
fn as_wanax_published_it_content_crosses_by_names() {
    if !can_run("as_wanax_published_it_content_crosses_by_names") {
        return;
    }
    let world = World::new();
    let settings = ["--set", "uplink=mrc", "--set", "degree=4", "--set", "smallest=256"];
    let mesh = Kept::start(&world, &[&RUN[..], &settings].concat());
    let first = mesh.publish("first", BYTES);
    let second = next_version(&first);
    mesh.publish_as("second", &second);
    assert_whole(mesh.cost("first", &first));
    let cost = mesh.cost("second", &second);
    // Sixty places of 64 bytes are new. At best each costs a chunk of 256 bytes, and names beside it.
    assert!((60 * 256..BYTES as u64 / 2).contains(&cost), "{cost}");
    let pair = mesh.pair();
    assert!(pair["counts"]["chunk_entries"].as_u64() > Some(2000), "{pair:#}");
    mesh.end().expect(0);
    world.nothing_is_left();
}

#[test]
fn without_a_cache_requests_cross_the_pair_as_tcp_connections() {
    if !can_run("without_a_cache_requests_cross_the_pair_as_tcp_connections") {
        return;
    }
    let world = World::new();
    let mesh = Kept::start(&world, &[&RUN[..], &["--set", "paper=wanax"]].concat());
    let asked = flows(&mesh);
    let first = mesh.publish("first", BYTES);
    let second = next_version(&first);
    mesh.publish_as("second", &second);
    assert_whole(mesh.cost("first", &first));
    // Chunks of 128 bytes: sixty of them are new, and have names.
    let cost = mesh.cost("second", &second);
    assert!((60 * 128..BYTES as u64 / 3).contains(&cost), "{cost}");
    // No router keeps it, so that its names cross again.
    let again = mesh.cost("second", &second);
    assert!((1_000..BYTES as u64 / 50).contains(&again), "{again}");
    let counts = mesh.pair()["counts"].clone();
    assert_eq!((flows(&mesh) - asked, counts["requests"].as_u64()), (3, Some(0)), "{counts:#}");
    mesh.end().expect(0);
    world.nothing_is_left();
}

fn flows(mesh: &Kept) -> u64 {
    mesh.pair()["counts"]["tcp_flows"].as_u64().expect("a count")
}

/// A CA of this test's own and a certificate for the origin; the files are in the world's directory.
fn make_certificates(world: &World) {
    let key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"];
    let ca = ["-subj", "/CN=CA of a test", "-keyout", "ca.key", "-out", "ca.pem"];
    let server = [
        "-CA",
        "ca.pem",
        "-CAkey",
        "ca.key",
        "-subj",
        "/CN=origin.example",
        "-addext",
        "subjectAltName=DNS:origin.example",
        "-addext",
        "basicConstraints=critical,CA:FALSE",
        "-keyout",
        "server.key",
        "-out",
        "server.pem",
    ];
    for words in [&ca[..], &server[..]] {
        let mut openssl: Command = world.command("openssl");
        let output = openssl.args(["req", "-x509"]).args(key).args(words).output();
        let output = output.expect("it starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

/// The configuration of an nginx that serves the origin's files by https.
fn https(world: &World) -> String {
    let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|it| format!("    {it}_temp_path /run/lab/https-{it};\n"))
        .concat();
    format!(
        "pid /run/lab/https.pid;
events {{ worker_connections 64; }}
http {{
    access_log off;
{temporary}    server {{
        listen 443 ssl;
        ssl_certificate {};
        ssl_certificate_key {};
        root /run/lab/www;
        add_header Cache-Control 'public, max-age=86400';
    }}
}}
",
        world.text("server.pem"),
        world.text("server.key")
    )
}

#[test]
fn https_is_fetched_by_the_far_end_and_kept_at_the_gateway() {
    const TEST: &str = "https_is_fetched_by_the_far_end_and_kept_at_the_gateway";
    if let Some(why) = missing(&["openssl"]) {
        return skipped(TEST, &why);
    }
    if !can_run(TEST) {
        return;
    }
    let world = World::new();
    make_certificates(&world);
    fs::write(world.path("https.conf"), https(&world)).expect("it can be written");
    let mesh = Kept::start(&world, &RUN);
    let bytes = mesh.publish("signed", BYTES);
    let conf = world.text("https.conf");
    let global = "user root root; daemon off;";
    let words = ["nginx", "-e", "stderr", "-g", global, "-c", &conf];
    let _nginx = mesh.start_within("origin", &words);
    let listens = || mesh.say("origin", &["cat", "/proc/net/tcp"]).contains(":01BB ");
    lab::wait_until(|| "nginx does not listen".into(), listens);
    // The far end that the lab has started does not trust the CA.
    let words = mesh.kill_far();
    let _far = mesh.start_far(&[&words[..], &["--ca".into(), world.text("ca.pem")]].concat());
    let url = "https://origin.example/signed";
    let before = mesh.crossed();
    assert!(mesh.fetch(url) == bytes, "wrong bytes");
    assert_whole(mesh.crossed() - before);
    let before = mesh.crossed();
    assert!(mesh.fetch(url) == bytes, "wrong bytes");
    let again = mesh.crossed() - before;
    assert!(again < 2_000, "{again}");
    mesh.end().expect(0);
    world.nothing_is_left();
}

#[test]
fn a_far_end_that_is_killed_costs_a_client_nothing_and_no_history() {
    if !can_run("a_far_end_that_is_killed_costs_a_client_nothing_and_no_history") {
        return;
    }
    let world = World::new();
    let mesh = Kept::start(&world, &RUN);
    let first = mesh.publish("first", BYTES);
    assert_whole(mesh.cost("first", &first));
    let other = mesh.publish("other", BYTES);
    let mut download = mesh.download("gateway", "other");
    download.wait_for(BYTES / 3);
    let words = mesh.kill_far();
    // The rest comes straight from the origin.
    download.end().expect(&other);
    assert_eq!(mesh.pair()["counts"]["requests_broken"], 1, "{:#}", mesh.pair());
    let _far = mesh.start_far(&words);
    let second = next_version(&first);
    mesh.publish_as("second", &second);
    assert_little(mesh.cost("second", &second));
    mesh.end().expect(0);
    world.nothing_is_left();
}

#[test]
fn histories_may_be_wiped_at_either_end() {
    if !can_run("histories_may_be_wiped_at_either_end") {
        return;
    }
    let world = World::new();
    let mesh = Kept::start(&world, &RUN);
    let first = mesh.publish("first", BYTES);
    assert_whole(mesh.cost("first", &first));
    let mut file = first;
    let mut version = |mesh: &Kept, name: &str| {
        file = next_version(&file);
        mesh.publish_as(name, &file);
        mesh.cost(name, &file)
    };
    let words = mesh.kill_far();
    mesh.wipe("far");
    let _far = mesh.start_far(&words);
    assert_whole(version(&mesh, "second"));
    assert_little(version(&mesh, "third"));
    let words = lab::kept::words(&mesh.daemon("gateway"));
    mesh.kill("gateway");
    mesh.wipe("router-gateway");
    let words: Vec<_> = words.iter().map(String::as_str).collect();
    let _gateway = mesh.start_within("router-gateway", &words);
    mesh.wait_for_pair();
    assert_whole(version(&mesh, "fourth"));
    assert_little(version(&mesh, "fifth"));
    mesh.end().expect(0);
    world.nothing_is_left();
}

/// References take no time to cross, so much content comes at once: it must come in its order.
#[test]
fn what_crosses_as_references_comes_in_order() {
    if !can_run("what_crosses_as_references_comes_in_order") {
        return;
    }
    let world = World::new();
    let mesh = Kept::start(&world, &[&RUN[..6], &["--set", "uplink_mbps=8"]].concat());
    let file = mesh.publish("file", 1_000_000);
    mesh.get("gateway", "file").expect(&file);
    for round in 0..20 {
        let name = format!("again-{round}");
        mesh.publish_as(&name, &file);
        mesh.get("gateway", &name).expect(&file);
    }
    mesh.end().expect(0);
    world.nothing_is_left();
}
