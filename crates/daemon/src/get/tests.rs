//! Downloads from an origin that sends a prepared answer, then hangs up.

use std::cell::RefCell;
use std::rc::Rc;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::task::spawn_local;

use super::part::Part;
use super::*;
use crate::control::tests::{Puppet, run};
use crate::control::{ControlSocket, UnitLine};
use crate::target::tests::Pipe;

const QUICK: [Duration; 2] = [Duration::from_millis(1); 2];

/// The heads of the requests that the origin received, in order.
type Heads = Rc<RefCell<Vec<String>>>;

/// Answers each connection with the next of `answers`, verbatim, and hangs up.
async fn origin(answers: &[&str]) -> (SocketAddr, Heads) {
    let answers: Vec<_> = answers.iter().map(|answer| (*answer).to_owned()).collect();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let heads = Heads::default();
    let seen = Rc::clone(&heads);
    spawn_local(async move {
        for answer in answers {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(stream.read_u8().await.unwrap());
            }
            seen.borrow_mut().push(String::from_utf8(head).unwrap());
            stream.write_all(answer.as_bytes()).await.unwrap();
        }
    });
    (address, heads)
}

fn response(head: &str, body: &str) -> String {
    let head: String = head.lines().map(|line| format!("{}\r\n", line.trim())).collect();
    format!("HTTP/1.1 {head}\r\n{body}")
}

/// A response that declares ten bytes and has five.
fn half() -> String {
    response("200 OK\ncontent-length: 10\netag: \"1\"", "01234")
}

fn rest() -> String {
    response(
        "206 Partial Content
         content-length: 5
         content-range: bytes 5-9/10
         etag: \"1\"
         cache-status: router-12; hit",
        "56789",
    )
}

struct Desk {
    dir: tempfile::TempDir,
    control: Vec<PathBuf>,
}

impl Desk {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let control = vec![dir.path().join("control.sock")];
        Self { dir, control }
    }

    fn file(&self) -> PathBuf {
        self.dir.path().join("file")
    }

    fn job(&self, proxy: SocketAddr) -> Job<'_> {
        Job {
            oid: None,
            url: "http://origin.test/file".parse().unwrap(),
            output: self.file(),
            target: Target::of(&self.file()).unwrap(),
            proxy,
            control: &self.control,
            sha256: None,
            pauses: &QUICK,
            bar: ProgressBar::hidden(),
        }
    }

    /// A pipe in the place of the file.
    fn pipe(&self) -> Pipe {
        Pipe::make(&self.file())
    }

    fn content(&self) -> String {
        std::fs::read_to_string(self.file()).unwrap()
    }

    fn files(&self) -> usize {
        std::fs::read_dir(self.dir.path()).unwrap().count()
    }
}

#[test]
fn a_cut_body_is_resumed_where_it_ended() {
    let desk = Desk::new();
    run(async {
        let (proxy, heads) = origin(&[&half(), &rest()]).await;
        let report = desk.job(proxy).run().await.unwrap();
        assert_eq!(desk.content(), "0123456789");
        assert_eq!((report.bytes, report.resumed_bytes), (10, 0));
        assert_eq!(report.answered_by.as_deref(), Some("router-12"));
        assert_eq!(report.verified, ["length"]);
        let heads = heads.borrow();
        assert!(heads[0].starts_with("GET http://origin.test/file HTTP/1.1\r\n"), "{}", heads[0]);
        assert!(heads[0].contains("host: origin.test\r\n") && !heads[0].contains("range"));
        assert!(
            heads[1].contains("range: bytes=5-\r\n") && heads[1].contains("if-range: \"1\"\r\n")
        );
    });
    assert_eq!(desk.files(), 1);
}

#[test]
fn the_next_command_resumes_what_the_last_left() {
    let desk = Desk::new();
    run(async {
        let (proxy, _) = origin(&[&half()]).await;
        let job = Job { pauses: &[], ..desk.job(proxy) };
        let failure = job.run().await.unwrap_err();
        assert_eq!(failure.exit, Exit::Failed);
        assert!(failure.message.contains("the same command resumes"), "{failure}");
        assert!(!desk.file().exists());
        let (proxy, heads) = origin(&[&rest()]).await;
        let report = desk.job(proxy).run().await.unwrap();
        assert_eq!((report.bytes, report.resumed_bytes), (10, 5));
        assert!(heads.borrow()[0].contains("range: bytes=5-\r\n"));
        assert!(report.page().contains("5 B of them resumed"), "{}", report.page());
    });
    assert_eq!(desk.content(), "0123456789");
}

#[test]
fn two_versions_are_never_joined() {
    let changed = response("200 OK\ncontent-length: 3\netag: \"2\"", "new");
    let mismatch =
        "206 Partial Content\ncontent-length: 5\ncontent-range: bytes 5-9/10\netag: \"2\"";
    let mismatch = response(mismatch, "xxxxx");
    let too_far =
        response("416 Range Not Satisfiable\ncontent-range: bytes */3\ncontent-length: 0", "");
    for answers in [
        vec![half(), changed.clone()],
        vec![half(), mismatch, changed.clone()],
        vec![half(), too_far, changed],
    ] {
        let desk = Desk::new();
        run(async {
            let answers: Vec<_> = answers.iter().map(String::as_str).collect();
            let (proxy, heads) = origin(&answers).await;
            let report = desk.job(proxy).run().await.unwrap();
            assert_eq!((desk.content().as_str(), report.bytes), ("new", 3));
            let heads = heads.borrow();
            assert_eq!(heads.len(), answers.len());
            assert!(heads.len() == 2 || !heads[2].contains("range:"), "{}", heads[2]);
        });
    }
}

#[test]
fn without_a_strong_validator_nothing_is_resumed() {
    let desk = Desk::new();
    run(async {
        let weak = response("200 OK\ncontent-length: 10\netag: W/\"1\"", "01234");
        let (proxy, heads) = origin(&[&weak]).await;
        let failure = desk.job(proxy).run().await.unwrap_err();
        assert!(failure.message.contains("starts over"), "{failure}");
        assert_eq!(heads.borrow().len(), 1);
        let whole = response("200 OK\ncontent-length: 3", "abc");
        let (proxy, heads) = origin(&[&whole]).await;
        desk.job(proxy).run().await.unwrap();
        assert!(!heads.borrow()[0].contains("range:"));
    });
    assert_eq!(desk.content(), "abc");
}

#[test]
fn digests_are_compared() {
    const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    let head = "200 OK\ncontent-length: 3\netag: \"1\"
                repr-digest: sha-256=:ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=:";
    let desk = Desk::new();
    run(async {
        let (proxy, _) = origin(&[&response(head, "abc")]).await;
        let job = Job { sha256: digest::of_hex(ABC), ..desk.job(proxy) };
        let report = job.run().await.unwrap();
        assert_eq!(report.verified, ["length", "SHA-256 (Repr-Digest)", "SHA-256 (--sha256)"]);
        std::fs::remove_file(desk.file()).unwrap();

        let (proxy, _) = origin(&[&response(head, "abd")]).await;
        let failure = desk.job(proxy).run().await.unwrap_err();
        assert_eq!(failure.exit, Exit::Unverified);
        assert!(failure.message.contains("Repr-Digest says ba7816bf"), "{failure}");
    });
    assert!(!desk.file().exists());
    assert_eq!(desk.files(), 1, "the part, without its note");
}

#[test]
fn a_pipe_is_written_through_and_what_comes_is_verified() {
    const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    let whole = response("200 OK\ncontent-length: 3\netag: \"1\"", "abc");
    let wrong = whole.replace("abc", "abd");
    let (desk, sha256) = (Desk::new(), digest::of_hex(ABC));
    let mut pipe = desk.pipe();
    run(async {
        let (proxy, _) = origin(&[&whole]).await;
        let report = Job { sha256, ..desk.job(proxy) }.run().await.unwrap();
        assert_eq!(pipe.read(), "abc");
        assert_eq!(report.verified, ["length", "SHA-256 (--sha256)"]);
        assert!(report.notes[0].contains("cannot be read again"), "{:?}", report.notes);

        let (proxy, _) = origin(&[&wrong]).await;
        let failure = Job { sha256, ..desk.job(proxy) }.run().await.unwrap_err();
        assert_eq!((pipe.read().as_str(), failure.exit), ("abd", Exit::Unverified));
        assert!(failure.message.ends_with("; 3 B are written already"), "{failure}");
    });
    assert!(pipe.is_there());
    assert_eq!(desk.files(), 1, "nothing beside the pipe");
}

#[test]
fn what_is_written_through_is_not_resumed() {
    let desk = Desk::new();
    let mut pipe = desk.pipe();
    run(async {
        for _ in 0..2 {
            let (proxy, heads) = origin(&[&half(), &rest()]).await;
            let failure = desk.job(proxy).run().await.unwrap_err();
            assert_eq!((pipe.read().as_str(), failure.exit), ("01234", Exit::Failed));
            assert!(failure.message.contains("the same command starts over"), "{failure}");
            assert!(heads.borrow().len() == 1 && !heads.borrow()[0].contains("range:"));
        }
    });
    assert!(pipe.is_there());
    assert_eq!(desk.files(), 1, "nothing beside the pipe");
}

#[test]
fn what_has_the_parts_name_and_is_no_file_is_left_alone() {
    let desk = Desk::new();
    let pipe = Pipe::make(&part::part_path(&desk.file()));
    run(async {
        let (proxy, heads) = origin(&[&half()]).await;
        let failure = desk.job(proxy).run().await.unwrap_err();
        assert!(failure.message.contains("file.part is not a regular file"), "{failure}");
        assert!(heads.borrow().is_empty());
    });
    assert!(pipe.is_there());
}

#[test]
fn the_daemons_manifest_is_compared() {
    let head = "200 OK\ncontent-length: 5\netag: \"1\"";
    let page = |units: &[&str], next_page| ManifestPage {
        record: "r1".into(),
        etag: Some("\"1\"".into()),
        length: 5,
        units: units
            .iter()
            .map(|unit| UnitLine {
                name: content::name(unit.as_bytes()).to_string(),
                length: unit.len() as u32,
                key: None,
            })
            .collect(),
        next_page,
        ..ManifestPage::default()
    };
    for (body, etag, expected) in [
        ("hello", "\"1\"", Ok("2 units of the daemon's manifest")),
        ("hellx", "\"1\"", Err(Exit::Unverified)),
        ("hello", "\"2\"", Ok("length")),
    ] {
        let desk = Desk::new();
        run(async {
            let mut pages = vec![page(&["he"], Some(1)), page(&["llo"], None)];
            pages[0].etag = Some(etag.into());
            let puppet = Puppet { pages, ..Puppet::default() };
            spawn_local(ControlSocket::open(&desk.control[0]).unwrap().serve(Rc::new(puppet)));
            let (proxy, _) = origin(&[&response(head, body)]).await;
            let outcome = desk.job(proxy).run().await;
            let last = outcome.map(|report| report.verified.last().unwrap().clone());
            assert_eq!(last.as_deref().map_err(|failure| failure.exit), expected);
        });
    }
}

#[test]
fn redirects_are_followed_but_not_out_of_https() {
    let desk = Desk::new();
    run(async {
        let to = |location: &str| {
            response(&format!("302 Found\nlocation: {location}\ncontent-length: 0"), "")
        };
        let whole = response("200 OK\ncontent-length: 3", "abc");
        let (proxy, heads) = origin(&[&to("/other"), &whole]).await;
        desk.job(proxy).run().await.unwrap();
        assert!(heads.borrow()[1].starts_with("GET http://origin.test/other "));
        let secure = "https://origin.test/file";
        let (proxy, heads) = origin(&[&to(secure), &to("http://origin.test/file")]).await;
        let failure = desk.job(proxy).run().await.unwrap_err();
        assert!(heads.borrow()[1].starts_with(&format!("GET {secure} HTTP/1.1\r\n")));
        assert!(failure.message.contains("in clear"), "{failure}");
    });
    assert_eq!(desk.content(), "abc");
}

#[test]
fn refusals_say_who_refused_and_leave_nothing() {
    let desk = Desk::new();
    run(async {
        let head = "404 Not Found\ncontent-length: 0\ncache-status: router-12; fwd=uri-miss";
        let (proxy, _) = origin(&[&response(head, "")]).await;
        let failure = desk.job(proxy).run().await.unwrap_err();
        assert_eq!(failure.exit, Exit::Failed);
        assert!(failure.message.contains("answered 404 Not Found (Cache-Status: router-12"));
        let head = "400 Bad Request\ncontent-length: 32\ncontent-type: text/plain";
        let (proxy, _) = origin(&[&response(head, "n1 400: what a URL; try CONNECT\n")]).await;
        let failure = desk.job(proxy).run().await.unwrap_err();
        assert!(failure.message.ends_with("400 Bad Request: what a URL; try CONNECT"), "{failure}");
        let free = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
        assert_eq!(desk.job(free).run().await.unwrap_err().exit, Exit::Unreachable);
    });
    assert_eq!(desk.files(), 0);
}

#[test]
fn an_interruption_says_what_is_there() {
    let desk = Desk::new();
    assert!(interrupted(&desk.file()).message.contains("nothing had arrived"));
    let mut part = Part::open(&desk.file(), "http://a/").unwrap();
    part.append(b"abc").unwrap();
    assert!(interrupted(&desk.file()).message.contains("starts over"));
    part.begin(Meta { validator: Some("\"1\"".into()), ..Meta::default() }).unwrap();
    part.append(b"abc").unwrap();
    assert!(interrupted(&desk.file()).message.contains("3 B are in"));
}

#[test]
fn urls_files_and_proxies_are_chosen_or_refused() {
    let url = |text: &str| parse_url(text).unwrap();
    for bad in ["https://", "a/b", "ftp://a/b", "http://u:p@a/b", "https://u:p@a/b", "http://a b/"]
    {
        assert_eq!(parse_url(bad).unwrap_err().exit, Exit::Usage, "{bad}");
    }
    assert_eq!(output(None, &url("http://a/b/c.iso?d")).unwrap(), Path::new("c.iso"));
    assert_eq!(output(Some(Path::new("/")), &url("http://a/b")).unwrap(), Path::new("/b"));
    for bad in ["http://a", "http://a/b/", "http://a/.."] {
        assert!(output(None, &url(bad)).is_err(), "{bad}");
    }
    let proxy = |text: &str| proxy_of(&[text.parse().unwrap()]).unwrap().to_string();
    assert_eq!((proxy("0.0.0.0:1"), proxy("[::]:2")), ("127.0.0.1:1".into(), "[::1]:2".into()));
    assert_eq!(proxy("192.0.2.1:3"), "192.0.2.1:3");
    assert!(proxy_of(&[]).is_err());
}
