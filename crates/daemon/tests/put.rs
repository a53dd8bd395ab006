//! Publishing a file, and getting it by name: the commands, the store after a power cut, and routers in
//! a row.

use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::world::{Hearsay, World, assert_same, noise, tool, wait_until};
use crate::world::{network, row};

/// A command's exit code and output.
struct Ended {
    code: i32,
    out: String,
    err: String,
}

fn run(hearsay: &Hearsay, args: &[&str]) -> Ended {
    let output = hearsay.command(args);
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text").trim().to_owned();
    let code = output.status.code().unwrap_or(-1);
    Ended { code, out: text(output.stdout), err: text(output.stderr) }
}

#[track_caller]
fn fine(hearsay: &Hearsay, args: &[&str]) -> String {
    let ended = run(hearsay, args);
    assert_eq!(ended.code, 0, "{args:?}: {}{}\n{}", ended.out, ended.err, hearsay.log());
    ended.out
}

#[track_caller]
fn refused(hearsay: &Hearsay, args: &[&str], code: i32, why: &str) {
    let ended = run(hearsay, args);
    assert_eq!(ended.code, code, "{args:?}: {}{}", ended.out, ended.err);
    assert!(ended.err.contains(why), "no {why:?} in {}", ended.err);
}

fn put(hearsay: &Hearsay, world: &World, name: &str, bytes: &[u8]) -> String {
    let file = world.write(name, bytes);
    let oid = fine(hearsay, &["put", file.to_str().expect("a plain path")]);
    assert_eq!(oid.len(), 64, "{oid}");
    oid
}

#[track_caller]
fn got(hearsay: &Hearsay, world: &World, oid: &str, bytes: &[u8]) -> Value {
    let file = world.path("got");
    let args = ["get", oid, "-o", file.to_str().expect("a plain path"), "--json"];
    let report: Value = serde_json::from_str(&fine(hearsay, &args)).expect("JSON");
    assert_same(&fs::read(&file).expect("the file"), bytes);
    fs::remove_file(&file).expect("it is there");
    report
}

#[test]
fn what_is_put_is_got_by_its_name() {
    let world = World::new();
    let hearsay = Hearsay::start(&world);
    for length in [0, 5, 3_000_000] {
        let file = noise(length as u64, length);
        let oid = put(&hearsay, &world, "file", &file);
        let report = got(&hearsay, &world, &oid, &file);
        assert_eq!(report["verified"], serde_json::json!(["length", "BLAKE3 (OID)"]));
        assert!(report["answered_by"].is_string(), "{report}");
        // The same file has the same OID, and an OID may be written in either case.
        assert_eq!(put(&hearsay, &world, "again", &file), oid);
        got(&hearsay, &world, &format!("oid:{}", oid.to_uppercase()), &file);
    }
    assert_eq!(hearsay.number("/report/published"), 3);
    assert_eq!(hearsay.number("/report/published_bytes"), 3_000_005);
    let list = fine(&hearsay, &["put", "--list", "--json"]);
    let list: Value = serde_json::from_str(&list).expect("JSON");
    assert_eq!(list.as_array().map(Vec::len), Some(3));
    assert!(fine(&hearsay, &["cache"]).contains("http://oid.hearsay.invalid/"));
    // Any client of the proxy can download it, whole or in part.
    let file = noise(3_000_000, 3_000_000);
    let oid = put(&hearsay, &world, "file", &file);
    let url = format!("http://oid.hearsay.invalid/{oid}");
    let reply = hearsay.curl(&url).args(&["-r", "1000-1999"]).run().expect(206);
    assert_same(&reply.body, &file[1000..2000]);
}

#[test]
fn what_is_got_into_a_pipe_is_verified_too() {
    let world = World::new();
    let hearsay = Hearsay::start(&world);
    let file = noise(4, 1_000_000);
    let oid = put(&hearsay, &world, "file", &file);
    // Of the test's own: /dev/stdout is the machine's.
    let link = world.path("stdout");
    std::os::unix::fs::symlink("/proc/self/fd/1", &link).expect("a link");
    let out = link.to_str().expect("a plain path");
    let got = hearsay.command(&["get", &oid, "-o", out, "--json"]);
    assert_same(&got.stdout, &file);
    let report: Value = serde_json::from_slice(&got.stderr).expect("JSON");
    assert_eq!(report["verified"], serde_json::json!(["length", "BLAKE3 (OID)"]));
    // An option is heeded beside the OID.
    let wrong = ["get", &oid, "-o", out, "--sha256", &"0".repeat(64)];
    let ended = hearsay.command(&wrong);
    assert_same(&ended.stdout, &file);
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.code() == Some(4) && said.contains("written already"), "{said}");
    assert!(link.is_symlink());
}

#[test]
fn what_broke_off_is_resumed_and_what_is_false_in_it_is_found() {
    let world = World::new();
    let hearsay = Hearsay::start(&world);
    let file = noise(1, 2_000_000);
    let oid = put(&hearsay, &world, "file", &file);
    let url = format!("http://oid.hearsay.invalid/{oid}");
    let root = hearsay.get(&url).expect(200).field("hearsay-root").to_owned();
    let left = |bytes: &[u8]| {
        let tag = format!("\"{oid}\"");
        let meta = serde_json::json!({
            "url": url, "etag": tag, "last_modified": null, "validator": tag,
            "length": file.len(), "repr_digest": null, "root": root, "synced_bytes": bytes.len(),
        });
        world.write("got.part", bytes);
        world.write("got.part.meta", meta.to_string().as_bytes());
    };
    left(&file[..700_000]);
    let report = got(&hearsay, &world, &oid, &file);
    assert_eq!(report["resumed_bytes"], 700_000);
    let mut false_bytes = file[..700_000].to_vec();
    false_bytes[5] ^= 1;
    left(&false_bytes);
    let out = world.path("got").display().to_string();
    refused(&hearsay, &["get", &oid, "-o", &out], 4, "its BLAKE3 does not match the OID");
    assert!(!world.path("got").exists());
}

#[test]
fn what_has_returned_survives_a_kill_and_what_is_taken_back_is_gone() {
    let world = World::new();
    let mut hearsay = Hearsay::start(&world);
    let (one, two) = (noise(1, 2_000_000), noise(2, 500_000));
    let oids = [put(&hearsay, &world, "one", &one), put(&hearsay, &world, "two", &two)];
    hearsay.restart();
    got(&hearsay, &world, &oids[0], &one);
    got(&hearsay, &world, &oids[1], &two);
    wait_until("all to be found whole", || {
        let list = fine(&hearsay, &["put", "--list", "--json"]);
        list.matches("\"whole\":true").count() == 2
    });
    fine(&hearsay, &["put", "--remove", &oids[0]]);
    let out = world.path("gone");
    let get = ["get", &oids[0], "-o", out.to_str().expect("a plain path")];
    refused(&hearsay, &get, 1, "no reachable node had the object of this name");
    refused(&hearsay, &["put", "--remove", &oids[0]], 1, "nothing of this name");
    hearsay.restart();
    refused(&hearsay, &get, 1, "no reachable node");
    got(&hearsay, &world, &oids[1], &two);
}

#[test]
fn what_cannot_be_put_or_got_says_why() {
    let world = World::new();
    let hearsay = Hearsay::start_with(&world, &["--store-size", "16MiB"]);
    let path = |name: &str| world.path(name).display().to_string();
    refused(&hearsay, &["put", &path("nowhere")], 1, "No such file");
    refused(&hearsay, &["put", &path("")], 2, "not a plain file");
    for (name, why) in [
        (&"ab".repeat(32)[1..], "it has 63"),
        (&"ab".repeat(32).replacen('a', "x", 1)[..], "'x' is not one"),
        ("oid:12", "it has 2"),
    ] {
        refused(&hearsay, &["get", name], 2, why);
        refused(&hearsay, &["put", "--remove", name], 2, why);
    }
    let reply = hearsay.get("http://oid.hearsay.invalid/12").expect(400);
    assert!(String::from_utf8_lossy(&reply.body).contains("64 hexadecimal digits"));
    world.write("large", &noise(1, 9_000_000));
    refused(&hearsay, &["put", &path("large")], 1, "no object of more than 8.0 MiB");
    // The file is refused by its length, without being read: it is sparse.
    let huge = fs::File::create(world.path("huge")).expect("a file");
    huge.set_len(7 << 30).expect("a sparse file");
    refused(&hearsay, &["put", &path("huge")], 1, "certifies no more than 6.");
    put(&hearsay, &world, "first", &noise(2, 5_000_000));
    world.write("second", &noise(3, 5_000_000));
    refused(&hearsay, &["put", &path("second")], 1, "at most can be published");
    assert_eq!(hearsay.number("/report/published"), 1);
}

/// `hearsay get` on another router.
fn get_at(router: &str, hearsay: &Hearsay, oid: &str, file: &str) -> (i32, String) {
    let output = Command::new(tool("ip"))
        .args(["netns", "exec", router, env!("CARGO_BIN_EXE_hearsay"), "--control"])
        .arg(hearsay.control())
        .args(["get", oid, "-o", file, "--quiet"])
        .output()
        .expect("ip starts");
    (output.status.code().unwrap_or(-1), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn the_gateway_finds_what_is_published_two_hops_below_it() {
    network::inside("the_gateway_finds_what_is_published_two_hops_below_it", || {
        row::build();
        let worlds = [World::new(), World::new(), World::new()];
        let [mut first, second, mut gateway] =
            [0, 1, 2].map(|at| row::router(&worlds[at], ["r1", "r2", "r3"][at], ""));
        for router in [&first, &second, &gateway] {
            wait_until("a route", || router.status()["route"]["up"] == true);
        }
        let (file, other) = (noise(1, 3_000_000), noise(2, 700_000));
        let oid = put(&first, &worlds[0], "file", &file);
        let other_oid = put(&first, &worlds[0], "other", &other);
        wait_until("the gateway to hear of it", || gateway.number("/report/hints") == 2);
        let out = worlds[2].path("file").display().to_string();
        let (code, said) = get_at("r3", &gateway, &oid, &out);
        assert_eq!(code, 0, "{said} {}", gateway.log());
        assert_same(&fs::read(&out).expect("the file"), &file);
        assert_eq!(gateway.number("/report/origin_bytes"), 0);
        // The gateway restarts, and gets the hints again.
        gateway.restart();
        wait_until("the gateway to hear again", || gateway.number("/report/hints") == 2);
        let out = worlds[2].path("other").display().to_string();
        assert_eq!(get_at("r3", &gateway, &other_oid, &out), (0, String::new()));
        assert_same(&fs::read(&out).expect("the file"), &other);
        // When the publisher is gone, an object that no other node fetched is gone too.
        let never = put(&first, &worlds[0], "never", &noise(3, 10_000));
        first.terminate();
        wait_until("the hints to go", || gateway.number("/report/hints") == 0);
        let out = worlds[2].path("never").display().to_string();
        let (code, said) = get_at("r3", &gateway, &never, &out);
        assert_eq!(code, 1, "{said}");
        assert!(said.contains("no reachable node had the object"), "{said}");
    });
}
