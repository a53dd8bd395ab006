//! `hearsay-lab analyze redundancy`: the files it reads, its tables, JSON and pictures.

use std::fs;

use serde_json::Value;

use crate::lab::{self, World};

/// A file of rows, and a version in which some rows are new.
fn versions(world: &World) -> [String; 2] {
    let row = |row: u64, salt: u64| {
        let mixed = (row ^ salt).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        format!("{row:06} {mixed:020} {:020}\n", mixed.rotate_left(29).wrapping_mul(row | 1))
    };
    let old: String = (0..6000).map(|it| row(it, 0)).collect();
    let new: String = (0..6100).map(|it| row(it, u64::from(it % 997 == 0))).collect();
    [("old", old), ("new", new)].map(|(name, text)| {
        fs::write(world.path(name), text).expect("a new file");
        world.text(name)
    })
}

fn scheme<'a>(json: &'a Value, kind: &str, degree: Option<u64>, smallest: u64) -> &'a Value {
    let is_it = |it: &&Value| {
        let averages = it["average_bytes"].as_array().expect("a list");
        it["kind"] == kind
            && it["degree"].as_u64() == degree
            && averages.last() == Some(&smallest.into())
    };
    json["schemes"].as_array().expect("a list").iter().find(is_it).expect("the scheme")
}

#[test]
fn json_follows_its_schema_and_ranks_the_schemes() {
    let world = World::new();
    let [old, new] = versions(&world);
    let json = world.run(&["analyze", "redundancy", "--json", "-", &old, &new]).expect(0).json();
    assert_eq!(json["counted"][0]["file"], new.as_str());
    assert_eq!(json["counted"][0]["bytes"], fs::metadata(&new).expect("the file").len());
    assert_eq!(json["warmed_by"][0]["file"], old.as_str());
    let real = |it: &Value| it["real_savings"].as_f64().expect("a number");
    let mrc = scheme(&json, "mrc", Some(2), 32);
    assert!(real(mrc) > 0.9, "{mrc}");
    for smallest in [32, 64, 65_536] {
        assert!(real(mrc) > real(scheme(&json, "src", None, smallest)), "{smallest}");
    }
    for degree in [4, 8] {
        assert!(real(scheme(&json, "mrc", Some(degree), 16 * degree)) > 0.9);
    }
    assert!(real(scheme(&json, "ours", None, 128)) > 0.9);
    let levels = mrc["savings_by_level"].as_array().expect("a list");
    let sum: f64 = levels.iter().map(|it| it.as_f64().expect("a number")).sum();
    assert!((sum - mrc["ideal_savings"].as_f64().expect("a number")).abs() < 1e-9, "{sum}");
}

#[test]
fn a_folder_is_its_files_in_the_order_of_their_paths() {
    let world = World::new();
    let [old, new] = versions(&world);
    let folder = world.path("tree");
    fs::create_dir_all(folder.join("b")).expect("a folder");
    let text = fs::read(&new).expect("the file");
    let (first, second) = text.split_at(100_000);
    fs::write(folder.join("a"), first).expect("a file");
    fs::write(folder.join("b/c"), second).expect("a file");
    let schemes = |input: &str| {
        world.run(&["analyze", "redundancy", "--json", "-", &old, input]).expect(0).json()["schemes"].clone()
    };
    assert_eq!(schemes(&world.text("tree")), schemes(&new));
}

#[test]
fn tables_and_pictures_are_written() {
    let world = World::new();
    let [old, new] = versions(&world);
    let folder = world.text("pictures");
    let smallest = ["--smallest", "128", "--pictures", &folder];
    let ended =
        world.run(&[&["analyze", "redundancy", &old, &new][..], &smallest].concat()).expect(0);
    for part in ["had crossed before", "mrc-small degree 2", "savings by level", "Mbit/s", "ours "]
    {
        assert!(ended.out.contains(part), "no {part}: {}", ended.out);
    }
    assert!(!ended.out.contains("32 B"), "{}", ended.out);
    for name in [
        "savings-ideal",
        "savings-real",
        "disk-operations",
        "index-memory",
        "levels",
        "effective-bandwidth",
    ] {
        let svg = fs::read_to_string(format!("{folder}/{name}.svg")).expect("a picture");
        assert!(
            svg.starts_with("<svg") && svg.contains("mrc degree 8") && !svg.contains("NaN"),
            "{name}"
        );
    }
}

#[test]
fn refusals_name_the_cause_and_the_next_step() {
    let world = World::new();
    let [old, _] = versions(&world);
    fs::write(world.path("empty"), "").expect("a file");
    let refused = |args: &[&str], parts: &[&str]| {
        world.run(&[&["analyze", "redundancy", "-q"], args].concat()).expect_refusal(parts);
    };
    refused(&[&world.text("none")], &["none: No such file"]);
    refused(&[&world.text("empty")], &["empty: is empty"]);
    refused(
        &["--memory", "65536", &old],
        &["more than 65536 bytes", "--memory ", "--smallest 128"],
    );
}

fn capture(name: &str) -> String {
    format!("{}/tests/captures/{name}", env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn streams_of_a_capture_are_the_content() {
    let world = World::new();
    let path = capture("1.pcap");
    let json = world.run(&["analyze", "redundancy", "--json", "-", &path, &path]).expect(0).json();
    let counted = &json["counted"][0];
    assert_eq!(
        (&counted["streams"], &counted["missing_bytes"]),
        (&4.into(), &0.into()),
        "{counted}"
    );
    // The download's 60,000 bytes arrived; frames that were sent again count once.
    let bytes = counted["bytes"].as_u64().expect("a number");
    let records = lab::capture::read(path.as_ref());
    let payload: usize = records.iter().filter_map(|it| it.tcp_of_server()).map(<[u8]>::len).sum();
    assert!(bytes > 60_000 && bytes < 60_000 + 5000, "{bytes}, of {payload}");
    for it in json["schemes"].as_array().expect("a list") {
        assert_eq!(it["ideal_savings"], 1.0, "{it}");
    }
}

#[test]
fn a_capture_that_is_cut_short_is_analysed_as_far_as_it_goes() {
    let world = World::new();
    let bytes = fs::read(capture("1.pcap")).expect("the capture");
    fs::write(world.path("cut.pcap"), &bytes[..50_000]).expect("a file");
    let ended = world
        .run(&["analyze", "redundancy", "--json", "r.json", &world.text("cut.pcap")])
        .expect(2);
    assert!(ended.err.contains("the file ends within a record"), "{}", ended.err);
    assert!(ended.out.contains("mrc degree 2"), "{}", ended.out);
    let json: Value =
        serde_json::from_slice(&fs::read(world.path("r.json")).expect("the JSON")).expect("JSON");
    lab::schema::assert_valid(&json);
    let counted = &json["counted"][0];
    assert!(counted["bytes"].as_u64() > Some(30_000) && counted["error"].is_string(), "{counted}");
}
