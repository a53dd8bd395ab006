//! Impossible requests are refused in one clear line, before anything is built.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::lab::{Ended, Run, World, can_run, is_root, open_to_all, skipped, tool};

/// A run that would end soon if it began.
const SMALL: [&str; 6] = ["run", "chain", "--set", "hops=1", "--set", "bytes=1000"];

/// Runs `hearsay-lab` where `unshare`, which would make its namespaces, only leaves a mark. Returns also whether
/// there is one.
#[track_caller]
fn run_without_namespaces(world: &World, args: &[&str]) -> (Ended, bool) {
    let (folder, mark) = (world.path("bin"), world.path("mark"));
    fs::create_dir(&folder).expect("mkdir");
    let unshare = folder.join("unshare");
    fs::write(&unshare, format!("#!/bin/sh\ntouch {}\nexit 1\n", mark.display())).expect("write");
    open_to_all(&unshare, 0o755);
    let path = std::env::var("PATH").unwrap_or_default();
    let mut command = world.lab(args);
    command.env("PATH", format!("{}:{path}", folder.display()));
    (Run::start(command).end(), mark.exists())
}

#[track_caller]
fn refused(args: &[&str], parts: &[&str]) {
    let world = World::new();
    let (ended, has_begun) = run_without_namespaces(&world, args);
    ended.expect_refusal(parts);
    assert!(!has_begun, "it was about to make namespaces");
    world.nothing_is_left();
}

#[test]
fn a_possible_request_needs_namespaces() {
    if !can_run("a_possible_request_needs_namespaces") {
        return;
    }
    let (ended, has_begun) = run_without_namespaces(&World::new(), &SMALL);
    ended.expect_refusal(&["namespaces"]);
    assert!(has_begun, "the other tests look at a mark that is never made");
}

#[test]
fn an_unknown_scenario_names_the_nearest() {
    refused(&["run", "chian"], &["chian", "did you mean `chain`?"]);
    refused(&["run", "wombat"], &["wombat", "chain, emulab8, map21, bulk, mesh50"]);
    refused(&["run", "./nowhere.toml"], &["./nowhere.toml", "No such file"]);
    refused(&["run", ""], &["chain, emulab8, map21, bulk, mesh50"]);
}

#[test]
fn what_is_for_the_simulator_is_sent_there() {
    refused(&["run", "bulk"], &["bulk", "traffic", "hearsay-lab sim"]);
    refused(&["run", "chain", "--set", "cuts=2@5"], &["chain", "`cuts`", "hearsay-lab sim"]);
    refused(&["run", "chain", "--set", "hops=200"], &["chain", "201 routers", "hearsay-lab sim"]);
}

#[test]
fn an_unknown_key_names_the_nearest() {
    refused(&["run", "chain", "--set", "hosp=3"], &["hosp", "did you mean `hops`?"]);
    refused(&["run", "emulab8", "--set", "hops=3"], &["hops"]);
}

#[test]
fn a_wrong_value_names_what_it_must_be() {
    refused(&["run", "chain", "--set", "hops=many"], &["hops", "a whole number", "many"]);
    refused(&["run", "chain", "--set", "hops=0"], &["hops", "from 1"]);
    refused(&["run", "chain", "--set", "loss=1.5"], &["loss", "from 0 to 1", "1.5"]);
    refused(&["run", "chain", "--set", "receivers=9"], &["receivers", "9"]);
    refused(&["run", "chain", "--set", "routing=ospf"], &["routing", "babel", "ospf"]);
    refused(&["run", "chain", "--set", "congestion=vegas"], &["congestion", "reno", "vegas"]);
    refused(&["sim", "chain", "--set", "congestion=bbr"], &["congestion", "hearsay-lab run"]);
}

#[test]
fn a_wrong_command_line_names_what_is_wrong() {
    for (args, culprit) in [
        (&["run"][..], "<SCENARIO>"),
        (&["run", "chain", "--set", "hops"], "--set"),
        (&["run", "chain", "--scheme", "wombat"], "wombat"),
        (&["run", "chain", "--seed", "-1"], "-1"),
        (&["run", "chain", "--pcap", "0"], "--pcap"),
        (&["frobnicate"], "frobnicate"),
    ] {
        let world = World::new();
        let ended = world.run(args).expect(2);
        assert!(ended.out.is_empty() && ended.err.contains(culprit), "{args:?}: {}", ended.err);
    }
}

#[test]
fn a_router_without_a_route_is_named() {
    let world = World::new();
    let text = "gateway = 'a'\nrange_m = 100.0\ncarrier_sense_m = 220.0\n\
        [routers]\na = [0, 0]\nnear = [50, 0]\nfar = [900, 0]\n";
    fs::write(world.path("mine.toml"), text).expect("it can be written");
    for more in [&[][..], &["--set", "routing=babel"]] {
        let ended = world.run(&[&["run", "./mine.toml"], more].concat());
        ended.expect_refusal(&["./mine.toml", "far", "no route"]);
    }
    world.nothing_is_left();
}

#[test]
fn a_chain_with_too_long_links_is_refused() {
    refused(&["run", "chain", "--set", "spacing_m=300"], &["0-1", "300", "range_m"]);
}

#[test]
fn a_capture_of_an_unknown_router_is_refused() {
    refused(&["run", "chain", "--pcap", "9=x.pcap"], &["--pcap", "9", "0, 1, 2, 3, 4"]);
}

#[test]
fn a_daemon_that_is_none_is_named() {
    for path in ["/nowhere/hearsay", "/etc/passwd", "/etc"] {
        let world = World::new();
        let mut command = world.lab(&SMALL);
        command.env("HEARSAY_BIN", path);
        let ended = Run::start(command).end();
        ended.expect_refusal(&["HEARSAY_BIN", path]);
        world.nothing_is_left();
    }
}

/// An output that cannot be written would waste a long run.
#[track_caller]
fn an_output_is_refused(test: &str, option: &str, value: &str, culprit: &str) {
    if !can_run(test) {
        return;
    }
    let world = World::new();
    let ended = world.run(&[&SMALL[..], &[option, value]].concat());
    ended.expect_refusal(&[culprit]);
    world.nothing_is_left();
}

#[test]
fn a_result_that_cannot_be_written_is_refused() {
    let test = "a_result_that_cannot_be_written_is_refused";
    an_output_is_refused(test, "--json", "/nowhere/r.json", "/nowhere/r.json");
}

#[test]
fn a_report_that_cannot_be_written_is_refused() {
    let test = "a_report_that_cannot_be_written_is_refused";
    an_output_is_refused(test, "--html", "/nowhere/r.html", "/nowhere/r.html");
}

#[test]
fn a_capture_that_cannot_be_written_is_refused() {
    let test = "a_capture_that_cannot_be_written_is_refused";
    an_output_is_refused(test, "--pcap", "0=/nowhere/0.pcap", "/nowhere/0.pcap");
}

#[test]
fn a_folder_is_no_file_to_write_to() {
    an_output_is_refused("a_folder_is_no_file_to_write_to", "--json", "/tmp", "/tmp");
}

#[test]
fn a_router_is_captured_in_one_file_only() {
    const TEST: &str = "a_router_is_captured_in_one_file_only";
    if !can_run(TEST) {
        return;
    }
    let world = World::new();
    let ended = world.run(&[&SMALL[..], &["--pcap", "0=a.pcap", "--pcap", "0=b.pcap"]].concat());
    if ended.status.code() == Some(2) {
        ended.expect_refusal(&["router 0"]);
        return;
    }
    // Otherwise both options give the same output.
    ended.expect(0);
    let length = |name| fs::metadata(world.path(name)).map_or(0, |it| it.len());
    assert_eq!(length("a.pcap"), length("b.pcap"));
}

#[test]
fn one_file_is_not_written_by_two_captures() {
    const TEST: &str = "one_file_is_not_written_by_two_captures";
    if !can_run(TEST) {
        return;
    }
    let world = World::new();
    let ended = world.run(&[&SMALL[..], &["--pcap", "0=a.pcap", "--pcap", "1=a.pcap"]].concat());
    ended.expect_refusal(&["a.pcap"]);
}

#[test]
fn a_result_below_run_is_not_lost() {
    const TEST: &str = "a_result_below_run_is_not_lost";
    if !can_run(TEST) {
        return;
    }
    let world = World::new();
    let mut builder = tempfile::Builder::new();
    let Ok(file) = builder.prefix("hearsay-lab-test.").tempfile_in("/run") else {
        return skipped(TEST, "/run cannot be written to");
    };
    let path = file.path().to_str().expect("text");
    let ended = world.run(&[&SMALL[..], &["--json", path]].concat());
    if ended.status.code() == Some(2) {
        ended.expect_refusal(&[path]);
        return;
    }
    ended.expect(0);
    assert_ne!(fs::metadata(path).map_or(0, |it| it.len()), 0, "nothing said, nothing written");
}

#[test]
fn a_result_behind_a_link_to_run_is_not_lost() {
    const TEST: &str = "a_result_behind_a_link_to_run_is_not_lost";
    if !can_run(TEST) {
        return;
    }
    let world = World::new();
    let link = world.path("r.json");
    std::os::unix::fs::symlink("/run/hearsay-lab-test.none", &link).expect("a link");
    let ended = world.run(&[&SMALL[..], &["--json", "r.json"]].concat());
    ended.expect_refusal(&["r.json", "/run"]);
    assert!(link.is_symlink());
}

#[test]
fn a_daemon_below_run_is_found() {
    const TEST: &str = "a_daemon_below_run_is_found";
    if !can_run(TEST) {
        return;
    }
    let world = World::new();
    let Ok(folder) = tempfile::Builder::new().prefix("hearsay-lab-test.").tempdir_in("/run") else {
        return skipped(TEST, "/run cannot be written to");
    };
    let daemon = Path::new(env!("CARGO_BIN_EXE_hearsay-lab")).with_file_name("hearsay");
    let copy = folder.path().join("hearsay");
    if fs::copy(daemon, &copy).is_err() || Command::new(&copy).arg("--version").output().is_err() {
        return skipped(TEST, "/run has no room or lets nothing run");
    }
    let mut command = world.lab(&SMALL);
    command.env("HEARSAY_BIN", &copy);
    let ended = Run::start(command).end();
    if ended.status.code() == Some(2) {
        ended.expect_refusal(&[copy.to_str().expect("text")]);
        return;
    }
    ended.expect(0);
}

/// Runs a script that ends with `hearsay-lab`, in a mount namespace of its own.
fn behind(world: &World, script: &str, args: &[&str]) -> Option<Ended> {
    let user: &[&str] = if is_root() { &[] } else { &["--user", "--map-root-user"] };
    let unshare = || {
        let mut command = world.command("unshare");
        command.arg("--mount").args(user);
        command
    };
    let can = unshare().args(["sh", "-ec", script, "sh", "true"]).output();
    if !can.is_ok_and(|output| output.status.success()) {
        return None;
    }
    let mut command = unshare();
    command.args(["sh", "-ec", script, "sh", env!("CARGO_BIN_EXE_hearsay-lab")]).args(args);
    Some(Run::start(command).end())
}

#[test]
fn a_missing_program_is_named_with_what_to_install() {
    const TEST: &str = "a_missing_program_is_named_with_what_to_install";
    let babel = [&SMALL[..], &["--set", "routing=babel"]].concat();
    for (program, package, args) in
        [("nginx", "nginx", &SMALL[..]), ("nft", "nftables", &SMALL), ("babeld", "babeld", &babel)]
    {
        let Some(path) = tool(program) else {
            continue;
        };
        let world = World::new();
        // A device is not a program.
        let script = format!("mount --bind /dev/null {}; exec \"$@\"", path.display());
        let Some(ended) = behind(&world, &script, args) else {
            return skipped(TEST, "mount namespaces are not allowed here");
        };
        ended.expect_refusal(&[program, &format!("apt install {package}")]);
        world.nothing_is_left();
    }
}

#[test]
fn a_program_that_is_not_needed_may_be_missing() {
    const TEST: &str = "a_program_that_is_not_needed_may_be_missing";
    if !can_run(TEST) {
        return;
    }
    let Some(nft) = tool("nft").filter(|_| is_root()) else {
        return skipped(TEST, "it needs root");
    };
    let world = World::new();
    let script = format!("mount --bind /dev/null {}; exec \"$@\"", nft.display());
    let args = [&SMALL[..], &["--scheme", "end-to-end"]].concat();
    match behind(&world, &script, &args) {
        Some(ended) => drop(ended.expect(0)),
        None => skipped(TEST, "mount namespaces are not allowed here"),
    }
}

#[test]
fn a_machine_without_tun_is_told_to_load_it() {
    const TEST: &str = "a_machine_without_tun_is_told_to_load_it";
    if !Path::new("/dev/net").exists() {
        return skipped(TEST, "there is no /dev/net to hide");
    }
    let world = World::new();
    match behind(&world, "mount -t tmpfs none /dev/net; exec \"$@\"", &SMALL) {
        Some(ended) => drop(ended.expect_refusal(&["/dev/net/tun", "modprobe tun"])),
        None => skipped(TEST, "mount namespaces are not allowed here"),
    }
}
