//! The ledger: figures after a miss and a hit, after a kill and a restart, from a damaged file, beside the interfaces'
//! own counters; and the whole exposition before promtool.

use std::fs;
use std::io::Write as _;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::world::network::{self, CLIENT, ORIGIN, there};
use crate::world::schema::check_schema;
use crate::world::{Curl, Hearsay, Nginx, Raw, Script, World, noise, sh, skipped, wait_until};

const LENGTH: usize = 1_500_000;

/// The ledger of all time, as JSON.
fn ledger(hearsay: &Hearsay) -> Value {
    let output = hearsay.command(&["ledger", "--json"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// A figure of class `other`.
fn of_class(page: &Value, figure: &str) -> u64 {
    page["total"]["classes"]["other"][figure].as_u64().unwrap_or(0)
}

/// The ledger's file as a command reads it that finds no daemon.
fn from_file(store: &Path) -> (bool, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_hearsay"))
        .args(["ledger", "--json", "--control", "/nowhere", "--store"])
        .arg(store)
        .output()
        .expect("the program starts");
    let said = if output.status.success() { output.stdout } else { output.stderr };
    (output.status.success(), String::from_utf8_lossy(&said).into_owned())
}

/// Waits until the file has what the daemon shows.
fn wait_until_kept(hearsay: &Hearsay) {
    let shown = ledger(hearsay)["total"]["classes"].clone();
    wait_until("the ledger to be written", || {
        let (done, said) = from_file(hearsay.store());
        done && serde_json::from_str::<Value>(&said).expect("JSON")["total"]["classes"] == shown
    });
}

#[test]
fn a_miss_a_hit_and_a_refusal_to_store_are_told_apart_and_kept_through_a_kill() {
    let world = World::new();
    let nginx = Nginx::start(&world, "location /private { add_header Cache-Control no-store; }");
    nginx.put("file", &noise(7, LENGTH));
    nginx.put("private", &noise(8, 1000));
    let mut hearsay = Hearsay::start(&world);
    hearsay.get(&nginx.url("file")).expect(200);
    let length = LENGTH as u64;
    wait_until("all of it to be counted", || {
        of_class(&ledger(&hearsay), "served_origin_bytes") == length
    });
    assert_eq!(of_class(&ledger(&hearsay), "fetched_origin_bytes"), length);
    hearsay.get(&nginx.url("file")).expect_hit();
    hearsay.get(&nginx.url("private")).expect(200);
    let check = |page: &Value| {
        assert_eq!(of_class(page, "served_local_bytes"), length, "{page}");
        assert_eq!(of_class(page, "served_origin_bytes"), length + 1000, "{page}");
        assert_eq!(of_class(page, "fetched_origin_bytes"), length + 1000, "{page}");
        let refused = &page["total"]["not_stored"]["no-store"];
        assert_eq!(
            (refused["bytes"].as_u64(), refused["responses"].as_u64()),
            (Some(1000), Some(1))
        );
        let to_clients = page["total"]["wire"]["client"]["out_bytes"].as_u64().unwrap_or(0);
        assert!(to_clients > 2 * length, "{page}");
        assert_eq!(page["hosts"], Value::Array(vec![]), "they were not wanted");
    };
    let page = ledger(&hearsay);
    check(&page);
    let schema = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schema/ledger-1.json");
    let schema: Value = serde_json::from_slice(&fs::read(schema).expect("a schema")).expect("JSON");
    check_schema(&schema, &schema, &page, "page");
    wait_until_kept(&hearsay);
    hearsay.wait_until_durable();
    hearsay.restart();
    check(&ledger(&hearsay));
    hearsay.get(&nginx.url("file")).expect_hit();
    assert_eq!(of_class(&ledger(&hearsay), "served_local_bytes"), 2 * length);
    assert_eq!(hearsay.number("/ledger/ever/given_bytes"), 3 * length + 1000);
    assert_eq!(hearsay.number("/ledger/today/given_bytes"), 3 * length + 1000);
    // A clean stop keeps all, without anybody looking.
    hearsay.get(&nginx.url("file")).expect_hit();
    hearsay.terminate();
    let (done, said) = from_file(hearsay.store());
    assert!(done, "{said}");
    let page: Value = serde_json::from_str(&said).expect("JSON");
    assert_eq!(of_class(&page, "served_local_bytes"), 3 * length);
}

#[test]
fn a_tunnel_counts_while_it_is_open_and_every_command_says_the_same() {
    let world = World::new();
    let origin = Script::start(|visit| {
        visit.send(noise(3, 40_960));
        visit.wait_for_end();
    });
    let nginx = Nginx::start(&world, "");
    nginx.put("file", &noise(7, 61_440));
    let hearsay = Hearsay::start(&world);
    hearsay.get(&nginx.url("file")).expect(200);
    hearsay.get(&nginx.url("file")).expect_hit();
    let mut client = Raw::connect(hearsay.proxy);
    client.send(format!("CONNECT {0} HTTP/1.1\r\nHost: {0}\r\n\r\n", origin.address));
    assert_eq!(client.reply().status, 200);
    client.take(40_960);
    client.send("something");
    let relayed = |page: &Value| page["total"]["classes"]["relayed"].clone();
    wait_until("the bytes to be counted", || {
        relayed(&ledger(&hearsay))["served_origin_bytes"] == 40_960
    });
    assert_eq!(relayed(&ledger(&hearsay))["fetched_origin_bytes"], 40_960);
    wait_until("both ways to be counted", || hearsay.number("/relayed_bytes") == 40_969);
    // 160 KiB were given, 100 KiB brought in.
    let said = |args: &[&str]| String::from_utf8_lossy(&hearsay.command(args).stdout).into_owned();
    let status = said(&["status"]);
    for line in [
        "saved        60 KiB: 38 % of 160 KiB served, 100 KiB fetched from origins\n",
        "today        60 KiB saved: 38 % of 160 KiB\n",
    ] {
        assert!(status.contains(line), "{status}");
    }
    let page = said(&["ledger"]);
    let all = page.lines().find(|line| line.trim_start().starts_with("all ")).expect("a sum");
    assert!(all.contains("160 KiB") && all.contains("60 KiB") && all.contains("38 %"), "{page}");
}

#[test]
fn what_was_counted_is_in_the_file_soon_though_nobody_looks() {
    let world = World::new();
    let nginx = Nginx::start(&world, "");
    nginx.put("file", &noise(7, 5000));
    let mut hearsay = Hearsay::start(&world);
    hearsay.get(&nginx.url("file")).expect(200);
    wait_until("the file to have it", || {
        from_file(hearsay.store()).1.contains("\"served_origin_bytes\":5000")
    });
    hearsay.kill();
    hearsay.restart();
    assert_eq!(of_class(&ledger(&hearsay), "served_origin_bytes"), 5000);
}

#[test]
fn a_damaged_ledger_is_begun_anew_and_said_once() {
    let world = World::new();
    let nginx = Nginx::start(&world, "");
    nginx.put("file", &noise(7, 5000));
    let mut hearsay = Hearsay::start(&world);
    hearsay.get(&nginx.url("file")).expect(200);
    wait_until_kept(&hearsay);
    let file = hearsay.store().join("ledger");
    hearsay.kill();
    let mut bytes = fs::read(&file).expect("the ledger");
    bytes[20] ^= 1;
    fs::write(&file, &bytes).expect("write");
    let (done, said) = from_file(hearsay.store());
    assert!(!done && said.contains("is damaged; the daemon begins it anew"), "{said}");
    hearsay.restart();
    assert_eq!(of_class(&ledger(&hearsay), "served_origin_bytes"), 0);
    let kept = hearsay.store().join("ledger.damaged");
    assert_eq!(fs::read(&kept).expect("it is kept"), bytes);
    assert_eq!(ledger(&hearsay)["damaged"]["file"], kept.display().to_string());
    let said = String::from_utf8_lossy(&hearsay.command(&["ledger"]).stdout).into_owned();
    assert!(said.contains("counted anew: an earlier ledger was damaged"), "{said}");
    hearsay.get(&nginx.url("file")).expect(200);
    wait_until_kept(&hearsay);
    hearsay.restart();
    assert_eq!(hearsay.log().matches("it begins anew").count(), 1, "{}", hearsay.log());
    assert!(
        of_class(&ledger(&hearsay), "served_local_bytes")
            + of_class(&ledger(&hearsay), "served_origin_bytes")
            >= 5000
    );
}

#[test]
fn hosts_are_kept_only_where_that_is_wanted_and_forgotten_when_it_is_not() {
    let world = World::new();
    let nginx = Nginx::start(&world, "");
    nginx.put("file", &noise(7, 5000));
    let settings = |hosts: bool| {
        format!("listen = [\"127.0.0.1:0\"]\n[ledger]\nhosts = {hosts}\n").into_bytes()
    };
    let config = world.write("h.toml", &settings(true));
    let config = config.to_str().expect("UTF-8");
    let hearsay = Hearsay::start_with(&world, &["--config", config]);
    hearsay.get(&nginx.url("file")).expect(200);
    let page = ledger(&hearsay);
    assert_eq!(page["hosts"][0]["host"], "127.0.0.1");
    assert_eq!(page["hosts"][0]["served_bytes"], 5000);
    wait_until_kept(&hearsay);
    assert!(from_file(hearsay.store()).1.contains("\"host\":\"127.0.0.1\""));
    world.write("h.toml", &settings(false));
    hearsay.hang_up();
    wait_until("the hosts to be forgotten", || ledger(&hearsay)["hosts"] == Value::Array(vec![]));
    wait_until("the file to forget them", || !from_file(hearsay.store()).1.contains("127.0.0.1"));
}

#[test]
fn the_command_prints_tables_csv_and_good_errors() {
    let world = World::new();
    let nginx = Nginx::start(&world, "");
    nginx.put("file", &noise(7, 5000));
    let hearsay = Hearsay::start(&world);
    hearsay.get(&nginx.url("file")).expect(200);
    let said = |args: &[&str]| {
        let output = hearsay.command(args);
        let (out, err) = (output.stdout, output.stderr);
        (output.status.code(), String::from_utf8_lossy(&[out, err].concat()).into_owned())
    };
    let (code, text) = said(&["ledger", "--since", "30d"]);
    assert!(code == Some(0) && text.contains("by the day") && text.contains("other"), "{text}");
    let (code, csv) = said(&["ledger", "--since", "2h", "--csv"]);
    assert!(code == Some(0) && csv.contains(",hour,class,other,served_origin_bytes,5000"), "{csv}");
    for since in ["today", "yesterday", "2026-11-01", "2026-11-01T14:00"] {
        let (code, csv) = said(&["ledger", "--csv", "--since", since]);
        let counted = csv.contains(",class,other,served_origin_bytes,5000");
        assert!(code == Some(0) && counted, "{since}: {csv}");
    }
    let (_, text) = said(&["ledger", "--since", "2999-01-01"]);
    assert!(text.contains("that is still to come"), "{text}");
    for args in [
        &["ledger", "--since", "0s"][..],
        &["ledger", "--since", "x"],
        &["ledger", "--since", "2999-01-01"],
        &["ledger", "--csv", "--json"],
    ] {
        assert_eq!(said(args).0, Some(2), "{args:?}");
    }
    let (done, text) = from_file(&world.path("elsewhere"));
    assert!(!done && text.contains("nor is there its file"), "{text}");
}

#[test]
fn the_wire_agrees_with_the_interfaces_and_forwarded_traffic_is_counted() {
    network::inside("the_wire_agrees_with_the_interfaces_and_forwarded_traffic_is_counted", || {
        const BYTES: usize = 20_000_000;
        let world = World::new();
        let nginx = Nginx::start_in(&world, ORIGIN, "");
        nginx.put("file", &noise(1, BYTES));
        // As on a real link: one packet a segment.
        sh("for it in lan0 wan0; do ip link set $it gso_max_segs 1; done
            ip -n client link set eth0 gso_max_segs 1; ip -n origin link set eth0 gso_max_segs 1");
        let _tls = Script::on(
            there(ORIGIN, || TcpListener::bind("[::]:443")).expect("port 443 is free"),
            |visit| {
                visit.head();
                visit.send([7; 100_000]);
            },
        );
        let mut hearsay = Hearsay::start_with(&world, &["--intercept", "lan0"]);
        let before = interfaces();
        for url in ["http://10.2.0.2/file", "http://[fd02::2]/file"] {
            assert_eq!(Curl::new(CLIENT, url).run().expect(200).body.len(), BYTES);
        }
        let counted = interfaces() - before;
        let page = ledger(&hearsay);
        let wire = |with: &str| {
            let wire = &page["total"]["wire"][with];
            wire["in_bytes"].as_u64().unwrap_or(0) + wire["out_bytes"].as_u64().unwrap_or(0)
        };
        let sum = wire("client") + wire("origin");
        let off = sum.abs_diff(counted) as f64 / counted as f64;
        assert!(
            off < 0.02,
            "{sum} by the ledger, {counted} by the interfaces: {:.2} %",
            100.0 * off
        );
        // Not HTTP on port 80, so it is only forwarded.
        let got = Curl::new(CLIENT, "http://10.2.0.2:443/").args(&["--http0.9"]).run();
        assert_eq!(got.body.len(), 100_000, "{got:?}");
        hearsay.terminate();
        let (_, said) = from_file(hearsay.store());
        let page: Value = serde_json::from_str(&said).expect("JSON");
        let tls = &page["total"]["forwarded"]["tls"];
        let (up, down) = (tls["up_bytes"].as_u64(), tls["down_bytes"].as_u64());
        assert!(up > Some(200) && down > Some(100_000), "{said}");
        assert!(down < Some(110_000), "{said}");
    });
}

/// The bytes that both of the router's interfaces have counted, in both directions.
fn interfaces() -> u64 {
    let text = sh("cat /sys/class/net/[lw]an0/statistics/[rt]x_bytes");
    text.lines().map(|line| line.trim().parse::<u64>().expect("a number")).sum()
}

#[test]
fn promtool_finds_nothing_wrong_with_the_metrics() {
    let test = "promtool_finds_nothing_wrong_with_the_metrics";
    if Command::new("promtool").arg("--version").output().is_err() {
        return skipped(test, "promtool is not installed (Debian: prometheus)");
    }
    let world = World::new();
    let nginx = Nginx::start(&world, "");
    nginx.put("file", &noise(7, 5000));
    // The parts that are off by default have metrics too, even on an interface that is not there.
    let args = ["--mesh", "wl7", "--overhear", "wl7"];
    let hearsay = Hearsay::start_with(&world, &args);
    hearsay.get(&nginx.url("file")).expect(200);
    let metrics = hearsay.metrics();
    for series in [
        "hearsay_class_served_bytes_total{class=\"other\",source=\"origin\"} 5000",
        "hearsay_wire_bytes_total{with=\"client\",direction=\"out\"}",
        "hearsay_peers",
        "hearsay_capture_up",
    ] {
        assert!(metrics.contains(series), "{series} in {metrics}");
    }
    let mut promtool = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("promtool starts");
    let mut input = promtool.stdin.take().expect("a pipe");
    input.write_all(metrics.as_bytes()).expect("it reads");
    drop(input);
    let output = promtool.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success() && said.is_empty(), "{said}");
}
