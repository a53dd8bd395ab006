//! Runs of a user who is not root.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use rustix::process::Signal;

use crate::lab::{self, Run, World, can_run, is_root, missing, open_to_all, skipped, wait_until};

const NOBODY: [&str; 6] = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"];

/// Copies the programs to a folder that other users can read: the target directory may be in a private home.
fn copy_programs(world: &World) -> String {
    let lab = Path::new(env!("CARGO_BIN_EXE_hearsay-lab"));
    for program in [lab.to_owned(), lab.with_file_name("hearsay")] {
        let name = program.file_name().expect("it has one").to_str().expect("text");
        fs::copy(&program, world.path(name)).expect("a copy");
        open_to_all(&world.path(name), 0o755);
    }
    world.text("hearsay-lab")
}

/// Makes a command, started as root, that runs as an ordinary user who may use /dev/net/tun, as on Debian. A
/// device node of our own replaces the machine's, in a mount namespace of our own.
fn as_nobody(world: &World, program: &[&str]) -> Command {
    let script = "mount -t tmpfs -o dev none /mnt; mknod -m 666 /mnt/tun c 10 200
        mount --bind /mnt/tun /dev/net/tun; umount -l /mnt; exec \"$@\"";
    let mut command = world.command("unshare");
    command.args(["--mount", "sh", "-ec", script, "sh"]).args(NOBODY).args(program);
    command
}

/// A run as an ordinary user. `None` if that is impossible here, which is printed.
fn run(test: &str, world: &World, args: &[&str]) -> Option<Run> {
    if !is_root() {
        return can_run(test).then(|| world.start(args));
    }
    if let Some(why) = missing(&["setpriv", "unshare", "ip", "nft", "curl", "nginx"]) {
        skipped(test, &why);
        return None;
    }
    let script = ": <>/dev/net/tun; PATH=$PATH:/usr/sbin
        unshare --user --map-root-user --mount --net sh -ec 'mount -t tmpfs none /run; ip netns add x'";
    let can = as_nobody(world, &["sh", "-ec", script]).output().expect("unshare starts");
    if !can.status.success() {
        let said = String::from_utf8_lossy(&can.stderr);
        skipped(test, &format!("an ordinary user cannot do it here: {}", said.trim()));
        return None;
    }
    let program = copy_programs(world);
    Some(Run::start(as_nobody(world, &[&[program.as_str()], args].concat())))
}

#[test]
fn an_ordinary_user_runs_a_chain() {
    let world = World::new();
    let args = ["run", "chain", "--set", "hops=2", "--set", "bytes=100000", "--set", "rounds=2"];
    let args = [&args[..], &["--json", "-"]].concat();
    let Some(run) = run("an_ordinary_user_runs_a_chain", &world, &args) else { return };
    let ended = run.end().expect(0);
    let result = ended.json();
    let transfers = result["transfers"].as_array().expect("a list");
    assert_eq!(transfers.len(), 2);
    assert!(transfers.iter().all(|it| it["sha256_ok"] == true), "{result}");
    assert_eq!(transfers[1]["bytes_by_source"]["local"], 100_000, "{result}");
    world.nothing_is_left();
}

#[test]
fn an_ordinary_user_gets_routes_by_babeld() {
    const TEST: &str = "an_ordinary_user_gets_routes_by_babeld";
    if let Some(why) = missing(&["babeld"]) {
        return skipped(TEST, &why);
    }
    let world = World::new();
    let args = ["run", "chain", "--set", "hops=2", "--set", "bytes=50000", "--json", "-"];
    let args = [&args[..], &["--set", "routing=babel"]].concat();
    let Some(run) = run(TEST, &world, &args) else { return };
    let result = run.end().expect(0).json();
    assert_eq!(result["transfers"][0]["sha256_ok"], true, "{result}");
    world.nothing_is_left();
}

#[test]
fn an_ordinary_user_ends_a_run_with_ctrl_c() {
    const TEST: &str = "an_ordinary_user_ends_a_run_with_ctrl_c";
    let world = World::new();
    let args = ["run", "chain", "--set", "hops=1", "--set", "bytes=50000000"];
    let Some(mut run) = run(TEST, &world, &args) else { return };
    run.wait_for_program("curl");
    let family = run.family();
    run.signal(Signal::INT);
    run.end().expect(130);
    let alive = || family.iter().filter(|it| it.is_alive()).collect::<Vec<_>>();
    wait_until(|| format!("still there: {:?}", alive()), || alive().is_empty());
    world.nothing_is_left();
}

#[test]
fn an_ordinary_user_enters_a_kept_mesh() {
    const TEST: &str = "an_ordinary_user_enters_a_kept_mesh";
    let world = World::new();
    let args = ["run", "chain", "--set", "hops=1", "--set", "bytes=1000", "--keep"];
    let Some(mut run) = run(TEST, &world, &args) else { return };
    let said = run.wait_for_word("bash\n");
    let user: &[&str] = if is_root() { &NOBODY } else { &[] };
    let text = lab::enter(&said, "ip -o addr show wl0", user);
    assert!(text.contains("10.77.0.1/32"), "{text}");
    run.signal(Signal::INT);
    run.end().expect(0);
    world.nothing_is_left();
}

#[test]
fn a_user_who_may_not_open_tun_is_told_what_to_do() {
    const TEST: &str = "a_user_who_may_not_open_tun_is_told_what_to_do";
    if !is_root() {
        return skipped(TEST, "it needs root, to become somebody with fewer rights");
    }
    if let Some(why) = missing(&["setpriv", "ip", "nft", "curl", "nginx"]) {
        return skipped(TEST, &why);
    }
    match fs::metadata("/dev/net/tun") {
        Ok(it) if it.permissions().mode() & 0o006 == 0 => {}
        _ => return skipped(TEST, "everybody may open /dev/net/tun here, or nobody"),
    }
    let world = World::new();
    let mut command = world.command(NOBODY[0]);
    command.args(&NOBODY[1..]).arg(copy_programs(&world)).args(["run", "chain"]);
    let ended = Run::start(command).end();
    ended.expect_refusal(&["/dev/net/tun", "Permission denied", "root", "chmod 666"]);
    world.nothing_is_left();
}

#[test]
fn a_user_who_may_not_make_namespaces_is_told_what_to_do() {
    const TEST: &str = "a_user_who_may_not_make_namespaces_is_told_what_to_do";
    if !is_root() {
        return skipped(TEST, "it needs root, to forbid them");
    }
    if let Some(why) = missing(&["setpriv", "unshare", "ip", "nft", "curl", "nginx"]) {
        return skipped(TEST, &why);
    }
    let world = World::new();
    let program = copy_programs(&world);
    // A user namespace whose limit is none; the machine's own limit is not changed.
    let script = "echo 0 >/proc/sys/user/max_user_namespaces; exec \"$@\"";
    let inside = ["unshare", "--user", "--map-root-user", "sh", "-ec", script, "sh"];
    let keep = ["setpriv", "--bounding-set", "-all", "--inh-caps", "-all"];
    let can = as_nobody(&world, &[&inside[..], &keep, &["true"]].concat()).output();
    if !can.is_ok_and(|output| output.status.success()) {
        return skipped(TEST, "namespaces of ordinary users cannot be limited here");
    }
    let args = [&inside[..], &keep, &[&program, "run", "chain"]].concat();
    let ended = Run::start(as_nobody(&world, &args)).end();
    ended.expect_refusal(&["namespaces", "run as root"]);
    world.nothing_is_left();
}
