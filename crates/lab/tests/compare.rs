//! Several results on one page.

use std::fs;

use crate::lab::World;

/// A result as `run --json` writes it, with one transfer.
fn result(scenario: &str, scheme: &str, kbps: u32) -> String {
    format!(
        r#"{{"scenario":"{scenario}","scheme":"{scheme}","seed":1,"mode":"lab","valid":true,
        "share_by_source":{{"origin":1.0}},
        "transfers":[{{"client":"7","hops":1,"url":"http://origin/file-1.bin","bytes":1000,"ttfb_s":0.1,
        "seconds":1.0,"kbps":{kbps}.0,"source":"origin","bytes_by_source":{{"origin":1000}},"sha256_ok":true}}],
        "gateway":{{"bytes_from_origin":1100,"bytes_over_air":1200}},
        "radio":{{"data_frames":4,"control_frames":4,"airtime_seconds":0.01,"packets_per_file":4.0,
        "routing_packets":0,"late_ms_p99":0.1}},"wall_seconds":2.0}}"#
    )
}

/// A world with two results of one scenario, one of another, and a file that is not a result.
fn world() -> World {
    let world = World::new();
    for (file, text) in [
        ("slow.json", result("emulab8", "end-to-end", 321)),
        ("fast.json", result("emulab8", "default", 654)),
        ("other.json", result("map21", "default", 1)),
        ("none.json", "{}".to_owned()),
    ] {
        fs::write(world.path(file), text).expect("a file");
    }
    world
}

#[test]
fn schemes_stand_side_by_side() {
    let world = world();
    let [slow, fast, page] = ["slow.json", "fast.json", "page.html"].map(|it| world.text(it));
    let ended = world.run(&["compare", &slow, &fast, "--html", &page]).expect(0);
    assert_eq!((ended.out.as_str(), ended.err.as_str()), ("", ""));
    let page = fs::read_to_string(page).expect("the page");
    for part in ["end-to-end", "default", "321", "654", "<svg"] {
        assert!(page.contains(part), "no {part}");
    }
}

#[test]
fn the_picture_of_both_is_the_same_for_the_same_results() {
    let world = world();
    let [slow, fast, page] = ["slow.json", "fast.json", "page.html"].map(|it| world.text(it));
    let draw = |name: &str| {
        let path = world.text(name);
        let args = ["compare", &slow, &fast, "--html", &page, "--picture", &path];
        world.run(&args).expect(0);
        fs::read_to_string(path).expect("the picture")
    };
    let picture = draw("a.svg");
    assert_eq!(picture, draw("b.svg"));
    for part in ["Without Hearsay", "With Hearsay (default)", "internet", "1.10\u{a0}kB"] {
        assert!(picture.contains(part), "no {part}");
    }
    let refused = world.run(&["compare", &fast, "--html", &page, "--picture", &slow]);
    refused.expect_refusal(&["--picture", "end-to-end"]);
}

#[test]
fn pages_and_pictures_have_files_of_their_own() {
    let world = world();
    let [slow, fast, page] = ["slow.json", "fast.json", "page.html"].map(|it| world.text(it));
    std::os::unix::fs::symlink(&page, world.path("link")).expect("a link");
    for (html, picture, why) in [
        (&page[..], &world.text("link")[..], "two options name it"),
        ("-", "a.svg", "./- is a file"),
        (&page, "tmp", "it is a directory"),
    ] {
        let refused = world.run(&["compare", &slow, &fast, "--html", html, "--picture", picture]);
        refused.expect_refusal(&[why]);
        assert!(!world.path("page.html").exists());
    }
}

#[test]
fn what_cannot_be_compared_is_refused_in_one_line() {
    let world = world();
    let [slow, other, none, page] =
        ["slow.json", "other.json", "none.json", "page.html"].map(|it| world.text(it));
    let missing = world.text("missing.json");
    for (second, culprits) in [
        (&other, &["emulab8", "map21"][..]),
        (&none, &["none.json", "scenario"]),
        (&missing, &["missing.json", "No such file"]),
    ] {
        let refused = world.run(&["compare", &slow, second, "--html", &page]);
        refused.expect_refusal(culprits);
        assert!(!world.path("page.html").exists());
    }
}
