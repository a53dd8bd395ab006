//! The log of requests: each request of a client has its line, whatever becomes of the disk, and no file is where none was
//! asked for.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;

use serde_json::Value;

use crate::world::network::{self, CLIENT};
use crate::world::{Curl, Hearsay, Nginx, Raw, Script, World, noise, sh, wait_for, wait_until};

/// A daemon with a log of requests, and what is configured.
struct Logged {
    world: World,
    hearsay: Hearsay,
}

impl Logged {
    /// Starts it with these lines of `[log]`, besides the file.
    fn start(more: &str) -> Self {
        let world = World::new();
        configure(&world, &with_file(&world, more));
        let config = world.path("hearsay.toml").display().to_string();
        let args = ["--config", &config, "--listen", "127.0.0.1:0"];
        let hearsay = Hearsay::start_with(&world, &args);
        Self { world, hearsay }
    }

    fn file(&self) -> PathBuf {
        self.world.path("log/requests.log")
    }

    fn lines(&self) -> Vec<String> {
        let text = fs::read_to_string(self.file()).unwrap_or_default();
        text.lines().map(ToOwned::to_owned).collect()
    }

    /// Waits until there are so many lines, and returns them.
    fn wait_for_lines(&self, count: usize) -> Vec<String> {
        let said = format!("{count} lines, not {:?}", self.lines());
        wait_for(&said, || Some(self.lines()).filter(|it| it.len() == count))
    }

    fn reload(&self, log: &str, changed: &str) {
        configure(&self.world, log);
        let before = self.hearsay.log().len();
        self.hearsay.hang_up();
        wait_until("the settings to be read again", || {
            self.hearsay.log()[before..].contains(&format!("changed: {changed}\n"))
        });
    }
}

fn with_file(world: &World, more: &str) -> String {
    format!("requests = \"{}\"\n{more}", world.path("log/requests.log").display())
}

fn configure(world: &World, log: &str) {
    world.write("hearsay.toml", format!("[log]\n{log}").as_bytes());
}

fn json(lines: &[String]) -> Vec<Value> {
    let parse = |line: &String| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"));
    lines.iter().map(parse).collect()
}

#[test]
fn each_request_has_a_line_with_how_it_was_answered() {
    let it = Logged::start("format = \"json\"\n");
    let nginx = Nginx::start(&it.world, "");
    let body = noise(3, 300_000);
    nginx.put("file", &body);
    let url = nginx.url("file?a=b");
    for _ in 0..2 {
        it.hearsay.get(&url).expect(200);
    }
    it.hearsay.get(&nginx.url("none")).expect(404);
    it.hearsay.curl(&url).args(&["-I"]).run().expect(200);
    it.hearsay.curl(&url).args(&["-r", "10-19"]).run().expect(206);
    let lines = json(&it.wait_for_lines(5));
    let seen: Vec<_> = lines
        .iter()
        .map(|it| {
            (
                it["result"].as_str().unwrap(),
                it["status"].as_u64().unwrap(),
                it["bytes"].as_u64().unwrap(),
            )
        })
        .collect();
    assert_eq!(seen[..2], [("miss", 200, 300_000), ("hit", 200, 300_000)]);
    assert_eq!((seen[2].1, seen[3], seen[4]), (404, ("hit", 200, 0), ("hit", 206, 10)));
    for line in &lines {
        assert_eq!(
            (&line["client"], &line["complete"]),
            (&"127.0.0.1".into(), &true.into()),
            "{line}"
        );
    }
    assert_eq!((&lines[0]["url"], &lines[0]["method"]), (&url.as_str().into(), &"GET".into()));
    assert_eq!(lines[3]["method"], "HEAD");
    assert_eq!(it.hearsay.number("/request_log/lines"), 5);
    assert_eq!(it.hearsay.metric("hearsay_request_log_lines_total").as_deref(), Some("5"));
    let mode =
        std::os::unix::fs::PermissionsExt::mode(&fs::metadata(it.file()).unwrap().permissions());
    assert_eq!(mode & 0o027, 0, "others can read it: {mode:o}");
}

#[test]
fn a_client_that_leaves_has_a_line_with_what_it_got() {
    let it = Logged::start("");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("it is bound");
    let _origin = Script::on(listener, |visit| {
        visit.head();
        visit.send("HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\npart");
        // Nothing more comes until the other side leaves.
        visit.head();
    });
    let mut client = Raw::connect(it.hearsay.proxy);
    client.send(format!("GET http://{address}/half HTTP/1.1\r\nHost: {address}\r\n\r\n"));
    let begun = client.take("HTTP/1.1 200".len());
    assert_eq!(begun, b"HTTP/1.1 200");
    assert_eq!(it.lines().len(), 0, "it has not ended yet");
    drop(client);
    let line = &it.wait_for_lines(1)[0];
    assert!(line.contains(" TCP_MISS_ABORTED/200 4 GET http://"), "{line}");

    // What cannot be read has a line too, and so has what is refused.
    let mut client = Raw::connect(it.hearsay.proxy);
    client.send("GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\nContent-Length: 1, 2\r\n\r\n");
    assert_eq!(client.reply().status, 400);
    let line = &it.wait_for_lines(2)[1];
    assert!(
        line.contains(" NONE_NONE/400 ") && line.contains(" NONE error:invalid-request "),
        "{line}"
    );
}

#[test]
fn a_tunnel_has_its_line_when_it_ends() {
    let it = Logged::start("");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("it is bound");
    let _server = Script::on(listener, |visit| {
        visit.body(4);
        visit.send("pong!");
    });
    let mut stream = TcpStream::connect(it.hearsay.proxy).expect("the proxy listens");
    write!(stream, "CONNECT {address} HTTP/1.1\r\nHost: {address}\r\n\r\n").expect("sent");
    let mut head = [0; 12];
    stream.read_exact(&mut head).expect("an answer");
    assert_eq!(&head, b"HTTP/1.1 200");
    assert_eq!(it.lines().len(), 0, "it has not ended yet");
    stream.write_all(b"ping").expect("sent");
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).expect("the end");
    assert!(rest.ends_with(b"pong!"));
    drop(stream);
    let line = &it.wait_for_lines(1)[0];
    let SocketAddr::V4(v4) = address else { panic!("{address}") };
    let expected = format!(" TCP_TUNNEL/200 5 CONNECT {address} - HIER_DIRECT/{} -", v4.ip());
    assert!(line.ends_with(&expected), "{line}");
}

#[test]
fn it_goes_on_and_off_and_changes_by_reload() {
    let it = Logged::start("");
    let nginx = Nginx::start(&it.world, "");
    nginx.put("file", b"hello");
    let get =
        || drop(it.hearsay.curl(&nginx.url("file")).args(&["-A", "tester/1"]).run().expect(200));
    get();
    assert!(it.wait_for_lines(1)[0].contains(" 127.0.0.1 TCP_MISS/200 5 GET "));
    it.reload(
        &with_file(&it.world, "format = \"combined\"\nclients = \"hash\"\n"),
        "[log] format, [log] clients",
    );
    get();
    let lines = it.wait_for_lines(2);
    assert!(lines[1].contains("\" 200 5 \"-\" \"tester/1\" TCP_HIT:HIER_NONE"), "{}", lines[1]);
    let name = lines[1].split(' ').next().expect("a client").to_owned();
    assert!(name.len() == 16 && name.bytes().all(|c| c.is_ascii_hexdigit()), "{}", lines[1]);
    get();
    assert!(it.wait_for_lines(3)[2].starts_with(&name), "one client has one name");

    it.reload("", "[log] requests, [log] format, [log] clients");
    assert!(it.hearsay.status()["request_log"].is_null());
    get();
    it.reload(&with_file(&it.world, ""), "[log] requests");
    get();
    let lines = it.wait_for_lines(4);
    assert!(lines[3].contains(" 127.0.0.1 TCP_HIT/200 "), "{}", lines[3]);

    // A file that another program has renamed is begun anew.
    fs::rename(it.file(), it.world.path("log/moved")).expect("the file is there");
    it.reload(&with_file(&it.world, "keep = 2\n"), "[log] keep");
    get();
    it.wait_for_lines(1);
    assert_eq!(fs::read_to_string(it.world.path("log/moved")).unwrap().lines().count(), 4);
}

#[test]
fn a_directory_that_was_not_known_at_the_start_is_refused_and_said() {
    let it = Logged::start("");
    if it.hearsay.status().pointer("/rights/limits/landlock") != Some(&true.into())
        && it.hearsay.status().pointer("/rights/landlock") != Some(&true.into())
    {
        return crate::world::skipped(
            "the log in another directory",
            "this kernel has no landlock",
        );
    }
    fs::create_dir(it.world.path("other")).expect("mkdir");
    let other = it.world.path("other/requests.log");
    it.reload(&format!("requests = \"{}\"\n", other.display()), "[log] requests");
    wait_until("it to be said", || it.hearsay.log().contains("requests are not logged"));
    assert!(it.hearsay.log().contains("restart it"), "{}", it.hearsay.log());
    let page = String::from_utf8_lossy(&it.hearsay.command(&["status"]).stdout).into_owned();
    assert!(page.contains("does not work: "), "{page}");
    assert!(!other.exists());
}

#[test]
fn a_full_disk_costs_lines_and_no_request() {
    network::inside("a_full_disk_costs_lines_and_no_request", || {
        let world = World::new();
        let log = world.path("log");
        let shown = log.display();
        sh(&format!("mkdir {shown}; mount -t tmpfs -o size=64k none {shown}"));
        configure(&world, &with_file(&world, "format = \"json\"\n"));
        let config = world.path("hearsay.toml").display().to_string();
        let args = ["--config", &config, "--listen", "10.1.0.1:3128"];
        let hearsay = Hearsay::start_with(&world, &args);
        let it = Logged { world, hearsay };
        let nginx = Nginx::start(&it.world, "");
        nginx.put("file", b"hello");
        sh(&format!("head -c 64k /dev/zero >{shown}/ballast || true"));
        let get = || it.hearsay.get(&nginx.url("file")).expect(200);
        for _ in 0..3 {
            assert_eq!(get().text(), "hello");
        }
        assert!(get().is_hit(), "caching goes on");
        wait_until("all lines to be dropped", || {
            it.hearsay.number("/request_log/dropped_lines") == 4
        });
        let said = it.hearsay.log().matches("requests are not logged").count();
        assert_eq!(said, 1, "{}", it.hearsay.log());
        let dropped = it.hearsay.metric("hearsay_request_log_dropped_lines_total");
        assert_eq!(dropped.as_deref(), Some("4"));
        fs::remove_file(log.join("ballast")).expect("it is there");
        get();
        let line = &json(&it.wait_for_lines(1))[0];
        assert_eq!(line["result"], "hit");
        assert!(it.hearsay.log().contains("requests are logged again"));
        drop(it);
        sh(&format!("umount -l {shown}"));
    });
}

#[test]
fn a_full_file_is_renamed_and_one_old_one_is_kept() {
    let it = Logged::start("size = \"1MiB\"\nkeep = 1\n");
    let nginx = Nginx::start(&it.world, "");
    nginx.put("file", b"hello");
    // 1 MiB is full of these after 150 requests.
    let url = nginx.url(&format!("file?{}", "x".repeat(7000)));
    let mut client = Raw::connect(it.hearsay.proxy);
    for _ in 0..320 {
        client.send(format!("GET {url} HTTP/1.1\r\nHost: a.test\r\n\r\n"));
        assert_eq!(client.reply().status, 200);
    }
    wait_until("all lines to be written", || it.hearsay.number("/request_log/lines") == 320);
    let mut names: Vec<_> =
        fs::read_dir(it.world.path("log")).expect("its directory").flatten().collect();
    names.sort_by_key(|it| it.file_name());
    let sizes: Vec<_> = names.iter().map(|it| it.metadata().expect("a file").len()).collect();
    let names: Vec<_> =
        names.iter().map(|it| it.file_name().into_string().expect("ASCII")).collect();
    assert_eq!(names, ["requests.log", "requests.log.1"]);
    assert!(sizes.iter().all(|size| (7000..=1 << 20).contains(size)), "{sizes:?}");
    assert_eq!(it.hearsay.number("/request_log/dropped_lines"), 0);
}

#[test]
fn an_intercepted_clients_line_has_the_whole_url() {
    network::inside("an_intercepted_clients_line_has_the_whole_url", || {
        let world = World::new();
        configure(&world, &with_file(&world, ""));
        let config = world.path("hearsay.toml").display().to_string();
        let args = ["--config", &config, "--listen", "127.0.0.1:0", "--intercept", "lan0"];
        let hearsay = Hearsay::start_with(&world, &args);
        let it = Logged { world, hearsay };
        let listener =
            network::there(network::ORIGIN, || TcpListener::bind("[::]:80")).expect("port 80");
        let _origin = Script::on(listener, |visit| {
            while visit.head().is_some() {
                visit.send(
                    "HTTP/1.1 200 OK\r\nCache-Control: max-age=9\r\nContent-Length: 2\r\n\r\nok",
                );
            }
        });
        Curl::new(CLIENT, "http://origin.test/a?b").args(&["-4"]).run().expect(200);
        let line = &it.wait_for_lines(1)[0];
        assert!(
            line.contains(
                " 10.1.0.2 TCP_MISS/200 2 GET http://origin.test/a?b - HIER_DIRECT/origin.test"
            ),
            "{line}"
        );
    });
}
