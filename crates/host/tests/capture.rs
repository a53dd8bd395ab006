//! Captures from a real kernel: a wire that floods all frames, two machines that talk on it, and
//! one that listens.
//!
//! ```text
//!   a 10.9.0.1 ──┐
//!   b 10.9.0.2 ──┼── br0, which floods
//!   ear0 ────────┘
//! ```
//!
//! The test's machine has `br0` and `ear0`. Where namespaces are not permitted, the tests print
//! `SKIPPED:` on standard error, even when output is captured.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd as _;
use std::thread;
use std::time::{Duration, Instant};

use host::capture::{Capture, CaptureError, Ignored, PassedOver, Report, Settings};
use node::Overheard;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use tokio::sync::mpsc::Receiver;
use tokio::sync::mpsc::error::TryRecvError;

use crate::namespace::{inside, sh};

const PORT: u16 = 3131;
const BYTES: usize = 1_000_000;
/// After this long a test that waits in vain is ended.
const PATIENCE: Duration = Duration::from_secs(120);

const TALKERS: &str = "mount -t tmpfs none /run; ip link set lo up
    ip link add br0 type bridge ageing_time 0; ip link set br0 up
    for end in 'a 1' 'b 2'; do
        set -- $end
        ip netns add $1
        ip link add to-$1 type veth peer name eth0 netns $1
        ip link set to-$1 master br0; ip link set to-$1 up
        ip -n $1 addr add 10.9.0.$2/24 dev eth0; ip -n $1 link set eth0 up
        ip -n $1 link set lo up
    done";

const EAR: &str = "ip link add ear0 type veth peer name to-ear
    ip link set to-ear master br0; ip link set to-ear up; ip link set ear0 up";

fn listen(interface: &str) -> (Capture, Receiver<Vec<Overheard>>) {
    let settings = Settings { interface: interface.into(), port: PORT };
    Capture::open(settings).expect("a capture")
}

/// Waits until the capture's report satisfies a condition.
#[track_caller]
fn wait(capture: &Capture, mut what: impl FnMut(&Report) -> bool) {
    let began = Instant::now();
    while !what(&capture.report()) {
        assert!(began.elapsed() < PATIENCE, "{:?}", capture.report());
        thread::sleep(Duration::from_millis(20));
    }
}

/// Runs a function in a thread in the namespace of this name.
fn there<T: Send + 'static>(
    name: &'static str,
    work: impl FnOnce() -> T + Send + 'static,
) -> thread::JoinHandle<T> {
    thread::spawn(move || {
        let file = File::open(format!("/run/netns/{name}")).expect("a namespace");
        let kind = Some(LinkNameSpaceType::Network);
        move_into_link_name_space(file.as_fd(), kind).expect("setns");
        work()
    })
}

fn content() -> Vec<u8> {
    (0..BYTES as u32).flat_map(|number| number.to_le_bytes()).take(BYTES).collect()
}

/// Sends the content from a to b, at this port.
fn talk(port: u16) {
    let listener = there("b", move || TcpListener::bind(("10.9.0.2", port)).expect("a port"));
    let listener = listener.join().expect("b listens");
    let sending = there("a", move || {
        let mut stream = TcpStream::connect(("10.9.0.2", port)).expect("b answers");
        stream.write_all(&content()).expect("b takes it");
    });
    let mut got = Vec::new();
    listener.accept().expect("a comes").0.read_to_end(&mut got).expect("all of it");
    sending.join().expect("a has sent");
    assert_eq!(got.len(), BYTES);
}

/// Takes batches until a whole stream towards the port was captured, and returns its bytes.
/// Retransmissions, even with other segment boundaries, are captured too.
fn stream(batches: &mut Receiver<Vec<Overheard>>) -> Vec<u8> {
    let began = Instant::now();
    let (mut first, mut heard) = (None, vec![None; BYTES]);
    while heard.contains(&None) {
        let missing = || heard.iter().filter(|byte| byte.is_none()).count();
        assert!(began.elapsed() < PATIENCE, "{} bytes were not captured", missing());
        match batches.try_recv() {
            Ok(batch) => {
                for it in batch.into_iter().filter(|it| it.to.port() == PORT) {
                    if it.syn {
                        first = Some(it.seq.wrapping_add(1));
                    } else if let Some(first) = first {
                        let bytes = &mut heard[it.seq.wrapping_sub(first) as usize..];
                        for (place, byte) in bytes.iter_mut().zip(it.payload) {
                            *place = Some(byte);
                        }
                    }
                }
            }
            Err(TryRecvError::Empty) => thread::sleep(Duration::from_millis(5)),
            Err(TryRecvError::Disconnected) => panic!("the capture has ended"),
        }
    }
    heard.into_iter().flatten().collect()
}

#[test]
fn what_others_send_each_other_is_heard_and_nothing_else() {
    inside("what_others_send_each_other_is_heard_and_nothing_else", "true", || {
        sh(TALKERS);
        sh(EAR);
        let (capture, mut batches) = listen("ear0");
        assert_eq!((capture.report().link, capture.report().trouble), (Some("ethernet"), None));
        // None of these frames passes the filter.
        talk(PORT + 1);
        assert_eq!(capture.report().counts.frames, 0);
        talk(PORT);
        assert!(stream(&mut batches) == content(), "the captured bytes differ from those sent");
        let report = capture.report();
        assert_eq!(
            (report.counts.dropped_frames, report.counts.dropped_segments),
            (0, 0),
            "{report:?}"
        );
        assert!(
            report.counts.segments > 0 && report.counts.segments <= report.counts.frames,
            "{report:?}"
        );
        assert!(report.counts.payload_bytes >= BYTES as u64, "{report:?}");
        // Pure acknowledgements.
        let mut refused = report.counts.refused.occurred();
        let empty = PassedOver::Segment(Ignored::Empty);
        assert!(refused.all(|(why, count)| why == empty && count > 0), "{report:?}");
        assert!(report.counts.refused.get(empty) > 0, "{report:?}");
    });
}

#[test]
fn what_is_from_or_to_us_is_passed_over() {
    inside("what_is_from_or_to_us_is_passed_over", "true", || {
        sh(TALKERS);
        sh(EAR);
        // The bridge must not answer for this address.
        sh("sysctl -qw net.ipv4.conf.all.arp_ignore=1; ip addr add 10.9.0.3/24 dev ear0");
        let (capture, mut batches) = listen("ear0");
        let listener = TcpListener::bind(("10.9.0.3", PORT)).expect("a port");
        let sending = there("a", || {
            let mut stream = TcpStream::connect(("10.9.0.3", PORT)).expect("it answers");
            stream.write_all(b"for you").expect("it is taken");
        });
        let mut got = String::new();
        listener.accept().expect("a comes").0.read_to_string(&mut got).expect("all of it");
        sending.join().expect("a has sent");
        assert_eq!(got, "for you");
        // The beginning of the connection and the data; its end may follow.
        wait(&capture, |report| report.counts.refused.get(PassedOver::Segment(Ignored::Own)) >= 2);
        assert!(matches!(batches.try_recv(), Err(TryRecvError::Empty)));
    });
}

#[test]
fn an_interface_may_come_late_and_go_and_come_back() {
    inside("an_interface_may_come_late_and_go_and_come_back", "true", || {
        let has = |text: &'static str| {
            move |report: &Report| report.trouble.as_ref().is_some_and(|it| it.contains(text))
        };
        let hears = |report: &Report| report.link == Some("ethernet");
        sh(TALKERS);
        let (capture, mut batches) = listen("ear0");
        assert!(has("no interface ear0 yet")(&capture.report()), "{:?}", capture.report());
        sh(EAR);
        wait(&capture, hears);
        sh("ip link set ear0 down");
        wait(&capture, has("ear0 is down: `ip link set ear0 up`"));
        sh("ip link set ear0 up");
        wait(&capture, hears);
        sh("ip link del ear0");
        wait(&capture, has("no interface ear0"));
        sh(EAR);
        wait(&capture, hears);
        talk(PORT);
        assert!(stream(&mut batches) == content(), "the captured bytes differ from those sent");
        // All of this without privileges.
        assert_eq!(rights_of("capture"), ["0000000000000000"]);
        // An interface that does not capture frames is refused.
        drop(batches);
        sh("ip tuntap add tun0 mode tun; ip link set tun0 up");
        let (capture, _batches) = listen("tun0");
        assert!(has("give a monitor or an Ethernet interface")(&capture.report()));
    });
}

#[test]
fn who_is_not_heard_in_time_is_dropped_and_counted() {
    inside("who_is_not_heard_in_time_is_dropped_and_counted", "true", || {
        sh(TALKERS);
        sh(EAR);
        let (capture, mut batches) = listen("ear0");
        wait(&capture, |report| {
            // The receiver takes none of them.
            talk(PORT);
            report.counts.dropped_segments > 0
        });
        // The batches that fitted are still there, and no others; the last one sent may still
        // follow.
        let mut held = 0;
        wait(&capture, |_| {
            held += std::iter::from_fn(|| batches.try_recv().ok())
                .map(|batch| batch.len() as u64)
                .sum::<u64>();
            held == capture.report().counts.segments
        });
    });
}

/// The permitted capabilities of threads with this name, in the kernel's notation.
fn rights_of(name: &str) -> Vec<String> {
    let tasks = std::fs::read_dir("/proc/self/task").expect("threads").flatten();
    let of_name = tasks.filter_map(|task| {
        let comm = std::fs::read_to_string(task.path().join("comm")).ok()?;
        let status = std::fs::read_to_string(task.path().join("status")).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("CapPrm:"))?;
        (comm.trim() == name).then(|| line.trim().to_owned())
    });
    of_name.collect()
}

#[test]
fn without_the_right_it_says_what_is_missing() {
    inside("without_the_right_it_says_what_is_missing", "true", || {
        use rustix::thread::{CapabilitySet, capabilities, set_capabilities};
        let mut sets = capabilities(None).expect("capabilities");
        sets.effective.remove(CapabilitySet::NET_RAW);
        set_capabilities(None, sets).expect("fewer capabilities");
        let settings = Settings { interface: "lo".into(), port: PORT };
        let error = Capture::open(settings).expect_err("it takes a right");
        assert!(matches!(error, CaptureError::Permission), "{error}");
        assert!(error.to_string().contains("CAP_NET_RAW"), "{error}");
    });
}
