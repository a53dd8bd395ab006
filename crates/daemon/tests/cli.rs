//! The commands as users and scripts run them: their output and exit codes.

use std::collections::BTreeMap;
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::world::{
    self, Curl, Hearsay, Nginx, Place, Script, World, assert_same, noise, sh, skipped, wait_until,
};

/// A command's exit code and output.
struct Ended {
    code: i32,
    out: String,
    err: String,
}

fn run(args: &[&str]) -> Ended {
    ended(Command::new(env!("CARGO_BIN_EXE_hearsay")).args(args).output().expect("it starts"))
}

fn ended(output: Output) -> Ended {
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    Ended {
        code: output.status.code().unwrap_or(-1),
        out: text(output.stdout),
        err: text(output.stderr),
    }
}

/// Checks the exit code, and that standard error has these parts and no panic.
#[track_caller]
fn expect(ended: &Ended, code: i32, parts: &[&str]) {
    assert_eq!(ended.code, code, "{}{}", ended.out, ended.err);
    for part in parts {
        assert!(ended.err.contains(part), "no {part:?} in: {}", ended.err);
    }
    assert!(!ended.err.contains("panicked"), "{}", ended.err);
}

#[test]
fn an_unknown_key_is_refused_with_the_nearest_known_one() {
    let world = World::new();
    let file = world.write("conf", b"memory = \"16MiB\"\n[store]\nsise = \"1GiB\"\n");
    let file = file.to_str().expect("a plain path");
    for args in [&["check-config", file][..], &["run", "--config", file]] {
        expect(&run(args), 2, &["sise", "size", file]);
    }
    let file = world.write("conf2", b"lisen = [\"127.0.0.1:0\"]\n");
    expect(&run(&["check-config", file.to_str().unwrap()]), 2, &["lisen", "listen"]);
}

#[test]
fn a_configuration_that_cannot_be_is_refused_before_anything_is_made() {
    let world = World::new();
    for (text, parts) in [
        ("memory = \"1KiB\"", &["memory", "at least 4"][..]),
        ("memory = \"900TiB\"", &["memory", "this machine has"]),
        ("[store]\nsize = \"1MiB\"", &["size", "at least 16"]),
        ("[store]\npath = \"memory\"\nsize = \"900TiB\"", &["size", "this machine has"]),
        ("[store]\nsize = \"lots\"", &["size", "lots"]),
        ("[store]\nsize = \"3TiB\"", &["[store] size", "3TiB", "at most 2TiB"]),
        ("[store]\npath = \"relative\"", &["path", "relative"]),
        ("[store]\npolicy = \"fifo\"", &["fifo", "s3-fifo", "lru"]),
        ("listen = [\"localhost\"]", &["localhost", "127.0.0.1:3128"]),
        ("listen = []", &["nothing to listen on"]),
        ("allow = [\"0.0.0.0/0\"]", &["0.0.0.0/0", "open proxy"]),
        ("allow = [\"1.2.3.4/40\"]", &["1.2.3.4/40"]),
        ("name = \"a b\"", &["name"]),
        (
            "listen = [\"127.0.0.1:3131\"]\n[metrics]\nlisten = \"127.0.0.1:3131\"",
            &["3131", "choose another"],
        ),
        ("[intercept]\ninterfaces = [\"a/b\"]", &["a/b"]),
        ("[mesh]\nscheme = \"phthcp\"", &["conf:2", "ph-thcp", "thcp"]),
        ("[mesh]\n\nkey = \"secret\"", &["conf:3", "at least 16 characters"]),
        ("[mesh]\nkey = \"0123456789abcdef\"\nkey-file = \"/dev/null\"", &["conf:3", "not both"]),
        ("[mesh]\nkey-file = \"/nowhere/key\"", &["conf:2", "/nowhere/key: cannot be read"]),
        ("[mesh]\ngateways = [\n\"10.0.0.1\"]", &["conf:3", "64 hexadecimal digits"]),
        ("[mesh]\nport = 0", &["conf:2"]),
        ("[mesh]\ndirect = [\"lan\"]", &["conf:2", "lan"]),
        ("listen = [\"[::]:3131\"]\n[mesh]\ninterfaces = [\"wl0\"]", &["[mesh] port"]),
        ("memory = ", &["conf"]),
    ] {
        let file = world.write("conf", text.as_bytes());
        let control = world.path("control").display().to_string();
        let args = ["--control", &control, "run", "--config", file.to_str().expect("a plain path")];
        let ended = run(&args);
        expect(&ended, 2, parts);
        assert!(ended.err.lines().all(|line| line.starts_with("hearsay: ")), "{}", ended.err);
        assert!(!world.path("control").exists(), "{text}");
    }
    let missing = world.path("missing").display().to_string();
    expect(&run(&["check-config", &missing]), 2, &[&missing]);
}

#[test]
fn a_store_that_cannot_be_where_it_is_to_be_is_refused_before_anything_is_made() {
    let world = World::new();
    let (file, link) = (world.write("file", b"a file"), world.path("link"));
    std::os::unix::fs::symlink("nowhere", &link).expect("a link");
    let wrong = [file.join("store"), file.clone(), link, "/proc/x".into(), "/sys/kernel/x".into()];
    let because =
        ["is not a directory", "is not a directory", "a link to nothing", "kernel's", "kernel's"];
    for (path, why) in wrong.iter().zip(because) {
        let store = path.display().to_string();
        let (status, said) = Hearsay::try_start(&world, &["--store", &store]);
        let said = said.lines().last().unwrap_or_default();
        assert!(status.code() == Some(2) && said.contains("--store: "), "{status} {said}");
        assert!(said.contains(why), "{said}");
        let conf = world.write("conf", format!("[store]\npath = {store:?}\n").as_bytes());
        let conf = conf.display().to_string();
        expect(&run(&["check-config", &conf]), 2, &["[store] path: ", why]);
    }
    assert!(!world.path("control").exists(), "a half start");
    assert_eq!(std::fs::read(&file).expect("it is there"), b"a file");
}

#[test]
fn a_key_that_others_can_read_is_refused_or_warned_of() {
    let world = World::new();
    let key = world.write("key", b"the key of this mesh\n").display().to_string();
    sh(&format!("chmod 644 {key}"));
    let file = world.write("conf", format!("[mesh]\nkey-file = {key:?}\n").as_bytes());
    let file = file.display().to_string();
    let advice = format!("`chmod 600 {key}`");
    for args in [
        &["check-config", &file][..],
        &["run", "--config", &file],
        &["run", "--mesh-key-file", &key],
    ] {
        expect(&run(args), 2, &[&advice]);
    }
    sh(&format!("chmod 600 {key}"));
    expect(&run(&["check-config", &file]), 0, &[]);

    world.write("conf", b"[mesh]\nkey = \"the key of this mesh\"\n");
    sh(&format!("chmod 644 {file}"));
    let shown = run(&["check-config", &file]);
    assert!(shown.code == 0 && shown.out.contains(&format!("chmod 600 {file}")), "{}", shown.out);
    sh(&format!("chmod 600 {file}"));
    assert!(!run(&["check-config", &file]).out.contains("chmod"));
}

#[test]
fn a_sound_configuration_is_shown() {
    let world = World::new();
    let store = world.path("a/b").display().to_string();
    let text = format!("name = \"router-7\"\n[store]\npath = {store:?}\n");
    let file = world.write("conf", text.as_bytes());
    let shown = run(&["check-config", file.to_str().expect("a plain path")]);
    expect(&shown, 0, &[]);
    assert!(shown.out.contains("router-7") && shown.out.contains(&store), "{}", shown.out);
    assert!(!world.path("a").exists(), "it was made");
    let packaged = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/hearsay.toml");
    if Path::new(packaged).exists() {
        expect(&run(&["check-config", packaged]), 0, &[]);
    }
}

#[test]
fn a_far_ends_file_is_checked_and_its_mistakes_are_told_with_their_lines() {
    let world = World::new();
    let key = "5f".repeat(32);
    let right = world.write("right", format!("gateways = [\"{key}\"]\n").as_bytes());
    let shown = run(&["check-config", "--far", right.to_str().expect("a plain path")]);
    expect(&shown, 0, &[]);
    assert!(shown.out.contains("gateways   1\n") && shown.out.contains("4GiB"), "{}", shown.out);
    let wrong =
        world.write("wrong", format!("gateways = [\"{key}\"]\nlisten = \"x\"\n").as_bytes());
    let wrong = wrong.to_str().expect("a plain path");
    let control = world.path("far.sock").display().to_string();
    for args in
        [&["check-config", "--far", wrong][..], &["far", "--config", wrong, "--control", &control]]
    {
        expect(&run(args), 2, &[&format!("{wrong}:2: \"x\" is not an address and a port")]);
    }
    let nobody = &["far", "--config", "/dev/null", "--control", &control];
    expect(&run(nobody), 2, &["gateways: nobody could connect", "hearsay uplink --key"]);
    let status = &["far", "status", "--control", &control];
    expect(&run(status), 3, &["no hearsay answers at", "is `hearsay far` running?"]);
}

#[test]
fn what_does_nothing_is_warned_of_with_its_line() {
    let world = World::new();
    let store = world.path("store").display().to_string();
    let text = format!(
        "[store]\npath = {store:?}\nsize = \"2TiB\"\n[intercept]\ninterfaces = [\"lo\", \"wlan77\"]\nports = [80, 443]\n\
         [mesh]\ninterfaces = [\"lo\"]\n[overhear]\nmemory = \"2MiB\"\n"
    );
    let file = world.write("conf", text.as_bytes()).display().to_string();
    let shown = run(&["check-config", &file]);
    expect(&shown, 0, &[]);
    for (line, words) in [
        (3, "[store] size: 2TiB, and the whole disk of "),
        (5, "[intercept] interfaces: this machine has no interface \"wlan77\" now"),
        (5, "[intercept] interfaces: \"lo\" is in [mesh]"),
        (6, "[intercept] ports: 443: not intercepted"),
        (10, "[overhear] memory: does nothing"),
    ] {
        let line = format!("warning: {file}:{line}: {words}");
        assert!(shown.out.lines().any(|it| it.starts_with(&line)), "{line}\n{}", shown.out);
    }
    // An interface that leads out must be there, and the mistake has its line.
    let text =
        format!("[store]\npath = {store:?}\n[access]\nout = [\n  \"lo\",\n  \"wlan77\",\n]\n");
    world.write("conf", text.as_bytes());
    let expected = format!("{file}:6: [access] out: this machine has no interface \"wlan77\"");
    expect(&run(&["check-config", &file]), 2, &[&expected]);
    let args = ["run", "--config", &file, "--store-size", "1MiB"];
    expect(&run(&args), 2, &["--store-size: 1MiB is too little"]);
}

#[test]
fn a_port_in_use_is_named_in_one_line() {
    let world = World::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("its address").to_string();
    for option in ["--listen", "--metrics"] {
        let (status, said) = Hearsay::try_start(&world, &[option, &address]);
        assert_eq!(status.code(), Some(1), "{said}");
        let last = said.lines().last().unwrap_or_default();
        assert!(last.contains(&address) && last.contains("choose another"), "{said}");
        assert!(!world.path("control").exists(), "{option}: its control socket was left behind");
    }
}

#[test]
fn a_second_daemon_with_places_of_its_own_is_told_of_the_first() {
    let (first, second) = (World::new(), World::new());
    let mut running = Hearsay::start(&first);
    let listen = running.proxy.to_string();
    // The first has the socket that a service would have.
    std::os::unix::fs::symlink(running.control(), first.path("control.sock")).expect("a link");
    let service = format!("RUNTIME_DIRECTORY={}", first.path("").display());
    let told = |listen: &str| {
        let args = ["--listen", listen];
        let (status, said) = Hearsay::try_start_under(&second, &["env", &service], &args);
        assert_eq!(status.code(), Some(1), "{said}");
        said.lines().last().unwrap_or_default().to_owned()
    };
    let said = told(&listen);
    let socket = first.path("control.sock").display().to_string();
    assert!(said.contains("Another hearsay is running") && said.contains(&socket), "{said}");
    running.terminate();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let said = told(&taken.local_addr().expect("its address").to_string());
    assert!(said.contains("Another program has this port"), "{said}");
}

#[test]
fn a_client_of_the_mirror_is_told_where_the_running_daemon_or_the_file_has_it() {
    let world = World::new();
    let write = |name: &str, mirror: &str| {
        let control = world.path(&format!("{name}.sock")).display().to_string();
        let text = format!(
            "listen = [\"127.0.0.1:0\"]\ncontrol = {control:?}\n[mirror]\nlisten = [\"{mirror}\"]\nallow = [\"{name}.test\"]\n"
        );
        (world.write(name, text.as_bytes()).display().to_string(), control)
    };
    let port = std::net::TcpListener::bind("127.0.0.9:0").expect("a free port");
    let address = port.local_addr().expect("its address").to_string();
    drop(port);
    let (file, _) = write("one", &address);
    let hearsay = Hearsay::start_with(&world, &["--config", &file]);
    let control = hearsay.control().display().to_string();
    let setup = ["mirror", "setup", "pip"];
    let told = run(&[&["--control", &control], &setup[..]].concat());
    expect(&told, 0, &[]);
    assert!(told.out.contains(&format!("http://{address}/pypi/simple/")), "{}", told.out);
    // The file's daemon does not run: the file says it.
    let (other, nobody) = write("other", "127.0.0.8:3142");
    let told = run(&[&setup[..], &["--config", &other]].concat());
    assert!(told.out.contains("http://127.0.0.8:3142/pypi/simple/"), "{}{}", told.out, told.err);
    let listed = run(&["mirror", "list", "--config", &other]);
    assert!(listed.out.contains("http://127.0.0.8:3142/"), "{}", listed.out);
    assert!(
        listed.out.contains("other.test") && !listed.out.contains("one.test"),
        "{}",
        listed.out
    );
    expect(&run(&[&["--control", &nobody], &setup[..]].concat()), 3, &[&nobody]);
}

#[test]
fn wrong_command_lines_end_with_2() {
    for args in [
        &["run", "--listen", "nowhere"][..],
        &["run", "--store-size", "lots"],
        &["run", "--no-such-option"],
        &["stat"],
        &["get"],
        &["get", "ftp://a/b"],
        &["get", "https://me:secret@a/b"],
        &["get", "not a url"],
        &["get", "/file"],
        &["get", "http://me:secret@a/b"],
        &["get", "http://a/b", "--sha256", "abc"],
        &["completions", "klingon"],
    ] {
        let ended = run(args);
        assert_eq!(ended.code, 2, "{args:?}: {}{}", ended.out, ended.err);
        assert!(
            !ended.err.is_empty() && !ended.err.contains("panicked"),
            "{args:?}: {}",
            ended.err
        );
    }
    expect(&run(&["statuss"]), 2, &["status"]);
}

#[test]
fn commands_without_a_daemon_end_with_3() {
    let world = World::new();
    let control = world.path("control").display().to_string();
    for command in [&["status"][..], &["status", "--json"], &["cache"], &["get", "https://a/b"]] {
        let args = [&["--control", &control], command].concat();
        expect(&run(&args), 3, &[&control, "hearsay run"]);
    }
}

#[test]
fn https_has_the_access_rules_of_all_clients_also_on_this_machine() {
    let world = World::new();
    let hearsay = Hearsay::start(&world);
    let file = world.path("got").display().to_string();
    let got = ended(hearsay.command(&["get", "-o", &file, "https://127.0.0.1/b"]));
    expect(&got, 1, &["403 Forbidden"]);
}

#[test]
fn a_socket_that_a_killed_daemon_left_is_taken_over() {
    let world = World::new();
    let mut hearsay = Hearsay::start(&world);
    hearsay.kill();
    assert!(hearsay.control().exists(), "nothing was left to be taken over");
    expect(&ended(hearsay.command(&["status"])), 3, &["is `hearsay run` running?"]);
    hearsay.restart();
    hearsay.terminate();
    assert!(!hearsay.control().exists(), "a clean stop takes the socket away");
    // The daemon does not remove a file that is not a socket.
    world.write("control", b"a file");
    let (status, said) = Hearsay::try_start(&world, &[]);
    assert!(!status.success() && said.contains("is no socket"), "{said}");
    assert_eq!(std::fs::read(world.path("control")).expect("it is still there"), b"a file");
}

#[test]
fn help_version_completions_and_the_manual_are_printed() {
    for (args, part) in [
        (&["--help"][..], "Exit codes"),
        (&["help", "run"], "--intercept"),
        (&["--version"], env!("CARGO_PKG_VERSION")),
        (&["completions", "bash"], "complete"),
    ] {
        let ended = run(args);
        assert!(ended.code == 0 && ended.out.contains(part), "{args:?}: {}", ended.out);
    }
}

#[test]
fn the_manual_is_one_page_with_all_commands() {
    let manual = run(&["man"]);
    assert_eq!(manual.code, 0, "{}", manual.err);
    // Lines with the macros that man(7) prints as headings.
    let headings = |kind: &str| -> Vec<&str> {
        manual.out.lines().filter_map(|line| line.strip_prefix(kind)).collect()
    };
    assert_eq!(headings(".TH ").len(), 1);
    let sections =
        ["NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "COMMANDS", "\"EXIT STATUS\"", "VERSION"];
    assert_eq!(headings(".SH "), sections);
    let commands = headings(".SS ");
    for command in ["run", "get", "intercept check", "check\\-config"] {
        let heading = format!("\"hearsay {command}\"");
        assert!(commands.contains(&heading.as_str()), "no {heading}: {commands:?}");
    }
    assert!(manual.out.contains("intercept\\-port") && manual.out.contains("4 the content failed"));
    assert!(!manual.out.contains("(1)"), "a page that does not exist: {}", manual.out);
}

#[test]
fn what_is_printed_as_json_is_json() {
    let world = World::new();
    let nginx = Nginx::start(&world, "");
    nginx.put("file", &noise(1, 100_000));
    let hearsay = Hearsay::start(&world);
    hearsay.get(&nginx.url("file")).expect(200);
    hearsay.get(&nginx.url("file")).expect_hit();
    let json = |args: &[&str]| -> Value {
        let ended = ended(hearsay.command(args));
        assert_eq!((ended.code, ended.out.lines().count()), (0, 1), "{}{}", ended.out, ended.err);
        serde_json::from_str(&ended.out).expect("JSON")
    };
    let status = json(&["status", "--json"]);
    assert_eq!(status["report"]["requests"]["hit"], 1, "{status}");
    assert_eq!(status["listeners"][0], hearsay.proxy.to_string());
    let list = json(&["cache", "--json"]);
    assert_eq!(list[0]["url"], nginx.url("file"), "{list}");
    assert_eq!(list[0]["length"], 100_000, "{list}");
    assert_eq!(json(&["cache", "--json", "--limit", "0"]), serde_json::json!([]));
    let page = ended(hearsay.command(&["cache"]));
    assert!(page.out.contains(&nginx.url("file")), "{}", page.out);
    let page = ended(hearsay.command(&["status"]));
    assert!(page.code == 0 && !page.out.contains('\x1b'), "colours in a pipe: {}", page.out);

    let file = world.path("got").display().to_string();
    let report = json(&["get", "--json", "-o", &file, &nginx.url("file")]);
    assert_eq!(report["bytes"], 100_000, "{report}");
    assert!(report["answered_by"].is_string(), "{report}");
}

#[test]
fn a_listing_in_a_pipe_has_whole_urls() {
    let world = World::new();
    let nginx = Nginx::start(&world, "");
    let name = format!("{}.iso", "long".repeat(40));
    nginx.put(&name, b"hello");
    let hearsay = Hearsay::start(&world);
    hearsay.get(&nginx.url(&name)).expect(200);
    wait_until("the whole URL to be listed", || {
        let page = ended(hearsay.command(&["cache"]));
        page.out.lines().any(|line| line.ends_with(&nginx.url(&name)))
    });
}

#[test]
fn a_listing_says_for_how_long_requests_are_answered_from_here() {
    let world = World::new();
    let origin = Script::saying("HTTP/1.1 200 OK\r\nETag: \"1\"\r\nContent-Length: 5\r\n\r\nhello");
    let hearsay = Hearsay::start(&world);
    // The index shows that the host has an archive of packages.
    let index = origin.url("debian/dists/stable/InRelease");
    let package = origin.url("debian/pool/main/h/hello/hello_1.0_all.deb");
    let other = origin.url("other");
    for url in [&index, &package, &other] {
        hearsay.get(url).expect(200);
    }
    hearsay.wait_until_durable();
    hearsay.get(&package).expect_hit();
    let listed = ended(hearsay.command(&["cache", "--json"]));
    let listed: Vec<Value> = serde_json::from_str(&listed.out).expect("JSON");
    let of = |url: &str| {
        let line = listed.iter().find(|it| it["url"] == url).expect("it is listed");
        line["fresh_seconds"].as_i64().expect("a number")
    };
    assert!((1..=300).contains(&of(&index)), "{listed:?}");
    assert!(of(&package) == 31_536_000 && of(&other) <= 0, "{listed:?}");
    let page = ended(hearsay.command(&["cache"])).out;
    let line = |url: &str| page.lines().find(|line| line.ends_with(url)).expect("it is listed");
    assert!(line(&package).contains(" 365 d "), "{page}");
    assert!(!line(&index).contains(" stale ") && line(&other).contains(" stale "), "{page}");
}

#[test]
fn a_download_is_held_against_the_units_that_were_sealed() {
    let world = World::new();
    let nginx = Nginx::start(&world, "");
    nginx.put("file", &noise(1, 100_000));
    let config = world.write(
        "hearsay.toml",
        b"listen = [\"127.0.0.1:0\"]\n[mesh]\nkey = \"the key of this mesh\"\n",
    );
    let config = config.display().to_string();
    let hearsay = Hearsay::start_with(&world, &["--config", &config]);
    let file = world.path("got").display().to_string();
    for _ in 0..2 {
        let ended = ended(hearsay.command(&["get", "--json", "-o", &file, &nginx.url("file")]));
        let report: Value = serde_json::from_str(&ended.out).expect("JSON");
        let verified = report["verified"].as_array().expect("a list").last().expect("something");
        let verified = verified.as_str().expect("text");
        assert!(verified.ends_with("of the daemon's manifest"), "{report} {}", ended.err);
        assert_same(&std::fs::read(&file).expect("the file"), &noise(1, 100_000));
        std::fs::remove_file(&file).expect("it is there");
    }
    assert_eq!(nginx.count("/file"), 1);
}

#[test]
fn each_family_of_metrics_has_help_and_type() {
    let world = World::new();
    let nginx = Nginx::start(&world, "");
    nginx.put("file", b"hello");
    let hearsay = Hearsay::start_with(&world, &["--metrics", "127.0.0.1:0"]);
    hearsay.get(&nginx.url("file")).expect(200);
    let by_socket = Curl::new(Place::Here, "http://hearsay/metrics")
        .args(&["--unix-socket", hearsay.control().to_str().expect("a plain path")])
        .run()
        .expect(200);
    check_metrics(&by_socket.text());
    assert!(by_socket.text().contains("hearsay_requests_total{result=\"miss\"} 1"));
}

#[test]
fn metrics_on_a_port_show_nothing_else() {
    let world = World::new();
    let address = format!("127.0.0.1:{}", world::free_port());
    let hearsay = Hearsay::start_with(&world, &["--metrics", &address]);
    let get = |path: &str| Curl::new(Place::Here, &format!("http://{address}/{path}")).run();
    let metrics = get("metrics").expect(200);
    assert!(metrics.field("content-type").starts_with("text/plain; version=0.0.4"), "{metrics:?}");
    check_metrics(&metrics.text());
    for path in ["status", "cache", "manifest?url=http://a/"] {
        get(path).expect(404);
    }
    assert_eq!(hearsay.status()["metrics"], address);
}

/// Checks that each family has one `# HELP` and one `# TYPE` line, and that both precede its samples.
fn check_metrics(text: &str) {
    let mut families: BTreeMap<&str, (usize, usize, usize)> = BTreeMap::new();
    for line in text.lines() {
        let words: Vec<_> = line.split(' ').collect();
        match words[..] {
            ["#", "HELP", name, _, ..] => families.entry(name).or_default().0 += 1,
            ["#", "TYPE", name, "counter" | "gauge"] => families.entry(name).or_default().1 += 1,
            [sample, value] if !line.starts_with('#') => {
                let name = sample.split('{').next().expect("a name");
                assert!(value.parse::<f64>().is_ok(), "{line}");
                let family = families.get_mut(name);
                family.unwrap_or_else(|| panic!("before HELP and TYPE: {line}")).2 += 1;
            }
            _ => panic!("not a line of metrics: {line}"),
        }
    }
    assert!(families.len() > 15, "{text}");
    let sound = families.values().all(|(help, kind, _)| (*help, *kind) == (1, 1));
    assert!(sound, "{families:?}");
}

/// An origin that closes the connection after `cut` bytes of each response until it is repaired. It serves
/// ranges of one version.
fn cutting_origin(body: &[u8], cut: usize) -> (Script, Arc<AtomicBool>) {
    let repaired = Arc::new(AtomicBool::new(false));
    let (is_repaired, body) = (Arc::clone(&repaired), body.to_vec());
    let origin = Script::start(move |visit| {
        while let Some(head) = visit.head() {
            let range = world::Reply::of_head(&head).field("range").to_owned();
            let from =
                range.strip_prefix("bytes=").and_then(|it| it.split('-').next()?.parse().ok());
            let part = &body[from.unwrap_or(0)..];
            let status = if from.is_some() { "206 Partial Content" } else { "200 OK" };
            let fields = "ETag: \"v1\"\r\nCache-Control: max-age=99\r\nAccept-Ranges: bytes\r\n";
            visit.send(format!("HTTP/1.1 {status}\r\n{fields}Content-Length: {}\r\n", part.len()));
            if let Some(from) = from {
                let (last, all) = (body.len() - 1, body.len());
                visit.send(format!("Content-Range: bytes {from}-{last}/{all}\r\n"));
            }
            visit.send("\r\n");
            if is_repaired.load(Ordering::Relaxed) {
                visit.send(part);
            } else {
                visit.send(&part[..cut.min(part.len())]);
                return;
            }
        }
    });
    (origin, repaired)
}

#[test]
fn get_downloads_names_and_verifies_a_file() {
    let world = World::new();
    let nginx = Nginx::start(&world, "");
    let file = noise(2, 1_200_000);
    nginx.put("file.bin", &file);
    let hearsay = Hearsay::start(&world);
    let sha256: String = Sha256::digest(&file).iter().map(|byte| format!("{byte:02x}")).collect();
    let got = world.path("got");
    let name = got.to_str().expect("a plain path");
    let url = nginx.url("file.bin");

    let first = ended(hearsay.command(&["get", "-o", name, "--sha256", &sha256, &url]));
    expect(&first, 0, &[]);
    assert_same(&std::fs::read(&got).expect("the file"), &file);
    assert!(
        first.out.contains("verified") && first.out.contains("SHA-256")
            || first.out.contains("sha256"),
        "{}",
        first.out
    );

    let wrong = format!("{}{}", if sha256.starts_with('0') { "1" } else { "0" }, &sha256[1..]);
    let other = world.path("other");
    let args = ["get", "-o", other.to_str().unwrap(), "--sha256", &wrong, &url];
    expect(&ended(hearsay.command(&args)), 4, &["--sha256"]);
    assert!(!other.exists(), "it got its name without being what was promised");
    let quiet = ended(hearsay.command(&["get", "-q", "-o", name, &url]));
    assert!(quiet.code == 0 && quiet.out.is_empty() && quiet.err.is_empty(), "{}", quiet.err);
    expect(&ended(hearsay.command(&["get", "-o", name, &nginx.url("missing")])), 1, &["404"]);
}

#[test]
fn get_goes_on_by_itself_after_a_cut() {
    let world = World::new();
    let body = noise(3, 2_000_000);
    let (origin, _) = cutting_origin(&body, 900_000);
    let hearsay = Hearsay::start(&world);
    let got = world.path("got");
    let args = ["get", "--json", "-o", got.to_str().expect("a plain path"), &origin.url("file")];
    let ended = ended(hearsay.command(&args));
    expect(&ended, 0, &[]);
    assert_same(&std::fs::read(&got).expect("the file"), &body);
}

#[test]
fn get_resumes_after_its_daemon_was_killed() {
    let world = World::new();
    let nginx = Nginx::start(&world, "location /slow { limit_rate 700k; }");
    let body = noise(4, 2_000_000);
    nginx.put("slow", &body);
    let mut hearsay = Hearsay::start(&world);
    let got = world.path("got");
    let name = got.to_str().expect("a plain path").to_owned();
    let control = hearsay.control().display().to_string();
    let url = nginx.url("slow");
    let get = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hearsay"));
        command.args(["--control", &control, "get", "--json", "-o", &name, &url]);
        command
    };
    let mut first = world::Process(get().spawn().expect("it starts"));
    wait_until("some of it to arrive", || part_bytes(&world) > 300_000);
    first.signal("INT");
    wait_until("the download to stop", || first.has_ended());
    assert!(!got.exists(), "a part has the file's name");
    let kept = part_bytes(&world);
    assert!(kept > 300_000 && kept < 2_000_000, "{kept}");
    hearsay.kill();
    hearsay.restart();

    let second = ended(get().output().expect("it starts"));
    expect(&second, 0, &[]);
    let report: Value = serde_json::from_str(&second.out).expect("JSON");
    assert!(report["resumed_bytes"].as_u64() >= Some(300_000), "{report}");
    assert_same(&std::fs::read(&got).expect("the file"), &body);
    assert_eq!(part_bytes(&world), 0, "the part is still there");
}

/// Length of the partial download that `get` keeps beside its target, `got`.
fn part_bytes(world: &World) -> u64 {
    let dir = world.path("got");
    let entries = std::fs::read_dir(dir.parent().expect("the world")).expect("the world");
    let parts = entries.filter_map(|entry| {
        let entry = entry.ok()?;
        let name = entry.file_name().into_string().ok()?;
        let is_part = name != "got" && name.contains("got");
        is_part.then(|| entry.metadata().map_or(0, |it| it.len()))
    });
    parts.max().unwrap_or(0)
}

#[test]
fn get_never_joins_two_versions() {
    let world = World::new();
    let (old, new) = (noise(5, 1_000_000), noise(6, 1_100_000));
    let (first, second) = (old.clone(), new.clone());
    let origin = Script::start(move |visit| {
        if visit.head().is_some() {
            let (body, cut) =
                if visit.number == 0 { (&first, 400_000) } else { (&second, second.len()) };
            let fields =
                format!("ETag: \"v{}\"\r\nCache-Control: no-store\r\n", visit.number.min(1));
            visit
                .send(format!("HTTP/1.1 200 OK\r\n{fields}Content-Length: {}\r\n\r\n", body.len()));
            visit.send(&body[..cut]);
        }
    });
    let hearsay = Hearsay::start(&world);
    let got = world.path("got");
    let args = ["get", "-o", got.to_str().expect("a plain path"), &origin.url("file")];
    expect(&ended(hearsay.command(&args)), 0, &[]);
    assert_same(&std::fs::read(&got).expect("the file"), &new);
}

#[test]
fn get_follows_links_and_refuses_directories() {
    let world = World::new();
    let nginx = Nginx::start(&world, "");
    let hearsay = Hearsay::start(&world);
    let (link, folder) = (world.path("link"), world.path("folder"));
    std::os::unix::fs::symlink("target", &link).expect("a link");
    for (name, length) in [("made", 70_000), ("replaced", 50_000)] {
        let file = noise(7, length);
        nginx.put(name, &file);
        let args = ["get", "-o", link.to_str().expect("a plain path"), &nginx.url(name)];
        expect(&ended(hearsay.command(&args)), 0, &[]);
        assert!(link.is_symlink(), "the link is no more");
        assert_same(&std::fs::read(world.path("target")).expect("its target"), &file);
    }
    std::fs::create_dir_all(folder.join("made")).expect("a directory");
    let args = ["get", "-o", folder.to_str().expect("a plain path"), &nginx.url("made")];
    expect(&ended(hearsay.command(&args)), 2, &["folder/made", "is a directory"]);
    assert_eq!(std::fs::read_dir(&folder).expect("it is there").count(), 1);
}

#[test]
fn get_writes_content_alone_to_standard_output() {
    let world = World::new();
    let nginx = Nginx::start(&world, "");
    let file = noise(8, 300_000);
    nginx.put("file", &file);
    let hearsay = Hearsay::start(&world);
    // Of the test's own: /dev/stdout is the machine's.
    let link = world.path("stdout");
    std::os::unix::fs::symlink("/proc/self/fd/1", &link).expect("a link");
    let get = |url: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hearsay"));
        command.arg("--control").arg(hearsay.control()).arg("get").arg("-o").arg(&link).arg(url);
        command
    };
    let piped = get(&nginx.url("file")).output().expect("it starts");
    assert_same(&piped.stdout, &file);
    let said = String::from_utf8_lossy(&piped.stderr);
    assert!(piped.status.success() && said.contains("verified: length"), "{said}");

    // A file is written from where it ends, and a socket could not be opened by its path.
    let log = world.write("log", b"before ");
    let open = std::fs::OpenOptions::new().append(true).open(&log).expect("a file");
    let status = get(&nginx.url("file")).arg("-q").stdout(open).status().expect("it starts");
    assert!(status.success());
    assert_same(&std::fs::read(&log).expect("the file"), &[b"before ", &file[..]].concat());
    nginx.put("short", b"hello");
    let (mut ours, theirs) = std::os::unix::net::UnixStream::pair().expect("sockets");
    let theirs = std::os::fd::OwnedFd::from(theirs);
    let status = get(&nginx.url("short")).arg("-q").stdout(theirs).status().expect("it starts");
    let mut came = String::new();
    std::io::Read::read_to_string(&mut ours, &mut came).expect("an end");
    assert!(status.success() && came == "hello", "{status} {came:?}");
    assert!(link.is_symlink() && !world.path("stdout.part").exists());
}

#[test]
fn get_into_a_pipe_that_is_full_ends_at_ctrl_c() {
    let world = World::new();
    let nginx = Nginx::start(&world, "");
    nginx.put("file", &noise(10, 1_000_000));
    let hearsay = Hearsay::start(&world);
    let path = world.path("pipe");
    sh(&format!("mkfifo {}", path.display()));
    // Open for writing as well, it waits for nobody.
    let pipe = std::fs::OpenOptions::new().read(true).write(true).open(&path).expect("a pipe");
    let mut get = Command::new(env!("CARGO_BIN_EXE_hearsay"));
    get.arg("--control").arg(hearsay.control()).arg("get").arg("-o").arg(&path);
    let mut get = world::Process(get.arg(nginx.url("file")).spawn().expect("it starts"));
    let takes_more = || {
        let mut pipes = [PollFd::new(&pipe, PollFlags::OUT)];
        poll(&mut pipes, Some(&Timespec::default())).expect("a pipe") > 0
    };
    wait_until("the pipe to be full", || !takes_more());
    get.signal("INT");
    wait_until("the download to stop", || get.has_ended());
    assert!(!takes_more(), "somebody has read from it");
}

#[test]
fn get_writes_through_a_device_which_stays() {
    const TEST: &str = "get_writes_through_a_device_which_stays";
    let world = World::new();
    // Of the test's own, so that a fault cannot harm the machine's.
    let device = |name: &str, minor: &str| {
        let path = world.path(name);
        let made = Command::new("mknod").arg(&path).args(["c", "1", minor]).output();
        let opened = made.and_then(|_| std::fs::OpenOptions::new().write(true).open(&path));
        opened.map(|_| path)
    };
    let (null, full) = match (device("null", "3"), device("full", "7")) {
        (Ok(null), Ok(full)) => (null, full),
        (Err(error), _) | (_, Err(error)) => {
            return skipped(TEST, &format!("no device can be made here: {error}"));
        }
    };
    let nginx = Nginx::start(&world, "");
    let file = noise(9, 200_000);
    nginx.put("file", &file);
    let hearsay = Hearsay::start(&world);
    let url = nginx.url("file");
    let null = null.to_str().expect("a plain path");
    let sha256: String = Sha256::digest(&file).iter().map(|byte| format!("{byte:02x}")).collect();
    let right = ended(hearsay.command(&["get", "-o", null, "--sha256", &sha256, &url]));
    expect(&right, 0, &[]);
    assert!(right.out.contains("SHA-256 (--sha256)"), "{}", right.out);
    let wrong = ["get", "-o", null, "--sha256", &"0".repeat(64), &url];
    expect(&ended(hearsay.command(&wrong)), 4, &["--sha256", "195 KiB are written already"]);
    let full_ = full.to_str().expect("a plain path");
    expect(&ended(hearsay.command(&["get", "-o", full_, &url])), 1, &["No space left"]);
    for device in [Path::new(null), &full] {
        let there = std::fs::symlink_metadata(device).expect("it is there");
        assert!(there.file_type().is_char_device(), "a file is in its place");
    }
    assert!(!world.path("null.part").exists() && !world.path("full.part").exists());
}

#[test]
fn a_package_gets_a_page_for_each_command() {
    let world = World::new();
    let dir = world.path("pages");
    std::fs::create_dir(&dir).expect("a directory of the test's own");
    let dir = dir.display().to_string();
    assert_eq!(run(&["man", "--dir", &dir]).code, 0);
    let page = |name: &str| std::fs::read_to_string(format!("{dir}/{name}")).expect(name);
    let sections = |text: &str| -> Vec<String> {
        let heads = text.lines().filter_map(|line| line.strip_prefix(".SH "));
        heads.map(|head| head.trim_matches('"').to_owned()).collect()
    };
    for command in ["run", "status", "intercept", "check-config", "completions"] {
        let page = page(&format!("hearsay-{command}.1"));
        let sections = sections(&page);
        for section in ["NAME", "SYNOPSIS", "OPTIONS", "FILES", "EXAMPLES", "EXIT STATUS"] {
            assert!(sections.iter().any(|it| it == section), "{command}: {section}: {sections:?}");
        }
        assert!(page.contains(&format!("\nhearsay {}", command.replace('-', "\\-"))), "{page}");
    }
    // Commands of commands are on the pages of these.
    assert!(page("hearsay-intercept.1").contains(".SS \"hearsay intercept check\""));
    assert!(page("hearsay.1").contains("hearsay\\-status"));
    let settings = page("hearsay.toml.5");
    for part in [".SS \"[mesh]\"", "\\fBkey\\-file\\fR, for example", "\\fBmemory\\fR, by default"]
    {
        assert!(settings.contains(part), "{part}: {settings}");
    }
    let ended = run(&["man", "--dir", &format!("{dir}/none")]);
    assert!(ended.code == 1 && ended.err.contains("none/hearsay.1"), "{}", ended.err);
}
