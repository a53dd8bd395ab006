//! `hearsay-lab sim`: repeatability with any number of threads; captures; refusals.

use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::io::Read as _;
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _, symlink};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{CWD, FileType, Mode, OFlags, fcntl_setfl, makedev, mknodat};
use serde_json::Value;

use crate::lab::provenance::{assert_origin, lasting};
use crate::lab::schema::{assert_valid, wrong};
use crate::lab::{Ended, World, capture, skipped};

/// Three short runs.
const SHORT: [&str; 9] =
    ["sim", "bulk", "--seeds", "3", "--set", "seconds=1", "--set", "hops=3", "--quiet"];

#[track_caller]
fn run(world: &World, args: &[&str]) -> Ended {
    let ended = world.run(args).expect(0);
    assert_eq!(ended.err, "");
    ended
}

fn names(value: &Value) -> BTreeSet<&str> {
    value.as_object().expect("an object").keys().map(String::as_str).collect()
}

#[test]
fn a_seed_gives_the_same_bytes_however_many_run_at_a_time() {
    let world = World::new();
    let json = |jobs: &str, folder: &str| {
        let more = ["--jobs", jobs, "--pcap", folder, "--json", "-"];
        lasting(&run(&world, &[&SHORT[..], &more].concat()).out)
    };
    let (alone, together) = (json("1", "alone"), json("4", "together"));
    assert!(alone.contains("goodput_kbps"), "{alone}");
    assert_eq!(alone, together);
    for seed in ["seed-1", "seed-2", "seed-3"] {
        for router in ["0", "1", "2", "3"] {
            let file = |folder| fs::read(world.path(&format!("{folder}/{seed}/{router}.pcap")));
            let bytes = file("alone").expect("a capture");
            assert!(bytes.len() > 10_000 && bytes == file("together").expect("a capture"));
        }
    }
    // One of the seeds alone also gives the same.
    let second = ["sim", "bulk", "--seed", "2", "--set", "seconds=1", "--set", "hops=3"];
    run(&world, &[&second[..], &["--quiet", "--pcap", "second"]].concat());
    let file = |path: &str| fs::read(world.path(path)).expect("a capture");
    assert!(file("second/3.pcap") == file("alone/seed-2/3.pcap"));
}

#[test]
fn the_json_has_means_and_deviations_and_says_what_the_radio_was() {
    let world = World::new();
    let json = run(&world, &[&SHORT[..], &["--json", "-"]].concat()).json();
    for figure in ["goodput_kbps", "retry_drops", "queue_drops", "delay_variation_ms"] {
        assert_eq!(names(&json[figure]), BTreeSet::from(["mean", "sd"]), "{figure}");
    }
    assert!(json["goodput_kbps"]["mean"].as_f64().is_some_and(|it| it > 500.0));
    assert_eq!((&json["scenario"], &json["mode"]), (&"bulk".into(), &"sim".into()));
    assert_eq!((&json["receiver"], &json["reception"]), (&"lock".into(), &"bit-error".into()));
    assert_eq!(json["simulated_seconds"], 3.0);
    assert_eq!(json["keys"]["hops"], "3");
    assert_eq!(json["seeds"], serde_json::json!([1, 2, 3]));
    assert_eq!(json["runs"].as_array().map(Vec::len), Some(3));
    for number in ["events", "wall_seconds", "cpu_seconds"] {
        assert!(json[number].as_f64().is_some_and(|it| it > 0.0), "{number}");
    }
}

#[test]
fn listed_flows_have_figures_of_their_own_in_json_table_and_page() {
    let world = World::new();
    let between = "between=0:2 2:1:cbr@0.5:1:3 0:1:vbr@0.3 1:0:ssh";
    let args = ["sim", "chain", "--set", "traffic=flows", "--set", between, "--set", "hops=2"];
    let more = ["--set", "seconds=4", "--set", "loss_above_mac=0.05", "--seeds", "2", "--quiet"];
    let json = run(&world, &[&args[..], &more, &["--json", "-"]].concat()).json();
    for run in json["runs"].as_array().expect("runs") {
        assert!(run["above_mac_drops"].as_u64().is_some_and(|it| it > 0), "{run}");
        let flows = run["flows"].as_array().expect("flows");
        let kinds: Vec<_> = flows.iter().map(|it| it["kind"].as_str().unwrap_or("")).collect();
        assert_eq!(kinds, ["tcp", "cbr@0.5", "vbr@0.3", "ssh"]);
        let has = |flow: usize, member: &str| !flows[flow][member].is_null();
        let measured = |member| [0, 1, 2, 3].map(|flow| has(flow, member));
        assert_eq!(measured("delay_variation_ms"), [true, true, true, false]);
        assert_eq!(measured("delay_ms"), [false, true, true, false]);
        assert_eq!(measured("ssh"), [false, false, false, true]);
        assert_eq!(measured("tcp"), [true, false, false, true]);
        assert!(flows[0]["tcp"]["acked_bytes"].as_u64().is_some_and(|it| it > 0), "{run}");
    }
    assert_valid(&json);
    let args = [&args[..], &more[..6], &["--html", "page.html"]].concat();
    let ended = world.run(&args).expect(0);
    let page = fs::read_to_string(world.path("page.html")).expect("the page");
    for name in ["0:2:tcp:0:4", "2:1:cbr@0.5:1:3", "0:1:vbr@0.3:0:4", "1:0:ssh:0:4"] {
        assert!(page.contains(name) && ended.out.contains(&format!("\n{name} ")), "{}", ended.out);
    }
    assert!(ended.out.contains("above_mac_drops"), "{}", ended.out);
    for (heading, shown) in [("slow start s", &ended.out), ("Senders of TCP", &page)] {
        assert!(shown.contains(heading), "{shown}");
    }
}

#[test]
fn what_link_planes_did_is_in_the_json_and_in_its_schema() {
    let world = World::new();
    let args =
        ["sim", "bulk", "--set", "hops=4", "--set", "seconds=4", "--set", "loss_above_mac=0.02"];
    let more = ["--set", "pace=on", "--set", "recover=on", "--quiet", "--json", "-"];
    let json = run(&world, &[&args[..], &more].concat()).json();
    assert_valid(&json);
    assert!(json["runs"][0]["link_plane"]["held"].as_u64().is_some_and(|it| it > 0), "{json}");
    assert!(json["resent"]["mean"].as_f64().is_some_and(|it| it > 0.0), "{json}");
}

#[test]
fn losses_above_the_mac_are_shown_where_clients_ask_for_files() {
    let world = World::new();
    let args = ["sim", "chain", "--set", "bytes=200000", "--set", "loss_above_mac=0.02", "--quiet"];
    let json = run(&world, &[&args[..], &["--json", "-"]].concat()).json();
    assert!(json["radio"]["lost_above_mac"].as_u64().is_some_and(|it| it > 0), "{json}");
    let ended = world.run(&[&args[..4], &["--html", "page.html"]].concat()).expect(0);
    let page = fs::read_to_string(world.path("page.html")).expect("the page");
    assert!(!page.contains("Lost above the MAC"), "without the key there is nothing to show");
    assert!(!ended.out.contains("lost above the MAC"), "{}", ended.out);
}

#[test]
fn a_schema_refuses_what_is_not_as_it_says() {
    let world = World::new();
    let args = ["sim", "chain", "--set", "bytes=1000", "--set", "hops=1", "--quiet", "--json", "-"];
    let whole = run(&world, &args).json();
    let changed = |change: &dyn Fn(&mut Value)| {
        let mut json = whole.clone();
        change(&mut json);
        wrong(&json, "run", "1")
    };
    assert_eq!(changed(&|_| ()), [""; 0]);
    for (change, place) in [
        (&(|it: &mut Value| it["seed"] = "1".into()) as &dyn Fn(&mut Value), "/seed: type"),
        (&|it| it["mode"] = "lap".into(), "/mode: enum"),
        (&|it| it["schema"] = "hearsay/run/2".into(), "/schema: const"),
        (&|it| it["transfers"][0]["bytes"] = (-1).into(), "/transfers/0/bytes: minimum"),
        (
            &|it| it["provenance"]["program"] = serde_json::json!({}),
            "/provenance/program: required",
        ),
        (&|it| it["more"] = 1.into(), "/more: no such member"),
    ] {
        let wrong = changed(change);
        assert!(wrong.len() == 1 && wrong[0].starts_with(place), "{place}: {wrong:?}");
    }
}

#[test]
fn a_person_gets_a_table_and_a_page() {
    let world = World::new();
    let args = ["sim", "mesh50", "--set", "seconds=1", "--html", "page.html"];
    let ended = world.run(&args).expect(0);
    for part in ["receiver lock", "reception bit-error", "goodput_kbps", "fetches", "simulated"] {
        assert!(ended.out.contains(part), "no {part} in: {}", ended.out);
    }
    assert!(ended.err.starts_with("runs "), "{}", ended.err);
    let page = fs::read_to_string(world.path("page.html")).expect("the page");
    for part in ["goodput_kbps", "<svg", "reception", "bit-error"] {
        assert!(page.contains(part), "no {part}");
    }
}

#[test]
fn captures_have_what_each_station_sent_and_got() {
    let world = World::new();
    let args = ["sim", "bulk", "--set", "seconds=1", "--set", "hops=2", "--set", "rts=true"];
    run(&world, &[&args[..], &["--quiet", "--pcap", "air"]].concat());
    for router in 0..3_u8 {
        let records = capture::read(&world.path(&format!("air/{router}.pcap")));
        assert!(records.is_sorted_by_key(|it| it.nanoseconds));
        assert!(records.iter().all(|it| it.nanoseconds < 1_100_000_000));
        let kinds: BTreeSet<_> = records.iter().map(|it| it.frame[0]).collect();
        assert_eq!(kinds, BTreeSet::from([0x08, 0xb4, 0xc4, 0xd4]), "data, RTS, CTS, ACK");
        assert!(records.iter().any(|it| it.is_data() && it.from() == router));
        assert!(records.iter().any(|it| it.is_data() && it.to() == router));
        for data in records.iter().filter(|it| it.is_data()) {
            check_tcp(&data.frame[32..]);
        }
    }
}

/// Checks that a packet is a complete IPv4 packet with a TCP segment and correct checksums (RFC 1071).
#[track_caller]
fn check_tcp(packet: &[u8]) {
    let sum = |bytes: &[u8], more: u32| {
        let words = bytes
            .chunks(2)
            .map(|it| u32::from(it[0]) << 8 | it.get(1).map_or(0, |b| u32::from(*b)));
        let sum = words.sum::<u32>() + more;
        let folded = (sum & 0xffff) + (sum >> 16);
        (folded & 0xffff) + (folded >> 16)
    };
    assert_eq!((packet[0], packet[9]), (0x45, 6));
    assert_eq!(usize::from(u16::from_be_bytes([packet[2], packet[3]])), packet.len());
    assert_eq!(sum(&packet[..20], 0), 0xffff, "IP's checksum");
    let pseudo = 6 + (packet.len() as u32 - 20);
    let addresses = packet[12..20].chunks(2).map(|it| u32::from(it[0]) << 8 | u32::from(it[1]));
    assert_eq!(sum(&packet[20..], pseudo + addresses.sum::<u32>()), 0xffff, "TCP's checksum");
}

/// One short run.
const ONE: [&str; 6] = ["sim", "bulk", "--set", "seconds=1", "--set", "hops=1"];

#[test]
fn outputs_are_written_through_links_which_stay() {
    let world = World::new();
    for name in ["json", "html"] {
        symlink(format!("target.{name}"), world.path(name)).expect("a link");
    }
    // First the targets are made, then they are replaced.
    for seed in ["1", "2"] {
        let more = ["--seed", seed, "--quiet", "--json", "json", "--html", "html"];
        run(&world, &[&ONE[..], &more].concat());
        assert!(world.path("json").is_symlink() && world.path("html").is_symlink());
        let json = fs::read(world.path("target.json")).expect("the target");
        let json: Value = serde_json::from_slice(&json).expect("JSON");
        assert_eq!(json["seeds"], serde_json::json!([seed.parse::<u64>().expect("a number")]));
        assert!(fs::read_to_string(world.path("target.html")).expect("it").contains("<svg"));
    }
    symlink("circle", world.path("circle")).expect("a link");
    for (path, why) in [("tmp", "it is a directory"), ("circle", "symbolic links")] {
        let refused = world.run(&[&ONE[..], &["--json", path]].concat());
        refused.expect_refusal(&[path, why]);
    }
    // Two names of one file.
    let more = ["--json", "json", "--html", "target.json"];
    let refused = world.run(&[&ONE[..], &more].concat());
    refused.expect_refusal(&["target.json", "two options name it"]);
}

#[test]
fn what_goes_to_standard_output_stands_there_alone() {
    let world = World::new();
    // Of the test's own: /dev/stdout is the machine's.
    symlink("/proc/self/fd/1", world.path("stdout")).expect("a link");
    let printed = |args: &[&str]| world.run(args).expect(0);
    let json = printed(&[&ONE[..], &["--json", "stdout"]].concat()).json();
    assert_eq!(json["scenario"], "bulk");
    let page = printed(&[&ONE[..], &["--html", "stdout"]].concat()).out;
    assert!(page.starts_with('<') && page.trim_end().ends_with('>'), "{page}");
    let files = ["sim", "chain", "--set", "hops=1", "--set", "bytes=5000", "--set", "rounds=1"];
    let events = printed(&[&files[..], &["--events", "stdout"]].concat()).out;
    assert!(events.lines().count() > 5);
    assert!(events.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()), "{events}");

    // A file is written from where it ends.
    let log = world.path("log");
    fs::write(&log, "before\n").expect("a file");
    let open = OpenOptions::new().append(true).open(&log).expect("a file");
    let mut command = world.lab(&[&ONE[..], &["--quiet", "--html", "stdout"]].concat());
    assert!(command.stdout(open).status().expect("it starts").success());
    let text = fs::read_to_string(&log).expect("the file");
    assert!(text.starts_with("before\n<") && text.trim_end().ends_with('>'), "{text}");
    assert!(world.path("stdout").is_symlink());
}

#[test]
fn a_capture_goes_into_a_pipe_until_its_end() {
    let world = World::new();
    let capture = |folder| run(&world, &[&ONE[..], &["--quiet", "--pcap", folder]].concat());
    capture("files");
    fs::create_dir(world.path("pipes")).expect("a directory");
    let path = world.path("pipes/1.pcap");
    mknodat(CWD, &path, FileType::Fifo, Mode::from_raw_mode(0o600), 0).expect("a pipe");
    let reader = || {
        let flags = OFlags::NONBLOCK.bits().cast_signed();
        OpenOptions::new().read(true).custom_flags(flags).open(&path).expect("a pipe")
    };
    // A second reader, so that no writer waits when the first has found an end.
    let (mut pipe, _reader) = (reader(), reader());
    fcntl_setfl(&pipe, OFlags::empty()).expect("it waits from here on");
    let read = std::thread::spawn(move || {
        poll(&mut [PollFd::new(&pipe, PollFlags::IN)], None).expect("a pipe");
        let mut bytes = Vec::new();
        pipe.read_to_end(&mut bytes).expect("a pipe");
        bytes
    });
    capture("pipes");
    let read = read.join().expect("no panic");
    assert!(read == fs::read(world.path("files/1.pcap")).expect("a capture"), "{}", read.len());
    assert!(fs::symlink_metadata(&path).expect("it is there").file_type().is_fifo());
}

#[test]
fn a_device_takes_several_outputs_and_stays() {
    const TEST: &str = "a_device_takes_several_outputs_and_stays";
    let world = World::new();
    // Of the test's own, so that a fault cannot harm the machine's.
    let null = world.path("null");
    let made =
        mknodat(CWD, &null, FileType::CharacterDevice, Mode::from_raw_mode(0o600), makedev(1, 3));
    let opened = made.map_err(Into::into).and_then(|()| OpenOptions::new().write(true).open(&null));
    if let Err(error) = opened {
        return skipped(TEST, &format!("no device can be made here: {error}"));
    }
    run(&world, &[&ONE[..], &["--quiet", "--json", "null", "--html", "null"]].concat());
    let there = fs::symlink_metadata(&null).expect("it is there");
    assert!(there.file_type().is_char_device(), "a file is in its place");
}

#[test]
fn what_failed_is_named_and_is_a_failure_where_it_is_to_be_one() {
    let world = World::new();
    let args = ["sim", "bulk", "--set", "per=1", "--set", "seconds=1", "--json", "-", "--quiet"];
    for (more, code) in [(&["--strict"][..], 1), (&[], 0)] {
        let ended = world.run(&[&args[..], more].concat()).expect(code);
        assert_eq!(ended.err, "hearsay-lab: seed 1: flow 1 from 0 to 4: nothing arrived\n");
        assert_eq!(ended.json()["goodput_kbps"]["mean"], 0.0);
    }
}

#[test]
fn figures_say_where_they_come_from() {
    let world = World::new();
    let more = ["--json", "flows.json", "--html", "page.html", "--set", "receivers=3"];
    run(&world, &[&SHORT[..], &more].concat());
    let text = fs::read_to_string(world.path("flows.json")).expect("the flows");
    let json: Value = serde_json::from_str(&text).expect("JSON");
    let it = &json["provenance"];
    assert_eq!(json["schema"], "hearsay/flows/1");
    assert_valid(&json);
    assert_origin(it, "hearsay-lab sim bulk --seeds 3 --set seconds=1 --set hops=3 --quiet --json");
    assert_eq!((&it["scenarios"], &it["seeds"]), (&["bulk"][..].into(), &[1, 2, 3][..].into()));
    // A key that was set, and one that was not.
    assert_eq!((&it["keys"]["hops"], &it["keys"]["rts"]), (&"3".into(), &"false".into()));
    assert_eq!(it["keys"], json["keys"]);
    let page = fs::read_to_string(world.path("page.html")).expect("the page");
    for part in ["<footer>", "<dd>hearsay-lab sim bulk --seeds 3", "hops=3", "Linux "] {
        assert!(page.contains(part), "no {part}");
    }
    // Each of several runs reports its own seed and its own values.
    let files = ["sim", "chain", "--set", "bytes=20000", "--seeds", "2", "--quiet", "--json", "-"];
    let runs = run(&world, &files).json();
    for (seed, one) in (1..).zip(runs.as_array().expect("a list")) {
        assert_eq!(one["schema"], "hearsay/run/1");
        assert_origin(&one["provenance"], "hearsay-lab sim chain --set bytes=20000 --seeds 2");
        assert_eq!(one["provenance"]["seeds"], serde_json::json!([seed]));
        assert_eq!(one["provenance"]["schemes"], serde_json::json!(["auto"]));
        assert_eq!(one["provenance"]["keys"]["bytes"], "20000");
    }
}

#[test]
fn every_seed_is_judged() {
    let world = World::new();
    let cut = ["--set", "loss=1", "--set", "loss_exponent=0", "--quiet", "--strict"];
    let args = ["sim", "chain", "--set", "hops=1", "--set", "bytes=1000", "--seeds", "2"];
    let ended = world.run(&[&args[..], &cut].concat()).expect(1);
    let lines: Vec<_> = ended.err.lines().collect();
    assert_eq!(lines.len(), 2, "{}", ended.err);
    for (seed, line) in (1..).zip(lines) {
        assert!(line.starts_with(&format!("hearsay-lab: seed {seed}: http://")), "{line}");
    }
    let args = ["sim", "mesh50", "--set", "seconds=3", "--set", "per=1", "--quiet", "--strict"];
    let ended = world.run(&args).expect(1);
    assert_eq!(ended.err, "hearsay-lab: seed 1: none of 25 clients got anything\n");
}

#[test]
fn keys_that_differ_by_seed_are_left_out() {
    let world = World::new();
    let keys = |seeds| {
        let args = ["sim", "mesh50", "--set", "seconds=1", "--quiet", "--json", "-", "--seeds"];
        let json = run(&world, &[&args[..], &[seeds]].concat()).json();
        names(&json["keys"]).into_iter().map(str::to_owned).collect::<BTreeSet<_>>()
    };
    let (one, several) = (keys("1"), keys("2"));
    let missing: Vec<_> = one.difference(&several).collect();
    assert_eq!(missing, ["gateway", "receivers"]);
}

#[test]
fn what_cannot_be_simulated_is_refused_in_one_line() {
    let world = World::new();
    fs::write(world.path("islands.toml"), "nodes = 5\narea_m = 90_000\n").expect("a file");
    for (args, parts) in [
        (&["bulk", "--set", "hosp=3"][..], &["hosp", "did you mean `hops`?"][..]),
        (&["bulk", "--set", "data_mbps=0"], &["data_mbps", "a rate of 802.11"]),
        (&["bulk", "--set", "data_mbps=54"], &["data_mbps", "802.11b", "11"]),
        (&["bulk", "--set", "seconds=0"], &["seconds", "from 0.1"]),
        (&["bulk", "--set", "spacing_m=300"], &["0-1", "range_m"]),
        (&["bulk", "--set", "bytes=3"], &["bytes", "traffic", "tcp"]),
        (&["bulk", "--set", "rts=maybe"], &["rts", "true, false"]),
        (&["bulk", "--set", "receiver=both"], &["receiver", "\"lock\" or \"nolock\""]),
        (&["bulk", "--scheme", "thcp"], &["--scheme", "tcp"]),
        (&["mesh50", "--set", "nodes=1001"], &["nodes", "from 2 to 1000"]),
        (&["./islands.toml"], &["nodes", "connected", "area_m"]),
        (&["bulk", "--json", "no/where.json"], &["no/where.json", "no such directory"]),
        (&["bulk", "--json", "/proc/it.json"], &["/proc/it.json", "cannot write"]),
        (&["bulk", "--json", "-", "--html", "-"], &["-", "only --json goes to standard output"]),
        (&["chain", "--set", "routing=babel"], &["routing", "static", "hearsay-lab run"]),
        (
            &["bulk", "--set", "flows=1000", "--seeds", "1001"],
            &["--seeds", "1001000", "more than 1000000"],
        ),
        (&["mesh50", "--set", "nodes=1000", "--set", "area_m=90000"], &["rarely all connected"]),
        (&["bulk", "--pcap", "islands.toml"], &["islands.toml", "cannot write to"]),
    ] {
        world.run(&[&["sim"], args].concat()).expect_refusal(parts);
    }
    for (args, culprit) in [
        (&["sim"][..], "<SCENARIO>"),
        (&["sim", "bulk", "--seeds", "0"], "--seeds"),
        (&["sim", "bulk", "--jobs", "0"], "--jobs"),
    ] {
        let ended = world.run(args).expect(2);
        assert!(ended.err.contains(culprit), "{args:?}: {}", ended.err);
    }
}

/// README says that four of seven clients get the file from their own router or from one nearer than the gateway.
#[test]
fn without_a_scheme_routers_do_what_the_product_does() {
    let world = World::new();
    let args = ["sim", "emulab8", "--json", "-", "--quiet"];
    let result: Value = serde_json::from_str(&run(&world, &args).out).expect("JSON");
    assert_eq!(result["scheme"], "auto");
    let transfers = result["transfers"].as_array().expect("a list");
    let is_hit =
        |it: &&Value| !["origin", "gateway"].contains(&it["source"].as_str().expect("text"));
    assert_eq!((transfers.iter().filter(is_hit).count(), transfers.len()), (4, 7), "{transfers:?}");
}

#[test]
fn files_are_fetched_as_in_the_lab() {
    let world = World::new();
    let small = ["sim", "chain", "--set", "hops=2", "--set", "bytes=50000", "--quiet"];
    let json = |more: &[&str]| run(&world, &[&small[..], &["--json", "-"], more].concat()).out;
    let one = json(&["--scheme", "ph-thcp"]);
    assert_eq!(lasting(&one), lasting(&json(&["--scheme", "ph-thcp"])));
    let one: Value = serde_json::from_str(&one).expect("JSON");
    assert_eq!((&one["mode"], &one["scheme"]), (&"sim".into(), &"ph-thcp".into()));
    assert_eq!(one["transfers"][0]["sha256_ok"], true);
    assert_eq!(one["radio"]["receiver"], "lock");
    let file = world.text("two.json");
    fs::write(&file, json(&["--seeds", "2"])).expect("a file");
    let args = ["compare", &file, "--html", "page.html"];
    run(&world, &args);
}
