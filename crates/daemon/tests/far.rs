//! The far end of the uplink: a real one beyond a private network's uplink, and what happens when it fails.

use std::fs;

use serde_json::Value;

use crate::world::network::{self, ORIGIN};
use crate::world::{FarEnd, Hearsay, Nginx, World, assert_same, key_of_gateway, noise, wait_until};

/// A gateway with this configuration.
fn gateway(world: &World, lines: &str) -> Hearsay {
    let text =
        format!("listen = [\"127.0.0.1:0\"]\n[access]\nprivate = [\"10.2.0.0/24\"]\n{lines}");
    let file = world.write("hearsay.toml", text.as_bytes());
    Hearsay::start_with(world, &["--config", &file.display().to_string()])
}

fn uplink(gateway: &Hearsay) -> Value {
    let output = gateway.command(&["uplink", "--json"]);
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn wait_until_up(gateway: &Hearsay) {
    wait_until("the pair to be up", || uplink(gateway)["state"] == "up");
}

fn crossed(gateway: &Hearsay) -> u64 {
    uplink(gateway)["crossed_in_bytes"].as_u64().expect("a number")
}

/// Gets a file, which must be exact; returns how many bytes arrived over the uplink for it.
#[track_caller]
fn get(gateway: &Hearsay, path: &str, expected: &[u8]) -> u64 {
    let before = crossed(gateway);
    let reply = gateway.get(&format!("http://origin.test/{path}")).expect(200);
    assert_same(&reply.body, expected);
    crossed(gateway) - before
}

/// The same with a few bytes changed in two places.
fn next_version(old: &[u8]) -> Vec<u8> {
    let mut new = old.to_vec();
    new[1000..1010].fill(7);
    new.splice(500_000..500_000, *b"something new");
    new
}

/// What crosses for a file, its next version, and a copy of that, each got by the gateway's client.
fn cross_versions(nginx: &Nginx, gateway: &Hearsay) -> [u64; 3] {
    let old = noise(1, 1_000_000);
    let new = next_version(&old);
    [("old", &old), ("new", &new), ("copy", &new)].map(|(name, bytes)| {
        nginx.put(name, bytes);
        get(gateway, name, bytes)
    })
}

#[test]
fn a_new_version_of_a_file_crosses_as_a_difference() {
    network::inside("a_new_version_of_a_file_crosses_as_a_difference", || {
        let world = World::new();
        let nginx = Nginx::start_in(&world, ORIGIN, "");
        let far = FarEnd::start(&world, &key_of_gateway(&world));
        let gateway = gateway(&world, &far.lines);
        wait_until_up(&gateway);
        let [first, second, third] = cross_versions(&nginx, &gateway);
        assert!((1_000_000..1_006_000).contains(&first), "{first}");
        assert!(second < 5_000, "{second}");
        assert!(third < 1_000, "{third}");
        // A response that is stored does not cross at all.
        assert_eq!(get(&gateway, "copy", &next_version(&noise(1, 1_000_000))), 0);
        let said =
            |args: &[&str]| String::from_utf8_lossy(&gateway.command(args).stdout).into_owned();
        let page = said(&["uplink"]);
        assert!(page.contains("10.2.0.2:3144, up") && page.contains("3 by the far end"), "{page}");
        // What was not brought in is the same for every command.
        let saved = page.lines().find_map(|line| line.strip_prefix("saved ")?.split_once(" that"));
        let saved = saved.expect("what was saved").0.trim();
        let status = said(&["status"]).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(status.contains(&format!("{saved} only referred to by the far end")), "{status}");
        let ledger = said(&["ledger"]);
        // Of what clients were given, the part that a client read from the store a moment later counts as local.
        let brought = ledger.lines().find_map(|it| it.split_once("the far end, as references"));
        assert_eq!(brought.map(|(_, bytes)| bytes.trim()), Some(saved), "{ledger}");
    });
}

#[test]
fn as_published_a_new_version_crosses_by_the_names_of_its_chunks() {
    network::inside("as_published_a_new_version_crosses_by_the_names_of_its_chunks", || {
        for scheme in ["mrc", "mrc-large"] {
            let world = World::new();
            let nginx = Nginx::start_in(&world, ORIGIN, "");
            let far = FarEnd::start(&world, &key_of_gateway(&world));
            let lines = format!("{}\n[experiment]\nuplink = \"{scheme}\"\n", far.lines);
            let gateway = gateway(&world, &lines);
            wait_until_up(&gateway);
            let [first, second, third] = cross_versions(&nginx, &gateway);
            assert!((1_000_000..1_010_000).contains(&first), "{scheme}: {first}");
            assert!((500..20_000).contains(&second), "{scheme}: {second}");
            assert!(third < 3_000, "{scheme}: {third}");
            let counts = &uplink(&gateway)["counts"];
            assert!(counts["chunk_reads"].as_u64() > Some(20), "{scheme}: {counts}");
        }
    });
}

#[test]
fn many_downloads_at_once_are_all_exact() {
    network::inside("many_downloads_at_once_are_all_exact", || {
        let world = World::new();
        let nginx = Nginx::start_in(&world, ORIGIN, "");
        let far = FarEnd::start(&world, &key_of_gateway(&world));
        let gateway = gateway(&world, &far.lines);
        wait_until_up(&gateway);
        // Each has parts of its own and parts that others have, too.
        let parts: Vec<_> = (0..6).map(|seed| noise(50 + seed, 150_000)).collect();
        let file = |number: usize| {
            let own = noise(100 + number as u64, 80_000);
            let shared = (0..10).map(|at| &parts[(number + at * at) % 6][..]);
            shared.chain([&own[..]]).collect::<Vec<_>>().concat()
        };
        let files: Vec<_> = (0..30).map(file).collect();
        for (number, content) in files.iter().enumerate() {
            nginx.put(&format!("file{number}"), content);
        }
        let curl = |number| gateway.curl(&format!("http://origin.test/file{number}")).start();
        let transfers: Vec<_> = (0..files.len()).map(curl).collect();
        for (transfer, content) in transfers.into_iter().zip(&files) {
            assert_same(&transfer.wait().expect(200).body, content);
        }
        let crossed = crossed(&gateway);
        assert!(crossed < 4_500_000, "{crossed} bytes for 47 MB, of which 3.3 MB are different");
    });
}

#[test]
fn a_far_end_that_knows_another_key_is_told_of_once_and_traffic_goes_on() {
    network::inside("a_far_end_that_knows_another_key_is_told_of_once_and_traffic_goes_on", || {
        let world = World::new();
        let nginx = Nginx::start_in(&world, ORIGIN, "");
        nginx.put("file", b"content");
        let far = FarEnd::start(&world, &"ab".repeat(32));
        let gateway = gateway(&world, &far.lines);
        wait_until("the refusal", || gateway.log().contains("does not know this node's key"));
        assert_eq!(gateway.get("http://origin.test/file").expect(200).body, b"content");
        assert_eq!(uplink(&gateway)["counts"]["requests_past"], 1);
    });
}

#[test]
fn a_far_end_that_dies_and_comes_back_spoils_nothing() {
    network::inside("a_far_end_that_dies_and_comes_back_spoils_nothing", || {
        let world = World::new();
        let slow = "location /slow/ { alias www/; limit_rate 400k; limit_rate_after 100k; }";
        let nginx = Nginx::start_in(&world, ORIGIN, slow);
        let key = key_of_gateway(&world);
        let mut far = FarEnd::start(&world, &key);
        let gateway = gateway(&world, &far.lines);
        wait_until_up(&gateway);
        let (old, long) = (noise(1, 600_000), noise(2, 1_500_000));
        for (name, bytes) in [("old", &old), ("again", &old), ("long", &long)] {
            nginx.put(name, bytes);
        }
        get(&gateway, "old", &old);
        let transfer = gateway.curl("http://origin.test/slow/long").start();
        wait_until("a part of the file", || transfer.received() > 300_000);
        far.process.kill();
        let reply = transfer.wait().expect(200);
        assert_same(&reply.body, &long);
        let asked = nginx.asked();
        assert!(
            asked.iter().any(|line| line.contains("206")),
            "the origin gave the rest: {asked:?}"
        );
        far = FarEnd::start(&world, &key);
        wait_until_up(&gateway);
        let crossed = get(&gateway, "again", &old);
        assert!(crossed < 1_000, "the history is used again: {crossed}");
        drop(far);
    });
}

#[test]
fn either_end_may_lose_its_history() {
    network::inside("either_end_may_lose_its_history", || {
        let world = World::new();
        let nginx = Nginx::start_in(&world, ORIGIN, "");
        let key = key_of_gateway(&world);
        let body = noise(3, 300_000);
        (0..4).for_each(|number| nginx.put(&format!("file{number}"), &body));
        let mut far = FarEnd::start(&world, &key);
        let mut gateway = gateway(&world, &far.lines);
        wait_until_up(&gateway);
        get(&gateway, "file0", &body);
        far.process.kill();
        // Its identity is beside the histories, and stays.
        let histories = fs::read_dir(world.path("far")).expect("its store").flatten();
        for directory in histories.filter(|it| it.path().is_dir()) {
            fs::remove_dir_all(directory.path()).expect("removed");
        }
        far = FarEnd::start(&world, &key);
        wait_until_up(&gateway);
        assert!(get(&gateway, "file1", &body) > 300_000);
        gateway.kill();
        fs::remove_dir_all(world.path("store/uplink")).expect("removed");
        gateway.restart();
        wait_until_up(&gateway);
        assert!(get(&gateway, "file2", &body) > 300_000);
        assert!(get(&gateway, "file3", &body) < 1_000);
        drop(far);
    });
}
