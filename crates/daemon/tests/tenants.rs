//! What one person asks never becomes part of what another asks or gets: over the same origins, far ends and connections.

use std::net::TcpListener;
use std::sync::atomic::{AtomicBool, Ordering};

use http::{HeaderMap, HeaderName, HeaderValue, Method};
use node::{Caller, Dial, Fetch, FetchError};

use crate::world::network::{self, ORIGIN, there};
use crate::world::{
    FarEnd, Hearsay, Raw, Script, Tenant, Visit, World, key_of_gateway, noise, wait_until,
};

/// Answers each request with the word that it has in `x-who`. Origins take content at different times: before they answer,
/// after it, or, by a method that need not have any, never, so that they read it as the next request.
fn echo(visit: &mut Visit) {
    while let Some(head) = visit.head() {
        let field = |name: &str| {
            let line = head.lines().find(|line| {
                line.split_once(':').is_some_and(|(it, _)| it.eq_ignore_ascii_case(name))
            });
            line.and_then(|line| line.split_once(':')).map(|(_, value)| value.trim().to_owned())
        };
        let who = field("x-who").unwrap_or_else(|| format!("nobody: {head}"));
        let length = field("content-length").and_then(|it| it.parse().ok());
        let take = |visit: &mut Visit| match length {
            Some(length) => visit.body(length).is_some(),
            None => field("transfer-encoding").is_none() || visit.chunked().is_some(),
        };
        let (first, after) = match visit.number % 3 {
            0 => (true, false),
            1 => (false, true),
            _ => (head.starts_with("POST ") || head.starts_with("PUT "), false),
        };
        if first && !take(visit) {
            return;
        }
        let body = if head.starts_with("HEAD ") { "" } else { &who };
        let fields = "Cache-Control: max-age=60\r\nVary: x-who\r\n";
        visit.send(format!(
            "HTTP/1.1 200 OK\r\n{fields}Content-Length: {}\r\n\r\n{body}",
            who.len()
        ));
        if after && !take(visit) {
            return;
        }
    }
}

/// Draws numbers from a seed.
struct Dice(Vec<u8>, usize);

impl Dice {
    fn new(seed: u64) -> Self {
        Self(noise(seed, 64 * 1024), 0)
    }

    fn below(&mut self, count: usize) -> usize {
        self.1 = (self.1 + 2) % self.0.len();
        usize::from(u16::from_le_bytes([self.0[self.1], self.0[self.1 + 1]])) % count
    }

    fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }
}

/// A request that one who means harm would like to see in another's place.
fn smuggled(who: &str) -> String {
    format!("GET /stolen HTTP/1.1\r\nHost: o\r\nx-who: {who}\r\n\r\n")
}

/// A request that a near end may send.
fn fetch(method: Method, path: &str, fields: &[(&str, &str)]) -> Fetch {
    let mut headers = HeaderMap::new();
    for (name, value) in fields {
        let name = HeaderName::from_bytes(name.as_bytes()).expect("a name");
        headers.append(name, HeaderValue::try_from(*value).expect("a value"));
    }
    Fetch {
        dial: Dial::Name("origin.test".into(), 80),
        tls: false,
        client: [10, 0, 0, 2].into(),
        caller: Caller::Explicit,
        method,
        path: path.into(),
        headers,
        exchange: None,
        binding: None,
    }
}

/// Asks as a tenant of the far end, with a head that a near end should not send, and content to match or not.
fn ask_as_tenant(tenant: &mut Tenant, dice: &mut Dice, who: &str) {
    let content = smuggled(who);
    let length = content.len();
    let own_length = length.to_string();
    let mut fields = vec![("host", "o.test"), ("x-who", who)];
    let mut add = |name, value| fields.push((name, value));
    for _ in 0..dice.below(3) {
        let lengths = ["60", "0", "5", "x", "+7", "99999999999999999999", &own_length, "5, 5"];
        match dice.below(10) {
            0..5 => add("content-length", dice.one_of(&lengths)),
            5 => add(
                "transfer-encoding",
                dice.one_of(&["chunked", "identity", "x", "gzip, chunked"]),
            ),
            6 => add("connection", dice.one_of(&["content-length", "close", "keep-alive, host"])),
            7 => add("host", "other.test"),
            8 => add("expect", "100-continue"),
            _ => add("upgrade", "h2c"),
        }
    }
    let method =
        dice.one_of(&["GET", "GET", "GET", "POST", "POST", "PUT", "HEAD", "get", "CONNECT", "X"]);
    let path = dice.one_of(&[
        "/",
        "/",
        "/",
        "/",
        "*",
        "http://o.test/",
        "/a b",
        "/ HTTP/1.1\r\nx-who: nobody\r\n\r\nGET /",
    ]);
    let method = Method::from_bytes(method.as_bytes()).expect("a method");
    let asked = fetch(method, path, &fields);
    let sent = &content.as_bytes()[..dice.one_of(&[0, 3, length, length])];
    let end = dice.one_of(&[Some(Ok(())), Some(Ok(())), Some(Err(FetchError::Unsent)), None]);
    let content = (dice.below(2) == 0).then_some((sent, end));
    if let Some(body) = tenant.ask(asked, content) {
        check(who, &String::from_utf8_lossy(&body));
    }
    // Whoever spoilt a connection, this one's next request is its own.
    let plain = fetch(Method::GET, "/", &[("host", "o.test"), ("x-who", who)]);
    let body = tenant.ask(plain, None).expect("a sound request is answered");
    assert_eq!(String::from_utf8_lossy(&body), who);
}

/// Asks as a client of the gateway's proxy, with bytes that a client should not send.
fn ask_as_client(hearsay: &Hearsay, dice: &mut Dice, who: &str, url: &str) {
    let content = smuggled(who);
    let method = dice.one_of(&["GET", "GET", "POST", "PUT", "HEAD", "DELETE", "X"]);
    let mut head = format!("{method} {url}{who} HTTP/1.1\r\nHost: o\r\nx-who: {who}\r\n");
    for _ in 0..dice.below(3) {
        let length = content.len();
        let lengths = ["60", "0", "5", "x", "+7", "5, 5", &length.to_string()];
        head += &match dice.below(8) {
            0..4 => format!("Content-Length: {}\r\n", dice.one_of(&lengths)),
            4 => format!("Transfer-Encoding: {}\r\n", dice.one_of(&["chunked", "x", " chunked "])),
            5 => "Transfer-Encoding : chunked\r\n".to_owned(),
            6 => "Connection: content-length, host\r\n".to_owned(),
            _ => "X: a\rContent-Length: 5\r\n".to_owned(),
        };
    }
    let chunked = format!("{:x}\r\n{content}\r\n0\r\n\r\n", content.len());
    let content = dice.one_of(&["", &content, &content[..3], &chunked, "0\r\n\r\n"]);
    let mut raw = Raw::connect(hearsay.proxy);
    let said = raw.send(format!("{head}\r\n{content}")).finish().rest_text();
    // Each answer ends where the next head begins.
    for answer in said.split("HTTP/1.1 ").filter(|it| it.starts_with("200")) {
        check(who, answer.split_once("\r\n\r\n").map_or("", |(_, body)| body));
    }
    let mut raw = Raw::connect(hearsay.proxy);
    raw.send(format!("GET {url}{who} HTTP/1.1\r\nHost: o\r\nx-who: {who}\r\n\r\n"));
    let reply = raw.reply().expect(200);
    assert_eq!(reply.text(), who);
}

/// Nothing that somebody else asked for is in an answer.
#[track_caller]
fn check(who: &str, body: &str) {
    assert!(body.is_empty() || who.starts_with(body) || body == who, "{who} got {body:?}");
}

/// A gateway with this far end, once that answers.
fn gateway(world: &World, far: &FarEnd) -> Hearsay {
    let settings = "listen = [\"127.0.0.1:0\"]\n[access]\nprivate = [\"10.2.0.0/24\"]";
    let file = world.write("hearsay.toml", format!("{settings}\n{}", far.lines).as_bytes());
    let hearsay = Hearsay::start_with(world, &["--config", &file.display().to_string()]);
    wait_until("the pair to be up", || {
        let output = hearsay.command(&["uplink", "--json"]);
        String::from_utf8_lossy(&output.stdout).contains("\"up\"")
    });
    hearsay
}

/// Repeats this until it fails here or elsewhere: then the others would only wait for answers that were lost.
fn go_round(rounds: usize, is_spoilt: &AtomicBool, mut what: impl FnMut(usize)) {
    struct Alarm<'a>(&'a AtomicBool);
    impl Drop for Alarm<'_> {
        fn drop(&mut self) {
            self.0.fetch_or(std::thread::panicking(), Ordering::Relaxed);
        }
    }
    let alarm = Alarm(is_spoilt);
    (0..rounds).take_while(|_| !alarm.0.load(Ordering::Relaxed)).for_each(&mut what);
}

/// Two tenants and two clients of a third ask at the same time, each so often.
fn mingle(rounds: usize) {
    let world = World::new();
    let own = key_of_gateway(&world);
    let far = FarEnd::start_for(&world, &[&own, &Tenant::key(1), &Tenant::key(2)]);
    let listener = there(ORIGIN, || TcpListener::bind("10.2.0.2:80").expect("a port"));
    let origin = Script::on(listener, echo);
    let hearsay = gateway(&world, &far);
    let url = "http://origin.test/";
    let (is_spoilt, hearsay, lines) = (&AtomicBool::new(false), &hearsay, &far.lines);
    std::thread::scope(|scope| {
        for seed in [1, 2] {
            scope.spawn(move || {
                let (mut tenant, mut dice) = (Tenant::connect(seed, lines), Dice::new(seed.into()));
                go_round(rounds, is_spoilt, |round| {
                    let who = format!("tenant-{seed}-{round}.");
                    ask_as_tenant(&mut tenant, &mut dice, &who);
                });
            });
            scope.spawn(move || {
                let mut dice = Dice::new(100 + u64::from(seed));
                go_round(rounds, is_spoilt, |round| {
                    let who = format!("client-{seed}-{round}.");
                    ask_as_client(hearsay, &mut dice, &who, url);
                });
            });
        }
    });
    let heads = origin.heads();
    assert!(heads.len() > rounds * 4, "{} requests reached the origin", heads.len());
}

#[test]
fn nobody_gets_what_another_asked_for() {
    network::inside("nobody_gets_what_another_asked_for", || mingle(500));
}

#[test]
#[ignore = "100,000 heads take minutes; scripts/test --long runs it"]
fn nobody_gets_what_another_asked_for_in_the_long_run() {
    network::inside("nobody_gets_what_another_asked_for_in_the_long_run", || mingle(12_500));
}

#[test]
fn tenants_share_no_connection_with_an_origin() {
    network::inside("tenants_share_no_connection_with_an_origin", || {
        let world = World::new();
        let far = FarEnd::start_for(&world, &[&Tenant::key(1), &Tenant::key(2)]);
        let listener = there(ORIGIN, || TcpListener::bind("10.2.0.2:80").expect("a port"));
        let _origin = Script::on(listener, |visit| {
            while visit.head().is_some() {
                let number = visit.number.to_string();
                let length = number.len();
                visit.send(format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{number}"));
            }
        });
        let mut tenants = [1, 2].map(|seed| Tenant::connect(seed, &far.lines));
        let mut connection = |tenant: usize| {
            let asked = fetch(Method::GET, "/", &[("host", "o.test")]);
            let body = tenants[tenant].ask(asked, None).expect("an answer");
            String::from_utf8(body).expect("a number")
        };
        let [first, again, second, second_again, last] = [0, 0, 1, 1, 0].map(&mut connection);
        assert!(first != second, "both had the origin's connection {first}");
        assert_eq!([again, second_again, last], [&first, &second, &first].map(String::clone));
    });
}

#[test]
fn content_of_a_get_reaches_its_origin() {
    let world = World::new();
    let origin = Script::start(|visit| {
        while visit.head().is_some() {
            let content = visit.chunked().unwrap_or_default();
            visit.send(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", content.len()));
            visit.send(content);
        }
    });
    let hearsay = Hearsay::start(&world);
    for _ in 0..2 {
        let head = format!("GET {} HTTP/1.1\r\nHost: o\r\n", origin.url("search"));
        let mut client = Raw::connect(hearsay.proxy);
        client.send(format!("{head}Transfer-Encoding: chunked\r\n\r\n5\r\nquery\r\n0\r\n\r\n"));
        let reply = client.reply().expect(200);
        assert_eq!((reply.text(), reply.is_hit()), ("query".into(), false));
    }
    assert!(origin.heads().iter().all(|head| head.contains("transfer-encoding: chunked")));
}

/// A page of an origin that knows its clients by their connections: three messages of a handshake, then the page.
fn authenticating(visit: &mut Visit) {
    let (mut challenged, mut user, mut strangers) = (false, None, 0);
    while let Some(head) = visit.head() {
        let said = head.lines().find_map(|line| line.strip_prefix("authorization: NTLM "));
        match said {
            Some("negotiate") => challenged = true,
            Some(name) if challenged => user = Some(name.to_owned()),
            _ => {}
        }
        strangers += u32::from(said.is_none() && user.is_none());
        let (status, field, body) = match (&user, said) {
            // It has been told how this connection is to be authenticated.
            (None, None) if strangers > 1 => ("409 Conflict", String::new(), String::new()),
            (Some(user), _) => ("200 OK", String::new(), format!("private page of {user}")),
            (None, Some("negotiate")) => (
                "401 Unauthorized",
                format!("WWW-Authenticate: NTLM {}\r\n", visit.number),
                String::new(),
            ),
            (None, _) => {
                ("401 Unauthorized", "WWW-Authenticate: NTLM\r\n".to_owned(), String::new())
            }
        };
        let cached = "Cache-Control: public, max-age=600\r\n";
        visit.send(format!(
            "HTTP/1.1 {status}\r\n{cached}{field}Content-Length: {}\r\n\r\n{body}",
            body.len()
        ));
    }
}

/// Goes through the handshake, and asks for further pages without it.
fn authenticate(hearsay: &Hearsay, url: &str) {
    let ask = |client: &mut Raw, field: &str| {
        client.send(format!("GET {url} HTTP/1.1\r\nHost: o\r\n{field}\r\n")).reply()
    };
    let (mut first, mut second) = (Raw::connect(hearsay.proxy), Raw::connect(hearsay.proxy));
    ask(&mut first, "").expect(401);
    ask(&mut first, "Authorization: NTLM negotiate\r\n").expect(401);
    // Others ask meanwhile.
    ask(&mut second, "").expect(401);
    ask(&mut Raw::connect(hearsay.proxy), "").expect(401);
    let page = ask(&mut first, "Authorization: NTLM ann\r\n").expect(200);
    assert_eq!(page.text(), "private page of ann");
    for _ in 0..3 {
        let page = ask(&mut first, "").expect(200);
        assert_eq!(page.text(), "private page of ann", "its connection is known");
        assert!(page.cache_status().contains("detail=connection"), "{}", page.cache_status());
        ask(&mut second, "").expect(401);
        ask(&mut Raw::connect(hearsay.proxy), "").expect(401);
    }
    let posted = "Content-Length: 0\r\n";
    first.send(format!("POST {url} HTTP/1.1\r\nHost: o\r\n{posted}\r\n")).reply().expect(200);
    drop(first);
    ask(&mut second, "").expect(401);
}

#[test]
fn a_connection_that_knows_one_client_serves_no_other() {
    let world = World::new();
    let origin = Script::start(authenticating);
    let hearsay = Hearsay::start(&world);
    authenticate(&hearsay, &origin.url("page"));
}

#[test]
fn with_a_far_end_a_connection_that_knows_one_client_serves_no_other() {
    network::inside("with_a_far_end_a_connection_that_knows_one_client_serves_no_other", || {
        let world = World::new();
        let own = key_of_gateway(&world);
        let far = FarEnd::start_for(&world, &[&own, &Tenant::key(1), &Tenant::key(2)]);
        let listener = there(ORIGIN, || TcpListener::bind("10.2.0.2:80").expect("a port"));
        let _origin = Script::on(listener, authenticating);
        let hearsay = gateway(&world, &far);
        authenticate(&hearsay, "http://origin.test/page");
        // A near end that sends such fields after all, and another tenant, and the same one again.
        let asked = |field| {
            let fields = [("host", "o.test"), ("authorization", field)];
            fetch(Method::GET, "/", if field.is_empty() { &fields[..1] } else { &fields })
        };
        let mut tenants = [1, 2].map(|seed| Tenant::connect(seed, &far.lines));
        for field in ["", "NTLM negotiate", "NTLM bob", ""] {
            for tenant in &mut tenants {
                assert_eq!(tenant.ask(asked(field), None).as_deref(), Some(&b""[..]), "{field}");
            }
        }
    });
}
