//! The explicit proxy, as curl and other clients see it, with nginx or a script as the origin.

use std::io::{ErrorKind, Read as _, Write as _};
use std::sync::mpsc;
use std::sync::{Arc, Mutex};

use crate::world::network::{self, CLIENT};
use crate::world::{
    self, ClosedPort, Curl, Hearsay, Nginx, Raw, Script, TIMEOUT, World, assert_same, noise, sh,
    wait_until,
};

const FRESH: &str = "Cache-Control: max-age=3600\r\n";

/// An nginx, and a file of this length that it serves.
fn with_file(world: &World, bytes: usize) -> (Nginx, Vec<u8>) {
    let nginx = Nginx::start(world, "");
    let file = noise(7, bytes);
    nginx.put("file", &file);
    (nginx, file)
}

#[test]
fn the_first_request_is_a_miss_and_the_second_a_hit() {
    let world = World::new();
    let (nginx, file) = with_file(&world, 3_000_000);
    let hearsay = Hearsay::start(&world);
    let first = hearsay.get(&nginx.url("file")).expect(200);
    assert_same(&first.body, &file);
    assert!(first.cache_status().contains("fwd=uri-miss; fwd-status=200; stored"), "{first:?}");
    assert!(first.field("via").starts_with("1.1 "), "{first:?}");
    assert_eq!(nginx.count("/file"), 1);

    let second = hearsay.get(&nginx.url("file")).expect(200).expect_hit();
    assert_same(&second.body, &file);
    assert!(second.field("age").parse::<u64>().is_ok_and(|age| age < 60), "{second:?}");
    assert!(second.field("via").starts_with("1.1 "), "{second:?}");
    assert_eq!(second.field("etag"), first.field("etag"));
    assert_eq!(nginx.count("/file"), 1, "the origin was asked again");
    assert_eq!(hearsay.number("/report/requests/hit"), 1);
    assert_eq!(hearsay.number("/report/requests/miss"), 1);
}

#[test]
fn what_is_stored_outlives_a_clean_stop() {
    let world = World::new();
    let (nginx, file) = with_file(&world, 700_000);
    let mut hearsay = Hearsay::start(&world);
    hearsay.get(&nginx.url("file")).expect(200);
    hearsay.terminate();
    hearsay.restart();
    assert_same(&hearsay.get(&nginx.url("file")).expect_hit().body, &file);
    assert_eq!(nginx.count("/file"), 1, "the origin was asked again");
}

#[test]
fn what_is_durable_outlives_a_kill() {
    let world = World::new();
    let (nginx, file) = with_file(&world, 700_000);
    let mut hearsay = Hearsay::start(&world);
    hearsay.get(&nginx.url("file")).expect(200);
    hearsay.wait_until_durable();
    hearsay.kill();
    hearsay.restart();
    assert_same(&hearsay.get(&nginx.url("file")).expect_hit().body, &file);
    assert_eq!(nginx.count("/file"), 1, "the origin was asked again");
}

#[test]
fn ranges_are_cut_out_of_the_stored_object() {
    let world = World::new();
    let (nginx, file) = with_file(&world, 500_000);
    let hearsay = Hearsay::start(&world);
    let url = nginx.url("file");
    hearsay.get(&url).expect(200);
    let range = |text: &str| hearsay.curl(&url).args(&["-r", text]).run();

    let middle = range("100000-299999").expect(206).expect_hit();
    assert_same(&middle.body, &file[100_000..300_000]);
    assert_eq!(middle.field("content-range"), "bytes 100000-299999/500000");
    assert_same(&range("-5").expect(206).body, &file[499_995..]);
    assert_same(&range("499999-").expect(206).body, &file[499_999..]);
    assert_same(&range("499990-600000").expect(206).body, &file[499_990..]);
    let beyond = range("500000-").expect(416);
    assert_eq!(beyond.field("content-range"), "bytes */500000");

    let several = range("0-9,250000-250019").expect(206).expect_hit();
    let kind = several.field("content-type").to_owned();
    let boundary = kind.strip_prefix("multipart/byteranges; boundary=").expect("a boundary");
    let mut expected = Vec::new();
    for (range, part) in [("0-9", &file[..10]), ("250000-250019", &file[250_000..250_020])] {
        let kind = "Content-Type: application/octet-stream";
        let place = format!("Content-Range: bytes {range}/500000");
        write!(expected, "\r\n--{boundary}\r\n{kind}\r\n{place}\r\n\r\n").expect("memory");
        expected.extend_from_slice(part);
    }
    write!(expected, "\r\n--{boundary}--\r\n").expect("memory");
    assert_same(&several.body, &expected);
    assert_eq!(nginx.count("/file"), 1, "the origin was asked for a range");
}

#[test]
fn if_range_gives_a_part_of_the_same_version_only() {
    let world = World::new();
    let (nginx, file) = with_file(&world, 50_000);
    let hearsay = Hearsay::start(&world);
    let url = nginx.url("file");
    let etag = hearsay.get(&url).expect(200).field("etag").to_owned();
    let ask = |tag: &str| {
        hearsay.curl(&url).args(&["-r", "10-19"]).field(&format!("If-Range: {tag}")).run()
    };
    assert_same(&ask(&etag).expect(206).body, &file[10..20]);
    assert_same(&ask("\"another\"").expect(200).body, &file);
}

#[test]
fn head_and_conditions_are_answered_from_the_stored_get() {
    let world = World::new();
    let (nginx, file) = with_file(&world, 50_000);
    let hearsay = Hearsay::start(&world);
    let url = nginx.url("file");
    let first = hearsay.get(&url).expect(200);

    let head = hearsay.curl(&url).args(&["-I"]).run().expect(200).expect_hit();
    assert_eq!(head.field("content-length"), file.len().to_string());
    assert_eq!(head.field("etag"), first.field("etag"));

    let etag = format!("If-None-Match: \"other\", {}", first.field("etag"));
    let same = hearsay.curl(&url).field(&etag).run().expect(304);
    assert!(same.body.is_empty() && same.field("etag") == first.field("etag"), "{same:?}");
    let since = format!("If-Modified-Since: {}", first.field("last-modified"));
    hearsay.curl(&url).field(&since).run().expect(304);
    let other = hearsay.curl(&url).field("If-None-Match: \"other\"").run().expect(200);
    assert_same(&other.body, &file);
    assert_eq!(nginx.count("/file"), 1, "the origin was asked again");
}

#[test]
fn a_client_that_insists_has_the_stored_response_confirmed() {
    let world = World::new();
    let (nginx, file) = with_file(&world, 50_000);
    let hearsay = Hearsay::start(&world);
    let url = nginx.url("file");
    hearsay.get(&url).expect(200);
    // In its first second a response has age 0, which max-age=0 still allows.
    wait_until("it to be a second old", || hearsay.get(&url).field("age") != "0");
    for (number, wish) in ["max-age=0", "no-cache"].iter().enumerate() {
        let reply = hearsay.curl(&url).field(&format!("Cache-Control: {wish}")).run().expect(200);
        assert_same(&reply.body, &file);
        assert!(reply.cache_status().contains("fwd-status=304"), "{reply:?}");
        let asked = nginx.asked();
        assert_eq!(asked.len(), number + 2, "{asked:?}");
        assert!(asked[number + 1].starts_with("GET /file 304 0"), "{asked:?}");
    }
    assert_eq!(hearsay.number("/report/requests/revalidated"), 2);

    let changed = noise(8, 40_000);
    nginx.put("file", &changed);
    let reply = hearsay.curl(&url).field("Cache-Control: no-cache").run().expect(200);
    assert_same(&reply.body, &changed);
    assert_same(&hearsay.get(&url).expect_hit().body, &changed);
}

#[test]
fn each_accepted_encoding_has_its_own_response() {
    let world = World::new();
    let nginx = Nginx::start(
        &world,
        "location /text/ { gzip on; gzip_vary on; gzip_proxied any; gzip_http_version 1.0;
            gzip_types *; gzip_min_length 1; add_header Cache-Control max-age=3600; }",
    );
    std::fs::create_dir_all(world.path("nginx/www/text")).expect("mkdir");
    let text = "the same line over and over\n".repeat(1000);
    nginx.put("text/a", text.as_bytes());
    let hearsay = Hearsay::start(&world);
    let url = nginx.url("text/a");
    let zipped = || hearsay.curl(&url).args(&["--compressed"]).field("Accept-Encoding: gzip").run();

    assert_same(&hearsay.get(&url).expect(200).body, text.as_bytes());
    let first = zipped().expect(200);
    assert!(!first.is_hit() && first.field("content-encoding") == "gzip", "{first:?}");
    assert_same(&first.body, text.as_bytes());
    let second = zipped().expect_hit();
    assert_eq!(second.field("content-encoding"), "gzip");
    assert_same(&second.body, text.as_bytes());
    assert_same(&hearsay.get(&url).expect_hit().body, text.as_bytes());
    assert_eq!(nginx.count("/text/a"), 2, "{:?}", nginx.asked());
}

/// An origin that answers every request, and the bodies of the requests.
fn counting_origin() -> (Script, Arc<Mutex<Vec<Vec<u8>>>>) {
    let bodies = Arc::<Mutex<Vec<Vec<u8>>>>::default();
    let kept = Arc::clone(&bodies);
    let script = Script::start(move |visit| {
        while let Some(head) = visit.head() {
            let length = world::Reply::of_head(&head).field("content-length").parse().unwrap_or(0);
            let Some(body) = visit.body(length) else { return };
            if head.starts_with("POST") || head.starts_with("PUT") {
                kept.lock().unwrap().push(body);
            }
            let count = kept.lock().unwrap().len();
            let text = format!("after {count} changes");
            let length = text.len();
            visit.send(format!("HTTP/1.1 200 OK\r\n{FRESH}Content-Length: {length}\r\n\r\n{text}"));
        }
    });
    (script, bodies)
}

#[test]
fn a_post_reaches_the_origin_and_makes_what_is_stored_invalid() {
    let world = World::new();
    let (origin, bodies) = counting_origin();
    let hearsay = Hearsay::start(&world);
    let url = origin.url("things");
    assert_eq!(hearsay.get(&url).expect(200).text(), "after 0 changes");
    assert_eq!(hearsay.get(&url).expect_hit().text(), "after 0 changes");
    let posted = hearsay.curl(&url).args(&["--data-binary", "a=1&b=2"]).run().expect(200);
    assert!(posted.cache_status().contains("fwd=method"), "{posted:?}");
    assert_eq!(bodies.lock().unwrap()[..], [b"a=1&b=2".to_vec()]);
    let after = hearsay.get(&url).expect(200);
    assert_eq!(after.text(), "after 1 changes");
}

#[test]
fn a_large_upload_reaches_the_origin_whole() {
    let world = World::new();
    let (origin, bodies) = counting_origin();
    let hearsay = Hearsay::start(&world);
    let file = noise(3, 12_000_000);
    let path = world.write("upload", &file);
    let name = path.to_str().expect("a plain path");
    hearsay.curl(&origin.url("put")).args(&["-T", name]).run().expect(200);
    assert_same(&bodies.lock().unwrap()[0], &file);
}

#[test]
fn an_upload_of_unknown_length_reaches_the_origin_whole() {
    let world = World::new();
    let (told, heard) = mpsc::channel();
    let origin = Script::start(move |visit| {
        if visit.head().is_some() {
            let mut all = Vec::new();
            while !all.ends_with(b"0\r\n\r\n") {
                let Some(byte) = visit.body(1) else { break };
                all.extend(byte);
            }
            let _ = told.send(unchunked(&all));
            visit.send("HTTP/1.1 204 No Content\r\n\r\n");
        }
    });
    let hearsay = Hearsay::start(&world);
    let file = noise(4, 300_000);
    let path = world.write("upload", &file);
    let name = path.to_str().expect("a plain path");
    let chunked = ["-T", name, "-H", "Transfer-Encoding: chunked"];
    hearsay.curl(&origin.url("put")).args(&chunked).run().expect(204);
    assert_same(&heard.recv().expect("the origin heard it"), &file);
    assert!(origin.heads()[0].to_lowercase().contains("transfer-encoding: chunked"));
}

fn unchunked(mut bytes: &[u8]) -> Vec<u8> {
    let mut whole = Vec::new();
    loop {
        let end = bytes.windows(2).position(|pair| pair == b"\r\n").expect("a size line");
        let size = std::str::from_utf8(&bytes[..end]).expect("digits");
        let size = usize::from_str_radix(size, 16).expect("a size");
        if size == 0 {
            return whole;
        }
        whole.extend_from_slice(&bytes[end + 2..end + 2 + size]);
        bytes = &bytes[end + 2 + size + 2..];
    }
}

#[test]
fn connect_gives_a_tunnel_and_counts_it() {
    let world = World::new();
    let (nginx, file) = with_file(&world, 400_000);
    let hearsay = Hearsay::start(&world);
    let reply = hearsay.curl(&nginx.url("file")).args(&["-p"]).run().expect(200);
    assert_same(&reply.body, &file);
    assert!(reply.cache_status().is_empty(), "a tunnel was looked into: {reply:?}");
    assert_eq!(hearsay.number("/report/requests/tunnel"), 1);
    wait_until("the relayed bytes to be counted", || {
        hearsay.number("/relayed_bytes") > file.len() as u64
    });
}

#[test]
fn a_tunnel_carries_any_bytes_both_ways_and_half_closes() {
    let world = World::new();
    let origin = Script::start(|visit| {
        visit.send("who is there?");
        let said = visit.body(3).unwrap_or_default();
        visit.wait_for_end();
        visit.send([b"you said ", &said[..]].concat());
    });
    let hearsay = Hearsay::start(&world);
    let to = origin.address;
    let mut client = Raw::connect(hearsay.proxy);
    client.send(format!("CONNECT {to} HTTP/1.1\r\nHost: {to}\r\n\r\n"));
    assert_eq!(client.reply().status, 200);
    assert_eq!(client.take(13), b"who is there?");
    client.send([0, 255, b'\n']).finish();
    assert_eq!(client.rest(), b"you said \0\xff\n");
}

#[test]
fn a_tunnel_of_a_killed_daemon_is_reset() {
    let world = World::new();
    let (tell, ended) = mpsc::channel();
    let origin = Script::start(move |visit| {
        visit.send("who is there?");
        let _ = tell.send(visit.stream.read(&mut [0]).map_err(|error| error.kind()));
    });
    let mut hearsay = Hearsay::start(&world);
    let to = origin.address;
    let mut client = Raw::connect(hearsay.proxy);
    client.send(format!("CONNECT {to} HTTP/1.1\r\nHost: {to}\r\n\r\n"));
    assert_eq!(client.reply().status, 200);
    assert_eq!(client.take(13), b"who is there?");
    hearsay.kill();
    assert_eq!(client.end(), Err(ErrorKind::ConnectionReset));
    let server = ended.recv_timeout(TIMEOUT).expect("it ends");
    assert_eq!(server, Err(ErrorKind::ConnectionReset));
}

#[test]
fn a_tunnel_to_where_nobody_listens_is_a_502() {
    let world = World::new();
    let hearsay = Hearsay::start(&world);
    let closed = ClosedPort::new();
    let to = closed.address();
    let mut client = Raw::connect(hearsay.proxy);
    client.send(format!("CONNECT {to} HTTP/1.1\r\nHost: {to}\r\n\r\n"));
    assert_eq!(client.reply().status, 502);
}

#[test]
fn many_clients_of_a_slow_origin_cost_it_one_request() {
    let world = World::new();
    let body = noise(5, 2_000_000);
    let (release, held) = mpsc::channel::<()>();
    let (held, sent) = (Mutex::new(held), body.clone());
    let origin = Script::start(move |visit| {
        if visit.head().is_some() {
            let length = sent.len();
            visit.send(format!("HTTP/1.1 200 OK\r\n{FRESH}Content-Length: {length}\r\n\r\n"));
            visit.send(&sent[..1000]);
            // The rest follows when all clients are connected.
            let _ = held.lock().unwrap().recv();
            visit.send(&sent[1000..]);
        }
    });
    let hearsay = Hearsay::start(&world);
    let url = origin.url("slow");
    let clients: Vec<_> = (0..8).map(|_| hearsay.curl(&url).start()).collect();
    wait_until("all clients to be served", || hearsay.number("/report/exchanges") == 8);
    drop(release);
    for client in clients {
        assert_same(&client.wait().expect(200).body, &body);
    }
    assert_eq!(origin.heads().len(), 1);
    assert_eq!(hearsay.number("/report/requests/miss"), 1);
    assert_eq!(hearsay.number("/report/requests/collapsed"), 7);
}

#[test]
fn a_chunked_response_of_unknown_length_arrives_and_is_stored() {
    let world = World::new();
    let body = noise(6, 10_000_000);
    let sent = body.clone();
    let origin = Script::start(move |visit| {
        if visit.head().is_some() {
            visit.send(format!("HTTP/1.1 200 OK\r\n{FRESH}Transfer-Encoding: chunked\r\n\r\n"));
            for part in sent.chunks(77_777) {
                visit.send(format!("{:x};a=b\r\n", part.len()));
                visit.send(part);
                visit.send("\r\n");
            }
            visit.send("0\r\nTrailer: dropped\r\n\r\n");
        }
    });
    let hearsay = Hearsay::start(&world);
    assert_same(&hearsay.get(&origin.url("long")).expect(200).body, &body);
    let hit = hearsay.get(&origin.url("long")).expect_hit();
    assert_same(&hit.body, &body);
    assert_eq!(hit.field("content-length"), body.len().to_string());
    assert_eq!(origin.heads().len(), 1);
}

#[test]
fn a_response_that_ends_with_its_connection_arrives() {
    let world = World::new();
    let body = noise(9, 600_000);
    let mut answer = format!("HTTP/1.0 200 OK\r\n{FRESH}\r\n").into_bytes();
    answer.extend_from_slice(&body);
    let origin = Script::saying(answer);
    let hearsay = Hearsay::start(&world);
    assert_same(&hearsay.get(&origin.url("old")).expect(200).body, &body);
    assert_same(&hearsay.get(&origin.url("old")).expect(200).body, &body);
}

#[test]
fn responses_without_content_are_stored_like_others() {
    let world = World::new();
    let origin = Script::start(|visit| {
        while let Some(head) = visit.head() {
            let answer = match head.contains(" /empty ") {
                true => "HTTP/1.1 200 OK\r\nCache-Control: max-age=99\r\nContent-Length: 0\r\n\r\n",
                false => "HTTP/1.1 204 No Content\r\nCache-Control: max-age=99\r\n\r\n",
            };
            visit.send(answer);
        }
    });
    let hearsay = Hearsay::start(&world);
    for (path, status) in [("empty", 200), ("nothing", 204)] {
        let first = hearsay.get(&origin.url(path)).expect(status);
        assert!(first.body.is_empty() && !first.is_hit(), "{first:?}");
        let second = hearsay.get(&origin.url(path)).expect(status).expect_hit();
        assert!(second.body.is_empty(), "{second:?}");
    }
    assert_eq!(origin.heads().len(), 2);
}

#[test]
fn a_client_of_http_1_0_gets_content_up_to_the_end_of_the_connection() {
    let world = World::new();
    let body = noise(10, 300_000);
    let sent = body.clone();
    let origin = Script::start(move |visit| {
        if visit.head().is_some() {
            visit.send("HTTP/1.1 200 OK\r\nCache-Control: no-store\r\n");
            visit.send(format!("Transfer-Encoding: chunked\r\n\r\n{:x}\r\n", sent.len()));
            visit.send(&sent);
            visit.send("\r\n0\r\n\r\n");
        }
    });
    let hearsay = Hearsay::start(&world);
    let mut client = Raw::connect(hearsay.proxy);
    client.send(format!("GET {} HTTP/1.0\r\n\r\n", origin.url("a")));
    let all = client.rest();
    let at = all.windows(4).position(|it| it == b"\r\n\r\n").expect("a head") + 4;
    let head = String::from_utf8_lossy(&all[..at]).to_lowercase();
    assert!(!head.contains("transfer-encoding"), "{head}");
    assert_same(&all[at..], &body);
}

#[test]
fn many_requests_on_one_connection_are_answered_in_order() {
    let world = World::new();
    let nginx = Nginx::start(&world, "");
    let hearsay = Hearsay::start(&world);
    let mut requests = String::new();
    for number in 0..20 {
        nginx.put(&format!("{number}"), format!("this is {number}").as_bytes());
        requests += &format!("GET {} HTTP/1.1\r\nHost: x\r\n\r\n", nginx.url(&number.to_string()));
    }
    let mut client = Raw::connect(hearsay.proxy);
    for _ in 0..2 {
        client.send(&requests);
        for number in 0..20 {
            assert_eq!(client.reply().expect(200).text(), format!("this is {number}"));
        }
    }
    assert_eq!(hearsay.number("/report/requests/hit"), 20);
}

#[test]
fn only_if_cached_is_met_or_refused_with_504() {
    let world = World::new();
    let (nginx, file) = with_file(&world, 9000);
    let hearsay = Hearsay::start(&world);
    let url = nginx.url("file");
    let ask = || hearsay.curl(&url).field("Cache-Control: only-if-cached").run();
    ask().expect(504);
    assert!(nginx.asked().is_empty());
    hearsay.get(&url).expect(200);
    assert_same(&ask().expect(200).body, &file);
}

#[test]
fn what_must_not_be_stored_is_not() {
    let world = World::new();
    let nginx = Nginx::start(
        &world,
        "location /no-store { return 200 a; add_header Cache-Control no-store; }
         location /private { return 200 a; add_header Cache-Control 'private, max-age=99'; }
         location /silent { return 200 a; }
         location /cookie { return 200 a; }",
    );
    let hearsay = Hearsay::start(&world);
    for path in ["no-store", "private", "silent"] {
        for _ in 0..2 {
            assert!(!hearsay.get(&nginx.url(path)).expect(200).is_hit(), "{path}");
        }
        assert_eq!(nginx.count(&format!("/{path}")), 2, "{path}");
    }
    nginx.put("secret", b"only for you");
    for _ in 0..2 {
        let reply = hearsay.curl(&nginx.url("secret")).args(&["-u", "me:pass"]).run().expect(200);
        assert!(!reply.is_hit(), "{reply:?}");
    }
    assert_eq!(nginx.count("/secret"), 2);
}

#[test]
fn an_answer_to_a_part_of_the_question_is_not_stored_as_the_whole() {
    let world = World::new();
    let (nginx, file) = with_file(&world, 60_000);
    let hearsay = Hearsay::start(&world);
    let url = nginx.url("file");
    let part = hearsay.curl(&url).args(&["-r", "5-9"]).run().expect(206);
    assert_same(&part.body, &file[5..10]);
    let head = hearsay.curl(&url).args(&["-I"]).run().expect(200);
    assert_eq!(head.field("content-length"), "60000");
    let etag = format!("If-None-Match: {}", head.field("etag"));
    assert!(hearsay.curl(&url).field(&etag).run().expect(304).body.is_empty());
    let since = format!("If-Modified-Since: {}", head.field("last-modified"));
    hearsay.curl(&url).field(&since).run().expect(304);
    let whole = hearsay.get(&url).expect(200);
    assert_same(&whole.body, &file);
    assert_same(&hearsay.get(&url).expect_hit().body, &file);
}

#[test]
fn one_resource_has_one_place_however_it_is_spelt() {
    let world = World::new();
    let (origin, _) = counting_origin();
    let hearsay = Hearsay::start(&world);
    let port = origin.address.port();
    hearsay.get(&format!("http://localhost:{port}/a%41?b")).expect(200);
    hearsay.get(&format!("http://LocalHost:{port}/a%41?b")).expect_hit();
    hearsay.get(&format!("http://localhost:{port}/a%41?b#part")).expect_hit();
    for other in ["a%41?c", "a%41", "A%41?b", "a%41?b&"] {
        assert!(!hearsay.get(&format!("http://localhost:{port}/{other}")).is_hit(), "{other}");
    }
}

#[test]
fn the_origin_is_asked_in_its_own_form_and_name() {
    let world = World::new();
    let origin = willing_origin();
    let hearsay = Hearsay::start(&world);
    let mut client = Raw::connect(hearsay.proxy);
    client.send(format!("GET {} HTTP/1.1\r\nHost: other.test\r\n", origin.url("a?b")));
    client.send("Connection: keep-alive, X-Hop\r\nX-Hop: 1\r\nX-End: 2\r\nTE: trailers\r\n");
    client.send("Proxy-Connection: keep-alive\r\nProxy-Authorization: Basic eA==\r\n\r\n");
    client.reply().expect(200);
    let head = origin.heads()[0].to_lowercase();
    assert!(head.starts_with("get /a?b http/1.1\r\n"), "{head}");
    // The target counts more than a Host that contradicts it (RFC 9112 §3.2.2).
    assert!(head.contains(&format!("\r\nhost: {}\r\n", origin.address)), "{head}");
    assert!(head.contains("\r\nx-end: 2\r\n") && head.contains("\r\nvia: 1.1 "), "{head}");
    for gone in ["x-hop", "te:", "proxy-", "other.test"] {
        assert!(!head.contains(gone), "{gone} in {head}");
    }
}

fn willing_origin() -> Script {
    Script::saying(format!("HTTP/1.1 200 OK\r\n{FRESH}Content-Length: 2\r\n\r\nok"))
}

#[test]
fn content_comes_when_its_origin_wants_it_and_not_before() {
    let world = World::new();
    let origin = Script::start(|visit| {
        while let Some(head) = visit.head() {
            assert!(head.to_lowercase().contains("\r\nexpect: 100-continue\r\n"), "{head}");
            if head.contains(" /refused ") {
                visit.send("HTTP/1.1 417 Expectation Failed\r\nContent-Length: 2\r\n\r\nno");
                return visit.wait_for_end();
            }
            if head.contains(" /wanted ") {
                visit.send("HTTP/1.1 100 Continue\r\n\r\n");
            }
            let Some(body) = visit.body(3) else { return };
            assert_eq!(body, b"abc");
            visit.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
        }
    });
    let hearsay = Hearsay::start(&world);
    let begin = |path| {
        let mut client = Raw::connect(hearsay.proxy);
        client.send(format!(
            "PUT {} HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n",
            origin.url(path)
        ));
        client
    };
    assert_eq!(begin("refused").reply().expect(417).text(), "no");
    // An origin that does not say whether it wants content gets it after a while.
    for path in ["wanted", "unsaid"] {
        let mut client = begin(path);
        assert_eq!(client.reply().status, 100, "{path}");
        assert_eq!(client.send("abc").reply().expect(200).text(), "ok", "{path}");
    }
}

#[test]
fn an_interim_response_reaches_its_client_before_the_response() {
    let world = World::new();
    let (go_on, may_go_on) = mpsc::channel::<()>();
    let may_go_on = Mutex::new(may_go_on);
    let origin = Script::start(move |visit| {
        while let Some(head) = visit.head() {
            // Nobody has asked for this one.
            visit.send("HTTP/1.1 100 Continue\r\n\r\n");
            visit.send(
                "HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\nConnection: x\r\nX: 1\r\n\r\n",
            );
            if head.contains(" /waits ") {
                // Not before the client has it.
                let _ = may_go_on.lock().expect("one visitor").recv();
            }
            visit.send(format!("HTTP/1.1 200 OK\r\n{FRESH}Content-Length: 2\r\n\r\nok"));
        }
    });
    let hearsay = Hearsay::start(&world);
    let ask = |path| format!("GET {} HTTP/1.1\r\nHost: x\r\n\r\n", origin.url(path));
    let mut client = Raw::connect(hearsay.proxy);
    // Requests one after another on one connection, the later ones sent early.
    client.send(ask("a") + &ask("a") + &ask("waits") + &ask("waits"));
    let interim = client.reply();
    assert_eq!((interim.status, interim.field("link")), (103, "</a.css>"), "{interim:?}");
    assert!(interim.field("x").is_empty() && interim.field("via").starts_with("1.1 "));
    assert_eq!(client.reply().expect(200).text(), "ok");
    assert_eq!(client.reply().expect(200).expect_hit().text(), "ok");
    assert_eq!(client.reply().status, 103);
    go_on.send(()).expect("the origin waits");
    assert_eq!(client.reply().expect(200).text(), "ok");
    let hit = client.reply().expect(200).expect_hit();
    assert!(hit.field("link").is_empty(), "{hit:?}");
    // HTTP/1.0 has none.
    let mut old = Raw::connect(hearsay.proxy);
    old.send(format!("GET {} HTTP/1.0\r\n\r\n", origin.url("old")));
    old.reply().expect(200);
}

#[test]
fn the_age_that_a_response_arrives_with_counts() {
    let world = World::new();
    let origin = Script::start(|visit| {
        while let Some(head) = visit.head() {
            let control = if head.contains(" /old ") { "max-age=50" } else { "max-age=500" };
            visit.send(format!("HTTP/1.1 200 OK\r\nCache-Control: {control}\r\nAge: 100\r\n"));
            visit.send("Content-Length: 2\r\n\r\nok");
        }
    });
    let hearsay = Hearsay::start(&world);
    hearsay.get(&origin.url("young")).expect(200);
    let hit = hearsay.get(&origin.url("young")).expect_hit();
    assert!(hit.field("age").parse::<u64>().is_ok_and(|age| (100..160).contains(&age)), "{hit:?}");
    hearsay.get(&origin.url("old")).expect(200);
    assert!(!hearsay.get(&origin.url("old")).is_hit());
    assert_eq!(origin.heads().len(), 3);
}

#[test]
fn a_client_that_ends_its_side_before_the_answer_has_left() {
    let world = World::new();
    let origin = Script::start(|visit| {
        if visit.head().is_some() {
            visit.wait_for_end();
        }
    });
    let hearsay = Hearsay::start(&world);
    // The client closes its sending side, as `printf … | nc -N` does. The daemon cannot distinguish this from a
    // client that has left.
    let mut client = Raw::connect(hearsay.proxy);
    client.send(format!("GET {} HTTP/1.1\r\nHost: h\r\n\r\n", origin.url("a")));
    wait_until("the origin to be asked", || origin.heads().len() == 1);
    client.finish();
    assert!(client.rest().is_empty(), "it was answered");
    wait_until("the origin to be left alone", || hearsay.number("/report/fetches") == 0);
}

#[test]
fn an_origin_that_refuses_an_upload_before_its_end_is_heard() {
    let world = World::new();
    let origin = Script::start(|visit| {
        if visit.head().is_some() {
            visit.send("HTTP/1.1 413 Content Too Large\r\nConnection: close\r\n");
            visit.send("Content-Length: 8\r\n\r\ntoo much");
            // The origin reads no further. It waits for the end, because a reset could discard its response.
            let _ = visit.stream.shutdown(std::net::Shutdown::Write);
            visit.wait_for_end();
        }
    });
    let hearsay = Hearsay::start(&world);
    let path = world.write("upload", &noise(1, 5_000_000));
    let name = path.to_str().expect("a plain path");
    let reply = hearsay.curl(&origin.url("a")).args(&["-T", name]).run();
    assert_eq!((reply.status, reply.text().as_str()), (413, "too much"), "{reply:?}");
}

#[test]
fn an_origin_that_cannot_be_reached_is_a_502_that_says_why() {
    let world = World::new();
    let hearsay = Hearsay::start(&world);
    let closed = ClosedPort::new();
    let url = format!("http://{}/", closed.address());
    let reply = hearsay.get(&url).expect(502);
    assert!(reply.field("proxy-status").contains("destination_unavailable"), "{reply:?}");
    let unknown = hearsay.get("http://no-such-name.invalid/").expect(502);
    assert!(unknown.field("proxy-status").contains("dns_error"), "{unknown:?}");
}

#[test]
fn a_stale_response_is_better_than_none() {
    let world = World::new();
    let origin = Script::start(|visit| {
        if visit.number == 0 && visit.head().is_some() {
            visit.send("HTTP/1.1 200 OK\r\nCache-Control: max-age=0, stale-if-error=600\r\n");
            visit.send("ETag: \"1\"\r\nContent-Length: 3\r\n\r\nold");
        }
        // Later connections are closed without a response.
    });
    let hearsay = Hearsay::start(&world);
    hearsay.get(&origin.url("a")).expect(200);
    let reply = hearsay.get(&origin.url("a")).expect(200);
    assert_eq!(reply.text(), "old");
    assert!(reply.cache_status().contains("stale"), "{reply:?}");
}

#[test]
fn a_request_that_comes_back_to_the_same_proxy_is_refused() {
    let world = World::new();
    let hearsay = Hearsay::start(&world);
    hearsay.get(&format!("http://{}/", hearsay.proxy)).expect(508);
    let tunnel = hearsay.curl("http://origin.invalid/").args(&["-p", "--preproxy"]);
    let nested = tunnel.args(&[&format!("http://{}", hearsay.proxy)]).run();
    assert_ne!(nested.status, 200, "{nested:?}");
    // A request that returns through another proxy carries the Via field that this proxy added.
    let (nginx, _) = with_file(&world, 10);
    let reply = hearsay.get(&nginx.url("file")).expect(200);
    let via = format!("Via: 1.1 other, {}", reply.field("via"));
    hearsay.curl(&nginx.url("another")).field(&via).run().expect(508);
    assert_eq!(nginx.count("/another"), 0);
    wait_until("no exchange to be left", || hearsay.number("/report/exchanges") == 0);
}

#[test]
fn clients_from_elsewhere_are_refused() {
    network::inside("clients_from_elsewhere_are_refused", || {
        sh("ip addr add 198.51.100.1/24 dev lan0
            ip -n client addr add 198.51.100.2/24 dev eth0");
        let world = World::new();
        let nginx = Nginx::start_in(&world, network::ORIGIN, "");
        nginx.put("file", b"hello");
        let text = "listen = [\"0.0.0.0:3128\"]\n[access]\nprivate = [\"10.2.0.0/24\"]";
        let config = world.write("conf", text.as_bytes());
        let args = ["--config", config.to_str().unwrap()];
        let hearsay = Hearsay::start_with(&world, &args);
        let ask = |proxy: &str, from: &str| {
            let by = ["-x", proxy, "--interface", from];
            Curl::new(CLIENT, "http://10.2.0.2/file").args(&by).run()
        };
        ask("http://198.51.100.1:3128", "198.51.100.2").expect(403);
        assert!(nginx.asked().is_empty(), "an open proxy");
        assert_eq!(ask("http://10.1.0.1:3128", "10.1.0.2").expect(200).text(), "hello");
        ask("http://198.51.100.1:3128", "198.51.100.2").expect(403);

        drop(hearsay);
        let allow = text.replacen('\n', "\nallow = [\"198.51.100.0/24\"]\n", 1);
        world.write("conf", allow.as_bytes());
        let _hearsay = Hearsay::start_with(&world, &args);
        ask("http://198.51.100.1:3128", "198.51.100.2").expect(200);
    });
}

#[test]
fn nobody_is_led_to_the_routers_own_services() {
    network::inside("nobody_is_led_to_the_routers_own_services", || {
        let world = World::new();
        let answer =
            "HTTP/1.1 200 OK\r\nCache-Control: max-age=99\r\nContent-Length: 6\r\n\r\nsecret";
        let inner =
            Script::on(std::net::TcpListener::bind("0.0.0.0:8000").unwrap(), move |visit| {
                if visit.head().is_some() {
                    visit.send(answer);
                }
            });
        // Even these widest permissions must not lead to the router's own addresses.
        let config = "listen = [\"0.0.0.0:3128\"]\n[access]\nports = [8000]\n\
                      private = [\"0.0.0.0/0\", \"::/0\"]\n[mesh]\ndirect = [\"0.0.0.0/0\"]";
        let config = world.write("conf", config.as_bytes());
        let hearsay = Hearsay::start_with(&world, &["--config", config.to_str().unwrap()]);
        let ask = |url: &str, args: &[&str]| {
            Curl::new(CLIENT, url).args(&["-x", "http://10.1.0.1:3128"]).args(args).run()
        };
        for host in
            ["127.0.0.1", "localhost", "10.1.0.1", "10.2.0.1", "[::1]", "0.0.0.0", "127.9.9.9"]
        {
            let url = format!("http://{host}:8000/");
            ask(&url, &[]).expect(403);
            let tunnel = ask(&url, &["-p"]);
            assert!(tunnel.exit != 0 && tunnel.body.is_empty(), "{host}: {tunnel:?}");
        }
        assert!(inner.heads().is_empty(), "{:?}", inner.heads());

        // Clients on the router itself may reach it, and other clients do not get their stored response.
        let url = "http://127.0.0.1:8000/";
        Curl::by_proxy(([127, 0, 0, 1], 3128).into(), url).run().expect(200);
        let told = ask(url, &[]);
        assert!(
            told.status == 403 && !told.text().contains("secret"),
            "led in by the cache: {told:?}"
        );
        drop(hearsay);
    });
}

#[test]
fn a_client_that_leaves_takes_its_unfinished_tunnel_with_it() {
    network::inside("a_client_that_leaves_takes_its_unfinished_tunnel_with_it", || {
        let world = World::new();
        sh("ip netns exec origin nft add table inet hole
            ip netns exec origin nft add chain inet hole input '{ type filter hook input priority 0; }'
            ip netns exec origin nft add rule inet hole input meta l4proto tcp drop");
        let hearsay = Hearsay::start(&world);
        let dialled = |port| {
            let sockets = format!("ss -Htn state syn-sent dst 10.2.0.2:{port}");
            sh(&sockets).lines().count()
        };
        let connect = |port| {
            let mut client = Raw::connect(hearsay.proxy);
            client.send(format!("CONNECT 10.2.0.2:{port} HTTP/1.1\r\nHost: 10.2.0.2\r\n\r\n"));
            wait_until("the origin to be dialled", || dialled(port) == 1);
            client
        };
        // It came first and stays. After 20 s its tunnel would be given up as well, before the other.
        let _stays = connect(443);
        let leaves = connect(8443);
        assert_eq!(hearsay.number("/clients/connections"), 2);
        drop(leaves);
        wait_until("the tunnel to be given up", || dialled(8443) == 0);
        assert_eq!(dialled(443), 1, "it was given up because of the time");
        wait_until("the connection to be over", || hearsay.number("/clients/connections") == 1);
    });
}

#[test]
fn a_tunnel_that_leads_nowhere_is_answered_with_a_reason() {
    let world = World::new();
    let hearsay = Hearsay::start(&world);
    let closed = ClosedPort::new();
    let to = closed.address();
    let mut client = Raw::connect(hearsay.proxy);
    client.send(format!("CONNECT {to} HTTP/1.1\r\nHost: {to}\r\n\r\n"));
    let reply = client.reply().expect(502);
    assert!(reply.field("proxy-status").ends_with("error=destination_unavailable"), "{reply:?}");
    assert!(reply.text().contains("the origin cannot be reached"), "{reply:?}");
}
