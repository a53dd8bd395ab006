//! `hearsay cache rm`: what it removes is asked for anew, the rest stays, and clients are served meanwhile.

use std::fs;
use std::process::Output;

use serde_json::Value;

use crate::world::{Hearsay, Nginx, Raw, World, noise, wait_until};

/// More than the daemon removes in two steps.
const MANY: usize = 600;

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr[..]].concat()).into_owned()
}

/// Removes by these arguments, and returns what is said.
#[track_caller]
fn rm(hearsay: &Hearsay, args: &[&str]) -> String {
    let output = hearsay.command(&[&["cache", "rm"], args].concat());
    assert!(output.status.success(), "{args:?}: {}", said(&output));
    said(&output)
}

/// Why these arguments are refused, and with which exit code.
#[track_caller]
fn refused(hearsay: &Hearsay, args: &[&str]) -> (Option<i32>, String) {
    let output = hearsay.command(&[&["cache", "rm"], args].concat());
    assert!(!output.status.success(), "{args:?}: {}", said(&output));
    (output.status.code(), said(&output))
}

/// Gets these, each once, by one connection.
fn get_all(hearsay: &Hearsay, urls: &[String]) {
    let mut client = Raw::connect(hearsay.proxy);
    for url in urls {
        client.send(format!("GET {url} HTTP/1.1\r\nHost: a.test\r\n\r\n"));
        assert_eq!(client.reply().status, 200, "{url}");
    }
}

fn list(hearsay: &Hearsay) -> usize {
    let output = hearsay.command(&["cache", "--json", "--limit", "10000"]);
    serde_json::from_slice::<Vec<Value>>(&output.stdout).expect("a list").len()
}

#[test]
fn a_url_is_asked_for_anew_and_the_rest_stays() {
    let world = World::new();
    let nginx = Nginx::start(&world, "");
    let mut hearsay = Hearsay::start(&world);
    for name in ["a", "b"] {
        nginx.put(name, &noise(1, 50_000));
        hearsay.get(&nginx.url(name)).expect(200);
        assert!(hearsay.get(&nginx.url(name)).expect(200).is_hit());
    }
    hearsay.wait_until_durable();
    let url = nginx.url("a");
    assert_eq!(rm(&hearsay, &[&url, "--dry-run"]), "would remove 1 object, 49 KiB\n");
    assert!(hearsay.get(&url).expect(200).is_hit(), "a dry run removes nothing");
    let line: Value = serde_json::from_str(&rm(&hearsay, &[&url, "--json"])).expect("JSON");
    assert_eq!(line, serde_json::json!({"objects": 1, "bytes": 50_000, "dry_run": false}));
    assert!(hearsay.get(&nginx.url("b")).expect(200).is_hit());
    assert!(!hearsay.get(&url).expect(200).is_hit());
    assert_eq!((nginx.count("/a"), nginx.count("/b")), (2, 1));

    // It outlives a kill, and what is not stored is no error.
    assert_eq!(rm(&hearsay, &[&url]), "removed 1 object, 49 KiB\n");
    hearsay.wait_until_synced();
    hearsay.restart();
    assert!(!hearsay.get(&url).expect(200).is_hit());
    assert_eq!(rm(&hearsay, &[&nginx.url("none")]), "removed 0 objects, 0 B\n");
    hearsay.terminate();
}

#[test]
fn many_objects_go_in_steps_and_clients_are_served_meanwhile() {
    let world = World::new();
    let nginx = Nginx::start(&world, "");
    let hearsay = Hearsay::start(&world);
    nginx.put("file", b"hello");
    let urls: Vec<_> = (0..MANY).map(|number| nginx.url(&format!("file?{number}"))).collect();
    get_all(&hearsay, &urls);
    hearsay.wait_until_durable();
    let port = nginx.url("").rsplit(':').next().expect("a port").trim_end_matches('/').to_owned();
    let localhost = format!("http://localhost:{port}/file");
    hearsay.get(&localhost).expect(200);
    hearsay.wait_until_durable();
    assert_eq!(list(&hearsay), MANY + 1);

    assert_eq!(rm(&hearsay, &["--host", "a.test"]), "removed 0 objects, 0 B\n");
    assert_eq!(
        rm(&hearsay, &["--host", "127.0.0.1", "--class", "apt"]),
        "removed 0 objects, 0 B\n"
    );
    assert_eq!(rm(&hearsay, &["--older", "1d"]), "removed 0 objects, 0 B\n");
    let would = rm(&hearsay, &["--class", "other", "--older", "0s", "--dry-run"]);
    assert_eq!(would, format!("would remove {} objects, 2.9 KiB\n", MANY + 1));
    assert_eq!(list(&hearsay), MANY + 1);
    std::thread::scope(|scope| {
        let served = scope.spawn(|| get_all(&hearsay, &vec![localhost.clone(); 50]));
        assert_eq!(
            rm(&hearsay, &["--host", "127.0.0.1"]),
            format!("removed {MANY} objects, 2.9 KiB\n")
        );
        served.join().expect("a client is served");
    });
    assert_eq!(list(&hearsay), 1);
    assert!(hearsay.get(&localhost).expect(200).is_hit(), "the other host stays");
    assert!(!hearsay.get(&urls[0]).expect(200).is_hit());
}

#[test]
fn what_is_published_stays() {
    let world = World::new();
    let nginx = Nginx::start(&world, "");
    let hearsay = Hearsay::start(&world);
    nginx.put("file", b"hello");
    hearsay.get(&nginx.url("file")).expect(200);
    let file = world.write("lesson", &noise(2, 90_000));
    let put = hearsay.command(&["put", &file.display().to_string()]);
    assert!(put.status.success(), "{}", said(&put));
    hearsay.wait_until_durable();
    assert_eq!(rm(&hearsay, &["--older", "0s"]), "removed 1 object, 5 B\n");
    wait_until("only the other one to be listed", || list(&hearsay) == 1);
    let published = hearsay.command(&["put", "--list", "--json"]);
    let published: Value = serde_json::from_slice(&published.stdout).expect("JSON");
    assert_eq!(published[0]["whole"], true, "{published}");
    let oid = published[0]["oid"].as_str().expect("a name").to_owned();
    assert_eq!(
        rm(&hearsay, &[&format!("http://oid.hearsay.invalid/{oid}"), "--dry-run"]),
        "would remove 0 objects, 0 B\n"
    );
}

#[test]
fn what_cannot_be_chosen_is_said() {
    let world = World::new();
    let nginx = Nginx::start(&world, "");
    let hearsay = Hearsay::start(&world);
    for (args, code, why) in [
        (&[][..], 2, "required"),
        (&["http://a.test/", "--host", "a.test"], 2, "cannot be used with"),
        (&["--older", "long"], 2, "not a span of time"),
        (&["a.test"], 1, "a.test is no URL of http or https"),
        (&["--host", "a.test:80"], 1, "expected one without a port"),
        (&["--class", "apk-get"], 1, "there is no class \"apk-get\""),
    ] {
        let (exit, said) = refused(&hearsay, args);
        assert!(exit == Some(code) && said.contains(why), "{args:?}: {exit:?} {said}");
    }
    drop(hearsay);

    // With a mesh key there are no URLs to look at.
    let world = World::new();
    world.write_secret("hearsay.toml", b"[mesh]\nkey = \"a key of sixteen letters\"\n");
    let config = world.path("hearsay.toml").display().to_string();
    let sealed = Hearsay::start_with(&world, &["--config", &config, "--listen", "127.0.0.1:0"]);
    nginx.put("file", b"hello");
    let url = nginx.url("file");
    for _ in 0..2 {
        sealed.get(&url).expect(200);
        sealed.wait_until_durable();
        for filter in [["--host", "127.0.0.1"], ["--class", "other"]] {
            let (exit, said) = refused(&sealed, &filter);
            assert!(
                exit == Some(1) && said.contains("with a mesh key the store knows no URLs"),
                "{said}"
            );
        }
        assert!(sealed.get(&url).expect(200).is_hit());
        assert_eq!(rm(&sealed, &[&url]), "removed 1 object, 5 B\n");
        assert!(!sealed.get(&url).expect(200).is_hit());
        sealed.wait_until_durable();
        assert_eq!(rm(&sealed, &["--older", "0s"]), "removed 1 object, 5 B\n");
    }
    fs::remove_file(&config).expect("it is there");
}
