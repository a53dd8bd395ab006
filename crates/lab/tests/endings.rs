//! A run leaves nothing behind, however it ends.

use rustix::process::Signal;

use crate::lab::{self, Process, Run, World, can_run, is_root, skipped, wait_until};

/// Transfers that last much longer than any of these tests.
const LONG: [&str; 6] = ["run", "chain", "--set", "hops=2", "--set", "bytes=50000000"];

/// A run in the middle of a transfer, and all its processes.
fn in_the_middle(world: &World) -> (Run, Vec<Process>) {
    let mut run = world.start(&LONG);
    run.wait_for_program("curl");
    let family = run.family();
    let has = |name| family.iter().any(|it| it.name.starts_with(name));
    assert!(has("unshare") && has("nginx") && has("hearsay"), "{family:?}");
    // Checks first that processes can be found at all: later none may be.
    assert!(world.processes().len() > 3, "{:?}", world.processes());
    (run, family)
}

#[track_caller]
fn nothing_is_left(world: &World, family: &[Process]) {
    let alive = || family.iter().filter(|it| it.is_alive()).collect::<Vec<_>>();
    wait_until(|| format!("still there: {:?}", alive()), || alive().is_empty());
    world.nothing_is_left();
}

/// The other tests rely on this to fail if a run leaves anything.
#[test]
fn anything_that_is_left_would_be_seen() {
    const TEST: &str = "anything_that_is_left_would_be_seen";
    if !is_root() {
        return skipped(TEST, "it needs root, to leave something");
    }
    if !can_run(TEST) {
        return;
    }
    let world = World::new();
    for (make, remove) in [
        ("ip netns add left", "ip netns delete left; umount /run/netns; rmdir /run/netns"),
        ("ip link add left0 type veth peer name left1", "ip link delete left0"),
        ("mount -t tmpfs none /mnt", "umount /mnt"),
        ("cp /etc/hosts hosts; echo 192.0.2.1 left >>/etc/hosts", "cat hosts >/etc/hosts"),
    ] {
        let sh = |script| {
            let path = std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/sbin";
            let ended = world.command("sh").args(["-ec", script]).env("PATH", path).status();
            assert!(ended.is_ok_and(|it| it.success()), "{script}");
        };
        sh(make);
        assert!(!world.is_outside_as_before(), "{make}");
        sh(remove);
        world.nothing_is_left();
    }
}

#[track_caller]
fn a_signal_ends_all(test: &str, signal: Signal, code: i32) {
    if !can_run(test) {
        return;
    }
    let world = World::new();
    let (run, family) = in_the_middle(&world);
    run.signal(signal);
    let ended = run.end().expect(code);
    let last = ended.err.lines().last();
    assert_eq!(last, Some("hearsay-lab: interrupted"), "{}", ended.err);
    nothing_is_left(&world, &family);
}

#[test]
fn ctrl_c_ends_all() {
    a_signal_ends_all("ctrl_c_ends_all", Signal::INT, 130);
}

#[test]
fn the_signal_to_terminate_ends_all() {
    a_signal_ends_all("the_signal_to_terminate_ends_all", Signal::TERM, 143);
}

#[test]
fn a_terminal_that_goes_away_ends_all() {
    a_signal_ends_all("a_terminal_that_goes_away_ends_all", Signal::HUP, 129);
}

#[test]
fn a_second_ctrl_c_does_no_harm() {
    if !can_run("a_second_ctrl_c_does_no_harm") {
        return;
    }
    let world = World::new();
    let (run, family) = in_the_middle(&world);
    run.signal(Signal::INT);
    run.signal(Signal::TERM);
    run.signal(Signal::INT);
    let code = run.end().status.code();
    assert!(matches!(code, Some(130 | 143)), "{code:?}");
    nothing_is_left(&world, &family);
}

#[test]
fn killing_the_outside_ends_all() {
    if !can_run("killing_the_outside_ends_all") {
        return;
    }
    let world = World::new();
    let (run, family) = in_the_middle(&world);
    run.signal(Signal::KILL);
    assert_eq!(run.end().status.code(), None);
    nothing_is_left(&world, &family);
}

/// Kills one of the processes between the launcher and the mesh.
#[track_caller]
fn killing_one_ends_all(test: &str, name: &str) {
    if !can_run(test) {
        return;
    }
    let world = World::new();
    let (run, family) = in_the_middle(&world);
    let one = family.iter().skip(1).find(|it| it.name == name).expect("it is there");
    lab::kill(one);
    let ended = run.end().expect(1);
    nothing_is_left(&world, &family);
    let last = ended.err.lines().last().unwrap_or_default();
    let told = "hearsay-lab: the process inside the namespaces was ended";
    assert!(last.starts_with(told), "{}", ended.err);
}

#[test]
fn killing_the_inside_ends_all_and_is_told() {
    killing_one_ends_all("killing_the_inside_ends_all_and_is_told", "hearsay-lab");
}

#[test]
fn killing_what_holds_the_namespaces_ends_all_and_is_told() {
    killing_one_ends_all("killing_what_holds_the_namespaces_ends_all_and_is_told", "unshare");
}

#[test]
fn a_run_that_is_killed_while_it_builds_leaves_nothing() {
    if !can_run("a_run_that_is_killed_while_it_builds_leaves_nothing") {
        return;
    }
    for signal in [Signal::KILL, Signal::INT] {
        let world = World::new();
        // Many namespaces take a while to build.
        let mut run = world.start(&["run", "map21", "--set", "bytes=50000"]);
        run.wait_for_inside();
        let family = run.family();
        run.signal(signal);
        let ended = run.end();
        let code = (signal == Signal::INT).then_some(130);
        assert_eq!(ended.status.code(), code, "{}", ended.err);
        assert!(!ended.err.contains("daemons"), "it was too late: {}", ended.err);
        nothing_is_left(&world, &family);
    }
}

#[test]
fn a_run_whose_origin_dies_names_it() {
    if !can_run("a_run_whose_origin_dies_names_it") {
        return;
    }
    let world = World::new();
    let (run, family) = in_the_middle(&world);
    let origin = family.iter().filter(|it| it.name == "nginx");
    origin.for_each(lab::kill);
    let ended = run.end().expect(1);
    let last = ended.err.lines().last().unwrap_or_default();
    assert!(last.starts_with("hearsay-lab: ") && last.contains("nginx"), "{}", ended.err);
    nothing_is_left(&world, &family);
}

#[test]
fn a_mesh_that_is_kept_can_be_entered_and_ends_with_ctrl_c() {
    if !can_run("a_mesh_that_is_kept_can_be_entered_and_ends_with_ctrl_c") {
        return;
    }
    let world = World::new();
    let small = ["run", "chain", "--set", "hops=1", "--set", "bytes=50000"];
    let mut run = world.start(&[&small[..], &["--keep", "--json", "r.json"]].concat());
    let said = run.wait_for_word("bash\n");
    assert!(said.contains("until ctrl-C"), "{said}");
    assert!(world.path("r.json").exists(), "the result is there before the end");
    let enter = |what: &str| lab::enter(&said, what, &[]);
    assert!(enter("ip -o addr show wl0").contains("10.77.0.1/32"));
    assert!(enter("cat /etc/hosts").contains("origin"), "the files are the run's too");
    let family = run.family();
    run.signal(Signal::INT);
    let ended = run.end().expect(0);
    assert!(!ended.err.contains("interrupted"), "{}", ended.err);
    nothing_is_left(&world, &family);
}

#[test]
fn a_kept_mesh_goes_with_its_outside() {
    if !can_run("a_kept_mesh_goes_with_its_outside") {
        return;
    }
    let world = World::new();
    let mut run =
        world.start(&["run", "chain", "--set", "hops=1", "--set", "bytes=1000", "--keep"]);
    run.wait_for_word("until ctrl-C");
    let family = run.family();
    run.signal(Signal::KILL);
    run.end();
    nothing_is_left(&world, &family);
}
