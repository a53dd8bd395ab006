//! Daemons die, routes change, strangers connect: clients see a delay or a proper failure, and never wrong
//! bytes.

use std::fs;

use crate::lab::{self, Kept, World, can_run, wait_until};

const LENGTH: usize = 1_500_000;

/// A chain of three hops whose daemons ask each other, hop by hop.
fn chain(world: &World, scheme: &str) -> Kept {
    let args = ["run", "chain", "--set", "hops=3", "--set", "bytes=1000", "--scheme", scheme];
    Kept::start(world, &[&args[..], &["--set", "requests=3 2 1"]].concat())
}

/// A client at the end of the chain that has received a part of a file.
fn in_the_middle(mesh: &Kept) -> (lab::kept::Download, Vec<u8>) {
    let bytes = mesh.publish("large.bin", LENGTH);
    let mut download = mesh.download("3", "large.bin");
    download.wait_for(LENGTH / 5);
    (download, bytes)
}

#[track_caller]
fn over(world: &World, mesh: Kept) {
    mesh.end().expect(0);
    world.nothing_is_left();
}

#[test]
fn a_relay_whose_daemon_dies_costs_a_delay() {
    if !can_run("a_relay_whose_daemon_dies_costs_a_delay") {
        return;
    }
    let world = World::new();
    let mesh = chain(&world, "ph-thcp");
    let (download, bytes) = in_the_middle(&mesh);
    mesh.kill("2");
    download.end().expect(&bytes);
    // From now on the failed neighbour is skipped.
    let more = mesh.publish("more.bin", 50_000);
    mesh.get("3", "more.bin").expect(&more);
    over(&world, mesh);
}

#[test]
fn what_a_relay_kept_is_there_after_it_was_killed() {
    if !can_run("what_a_relay_kept_is_there_after_it_was_killed") {
        return;
    }
    let world = World::new();
    let mesh = chain(&world, "ph-thcp");
    let bytes = mesh.publish("kept.bin", 300_000);
    mesh.get("3", "kept.bin").expect(&bytes);
    let kept = || mesh.status("2").is_some_and(|it| it["report"]["unsynced"] == false);
    wait_until(|| format!("{:#?}", mesh.status("2")), kept);
    let _again = mesh.restart("2");
    // No other router has the file any more.
    for router in ["0", "1", "3"] {
        mesh.kill(router);
    }
    mesh.say("origin", &["rm", "/run/lab/www/kept.bin"]);
    mesh.get("2", "kept.bin").expect(&bytes).expect_hit_at("2");
    over(&world, mesh);
}

#[test]
fn a_gateway_that_begins_anew_splices_nothing() {
    if !can_run("a_gateway_that_begins_anew_splices_nothing") {
        return;
    }
    for scheme in ["ph-thcp", "thcp"] {
        let world = World::new();
        let mesh = chain(&world, scheme);
        let (download, bytes) = in_the_middle(&mesh);
        let _again = mesh.restart("0");
        let got = download.end();
        assert!(bytes.starts_with(&got.body), "{scheme}: wrong bytes");
        assert_eq!(got.is_whole, got.body.len() == LENGTH, "{scheme}");
        mesh.get("3", "large.bin").expect(&bytes);
        over(&world, mesh);
    }
}

#[test]
fn a_mesh_without_daemons_carries_as_if_there_had_never_been_any() {
    if !can_run("a_mesh_without_daemons_carries_as_if_there_had_never_been_any") {
        return;
    }
    let world = World::new();
    let mesh = chain(&world, "ph-thcp");
    for router in ["0", "1", "2", "3"] {
        mesh.kill(router);
    }
    let bytes = mesh.publish("direct.bin", 50_000);
    let got = mesh.get("3", "direct.bin").expect(&bytes);
    assert!(got.caches().is_empty(), "{}", got.head);
    over(&world, mesh);
}

/// Two routes from `far` to the gateway: over `left`, which is the first, and over `right`.
const DIAMOND: &str = "gateway = 'gate'\nreceivers = ['far']\nbytes = 1000\nroutes = ['gate left far', \
    'gate right']\n[routers]\ngate = [0, 0]\nleft = [160, 100]\nright = [160, -100]\nfar = [320, 0]\n";

/// Moves traffic between `far` and the gateway to `right`.
fn move_to_the_right(mesh: &Kept) {
    // The addresses follow the order of the routers in the scenario.
    let [gate, right, far] = ["10.77.0.1", "10.77.0.3", "10.77.0.4"];
    for (router, to, over) in [
        ("right", far, far),
        ("right", "10.78.4.0/24", far),
        ("gate", far, right),
        ("gate", "10.78.4.0/24", right),
        ("far", right, right),
        ("far", gate, right),
        ("far", "default", right),
    ] {
        let words = ["ip", "route", "replace", to, "via", over, "dev", "wl0", "onlink"];
        mesh.say(&format!("router-{router}"), &words);
    }
}

#[test]
fn routes_that_change_cost_a_delay() {
    if !can_run("routes_that_change_cost_a_delay") {
        return;
    }
    for scheme in ["ph-thcp", "thcp"] {
        let world = World::new();
        fs::write(world.path("diamond.toml"), DIAMOND).expect("it can be written");
        let mesh = Kept::start(&world, &["run", "./diamond.toml", "--scheme", scheme]);
        let bytes = mesh.publish("large.bin", LENGTH);
        let mut download = mesh.download("far", "large.bin");
        download.wait_for(LENGTH / 5);
        move_to_the_right(&mesh);
        // The old route does not work any more.
        mesh.say("router-left", &["ip", "link", "set", "wl0", "down"]);
        download.end().expect(&bytes);
        let more = mesh.publish("more.bin", 50_000);
        let got = mesh.get("far", "more.bin").expect(&more);
        let passed_right = got.caches().iter().any(|it| it.starts_with("router-right;"));
        assert_eq!(passed_right, scheme == "ph-thcp", "{}", got.head);
        over(&world, mesh);
    }
}

/// Attacks of strangers on a router's port for peers, as bash scripts. Each touches its mark once it has
/// connected.
const STRANGERS: [(&str, &str); 4] = [
    ("garbage", "while :; do exec 3<>$door && head -c 100000 /dev/urandom >&3; touch $mark; done"),
    (
        "half a handshake",
        "for i in $(seq 200); do
            exec {fd}<>$door && printf 'HSPR\\2\\1\\0\\0\\0\\40' >&$fd && touch $mark
        done; sleep 1000",
    ),
    (
        "a handshake that means nothing",
        "while :; do
            exec 3<>$door && { printf 'HSPR\\2\\1\\0\\0\\0\\40'; head -c 32 /dev/urandom
            printf '\\0\\144'; head -c 100 /dev/urandom; } >&3
            cat <&3 >/dev/null; touch $mark
        done",
    ),
    ("a flood", "for i in $(seq 400); do exec {fd}<>$door && touch $mark; done; sleep 1000"),
];

#[test]
fn strangers_at_the_port_for_peers_disturb_nobody() {
    if !can_run("strangers_at_the_port_for_peers_disturb_nobody") {
        return;
    }
    let world = World::new();
    let mesh = chain(&world, "ph-thcp");
    let daemons = ["0", "1", "2", "3"].map(|router| mesh.daemon(router));
    for (number, (what, script)) in STRANGERS.iter().enumerate() {
        let mark = format!("/run/lab/stranger-{number}");
        // From a neighbour, over the air.
        let script = format!("door=/dev/tcp/10.77.0.2/3131; mark={mark}; {script}");
        let _stranger = mesh.start_within("router-0", &["bash", "-c", &script]);
        let got_through = || mesh.command("router-0", &["test", "-e", &mark]).status();
        wait_until(|| what.to_string(), || got_through().is_ok_and(|it| it.success()));
        let name = format!("beside-{number}.bin");
        let bytes = mesh.publish(&name, 200_000);
        mesh.get("3", &name).expect(&bytes);
    }
    for daemon in &daemons {
        assert!(daemon.is_alive(), "{daemon:?} is gone");
    }
    let memory =
        fs::read_to_string(format!("/proc/{}/status", daemons[1].id)).expect("it is there");
    let peak = memory.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("Linux tells it");
    let peak: u64 = peak.trim().trim_end_matches(" kB").parse().expect("a number");
    assert!(peak < 96 * 1024, "{peak} KiB");
    over(&world, mesh);
}
