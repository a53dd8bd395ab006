//! The helper: a second process that keeps the rights over the network which the daemon gives up.
//!
//! *What this is:* [`Helper`], the daemon's end of a socket pair; [`serve`], the helper's loop at the other end;
//! `helper/message.rs`, the closed list of requests between them, which have a fixed size. *Who calls it:* the daemon
//! starts its own program again as the helper, before anything else, and asks it for rules, counters and sockets. *What
//! it never does:* read anything from the network; act on an interface that the configuration, which it reads itself,
//! does not name; outlive the daemon, or leave rules behind when it ends. *Where to start:* `helper/message.rs`.

mod lock;
mod message;
mod serve;

use std::ffi::OsString;
use std::io;
use std::net::TcpListener;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, recv, socketpair};
use thiserror::Error;
use tokio::io::Interest;
use tokio::net::UnixStream;

use crate::intercept::offload::Flowtable;
use crate::intercept::{Applied, FamilyReport, Forwarded, Report};
use message::{Answer, Outcome, Request};

pub use serve::{Charge, serve};

/// How long an answer may take: `nft` is slow on a busy router.
const PATIENCE: Duration = Duration::from_secs(20);

/// One request is under way at a time.
#[derive(Debug, Default)]
struct Turn {
    /// The number of the last request.
    number: u32,
    /// It was not answered in time. Until it is, nothing is asked: each caller would wait as long.
    is_late: bool,
}

/// How often its exit status is looked for, at intervals of 10 ms.
const REAPED_WITHIN: u32 = 500;

/// Why the helper did not do something.
#[derive(Debug, Error)]
pub enum HelperError {
    /// There is no helper; the reason.
    #[error("{0}")]
    None(&'static str),
    /// It has ended.
    #[error(
        "the helper process, which has the rights for this, has ended: restart hearsay (its log may say why it ended)"
    )]
    Ended,
    /// It did not answer in time.
    #[error("the helper process does not answer: restart hearsay")]
    Silent,
    /// It refused, or failed; its words.
    #[error("{0}")]
    Refused(String),
    /// The kernel refused.
    #[error(transparent)]
    Kernel(io::Error),
}

/// The daemon's end. Calls wait for the helper's answer, for some milliseconds where it starts programs.
#[derive(Clone, Debug)]
pub struct Helper(Result<Arc<Running>, &'static str>);

#[derive(Debug)]
struct Running {
    socket: OwnedFd,
    child: Mutex<Child>,
    turn: Mutex<Turn>,
    has_ended: AtomicBool,
}

impl Helper {
    /// No helper, and why.
    #[must_use]
    pub fn none(why: &'static str) -> Self {
        Self(Err(why))
    }

    /// Starts this program again as the helper, with these arguments, and with the socket as its standard input. It
    /// belongs to a process group of its own, because signals of a terminal are for the daemon.
    ///
    /// # Errors
    /// If the process or the pair of sockets cannot be made.
    pub fn start(args: impl IntoIterator<Item = OsString>) -> io::Result<Self> {
        let (kind, flags) = (SocketType::SEQPACKET, SocketFlags::CLOEXEC);
        let (ours, theirs) = socketpair(AddressFamily::UNIX, kind, flags, None)?;
        rustix::io::ioctl_fionbio(&ours, true)?;
        let child = Command::new("/proc/self/exe")
            .arg0("hearsay")
            .args(args)
            // The service manager hears from the daemon alone.
            .env_remove("NOTIFY_SOCKET")
            .env_remove("WATCHDOG_USEC")
            .env_remove("WATCHDOG_PID")
            .stdin(Stdio::from(theirs))
            .process_group(0)
            .spawn()?;
        let (child, turn, has_ended) =
            (Mutex::new(child), Mutex::default(), AtomicBool::new(false));
        Ok(Self(Ok(Arc::new(Running { socket: ours, child, turn, has_ended }))))
    }

    /// Whether there is one, and it runs; `None` if there never was one.
    #[must_use]
    pub fn works(&self) -> Option<bool> {
        let running = self.0.as_ref().ok()?;
        Some(!running.has_ended.load(Ordering::Relaxed))
    }

    /// Its process's number, while it is known to run.
    #[must_use]
    pub fn process(&self) -> Option<u32> {
        let running = self.0.as_ref().ok().filter(|_| self.works() == Some(true))?;
        Some(locked(&running.child).id())
    }

    /// Returns when the helper has ended; never, if there is none.
    pub async fn ended(&self) {
        let Ok(running) = &self.0 else { return std::future::pending().await };
        // A stream's type is only a way to wait: nothing is read by it.
        let watched = running.socket.try_clone().map(std::os::unix::net::UnixStream::from);
        let Ok(watched) = watched.and_then(UnixStream::from_std) else {
            return std::future::pending().await;
        };
        let look = || match recv(&watched, &mut [0; 1][..], RecvFlags::PEEK | RecvFlags::DONTWAIT) {
            Ok((_, 0)) | Err(Errno::CONNRESET) => Ok(()),
            // An answer that a waiting call is about to read is readable too.
            _ => Err(io::ErrorKind::WouldBlock.into()),
        };
        while watched.try_io(Interest::READABLE, look).is_err() {
            if watched.readable().await.is_err() {
                break;
            }
        }
        // Its socket closes a moment before its exit status can be taken, and until then it is a zombie.
        for _ in 0..REAPED_WITHIN {
            if running.end() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Sets the rules of the configuration, with these interfaces as those that lead out.
    ///
    /// # Errors
    /// As [`crate::intercept::Rules::apply`], in the helper's words.
    pub fn apply(&self, out: &[String]) -> Result<Applied, HelperError> {
        Ok(Applied { notes: self.ask(&Request::Apply(names(out)?), None)?.0.lines })
    }

    /// Checks the rules of the configuration against the kernel's, as [`crate::intercept::Rules::check`].
    ///
    /// # Errors
    /// If `nft` or `ip` is missing or fails.
    pub fn check(&self, out: &[String]) -> Result<Report, HelperError> {
        let answer = self.ask(&Request::Check(names(out)?), None)?.0;
        Ok(Report {
            families: answer.families.map(FamilyReport::from).into(),
            interfaces_missing: answer.missing().map(ToOwned::to_owned).collect(),
            warnings: answer.warnings().map(ToOwned::to_owned).collect(),
        })
    }

    /// Stops intercepting new connections, as [`crate::intercept::Rules::release`].
    ///
    /// # Errors
    /// If nft fails; the rules are then unchanged.
    pub fn release(&self) -> Result<(), HelperError> {
        self.ask(&Request::Release, None).map(drop)
    }

    /// Removes the rules.
    ///
    /// # Errors
    /// If nft or ip fails.
    pub fn remove(&self) -> Result<(), HelperError> {
        self.ask(&Request::Remove, None).map(drop)
    }

    /// Reads the counters of what was only forwarded; `None` if there are none.
    ///
    /// # Errors
    /// If nft is missing or not permitted.
    pub fn forwarded(&self) -> Result<Option<Forwarded>, HelperError> {
        Ok(self.ask(&Request::Counters, None)?.0.forwarded)
    }

    /// The flow tables of the machine: connections that they carry go past the daemon.
    ///
    /// # Errors
    /// If nft is missing or not permitted.
    pub fn flow_tables(&self) -> Result<Vec<Flowtable>, HelperError> {
        let lines = self.ask(&Request::FlowTables, None)?.0.lines;
        Ok(lines.iter().map(|line| Flowtable::of_line(line)).collect())
    }

    /// Opens a packet socket for a configured interface, which may appear later. The socket receives nothing yet.
    ///
    /// # Errors
    /// If the configuration does not name the interface for overhearing, or the kernel refuses.
    pub fn packet_socket(&self, interface: &str) -> Result<OwnedFd, HelperError> {
        self.socket(&Request::Capture(names(&[interface.to_owned()])?))
    }

    /// Opens the configured port of the transparent listener, which listens.
    ///
    /// # Errors
    /// As of the kernel: [`io::ErrorKind::AddrInUse`], for example.
    pub fn transparent(&self) -> Result<TcpListener, HelperError> {
        self.socket(&Request::Transparent).map(TcpListener::from)
    }

    /// Sets BBR as the congestion control of a connection.
    ///
    /// # Errors
    /// If the kernel lacks it.
    pub fn set_bbr(&self, connection: &impl AsFd) -> Result<(), HelperError> {
        self.ask(&Request::SetBbr, Some(connection.as_fd().try_clone_to_owned())).map(drop)
    }

    /// Lets a connection's packets leave by any interface, which was accepted on a socket that is bound to one.
    ///
    /// # Errors
    /// As of the kernel.
    pub fn unbind(&self, connection: &impl AsFd) -> Result<(), HelperError> {
        self.ask(&Request::Unbind, Some(connection.as_fd().try_clone_to_owned())).map(drop)
    }

    /// Has the helper read the configuration again.
    ///
    /// # Errors
    /// If the configuration is wrong; what it was holds on.
    pub fn reload(&self) -> Result<(), HelperError> {
        self.ask(&Request::Reload, None).map(drop)
    }

    fn socket(&self, request: &Request) -> Result<OwnedFd, HelperError> {
        let (_, socket) = self.ask(request, None)?;
        socket.ok_or_else(|| HelperError::Refused("the helper passed no socket".to_owned()))
    }

    fn ask(
        &self,
        request: &Request,
        passed: Option<io::Result<OwnedFd>>,
    ) -> Result<(Answer, Option<OwnedFd>), HelperError> {
        let running = self.0.as_ref().map_err(|why| HelperError::None(why))?;
        let passed = passed.transpose().map_err(HelperError::Kernel)?;
        running.ask(request, passed.as_ref())
    }
}

impl Running {
    fn ask(
        &self,
        request: &Request,
        passed: Option<&OwnedFd>,
    ) -> Result<(Answer, Option<OwnedFd>), HelperError> {
        let turn = &mut *locked(&self.turn);
        if turn.is_late {
            // The late answer is for nobody.
            self.receive(Duration::ZERO)?;
            turn.is_late = false;
        }
        turn.number = turn.number.wrapping_add(1);
        let sent = message::send(&self.socket, &request.encode(turn.number), passed);
        sent.map_err(|error| self.lost(error))?;
        let begun = Instant::now();
        loop {
            let received = self.receive(PATIENCE.saturating_sub(begun.elapsed()));
            turn.is_late = matches!(received, Err(HelperError::Silent));
            let (answer, socket) = received?;
            let Some(answer) = answer.filter(|it| it.number == turn.number) else { continue };
            return match answer.outcome {
                Outcome::Done => Ok((answer, socket)),
                Outcome::Refused => Err(HelperError::Refused(answer.lines.join("; "))),
                Outcome::Errno(errno) => {
                    Err(HelperError::Kernel(io::Error::from_raw_os_error(errno)))
                }
            };
        }
    }

    /// The next packet, and the descriptor with it; `None` for a packet that is no answer.
    fn receive(
        &self,
        patience: Duration,
    ) -> Result<(Option<Answer>, Option<OwnedFd>), HelperError> {
        let (seconds, nanos) = (patience.as_secs() as i64, patience.subsec_nanos().into());
        let patience = Timespec { tv_sec: seconds, tv_nsec: nanos };
        match poll(&mut [PollFd::new(&self.socket, PollFlags::IN)], Some(&patience)) {
            // A signal: the caller's time is not over, and it asks again.
            Err(Errno::INTR) => return Ok((None, None)),
            Ok(0) => return Err(HelperError::Silent),
            ready => ready.map_err(|error| self.lost(error))?,
        };
        let mut bytes = [0; message::ANSWER_BYTES];
        match message::receive(&self.socket, &mut bytes) {
            Ok((0, _)) => Err(self.lost(Errno::CONNRESET)),
            Ok((_, socket)) => Ok((Answer::decode(&bytes), socket)),
            Err(error) => Err(self.lost(error)),
        }
    }

    fn lost(&self, error: Errno) -> HelperError {
        if error == Errno::AGAIN {
            // It has not taken earlier requests.
            return HelperError::Silent;
        }
        self.end();
        HelperError::Ended
    }

    /// Notes that it has ended; whether its exit status could be taken.
    fn end(&self) -> bool {
        self.has_ended.store(true, Ordering::Relaxed);
        matches!(locked(&self.child).try_wait(), Ok(Some(_)) | Err(_))
    }
}

fn names(all: &[String]) -> Result<Vec<String>, HelperError> {
    if all.len() > message::NAMES_MAX {
        let (count, most) = (all.len(), message::NAMES_MAX);
        return Err(HelperError::Refused(format!(
            "{count} interfaces lead out, and only {most} may"
        )));
    }
    Ok(all.to_vec())
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
