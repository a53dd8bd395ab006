//! Under a service manager: `Type=notify`, reloads and the watchdog of systemd, against a socket of the test's own.

use std::io::ErrorKind;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use crate::world::{Hearsay, Nginx, Process, TIMEOUT, World, noise, wait_until};

/// A service manager's ear.
struct Manager {
    socket: UnixDatagram,
    /// `$NOTIFY_SOCKET`.
    name: String,
}

impl Manager {
    fn at(path: &Path) -> Self {
        let socket = UnixDatagram::bind(path).expect("a socket of the test's own");
        Self::of(socket, path.display().to_string())
    }

    /// A socket that no file has.
    fn abstract_one() -> Self {
        let name = format!("hearsay-test-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).expect("a short name");
        Self::of(UnixDatagram::bind_addr(&address).expect("a free name"), format!("@{name}"))
    }

    fn of(socket: UnixDatagram, name: String) -> Self {
        socket.set_read_timeout(Some(TIMEOUT)).expect("a timeout");
        Self { socket, name }
    }

    /// Starts a daemon that this manager watches, with more variables.
    fn start(&self, world: &World, variables: &[&str], args: &[&str]) -> Hearsay {
        let socket = format!("NOTIFY_SOCKET={}", self.name);
        let before = [&["env", socket.as_str()], variables].concat();
        Hearsay::start_under(world, &before, args)
    }

    /// The next message.
    #[track_caller]
    fn hears(&self) -> String {
        let mut text = [0; 4096];
        let length = loop {
            match self.socket.recv(&mut text) {
                // A process that was stopped for a while goes on with this error.
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                received => break received.expect("a message"),
            }
        };
        String::from_utf8_lossy(&text[..length]).into_owned()
    }

    /// The next message that is no watchdog's.
    #[track_caller]
    fn hears_else(&self) -> String {
        loop {
            let message = self.hears();
            if message != "WATCHDOG=1\n" {
                return message;
            }
        }
    }
}

fn monotonic_usec() -> u128 {
    let now = clock_gettime(ClockId::Monotonic);
    let seconds = Duration::from_secs(now.tv_sec.try_into().expect("a time"));
    (seconds + Duration::from_nanos(now.tv_nsec.try_into().expect("a time"))).as_micros()
}

#[test]
fn ready_reloading_and_stopping_are_told() {
    let world = World::new();
    let nginx = Nginx::start(&world, "location /slow { limit_rate 200k; }");
    nginx.put("slow", &noise(1, 400_000));
    for (round, manager) in
        [Manager::at(&world.path("manager")), Manager::abstract_one()].iter().enumerate()
    {
        let config = world.write("hearsay.toml", b"listen = [\"127.0.0.1:0\"]\n");
        let config = config.display().to_string();
        let args = ["--config", &config, "--drain", "1h"];
        let mut hearsay = manager.start(&world, &[], &args);
        assert_eq!(manager.hears(), "READY=1\n");
        // The file is right, then wrong: the service goes on in both cases.
        for text in ["listen = [\"127.0.0.1:0\"]\nallow = [\"192.0.2.0/24\"]\n", "alow = []\n"] {
            world.write("hearsay.toml", text.as_bytes());
            let before = monotonic_usec();
            hearsay.hang_up();
            let reloading = manager.hears();
            let time = reloading.strip_prefix("RELOADING=1\nMONOTONIC_USEC=").map(str::trim);
            let time: u128 = time.and_then(|it| it.parse().ok()).expect(&reloading);
            assert!((before..=monotonic_usec()).contains(&time), "{before} {reloading}");
            assert_eq!(manager.hears(), "READY=1\n");
        }
        // It says so when it begins to stop, not when the transfer has ended.
        let url = format!("{}?{round}", nginx.url("slow"));
        let transfer = hearsay.curl(&url).start();
        wait_until("some of it to arrive", || transfer.received() > 0);
        hearsay.signal("TERM");
        assert_eq!(manager.hears(), "STOPPING=1\n");
        assert_eq!(transfer.wait().expect(200).body.len(), 400_000);
        wait_until("the daemon to end", || hearsay.has_ended());
    }
}

#[test]
fn a_daemon_that_cannot_start_is_never_ready() {
    let world = World::new();
    let manager = Manager::at(&world.path("manager"));
    let socket = format!("NOTIFY_SOCKET={}", manager.name);
    let (status, _) = Hearsay::try_start_under(
        &world,
        &["env", &socket],
        &["--listen", "127.0.0.1:0", "--listen", "192.0.2.1:1"],
    );
    assert!(!status.success());
    manager.socket.set_nonblocking(true).expect("a flag");
    assert!(manager.socket.recv(&mut [0; 16]).is_err(), "it said something");
}

#[test]
fn the_watchdog_is_fed_if_it_is_this_processs() {
    let world = World::new();
    let manager = Manager::at(&world.path("manager"));
    let mut hearsay = manager.start(&world, &["WATCHDOG_USEC=200000"], &[]);
    assert_eq!(manager.hears(), "READY=1\n");
    for _ in 0..4 {
        assert_eq!(manager.hears(), "WATCHDOG=1\n");
    }
    hearsay.hang_up();
    assert!(manager.hears_else().starts_with("RELOADING=1\n"));
    hearsay.signal("TERM");
    assert_eq!([manager.hears_else(), manager.hears_else()], ["READY=1\n", "STOPPING=1\n"]);
    wait_until("the daemon to end", || hearsay.has_ended());

    // Meant for another process; the first would come right after READY.
    let manager = Manager::at(&world.path("another"));
    let variables = ["WATCHDOG_USEC=1000", "WATCHDOG_PID=1"];
    let mut hearsay = manager.start(&world, &variables, &[]);
    assert_eq!(manager.hears(), "READY=1\n");
    assert!(hearsay.status().is_object());
    hearsay.signal("TERM");
    assert_eq!(manager.hears(), "STOPPING=1\n");
    wait_until("the daemon to end", || hearsay.has_ended());
}

#[test]
fn a_manager_that_does_not_listen_stops_nothing() {
    let world = World::new();
    let nginx = Nginx::start(&world, "");
    nginx.put("file", b"hello");
    // Nobody reads this one, which is soon full, and is then gone.
    let manager = Manager::at(&world.path("manager"));
    let mut hearsay = manager.start(&world, &["WATCHDOG_USEC=200"], &[]);
    assert_eq!(hearsay.get(&nginx.url("file")).expect(200).text(), "hello");
    drop(manager);
    std::fs::remove_file(world.path("manager")).expect("it is there");
    assert_eq!(hearsay.get(&nginx.url("file")).expect_hit().text(), "hello");
    hearsay.terminate();

    let mut hearsay = Hearsay::start_under(&world, &["env", "NOTIFY_SOCKET=vsock:2:1"], &[]);
    assert!(hearsay.log().contains("will not hear from this daemon"), "{}", hearsay.log());
    hearsay.terminate();
}

#[test]
fn a_far_end_tells_when_it_is_ready_reloads_and_stops_and_that_it_runs() {
    let world = World::new();
    let manager = Manager::at(&world.path("manager"));
    let store = world.path("far").display().to_string();
    let text = format!(
        "gateways = [\"{}\"]\nlisten = \"127.0.0.1:0\"\n[store]\npath = {store:?}\n",
        "00".repeat(32)
    );
    let file = world.write("far.toml", text.as_bytes());
    let far = Command::new(env!("CARGO_BIN_EXE_hearsay"))
        .args(["far", "--config"])
        .arg(file)
        .arg("--control")
        .arg(world.path("far.sock"))
        .env("NOTIFY_SOCKET", &manager.name)
        .env("WATCHDOG_USEC", "200000")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let mut far = Process(far.expect("the far end starts"));
    assert_eq!(manager.hears_else(), "READY=1\n");
    assert_eq!(manager.hears(), "WATCHDOG=1\n");
    far.signal("HUP");
    assert!(manager.hears_else().starts_with("RELOADING=1\nMONOTONIC_USEC="));
    assert_eq!(manager.hears_else(), "READY=1\n");
    far.signal("TERM");
    assert_eq!(manager.hears_else(), "STOPPING=1\n");
    wait_until("the far end to end", || far.has_ended());
}
