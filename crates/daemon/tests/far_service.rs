//! A far end as a service: its settings file, its reload, its status and metrics.

use serde_json::Value;

use crate::world::network::{self, ORIGIN};
use crate::world::schema::check_schema;
use crate::world::{
    Curl, FarEnd, Hearsay, Nginx, Place, World, assert_same, key_of_gateway, noise, wait_until,
};

/// Writes the far end's file, and returns its path.
fn configure(world: &World, keys: &[&str], more: &str) -> String {
    let store = world.path("far").display().to_string();
    let text = format!(
        "listen = \"10.2.0.2:3144\"\ngateways = {keys:?}\n[store]\npath = {store:?}\n\
         [access]\nprivate = [\"10.2.0.0/24\"]\n{more}"
    );
    world.write("far.toml", text.as_bytes()).display().to_string()
}

/// Has the far end read its file again, and returns what it logs up to this text.
#[track_caller]
fn reload(world: &World, far: &FarEnd, text: &str) -> String {
    let before = FarEnd::log(world).len();
    far.process.signal("HUP");
    wait_until(text, || FarEnd::log(world)[before..].contains(text));
    FarEnd::log(world)[before..].to_owned()
}

fn status(world: &World) -> Value {
    serde_json::from_str(&FarEnd::status(world, &["--json"])).expect("JSON")
}

fn gateway(world: &World, far: &FarEnd) -> Hearsay {
    let private = "[access]\nprivate = [\"10.2.0.0/24\"]\n";
    let text = format!("listen = [\"127.0.0.1:0\"]\n{private}{}", far.lines);
    let file = world.write("hearsay.toml", text.as_bytes()).display().to_string();
    Hearsay::start_with(world, &["--config", &file])
}

fn wait_until_up(world: &World) {
    wait_until("the gateway to be connected", || {
        status(world)["gateways"][0]["gateway_up"] == true
    });
}

#[test]
fn it_tells_which_gateways_are_there_and_what_was_saved() {
    network::inside("it_tells_which_gateways_are_there_and_what_was_saved", || {
        let world = World::new();
        let nginx = Nginx::start_in(&world, ORIGIN, "");
        let (key, other) = (key_of_gateway(&world), "ff".repeat(32));
        let metrics = "[metrics]\nlisten = \"10.2.0.2:9144\"\n";
        let file = configure(&world, &[&key, &other], metrics);
        let far = FarEnd::start_with_file(&world, &file);
        let gateway = gateway(&world, &far);
        let by_key = |status: Value| {
            let lines = status["gateways"].as_array().expect("a list").clone();
            lines.into_iter().find(|it| it["key"] == key.as_str()).expect("the gateway")
        };
        wait_until("the gateway to be connected", || by_key(status(&world))["gateway_up"] == true);
        let body = noise(1, 500_000);
        for name in ["one", "two"] {
            nginx.put(name, &body);
            assert_same(
                &gateway.get(&format!("http://origin.test/{name}")).expect(200).body,
                &body,
            );
        }

        let shown = status(&world);
        let schema = include_str!("../../../docs/schema/far-1.json");
        let schema: Value = serde_json::from_str(schema).expect("JSON");
        check_schema(&schema, &schema, &shown, "status");
        assert!(far.lines.contains(shown["key"].as_str().expect("a key")), "{shown}");
        assert_eq!(shown["listen"], "10.2.0.2:3144");
        assert_eq!(shown["counts"]["memory_limit_bytes"], 66 << 20, "two gateways");
        let line = by_key(shown);
        let number = |name: &str| line[name].as_u64().unwrap_or_else(|| panic!("{name}: {line}"));
        assert_eq!((&line["address"], number("requests")), (&"10.2.0.1".into(), 2));
        assert!((400_000..=500_000).contains(&number("saved_bytes")), "{line}");
        assert!((1_000_000..1_010_000).contains(&number("content_out_bytes")), "{line}");
        assert!((500_000..600_000).contains(&number("crossed_out_bytes")), "{line}");
        // Both ends count the same.
        let near = gateway.command(&["uplink", "--json"]).stdout;
        let near: Value = serde_json::from_slice(&near).expect("JSON");
        assert_eq!(near["content_in_bytes"], line["content_out_bytes"]);

        let page = FarEnd::status(&world, &[]);
        assert!(page.contains("gateways     1 of 2 connected"), "{page}");
        let sample = format!("hearsay_far_gateway_up{{gateway=\"{}\"}} 1", &key[..16]);
        let by_port = Curl::new(ORIGIN, "http://10.2.0.2:9144/metrics").run().expect(200).text();
        let socket = FarEnd::control(&world).display().to_string();
        let by_socket = Curl::new(Place::Here, "http://hearsay/metrics")
            .args(&["--unix-socket", &socket])
            .run()
            .expect(200)
            .text();
        for text in [by_port, by_socket] {
            assert!(text.lines().any(|line| line == sample), "{sample}: {text}");
        }
        Curl::new(ORIGIN, "http://10.2.0.2:9144/far").run().expect(404);
    });
}

#[test]
fn a_reload_lets_gateways_in_and_out() {
    network::inside("a_reload_lets_gateways_in_and_out", || {
        let world = World::new();
        let nginx = Nginx::start_in(&world, ORIGIN, "");
        let body = noise(1, 300_000);
        ["one", "two"].iter().for_each(|name| nginx.put(name, &body));
        let (key, other) = (key_of_gateway(&world), "00".repeat(32));
        let file = configure(&world, &[&key], "");
        let mut far = FarEnd::start_with_file(&world, &file);
        let mut gateway = gateway(&world, &far);
        wait_until_up(&world);
        assert_same(&gateway.get("http://origin.test/one").expect(200).body, &body);

        // A second gateway, metrics and another level: the first stays connected.
        configure(&world, &[&key, &other], "[metrics]\nlisten = \"10.2.0.2:9144\"\n");
        let said = reload(&world, &far, "changed: ");
        assert!(said.contains("changed: gateways, [metrics] listen\n"), "{said}");
        Curl::new(ORIGIN, "http://10.2.0.2:9144/metrics").run().expect(200);
        let ours = status(&world)["gateways"][1].clone();
        assert_eq!((&ours["gateway_up"], &ours["connections"]), (&true.into(), &1.into()));

        // What is wrong is said with its line, and changes nothing.
        configure(&world, &["00"], "");
        let said = reload(&world, &far, "the configuration is wrong");
        assert!(said.contains(&format!("{file}:2: \"00\" is no key")), "{said}");
        assert_eq!(status(&world)["gateways"].as_array().map(Vec::len), Some(2));

        // Without its key the gateway is put out, and its clients go straight to the origin.
        configure(&world, &[&other], "[store2]\n");
        reload(&world, &far, "unknown key `store2`");
        configure(&world, &[&other], "");
        reload(&world, &far, "changed: gateways");
        wait_until("the refusal", || gateway.log().contains("does not know this node's key"));
        let lines = status(&world)["gateways"].clone();
        assert_eq!((&lines[0]["key"], lines.as_array().map(Vec::len)), (&other.into(), Some(1)));
        assert_same(&gateway.get("http://origin.test/two").expect(200).body, &body);

        // It is let in again, and its history was kept.
        configure(&world, &[&key], "");
        reload(&world, &far, "changed: gateways");
        gateway.restart();
        wait_until_up(&world);
        nginx.put("three", &body);
        assert_same(&gateway.get("http://origin.test/three").expect(200).body, &body);
        let crossed = &status(&world)["gateways"][0]["crossed_out_bytes"];
        assert!(crossed.as_u64() < Some(10_000), "{crossed}");
        far.process.signal("TERM");
        wait_until("the far end to end", || far.process.has_ended());
        assert!(!FarEnd::control(&world).exists(), "its socket is left");
    });
}
