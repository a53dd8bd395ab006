//! SIGHUP: settings that can change at run time change, the log names the others, and no transfer ends.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::world::network::{self, CLIENT, ORIGIN, there};
use crate::world::{
    Curl, Hearsay, Nginx, Place, Raw, Reply, Script, World, assert_same, noise, sh, tool,
    wait_until,
};

/// Writes the configuration, and returns its path.
fn configure(world: &World, text: &str) -> String {
    world.write("hearsay.toml", text.as_bytes()).display().to_string()
}

/// Has the daemon read its configuration again, and waits until its log contains `text`. Returns the new lines.
#[track_caller]
fn reload(hearsay: &Hearsay, text: &str) -> String {
    let before = hearsay.log().len();
    hearsay.hang_up();
    wait_until("the daemon to have read its configuration again", || {
        hearsay.log()[before..].contains(text)
    });
    hearsay.log()[before..].to_owned()
}

/// An origin on port 80 that pauses in the middle of each response until the flag is set.
fn pausing_origin(body: &[u8]) -> (Script, Arc<AtomicBool>) {
    let goes_on = Arc::new(AtomicBool::new(false));
    let (may_go, body) = (Arc::clone(&goes_on), body.to_vec());
    let listener = there(ORIGIN, || TcpListener::bind("[::]:80")).expect("port 80 is free");
    let script = Script::on(listener, move |visit| {
        while visit.head().is_some() {
            let fields = "Cache-Control: max-age=99\r\n";
            visit
                .send(format!("HTTP/1.1 200 OK\r\n{fields}Content-Length: {}\r\n\r\n", body.len()));
            let (first, second) = body.split_at(body.len() / 2);
            visit.send(first);
            wait_until("the origin to go on", || may_go.load(Ordering::Relaxed));
            visit.send(second);
        }
    });
    (script, goes_on)
}

#[test]
fn a_transfer_goes_on_and_a_new_client_may_come() {
    network::inside("a_transfer_goes_on_and_a_new_client_may_come", || {
        sh("ip addr add 198.51.100.1/24 dev lan0; ip -n client addr add 198.51.100.2/24 dev eth0");
        let world = World::new();
        let body = noise(1, 600_000);
        let (_origin, goes_on) = pausing_origin(&body);
        let with = |more: &str| {
            // The origin has private addresses, which the proxy must be permitted to dial.
            let private = "[access]\nprivate = [\"10.2.0.0/24\", \"fd02::/64\"]\n";
            configure(&world, &format!("listen = [\"0.0.0.0:3128\"]\n{more}{private}"))
        };
        let config = with("");
        let mut hearsay = Hearsay::start_with(&world, &["--config", &config]);
        let proxy = SocketAddr::from(([198, 51, 100, 1], 3128));
        let ask = |url| Curl::new(CLIENT, url).args(&["-x", &format!("http://{proxy}")]);
        let local = "http://10.1.0.1:3128";
        let transfer = Curl::new(CLIENT, "http://origin.test/file").args(&["-x", local]).start();
        wait_until("some of it to arrive", || transfer.received() > 100_000);
        ask("http://origin.test/file").run().expect(403);

        with("allow = [\"198.51.100.0/24\"]\nmemory = \"8MiB\"\n");
        let said = reload(&hearsay, "restart");
        assert!(said.contains("changed: allow\n"), "{said}");
        assert!(said.contains("these need a restart: memory\n"), "{said}");
        goes_on.store(true, Ordering::Relaxed);
        assert_same(&transfer.wait().expect(200).body, &body);
        assert_same(&ask("http://origin.test/file").run().expect(200).body, &body);

        // A setting that is neither on the command line nor in the file any more returns to its default.
        with("");
        reload(&hearsay, "changed: allow\n");
        ask("http://origin.test/file").run().expect(403);
        hearsay.terminate();
    });
}

#[test]
fn a_wrong_file_is_said_and_what_held_goes_on() {
    let world = World::new();
    let nginx = Nginx::start(&world, "");
    nginx.put("file", b"hello");
    let config = configure(&world, "name = \"before\"\n");
    let args = ["--config", &config, "--listen", "127.0.0.1:0"];
    let mut hearsay = Hearsay::start_with(&world, &args);
    for wrong in ["\nallow = [\"0.0.0.0/0\"]\n", "\nalow = []\n", "\nallow = [\n"] {
        configure(&world, wrong);
        let said = reload(&hearsay, "the configuration is wrong");
        assert!(said.contains(&format!("{config}:")), "no file and line: {said}");
    }
    std::fs::remove_file(&config).expect("it was there");
    let said = reload(&hearsay, "the configuration is wrong");
    assert!(said.contains("cannot be read"), "{said}");
    assert_eq!(hearsay.get(&nginx.url("file")).expect(200).text(), "hello");
    assert_eq!(hearsay.status()["name"], "before");

    // The command line still overrides the file.
    configure(&world, "name = \"before\"\nlisten = [\"127.0.0.1:1\"]\n");
    let said = reload(&hearsay, "changed: nothing");
    assert!(!said.contains("restart"), "{said}");
    hearsay.terminate();
}

/// A program `nft` that waits while there is a file `hold`, and kills itself while there is a file `die`.
fn slow_nft(world: &World) -> String {
    let real = tool("nft");
    let dir = world.path("bin");
    let (at, real) = (dir.display(), real.display());
    sh(&format!(
        "mkdir -p {at}; cat > {at}/nft <<'END'
#!/bin/sh
[ -e {at}/die ] && kill -9 $$
while [ -e {at}/hold ]; do sleep 0.02; done
exec {real} \"$@\"
END
chmod +x {at}/nft"
    ));
    format!("PATH={at}:{}", std::env::var("PATH").unwrap_or_default())
}

#[test]
fn clients_are_served_while_the_helper_is_slow_or_stopped() {
    network::inside("clients_are_served_while_the_helper_is_slow_or_stopped", || {
        let world = World::new();
        let nginx = Nginx::start_in(&world, ORIGIN, "");
        nginx.put("file", b"hello");
        let path = slow_nft(&world);
        let with = |ports: &str| {
            let interfaces = "interfaces = [\"lan0\"]\nport = 8130\n";
            let text =
                format!("listen = [\"127.0.0.1:0\"]\n[intercept]\n{interfaces}http = {ports}\n");
            configure(&world, &text)
        };
        let config = with("[80]");
        let mut hearsay = Hearsay::start_under(&world, &["env", &path], &["--config", &config]);
        let get = |url: &str| Curl::new(CLIENT, url).args(&["-4"]).run().expect(200);
        let by_us = |url: &str| !get(url).field("via").is_empty();
        let (plain, other) = ("http://origin.test/file", "http://origin.test:8080/file");
        assert!(by_us(plain));
        // Each of these is a connection of its own; the reload is not done before or after them.
        let serves_many = |before: usize| {
            for _ in 0..8 {
                assert!(by_us(plain));
            }
            assert!(!hearsay.log()[before..].contains("changed:"), "{}", hearsay.log());
        };
        let ports = || hearsay.status()["intercept"]["ports"].clone();

        let hold = world.path("bin/hold");
        std::fs::write(&hold, "").expect("a file");
        with("[80, 8080]");
        let before = hearsay.log().len();
        hearsay.hang_up();
        wait_until("the settings to be read", || ports() == serde_json::json!([80, 8080]));
        serves_many(before);
        // Somebody removes the table meanwhile.
        sh("nft delete table inet hearsay");
        std::fs::remove_file(&hold).expect("it was there");
        wait_until("the reload", || hearsay.log()[before..].contains("changed: [intercept] http"));
        assert_eq!((by_us(plain), by_us(other)), (true, true));

        let helper = hearsay.number("/rights/helper_process");
        sh(&format!("kill -STOP {helper}"));
        with("[80]");
        let before = hearsay.log().len();
        hearsay.hang_up();
        wait_until("the settings to be read", || ports() == serde_json::json!([80]));
        serves_many(before);
        sh(&format!("kill -CONT {helper}"));
        wait_until("the reload", || hearsay.log()[before..].contains("changed: [intercept] http"));
        assert_eq!((by_us(plain), by_us(other)), (true, false));

        // What nft was killed at stays as it was, and is done at the next time.
        std::fs::write(world.path("bin/die"), "").expect("a file");
        with("[80, 8080]");
        let said = reload(&hearsay, "changed:");
        assert!(said.contains("the interception rules stay as they were"), "{said}");
        assert_eq!((by_us(plain), by_us(other)), (true, false));
        std::fs::remove_file(world.path("bin/die")).expect("it was there");
        reload(&hearsay, "changed:");
        assert_eq!((by_us(plain), by_us(other)), (true, true));
        hearsay.terminate();
        assert!(!sh("nft list tables; ip rule").contains("hearsay"), "rules were left behind");
    });
}

#[test]
fn interception_begins_changes_and_ends_while_it_runs() {
    network::inside("interception_begins_changes_and_ends_while_it_runs", || {
        let world = World::new();
        let nginx = Nginx::start_in(&world, ORIGIN, "location /slow { limit_rate 150k; }");
        let slow = noise(2, 600_000);
        nginx.put("slow", &slow);
        nginx.put("file", b"hello");
        let listen = "listen = [\"127.0.0.1:0\"]\n";
        // The port is given from the start, when there are no interfaces yet.
        let off = format!("{listen}[intercept]\nport = 8130\n");
        let on = |more: &str| format!("{off}interfaces = [\"lan0\"]\n{more}");
        let config = configure(&world, &off);
        let mut hearsay = Hearsay::start_with(&world, &["--config", &config]);
        // The origin's second port is open over IPv4 only.
        let get = |url: &str| Curl::new(CLIENT, url).args(&["-4"]).run().expect(200);
        let by_us = |url: &str| !get(url).field("via").is_empty();
        let (plain, other) = ("http://origin.test/file", "http://origin.test:8080/file");
        assert_eq!((by_us(plain), by_us(other)), (false, false));

        configure(&world, &on(""));
        reload(&hearsay, "changed: [intercept] interfaces\n");
        assert_eq!((by_us(plain), by_us(other)), (true, false));
        assert_eq!(hearsay.status()["intercept"]["works"], true);

        let transfer = Curl::new(CLIENT, "http://origin.test/slow").start();
        wait_until("some of it to arrive", || transfer.received() > 50_000);
        configure(&world, &on("http = [8080]"));
        reload(&hearsay, "changed: [intercept] http\n");
        assert_eq!((by_us(plain), by_us(other)), (true, true));
        assert_eq!(hearsay.status()["intercept"]["ports"], serde_json::json!([80, 8080]));

        configure(&world, &off);
        reload(&hearsay, "changed: [intercept] interfaces, [intercept] http\n");
        assert_eq!((by_us(plain), by_us(other)), (false, false));
        let reply: Reply = transfer.wait().expect(200);
        assert!(!reply.field("via").is_empty(), "it was not intercepted: {reply:?}");
        assert_same(&reply.body, &slow);
        hearsay.terminate();
        assert!(!sh("nft list tables; ip rule").contains("hearsay"), "rules were left behind");
    });
}

/// An address on loopback that nobody has.
fn free() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("its address")
}

/// Whether the mirror refuses a host because the settings do not allow it.
fn is_unknown(reply: &Reply) -> bool {
    assert_eq!(reply.status, 403, "{reply:?}");
    reply.text().contains("[mirror] allow")
}

#[test]
fn the_mirror_and_metrics_move_to_other_addresses_and_hosts_are_allowed() {
    let world = World::new();
    let nginx = Nginx::start(&world, "");
    let ([first, second], [old, new]) = ([free(), free()], [free(), free()]);
    let text = |mirror: &str, metrics, allow: &str| {
        let text = format!(
            "[mirror]\nlisten = [{mirror}]\nallow = [{allow}]\n[metrics]\nlisten = \"{metrics}\"\n"
        );
        configure(&world, &text)
    };
    let config = text(&format!("\"{first}\""), old, "");
    let args = ["--config", &config, "--listen", "127.0.0.1:0"];
    let mut hearsay = Hearsay::start_with(&world, &args);
    let get = |url: &str| Curl::new(Place::Here, url).run();
    // Its port is refused to all clients, in other words.
    let path =
        format!("/files/{}/x", nginx.url("").trim_start_matches("http://").trim_end_matches('/'));
    assert!(is_unknown(&get(&format!("http://{first}{path}"))));
    get(&format!("http://{old}/metrics")).expect(200);
    let mut kept = Raw::connect(first);

    let host = path.split('/').nth(2).expect("a host").to_owned();
    let taken = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let taken = taken.local_addr().map(|it| (it, taken)).expect("its address");
    text(&format!("\"{second}\", \"{}\"", taken.0), new, &format!("\"{host}\""));
    let said = reload(&hearsay, "changed: [mirror] listen, [mirror] allow, [metrics] listen\n");
    assert!(said.contains(&format!("[mirror] listen: cannot listen on {}: ", taken.0)), "{said}");
    assert!(!is_unknown(&get(&format!("http://{second}{path}"))));
    get(&format!("http://{new}/metrics")).expect(200);
    for gone in [first, old] {
        assert!(std::net::TcpStream::connect(gone).is_err(), "{gone} is open");
    }
    let status = hearsay.status();
    assert_eq!(status["mirrors"], serde_json::json!([second.to_string()]));
    assert_eq!(status["metrics"], new.to_string());
    // A connection from before is served.
    kept.send(format!("GET {path} HTTP/1.1\r\nHost: {first}\r\n\r\n"));
    assert!(!is_unknown(&kept.reply()));

    // What could not be opened is tried again.
    drop(taken.1);
    reload(&hearsay, "changed: [mirror] listen\n");
    assert!(!is_unknown(&get(&format!("http://{}{path}", taken.0))));
    hearsay.terminate();
}

#[test]
fn how_much_is_logged_changes_unless_the_command_line_says() {
    let (world, other) = (World::new(), World::new());
    let nginx = Nginx::start(&world, "");
    nginx.put("file", b"hello");
    let config = configure(&world, "[log]\nlevel = \"warn\"\n");
    let args = ["--config", &config, "--listen", "127.0.0.1:0"];
    let hearsay = Hearsay::start_with(&world, &args);
    let asked = Hearsay::start_with(&other, &[&args[..], &["--log", "info"]].concat());
    let lines_of_a_request = || {
        let before = hearsay.log().len();
        hearsay.get(&nginx.url("file")).expect(200);
        hearsay.log()[before..].to_owned()
    };
    assert_eq!(hearsay.log(), "");
    configure(&world, "[log]\nlevel = \"debug\"\n");
    reload(&hearsay, "changed: [log] level\n");
    wait_until("the engine's steps to be logged", || lines_of_a_request().contains("\"event\":"));
    configure(&world, "memory = \"8MiB\"\n[log]\nlevel = \"warn\"\n");
    reload(&hearsay, "these need a restart: memory\n");
    assert_eq!(lines_of_a_request(), "");
    let said = reload(&asked, "changed: nothing\n");
    assert!(!said.contains("DEBUG") && asked.log().contains("ready"), "{said}");
}
