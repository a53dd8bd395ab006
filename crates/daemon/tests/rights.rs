//! Least rights: what a running daemon can and cannot do, its helper process, and what becomes of the rules when either
//! of them is killed.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

#[cfg(target_arch = "x86_64")]
use crate::intruder::Intruder;
use crate::world::network::{self, CLIENT, ORIGIN};
use crate::world::{
    Curl, Hearsay, Nginx, Process, Reply, World, sh, skipped, tool, wait_for, wait_until,
};

const INTERCEPT: [&str; 2] = ["--intercept", "lan0"];

fn get(url: &str) -> Reply {
    Curl::new(CLIENT, url).run()
}

fn rules() -> String {
    sh("nft list ruleset; ip rule; ip -6 rule; ip route show table 3130 || true")
}

fn has_rules() -> bool {
    let rules = rules();
    rules.contains("table inet hearsay") || rules.contains("fwmark 0x4000000")
}

fn rights(hearsay: &Hearsay) -> Value {
    hearsay.status()["rights"].clone()
}

fn helper(hearsay: &Hearsay) -> u64 {
    hearsay.number("/rights/helper_process")
}

fn is_alive(process: u64) -> bool {
    let status = fs::read_to_string(format!("/proc/{process}/status"));
    status.is_ok_and(|text| !text.contains("\nState:\tZ"))
}

fn signal(process: u64, name: &str) {
    sh(&format!("kill -s {name} {process}"));
}

/// Lines of a thread's status in /proc, by name.
fn fields(status: &Path, names: &[&str]) -> Vec<String> {
    let text = fs::read_to_string(status).expect("a thread's status");
    let value =
        |name: &&str| text.lines().find_map(|line| line.strip_prefix(&format!("{name}:\t")));
    names.iter().map(|name| value(name).unwrap_or("none").trim().to_owned()).collect()
}

#[track_caller]
fn metric(hearsay: &Hearsay, name: &str) -> String {
    hearsay.metric(name).unwrap_or_else(|| panic!("no {name} in {}", hearsay.metrics()))
}

#[test]
fn every_thread_has_few_rights_and_the_helper_has_two() {
    network::inside("every_thread_has_few_rights_and_the_helper_has_two", || {
        let world = World::new();
        let args = ["--intercept", "lan0", "--mesh", "wan0", "--overhear", "wan0"];
        let hearsay = Hearsay::start_with(&world, &args);
        let sets = ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"];
        let threads = fs::read_dir(format!("/proc/{}/task", hearsay.id())).expect("its threads");
        let threads: Vec<PathBuf> = threads.flatten().map(|it| it.path().join("status")).collect();
        // The loop, two of the store, and the capture.
        assert!(threads.len() >= 4, "{threads:?}");
        for thread in &threads {
            assert_eq!(fields(thread, &sets), ["0000000000000000"; 5], "{thread:?}");
            let [none, filtered] = &fields(thread, &["NoNewPrivs", "Seccomp"])[..] else {
                panic!()
            };
            assert_eq!(none, "1", "{thread:?}");
            // 2 is SECCOMP_MODE_FILTER.
            assert!(
                filtered == "2" || cfg!(not(any(target_arch = "x86_64", target_arch = "aarch64")))
            );
        }
        let status = PathBuf::from(format!("/proc/{}/status", helper(&hearsay)));
        // CAP_NET_ADMIN is 12, CAP_NET_RAW 13.
        assert_eq!(fields(&status, &sets), ["0000000000003000"; 5]);
        assert_eq!(fields(&status, &["NoNewPrivs", "Name"]), ["1", "hearsay-helper"]);
        assert_eq!(hearsay.status()["overhear"]["works"], true, "{}", hearsay.log());
        let page = String::from_utf8_lossy(&hearsay.command(&["status"]).stdout).into_owned();
        let line = format!(
            "rights       no capabilities, no new privileges, seccomp, landlock, helper {}",
            helper(&hearsay)
        );
        match rights(&hearsay)["skipped"].as_array().map(Vec::as_slice) {
            Some([]) => {
                assert!(page.contains(&line), "{page}");
                assert_eq!(metric(&hearsay, "hearsay_rights_limited"), "1");
            }
            some => {
                skipped("the line of the status", &format!("this kernel lacks limits: {some:?}"))
            }
        }
        assert_eq!(metric(&hearsay, "hearsay_helper_up"), "1");
    });
}

/// What an intruder tries in a process, and what the kernel answers.
#[cfg(target_arch = "x86_64")]
struct Attempts {
    elsewhere: i64,
    overwrite: i64,
    packets: i64,
    new_user: i64,
    capabilities: i64,
    execute: i64,
}

/// The attempts that the daemon's limits are for; the last one ends a process that succeeds.
#[cfg(target_arch = "x86_64")]
fn attempt(it: &mut Intruder, outside: &World) -> Attempts {
    use nix::libc;

    let packets = [libc::AF_PACKET, libc::SOCK_RAW, 0].map(|it| it as u64);
    Attempts {
        elsewhere: it.open(&outside.path("new"), libc::O_CREAT | libc::O_WRONLY),
        overwrite: it.open(&outside.path("precious"), libc::O_WRONLY),
        packets: it.call(libc::SYS_socket, &packets),
        new_user: it.call(libc::SYS_unshare, &[libc::CLONE_NEWUSER as u64]),
        capabilities: it.take_capabilities(),
        execute: it.execute("/bin/true"),
    }
}

#[cfg(target_arch = "x86_64")]
#[test]
fn the_running_daemon_cannot_execute_write_elsewhere_or_regain_a_capability() {
    use nix::libc::{self, EACCES, EPERM};

    const NAME: &str = "the_running_daemon_cannot_execute_write_elsewhere_or_regain_a_capability";
    network::inside(NAME, || {
        let world = World::new();
        let nginx = Nginx::start_in(&world, ORIGIN, "");
        nginx.put("file", b"hello");
        let hearsay = Hearsay::start_with(&world, &INTERCEPT);
        let limits = rights(&hearsay);
        if limits["seccomp"] != true || limits["landlock"] != true {
            return skipped(NAME, &format!("this kernel lacks limits: {limits}"));
        }
        let outside = World::new();
        let precious = outside.write("precious", b"precious");

        // All of it succeeds in a process with the rights of this test.
        let mut plain = Process(Command::new("sleep").arg("1000").spawn().expect("sleep"));
        let it = attempt(&mut Intruder::into(plain.id()), &outside);
        assert!(it.elsewhere >= 0 && it.overwrite >= 0 && it.packets >= 0);
        assert_eq!((it.new_user, it.capabilities, it.execute), (0, 0, 0));
        plain.kill();
        fs::remove_file(outside.path("new")).expect("it was made");

        let helper = helper(&hearsay);
        {
            // Landlock's error, and the others'.
            let (elsewhere, forbidden) = (-i64::from(EACCES), -i64::from(EPERM));
            let mut intruder = Intruder::into(hearsay.id());
            let it = attempt(&mut intruder, &outside);
            assert_eq!((it.elsewhere, it.overwrite), (elsewhere, elsewhere));
            assert_eq!(
                (it.packets, it.new_user, it.capabilities, it.execute),
                (forbidden, forbidden, forbidden, forbidden)
            );
            assert_eq!(intruder.open(&precious, libc::O_RDONLY), elsewhere);
            let create = libc::O_CREAT | libc::O_WRONLY;
            assert!(intruder.open(&hearsay.store().join("own"), create) >= 0, "its own place");
            assert!(intruder.open(Path::new("/etc/hosts"), libc::O_RDONLY) >= 0);
            let is_complete = limits["skipped"].as_array().is_some_and(Vec::is_empty);
            for (call, args, answer) in other_ways(&mut intruder, helper, is_complete) {
                assert_eq!(intruder.call(call, &args), answer, "call {call}");
            }
        }
        assert!(!outside.path("new").exists() && hearsay.store().join("own").exists());
        // And it goes on with its work.
        assert_eq!(get("http://origin.test/file").expect(200).text(), "hello");
        assert_eq!(get("http://origin.test/file").expect_hit().text(), "hello");
        assert!(is_alive(helper));
    });
}

/// Further calls with their arguments, and the errors that they get.
#[cfg(target_arch = "x86_64")]
fn other_ways(
    it: &mut Intruder,
    helper: u64,
    is_complete: bool,
) -> Vec<(nix::libc::c_long, Vec<u64>, i64)> {
    use nix::libc::*;

    let (empty, tmpfs, place) = (it.text(""), it.text("tmpfs"), it.text("/run"));
    let forbidden = -i64::from(EPERM);
    let mut ways = vec![
        (SYS_execveat, vec![0, empty, 0, 0, AT_EMPTY_PATH as u64], forbidden),
        (SYS_clone, vec![(CLONE_NEWUSER | SIGCHLD) as u64], forbidden),
        (SYS_clone3, vec![0, 64], -i64::from(ENOSYS)),
        (SYS_ptrace, vec![PTRACE_ATTACH.into(), helper], forbidden),
        (SYS_mount, vec![tmpfs, place, tmpfs, 0, 0], forbidden),
        (SYS_bpf, vec![0, 0, 0], forbidden),
        (SYS_keyctl, vec![0, 0, 0], forbidden),
        (SYS_finit_module, vec![0, empty, 0], forbidden),
    ];
    if is_complete {
        ways.push((SYS_kill, vec![helper, SIGKILL as u64], forbidden));
    } else {
        skipped("that the helper is out of reach of signals", "landlock is older than Linux 6.12");
    }
    ways
}

#[test]
fn a_daemon_whose_helper_is_killed_serves_on_and_says_so() {
    network::inside("a_daemon_whose_helper_is_killed_serves_on_and_says_so", || {
        let world = World::new();
        let nginx = Nginx::start_in(&world, ORIGIN, "");
        nginx.put("file", b"hello");
        let text = "listen = []\n[intercept]\ninterfaces = [\"lan0\"]\n";
        let config = world.write("hearsay.toml", text.as_bytes()).display().to_string();
        let mut hearsay = Hearsay::start_with(&world, &["--config", &config]);
        let process = helper(&hearsay);
        // A service manager sends these to every process of a service; the daemon alone decides.
        for name in ["TERM", "INT", "HUP", "ABRT"] {
            signal(process, name);
        }
        world.write(
            "hearsay.toml",
            text.replace("[intercept]\n", "[intercept]\nhttp = [81]\n").as_bytes(),
        );
        hearsay.hang_up();
        wait_until("the helper to have set the new rules", || rules().contains("81"));
        assert_eq!(rights(&hearsay)["helper"], true);

        signal(process, "KILL");
        wait_until("the daemon to notice", || rights(&hearsay)["helper"] == false);
        assert!(!is_alive(process));
        wait_until("no zombie to stay", || !Path::new(&format!("/proc/{process}")).exists());
        wait_until("the log to say so", || hearsay.log().contains("the helper process has ended"));
        assert_eq!(metric(&hearsay, "hearsay_helper_up"), "0");
        let page = String::from_utf8_lossy(&hearsay.command(&["status"]).stdout).into_owned();
        assert!(page.contains("no helper any more") && page.contains("Restart it"), "{page}");
        assert_eq!(get("http://origin.test/file").expect(200).text(), "hello");
        assert!(!get("http://origin.test/file").expect_hit().field("via").is_empty());

        world.write("hearsay.toml", text.as_bytes());
        hearsay.hang_up();
        wait_until("the reload", || {
            hearsay.log().contains("the interception rules stay as they were")
        });
        assert!(rules().contains("81"));
        assert_eq!(hearsay.status()["intercept"]["works"], true);
        hearsay.terminate();
        // Nobody could remove the rules, and they harm nobody.
        assert!(has_rules());
        assert!(get("http://origin.test/file").expect(200).field("via").is_empty());
        hearsay.restart();
        assert_eq!(hearsay.status()["intercept"]["works"], true, "{}", hearsay.log());
        assert!(!rules().contains("81"));
        hearsay.terminate();
        assert!(!has_rules(), "{}", rules());
    });
}

#[test]
fn the_rules_of_a_killed_daemon_go_and_those_of_the_next_stay() {
    network::inside("the_rules_of_a_killed_daemon_go_and_those_of_the_next_stay", || {
        let world = World::new();
        let nginx = Nginx::start_in(&world, ORIGIN, "");
        nginx.put("file", b"hello");
        let before = rules();
        let mut hearsay = Hearsay::start_with(&world, &INTERCEPT);
        for _ in 0..5 {
            let process = helper(&hearsay);
            let lock = fs::metadata(format!("{}.lock", hearsay.control().display()));
            assert_eq!(lock.expect("the lock's file").permissions().mode() & 0o777, 0o600);
            // The old helper removes its rules while the new one wants to set the same.
            hearsay.restart();
            wait_until("the old helper to end", || !is_alive(process));
            assert_eq!(hearsay.status()["intercept"]["works"], true, "{}", hearsay.log());
            let check = hearsay.command(&["intercept", "check"]);
            assert!(check.status.success(), "{}", String::from_utf8_lossy(&check.stdout));
        }
        assert!(!get("http://origin.test/file").expect(200).field("via").is_empty());
        let process = helper(&hearsay);
        hearsay.kill();
        wait_until("the helper to end", || !is_alive(process));
        assert_eq!(rules(), before);
        assert!(hearsay.log().contains("they are removed"), "{}", hearsay.log());
        assert!(get("http://origin.test/file").expect(200).field("via").is_empty());
    });
}

/// Runs `work` as on a kernel that has neither seccomp nor landlock: these calls do not exist for this thread and the
/// processes that it starts.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
fn without_limits<T: Send>(work: impl FnOnce() -> T + Send) -> Result<T, String> {
    use nix::libc;
    use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};

    let calls = [libc::SYS_seccomp, libc::SYS_landlock_create_ruleset];
    let rules = calls.iter().map(|call| (*call, Vec::new())).collect();
    let missing = SeccompAction::Errno(libc::ENOSYS.cast_unsigned());
    let arch = std::env::consts::ARCH.try_into().expect("a known architecture");
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, missing, arch).expect("a filter");
    let program = BpfProgram::try_from(filter).expect("a program");
    std::thread::scope(|scope| {
        let there = scope.spawn(move || {
            seccompiler::apply_filter(&program).map_err(|error| error.to_string())?;
            Ok(work())
        });
        there.join().expect("the work there")
    })
}

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
#[test]
fn a_kernel_without_seccomp_and_landlock_is_told_of() {
    let world = World::new();
    let nginx = Nginx::start(&world, "");
    nginx.put("file", b"hello");
    let hearsay = match without_limits(|| Hearsay::start(&world)) {
        Ok(hearsay) => hearsay,
        Err(why) => return skipped("a_kernel_without_seccomp_and_landlock_is_told_of", &why),
    };
    let rights = rights(&hearsay);
    assert_eq!(
        (&rights["seccomp"], &rights["landlock"]),
        (&false.into(), &false.into()),
        "{rights}"
    );
    assert_eq!(
        (&rights["no_new_privileges"], &rights["capabilities"]),
        (&true.into(), &Value::Array(Vec::new()))
    );
    let skipped = rights["skipped"].as_array().expect("sentences");
    for words in ["this kernel has no landlock", "this kernel filters no system calls"] {
        assert!(
            skipped.iter().any(|it| it.as_str().is_some_and(|it| it.starts_with(words))),
            "{skipped:?}"
        );
        assert!(hearsay.log().contains(&format!("not limited: {words}")), "{}", hearsay.log());
        let page = String::from_utf8_lossy(&hearsay.command(&["status"]).stdout).into_owned();
        assert!(page.contains(words), "{page}");
    }
    assert_eq!(metric(&hearsay, "hearsay_rights_limited"), "0");
    assert_eq!(hearsay.get(&nginx.url("file")).expect(200).text(), "hello");
}

#[test]
fn a_daemon_without_rights_needs_no_helper() {
    let setpriv = tool("setpriv").display().to_string();
    let none = ["--bounding-set=-all", "--inh-caps=-all"];
    let is_there = Command::new(&setpriv).args(none).arg("true").status();
    if !is_there.is_ok_and(|it| it.success()) {
        let why = "setpriv is not installed, or the test has no right to drop rights";
        return skipped("a_daemon_without_rights_needs_no_helper", why);
    }
    let world = World::new();
    let under = [&[setpriv.as_str()], &none[..]].concat();
    let hearsay = Hearsay::start_under(&world, &under, &[]);
    assert_eq!(rights(&hearsay)["helper"], Value::Null);
    let page = String::from_utf8_lossy(&hearsay.command(&["status"]).stdout).into_owned();
    assert!(page.contains("no helper\n"), "{page}");
    let (status, said) = Hearsay::try_start_under(&World::new(), &under, &INTERCEPT);
    assert!(!status.success() && said.contains("root, or CAP_NET_ADMIN"), "{status}: {said}");
}

#[test]
fn the_helper_is_not_started_by_hand() {
    let world = World::new();
    let (status, said) = Hearsay::try_start(&world, &["--as-helper"]);
    assert_eq!(status.code(), Some(2), "{said}");
    assert!(said.contains("started by the daemon"), "{said}");
}

#[test]
fn the_far_end_gives_up_its_rights_too() {
    let world = World::new();
    let key = "5f".repeat(32);
    let store = world.path("far").display().to_string();
    let log = world.path("far.log");
    let file = fs::File::create(&log).expect("a log");
    let far = Command::new(env!("CARGO_BIN_EXE_hearsay"))
        .args(["far", "--near", &key, "--listen", "127.0.0.1:0", "--store", &store, "--control"])
        .arg(world.path("far.sock"))
        .env("NO_COLOR", "1")
        .stdout(file)
        .stderr(fs::File::create(world.path("far.err")).expect("a log"))
        .spawn();
    let mut far = Process(far.expect("the far end starts"));
    wait_for("the far end to be ready", || {
        assert!(
            !far.has_ended(),
            "{}",
            fs::read_to_string(world.path("far.err")).unwrap_or_default()
        );
        fs::read_to_string(&log).is_ok_and(|text| text.contains("far-key")).then_some(())
    });
    let threads = fs::read_dir(format!("/proc/{}/task", far.id())).expect("its threads");
    for thread in threads.flatten() {
        let status = thread.path().join("status");
        assert_eq!(
            fields(&status, &["CapPrm", "CapEff", "NoNewPrivs"]),
            ["0000000000000000", "0000000000000000", "1"]
        );
    }
    far.signal("TERM");
    wait_until("the far end to end", || far.has_ended());
}
