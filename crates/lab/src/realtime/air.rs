//! The medium and the uplink in real time. Frames come from TAP devices, wait in the engines until they are
//! due, and go to the TAP devices of their receivers.
//!
//! One thread does it all. The engines work in virtual time, which follows the wall clock. If the thread is
//! late, it delivers a frame late, but that does not delay later frames. The lateness is counted.

#![deny(clippy::wildcard_enum_match_arm, reason = "no output may be overlooked")]

use std::io::{self, PipeReader, PipeWriter, Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant as WallInstant, SystemTime};

use radio::{Destination, Frame, Input, Medium, Output, Reception, Report, Station};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::time::{ClockId, Timespec, clock_gettime};
use sim::losses::AboveMac;
use sim::monitor::Monitor;
use sim::pipe::Pipe;
use wire::Instant;

use super::address;
use super::buffer::{Buffer, Carries};
use super::captures::Captures;
use super::lateness::Lateness;
use super::priority;
use super::tap::Tap;
use crate::console;

/// Frames read from one interface before another gets its turn.
const BATCH: usize = 64;

/// The interfaces that the air and the uplink connect.
#[derive(Debug)]
pub struct Ports {
    /// Each router's interface on the mesh.
    pub mesh: Vec<Tap>,
    /// Each router's monitor interface.
    pub monitor: Vec<Tap>,
    /// The uplink's ends, at the gateway and at the origin.
    pub uplink: [Tap; 2],
}

/// The engines that move frames between the interfaces.
pub struct Engines {
    pub medium: Medium<Buffer>,
    /// When virtual time began, and the date at that moment.
    pub zero: WallInstant,
    pub epoch: SystemTime,
    /// The uplink's directions: from the gateway to the origin, and back.
    pub uplink: [Pipe<Buffer>; 2],
    /// The packets that stations lose although their MACs have received them.
    pub above_mac: AboveMac,
    pub captures: Captures,
}

/// All counters at one moment.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// The medium's counters, by station.
    pub stations: Vec<Report>,
    /// Bytes of IP packets that reached the gateway over the uplink.
    pub from_origin: u64,
    /// Bytes of IP packets that reached the uplink's outer end.
    pub to_origin: u64,
    /// Packets sent over the air, counted at each hop: IP, and the routing protocol.
    pub ip_packets: u64,
    pub routing_packets: u64,
    /// Packets that stations lost above their MACs.
    pub lost_above_mac: u64,
    pub late: Lateness,
    /// Processor time of this thread.
    pub busy: Duration,
    pub at: WallInstant,
    /// Whether the thread has real-time priority.
    pub realtime: bool,
    /// Frames that captures lost.
    pub uncaptured: u64,
    /// The date, from the same clock as the captures.
    pub date: SystemTime,
}

/// The thread that runs the air. It ends when this is dropped.
#[derive(Debug)]
pub struct Air {
    ask: Option<PipeWriter>,
    answers: mpsc::Receiver<Snapshot>,
    thread: Option<JoinHandle<()>>,
}

impl Air {
    /// Starts the thread.
    pub fn start(ports: Ports, engines: Engines) -> io::Result<Self> {
        let (questions, ask) = io::pipe()?;
        let (answer, answers) = mpsc::channel();
        let thread = std::thread::Builder::new().name("air".into()).spawn(move || {
            let mut work = Work::new(engines, ports.mesh.len());
            work.realtime = priority::claim();
            let _awake = priority::stay_awake();
            work.run(&ports, questions, &answer);
        })?;
        Ok(Self { ask: Some(ask), answers, thread: Some(thread) })
    }

    /// The current counters. Fails if the thread has ended.
    pub fn snapshot(&mut self) -> io::Result<Snapshot> {
        let ask = self.ask.as_mut().expect("it is open until dropped");
        ask.write_all(b"?")?;
        self.answers.recv().map_err(|_| io::Error::other("the medium has stopped"))
    }
}

impl Drop for Air {
    fn drop(&mut self) {
        drop(self.ask.take());
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

struct Work {
    zero: WallInstant,
    engines: Engines,
    monitor: Monitor,
    stations: usize,
    spare: Vec<Buffer>,
    from_origin: u64,
    to_origin: u64,
    ip_packets: u64,
    routing_packets: u64,
    lost_above_mac: u64,
    late: Lateness,
    realtime: bool,
}

impl Work {
    fn new(engines: Engines, stations: usize) -> Self {
        Self {
            zero: engines.zero,
            monitor: Monitor::new(engines.medium.config()),
            engines,
            stations,
            spare: Vec::new(),
            from_origin: 0,
            to_origin: 0,
            ip_packets: 0,
            routing_packets: 0,
            lost_above_mac: 0,
            late: Lateness::default(),
            realtime: false,
        }
    }

    fn run(&mut self, ports: &Ports, mut questions: PipeReader, answer: &mpsc::Sender<Snapshot>) {
        // A second handle, because the first stays borrowed while it is polled.
        let Ok(watched) = questions.try_clone() else { return };
        let taps: Vec<_> = ports.mesh.iter().chain(&ports.uplink).collect();
        let mut asked = [PollFd::from_borrowed_fd(watched.as_fd(), PollFlags::IN)].to_vec();
        asked.extend(taps.iter().map(|tap| PollFd::new(*tap, PollFlags::IN)));
        let mut ports_asked: Vec<_> = (0..taps.len()).collect();
        loop {
            self.advance(ports);
            match poll(&mut asked, self.wait().as_ref()) {
                Ok(_) => {}
                Err(Errno::INTR) => continue,
                Err(error) => {
                    console::note(&format!("the medium stops: {error}"));
                    return;
                }
            }
            if !asked[0].revents().is_empty() {
                // One byte asks for a snapshot. The end of the pipe ends the thread.
                match questions.read(&mut [0]) {
                    Ok(1) if answer.send(self.snapshot()).is_ok() => {}
                    _ => return,
                }
            }
            // Backwards, because `swap_remove` moves the last entry to the removed place.
            for place in (0..ports_asked.len()).rev() {
                let (port, events) = (ports_asked[place], asked[place + 1].revents());
                if events.contains(PollFlags::IN) {
                    self.take_in(port, taps[port], ports);
                } else if !events.is_empty() {
                    // The device is gone; it would be ready for ever.
                    ports_asked.swap_remove(place);
                    asked.swap_remove(place + 1);
                }
            }
        }
    }

    fn now(&self) -> Instant {
        elapsed(self.zero)
    }

    /// Time until something is due; `None` if nothing is.
    fn wait(&self) -> Option<Timespec> {
        let [up, down] = &self.engines.uplink;
        let due = [self.engines.medium.poll_timeout(), up.poll_timeout(), down.poll_timeout()];
        let due = due.into_iter().flatten().min()?;
        Some(Timespec::try_from(due.since(self.now())).expect("a wait of less than ages"))
    }

    /// Performs everything that is due.
    fn advance(&mut self, ports: &Ports) {
        let now = self.now();
        self.engines.medium.handle_timeout(now);
        self.drain(ports);
        // Each direction of the uplink ends at the opposite interface, so the interfaces are reversed.
        for (pipe, tap) in self.engines.uplink.iter_mut().zip(ports.uplink.iter().rev()) {
            while let Some((due, frame)) = pipe.receive(now) {
                tap.send(frame.bytes());
                self.late.add(elapsed(self.zero).since(due));
                if frame.carries() == Carries::Ip {
                    let is_down = std::ptr::eq(tap, &ports.uplink[0]);
                    let count = if is_down { &mut self.from_origin } else { &mut self.to_origin };
                    *count += u64::from(frame.packet_length());
                }
                self.spare.push(frame);
            }
        }
    }

    /// Performs the medium's outputs.
    fn drain(&mut self, ports: &Ports) {
        let Self { engines, monitor, zero, late, spare, .. } = self;
        let Self { ip_packets, routing_packets, lost_above_mac, .. } = self;
        let Engines { medium, captures, above_mac, .. } = engines;
        while let Some(output) = medium.poll_output() {
            match output {
                Output::Heard { frame, payload, by } => {
                    for reception in by.iter().filter(|it| it.is_new && is_for(&frame, it.by)) {
                        let station = usize::from(reception.by.0);
                        if frame.to != Destination::Broadcast && above_mac.loses(station) {
                            *lost_above_mac += 1;
                            continue;
                        }
                        ports.mesh[station].send(payload.bytes());
                    }
                    // The addressee has its frame, so its lateness is known. Monitors may get theirs a little
                    // later.
                    late.add(elapsed(*zero).since(frame.ended));
                    let to = payload.destination();
                    monitor.data(&frame, to, payload.ethertype(), payload.packet());
                    show(monitor, by, frame.ended, ports, captures);
                }
                Output::HeardControl { frame, by } => {
                    monitor.control(&frame);
                    show(monitor, by, frame.ended, ports, captures);
                }
                Output::Done { payload, tries, .. } => {
                    match payload.carries() {
                        // A frame that found the queue full was never on the air.
                        Carries::Ip => *ip_packets += u64::from(tries > 0),
                        Carries::Routing => *routing_packets += u64::from(tries > 0),
                        Carries::Other => {}
                    }
                    spare.push(payload);
                }
            }
        }
    }

    /// Reads the frames that a router or an end of the uplink has sent.
    fn take_in(&mut self, port: usize, tap: &Tap, ports: &Ports) {
        for _ in 0..BATCH {
            let mut frame = self.spare.pop().unwrap_or_else(Buffer::new);
            if !frame.receive(tap) {
                self.spare.push(frame);
                return;
            }
            if let Some(end) = port.checked_sub(self.stations) {
                let length = frame.bytes().len() as u32;
                if let Err(lost) = self.engines.uplink[end].send(self.now(), length, frame) {
                    self.spare.push(lost);
                }
            } else {
                self.send(port, frame, ports);
            }
        }
    }

    fn send(&mut self, station: usize, frame: Buffer, ports: &Ports) {
        let to = match address::router_of(&frame.destination(), self.stations) {
            Some(router) => Destination::Station(Station(router as u16)),
            None if frame.is_for_many() => Destination::Broadcast,
            // No station has this address, so no station would acknowledge the frame.
            None => return self.spare.push(frame),
        };
        let (from, bytes) = (Station(station as u16), frame.packet_length());
        let now = self.now();
        self.engines.medium.handle_input(now, Input::Send { from, to, bytes, payload: frame });
        self.drain(ports);
    }

    fn snapshot(&self) -> Snapshot {
        let medium = &self.engines.medium;
        let reports = (0..self.stations).map(|it| medium.report(Station(it as u16)).clone());
        let busy = clock_gettime(ClockId::ThreadCPUTime);
        Snapshot {
            stations: reports.collect(),
            from_origin: self.from_origin,
            to_origin: self.to_origin,
            ip_packets: self.ip_packets,
            routing_packets: self.routing_packets,
            lost_above_mac: self.lost_above_mac,
            late: self.late.clone(),
            busy: Duration::new(busy.tv_sec as u64, busy.tv_nsec as u32),
            at: WallInstant::now(),
            realtime: self.realtime,
            uncaptured: self.engines.captures.lost(),
            date: self.engines.epoch + self.zero.elapsed(),
        }
    }
}

fn elapsed(zero: WallInstant) -> Instant {
    Instant::from_nanos(zero.elapsed().as_nanos() as u64)
}

fn is_for(frame: &Frame, station: Station) -> bool {
    match frame.to {
        Destination::Station(to) => to == station,
        Destination::Broadcast => true,
    }
}

/// Sends the monitor's frame to all stations that received it.
fn show(
    monitor: &mut Monitor,
    by: &[Reception],
    ended: Instant,
    ports: &Ports,
    captures: &mut Captures,
) {
    for reception in by {
        let station = usize::from(reception.by.0);
        let shown = monitor.shown_to(reception);
        ports.monitor[station].send(shown);
        captures.add(station, ended, shown);
    }
}
