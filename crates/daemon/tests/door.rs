//! The far end's door while strangers crowd it.

use std::collections::VecDeque;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use node::testing::{Heard, PairEnd};
use node::uplink::{PairKeys, Refused};
use rustix::net::{AddressFamily, SocketType, bind, connect, socket};

use crate::world::network::{self, CLIENT, there};
use crate::world::{FarEnd, Hearsay, TIMEOUT, Tenant, World, key_of_gateway, sh, wait_until};

const FAR: &str = "10.2.0.2:3144";
/// The strangers' addresses are 10.1.0.11 and following.
const ADDRESSES: u8 = 8;
const IDLE_EACH: usize = 64;

/// A connection from one of the strangers' addresses.
fn dial(number: u8) -> std::io::Result<TcpStream> {
    let socket = socket(AddressFamily::INET, SocketType::STREAM, None)?;
    bind(&socket, &SocketAddr::from(([10, 1, 0, 11 + number], 0)))?;
    connect(&socket, &FAR.parse::<SocketAddr>().expect("an address"))?;
    let stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(TIMEOUT))?;
    Ok(stream)
}

/// Proves to know the far end's key, and a key that is no gateway's. How that ended.
fn introduce(mut stream: TcpStream, number: u8, far: &str) -> std::io::Result<Option<Refused>> {
    let keys = PairKeys::new(&[100 + number; 32], &[100 + number; 32]);
    let mut end = PairEnd::near(keys, &far.parse().expect("a key"));
    loop {
        while let Some(bytes) = end.take_outbox() {
            stream.write_all(&bytes)?;
        }
        let mut buffer = [0; 1024];
        match stream.read(&mut buffer)? {
            0 => return Ok(None),
            length => end.receive(&buffer[..length]),
        }
        if let Heard::Refused(why) = end.poll() {
            return Ok(Some(why));
        }
    }
}

/// What all strangers of a test share.
#[derive(Default)]
struct Siege {
    is_over: AtomicBool,
    /// Idle connections that were made.
    idle: AtomicU32,
    /// Strangers that were refused.
    refused: AtomicU32,
}

impl Siege {
    /// Keeps idle connections from one address, and always makes more.
    fn idle(&self, number: u8) {
        let mut open = VecDeque::new();
        while !self.is_over.load(Ordering::Relaxed) {
            open.extend(dial(number));
            self.idle.fetch_add(1, Ordering::Relaxed);
            if open.len() > IDLE_EACH {
                open.pop_front();
            }
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    }

    /// Introduces itself again and again; every other time it stops in the middle.
    fn introduce(&self, number: u8, far: &str) {
        let mut open = VecDeque::new();
        while !self.is_over.load(Ordering::Relaxed) {
            let refused = dial(number).and_then(|stream| introduce(stream, number, far));
            if matches!(refused, Ok(Some(Refused::Key))) {
                self.refused.fetch_add(1, Ordering::Relaxed);
            }
            let keys = PairKeys::new(&[100 + number; 32], &[100 + number; 32]);
            let first = PairEnd::near(keys, &far.parse().expect("a key")).take_outbox();
            if let (Ok(mut stream), Some(first)) = (dial(number), first)
                && stream.write_all(&first).is_ok()
            {
                open.push_back(stream);
            }
            if open.len() > IDLE_EACH {
                open.pop_front();
            }
        }
    }
}

fn descriptors(process: u32) -> usize {
    fs::read_dir(format!("/proc/{process}/fd")).expect("its descriptors").count()
}

fn is_up(gateway: &Hearsay) -> bool {
    gateway.status()["uplink"]["state"] == "up"
}

/// Ends a siege also when the test fails.
struct Ended<'a>(&'a Siege);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.0.is_over.store(true, Ordering::Relaxed);
    }
}

#[test]
fn a_crowd_at_the_door_keeps_no_gateway_out() {
    network::inside("a_crowd_at_the_door_keeps_no_gateway_out", || {
        let world = World::new();
        for number in 0..ADDRESSES {
            sh(&format!("ip -n client addr add 10.1.0.{}/24 dev eth0", 11 + number));
        }
        let far = FarEnd::start(&world, &key_of_gateway(&world));
        let key = far.lines.split('"').nth(3).expect("a key");
        let text = format!("listen = [\"127.0.0.1:0\"]\n{}", far.lines);
        let file = world.write("hearsay.toml", text.as_bytes());
        let (siege, before) = (Siege::default(), descriptors(far.process.id()));
        std::thread::scope(|scope| {
            let _ended = Ended(&siege);
            for number in 0..ADDRESSES {
                let siege = &siege;
                scope.spawn(move || there(CLIENT, || siege.idle(number)));
                scope.spawn(move || there(CLIENT, || siege.introduce(number, key)));
            }
            let many = u32::from(ADDRESSES) * IDLE_EACH as u32;
            wait_until("the siege", || siege.idle.load(Ordering::Relaxed) > many);
            wait_until("refusals", || siege.refused.load(Ordering::Relaxed) > 0);
            let mut gateway =
                Hearsay::start_with(&world, &["--config", &file.display().to_string()]);
            for _ in 0..3 {
                wait_until("the gateway to be in", || is_up(&gateway));
                gateway.restart();
            }
            // 256 unproven, 64 in their handshake, 32 that are refused, and some that are being closed.
            let held = descriptors(far.process.id()) - before;
            assert!(held < 400, "{held} descriptors");
            wait_until("the gateway to be in", || is_up(&gateway));
        });
        let log = fs::read_to_string(world.path("far.log")).expect("a log");
        let told = log.lines().filter(|line| line.contains("refused connections")).count();
        assert!((1..=2).contains(&told), "once a minute: {log}");
    });
}

#[test]
fn a_gateway_that_connects_without_end_has_one_connection() {
    network::inside("a_gateway_that_connects_without_end_has_one_connection", || {
        let world = World::new();
        let far = FarEnd::start_for(&world, &[&Tenant::key(1)]);
        let connect = || Tenant::connect(1, &far.lines);
        let mut held = vec![connect()];
        let one = descriptors(far.process.id());
        held.extend((0..40).map(|_| connect()));
        let now = descriptors(far.process.id());
        assert!(now < one + 20, "{now} descriptors in the place of {one}");
    });
}

#[test]
fn a_thousand_gateways_that_are_away_cost_neither_descriptors_nor_threads() {
    network::inside(
        "a_thousand_gateways_that_are_away_cost_neither_descriptors_nor_threads",
        || {
            let world = World::new();
            // Each with a directory of its own, which is named by a key's first digits.
            let away = (0..1000).map(|number| format!("{:0<64}", format!("{number:04x}")));
            let keys: Vec<_> = away.chain([key_of_gateway(&world)]).collect();
            let far = FarEnd::start_under(&world, "exec", &keys);
            let process = far.process.id();
            let before = descriptors(process);
            assert!(before < 40, "{before} descriptors");
            let text = format!("listen = [\"127.0.0.1:0\"]\n{}", far.lines);
            let file = world.write("hearsay.toml", text.as_bytes());
            let gateway = Hearsay::start_with(&world, &["--config", &file.display().to_string()]);
            wait_until("the gateway to be in", || is_up(&gateway));
            let one = descriptors(process) - before;
            assert!((1..=8).contains(&one), "{one} descriptors of one gateway");
            let threads =
                fs::read_dir(format!("/proc/{process}/task")).expect("its threads").count();
            // The loop, four that pack, eight that look up names and open histories.
            assert!(threads <= 13, "{threads} threads");
        },
    );
}
