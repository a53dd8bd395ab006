//! Least rights: what a running daemon can and cannot do, its helper process, and what becomes of the rules when either
//! of them is killed.

#[cfg(target_arch = "x86_64")]
mod intruder;
mod world;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use world::network::{self, CLIENT, ORIGIN};
use world::{Curl, Hearsay, Nginx, Process, Reply, World, sh, skipped, tool, wait_for, wait_until};

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
    rights(hearsay)["helper_process"]
        .as_u64()
        .unwrap_or_else(|| panic!("no helper: {}", hearsay.log()))
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

fn metric(hearsay: &Hearsay, name: &str) -> String {
    let control = hearsay.control().display().to_string();
    let metrics = Command::new("curl")
        .args(["-qsS", "--unix-socket", &control, "http://localhost/metrics"])
        .output()
        .expect("curl");
    let text = String::from_utf8_lossy(&metrics.stdout).into_owned();
    let line = text.lines().find_map(|line| line.strip_prefix(&format!("{name} ")));
    line.map(ToOwned::to_owned).unwrap_or_else(|| panic!("no {name} in {text}"))
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

/// What becomes of an attempt in each of two processes: the daemon, and one with all rights of this test.
#[cfg(target_arch = "x86_64")]
#[test]
fn the_running_daemon_cannot_execute_write_elsewhere_or_regain_a_capability() {
    use intruder::Intruder;
    use nix::libc::{self, EACCES, EPERM};

    network::inside(
        "the_running_daemon_cannot_execute_write_elsewhere_or_regain_a_capability",
        || {
            let world = World::new();
            let nginx = Nginx::start_in(&world, ORIGIN, "");
            nginx.put("file", b"hello");
            let hearsay = Hearsay::start_with(&world, &INTERCEPT);
            let limits = rights(&hearsay);
            if limits["seccomp"] != true || limits["landlock"] != true {
                let test =
                    "the_running_daemon_cannot_execute_write_elsewhere_or_regain_a_capability";
                return skipped(test, &format!("this kernel lacks limits: {limits}"));
            }
            let outside = World::new();
            let precious = outside.write("precious", b"precious");
            let create = libc::O_CREAT | libc::O_WRONLY;
            let refused = |errno: i32| -i64::from(errno);
            // Landlock's errors, and the others'.
            let (elsewhere, forbidden) = (refused(EACCES), refused(EPERM));
            let packets = [libc::AF_PACKET, libc::SOCK_RAW, 0].map(|it| it as u64);
            let new_user = [libc::CLONE_NEWUSER as u64];

            let mut plain = Process(Command::new("sleep").arg("1000").spawn().expect("sleep"));
            {
                let mut it = Intruder::into(plain.id());
                assert!(it.open(&outside.path("new"), create) >= 0);
                assert!(it.open(&precious, libc::O_WRONLY) >= 0);
                assert!(it.call(libc::SYS_socket, &packets) >= 0);
                assert_eq!(it.call(libc::SYS_unshare, &new_user), 0);
                assert_eq!(it.take_capabilities(), 0);
                assert_eq!(it.execute("/bin/true"), 0);
            }
            plain.kill();
            assert!(outside.path("new").exists());
            fs::remove_file(outside.path("new")).expect("it is there");

            let victim = helper(&hearsay);
            {
                let mut it = Intruder::into(hearsay.id());
                assert_eq!(it.execute("/bin/true"), forbidden);
                let empty = it.text("");
                let flags = libc::AT_EMPTY_PATH as u64;
                assert_eq!(it.call(libc::SYS_execveat, &[0, empty, 0, 0, flags]), forbidden);
                assert_eq!(it.open(&outside.path("new"), create), elsewhere);
                assert_eq!(it.open(&precious, libc::O_WRONLY), elsewhere);
                assert_eq!(it.open(&precious, libc::O_RDONLY), elsewhere);
                assert!(it.open(&hearsay.store().join("own"), create) >= 0, "the store is its own");
                assert!(it.open(Path::new("/etc/hosts"), libc::O_RDONLY) >= 0);
                assert_eq!(it.take_capabilities(), forbidden);
                assert_eq!(it.call(libc::SYS_socket, &packets), forbidden);
                assert_eq!(it.call(libc::SYS_unshare, &new_user), forbidden);
                let clone = [(libc::CLONE_NEWUSER | libc::SIGCHLD) as u64];
                assert_eq!(it.call(libc::SYS_clone, &clone), forbidden);
                assert_eq!(it.call(libc::SYS_clone3, &[0, 64]), refused(libc::ENOSYS));
                assert_eq!(
                    it.call(libc::SYS_ptrace, &[libc::PTRACE_ATTACH.into(), victim]),
                    forbidden
                );
                let tmpfs = it.text("tmpfs");
                let place = it.text("/run");
                assert_eq!(it.call(libc::SYS_mount, &[tmpfs, place, tmpfs, 0, 0]), forbidden);
                assert_eq!(it.call(libc::SYS_bpf, &[0, 0, 0]), forbidden);
                assert_eq!(it.call(libc::SYS_keyctl, &[0, 0, 0]), forbidden);
                assert_eq!(it.call(libc::SYS_finit_module, &[0, empty, 0]), forbidden);
                if limits["skipped"].as_array().is_some_and(Vec::is_empty) {
                    let kill = [victim, libc::SIGKILL as u64];
                    assert_eq!(
                        it.call(libc::SYS_kill, &kill),
                        forbidden,
                        "the helper is out of reach"
                    );
                }
            }
            assert!(!outside.path("new").exists() && hearsay.store().join("own").exists());
            // And it goes on with its work.
            assert_eq!(get("http://origin.test/file").expect(200).text(), "hello");
            assert_eq!(get("http://origin.test/file").expect_hit().text(), "hello");
            assert!(is_alive(victim));
        },
    );
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
        for name in ["TERM", "INT", "HUP"] {
            signal(process, name);
        }
        world.write(
            "hearsay.toml",
            text.replace("[intercept]\n", "[intercept]\nports = [80, 81]\n").as_bytes(),
        );
        hearsay.hang_up();
        wait_until("the helper to have set the new rules", || rules().contains("81"));
        assert_eq!(rights(&hearsay)["helper"], true);

        signal(process, "KILL");
        wait_until("the daemon to notice", || rights(&hearsay)["helper"] == false);
        assert!(!is_alive(process));
        assert!(!Path::new(&format!("/proc/{process}")).exists(), "a zombie stays");
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
        .args(["far", "--near", &key, "--listen", "127.0.0.1:0", "--store", &store])
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
