//! The helper: a second process that keeps the rights over the network which the daemon gives up.
//!
//! *What this is:* [`Helper`], the daemon's end of a socket pair; [`serve`], the helper's loop at the other end;
//! `helper/message.rs`, the closed list of requests between them, which have a fixed size. *Who calls it:* the daemon
//! starts its own program again as the helper, before anything else, and asks it for rules, counters and sockets. *What
//! it never does:* read anything from the network; act on an interface that the configuration, which it reads itself,
//! does not name; outlive the daemon, or leave rules behind unless it is killed. *Where to start:* `helper/message.rs`.

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
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, recv, socketpair};
use thiserror::Error;
use tokio::io::Interest;
use tokio::net::UnixStream;

use crate::intercept::offload::Flowtable;
use crate::intercept::{Applied, FamilyReport, Forwarded, Moment, Report};
use message::{Answer, Outcome, Request};

pub use serve::{Charge, serve};

/// How long an answer may take: `nft` is slow on a busy router.
const PATIENCE: Duration = Duration::from_secs(20);
/// The same for what the daemon can do without: its loop waits meanwhile, and strangers can cause it.
const PATIENCE_BRIEF: Duration = Duration::from_millis(200);

/// One request is under way at a time.
#[derive(Debug, Default)]
struct Turn {
    /// The number of the last request.
    number: u32,
    /// Whether it was not answered in time.
    late: Late,
}

/// A request that was not answered in time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Late {
    /// There is none.
    #[default]
    No,
    /// It was waited for briefly. Until it is answered, nothing is asked briefly.
    Brief,
    /// Until it is answered, nothing is asked at all: each caller would wait as long.
    Long,
}

/// How long a caller waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wait {
    /// For its turn and for [`PATIENCE`].
    Long,
    /// For [`PATIENCE_BRIEF`], if nobody else has the turn.
    Brief,
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
    /// It is at work for somebody else, and this is not worth the wait.
    #[error("the helper process is busy")]
    Busy,
    /// It refused, or failed; its words.
    #[error("{0}")]
    Refused(String),
    /// The kernel refused.
    #[error(transparent)]
    Kernel(io::Error),
}

/// The daemon's end. Calls wait for the helper's answer: for some milliseconds where it starts programs, for
/// `PATIENCE` where one of them hangs. What serves clients meanwhile asks by [`Helper::aside`].
#[derive(Clone, Debug)]
pub struct Helper(Result<Arc<Running>, &'static str>);

#[derive(Debug)]
struct Running {
    socket: OwnedFd,
    child: Mutex<Child>,
    turn: Mutex<Turn>,
    has_ended: AtomicBool,
    /// How long an answer may take that is worth a wait.
    patience: Duration,
    /// The last answer that was waited for did not come in time.
    is_silent: AtomicBool,
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
        Ok(Self(Ok(Arc::new(Running::new(ours, child, PATIENCE)))))
    }

    /// Asks on a thread that may wait: a loop that serves clients must not. Not before the rights are given up, which a
    /// thread would keep.
    ///
    /// # Errors
    /// As of what is asked.
    pub async fn aside<T: Send + 'static>(
        &self,
        ask: impl FnOnce(&Self) -> Result<T, HelperError> + Send + 'static,
    ) -> Result<T, HelperError> {
        let helper = self.clone();
        let asked = tokio::task::spawn_blocking(move || ask(&helper));
        // A thread is lost only as the whole process ends.
        asked.await.unwrap_or(Err(HelperError::Busy))
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

    /// Whether it owes an answer that was waited for in vain: it hangs, or a program does that it has started.
    #[must_use]
    pub fn is_silent(&self) -> bool {
        self.0.as_ref().is_ok_and(|it| it.is_silent.load(Ordering::Relaxed))
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

    /// Sets the rules of the configuration, as they are to be at this moment.
    ///
    /// # Errors
    /// As [`crate::intercept::Rules::apply`], in the helper's words.
    pub fn apply(&self, moment: Moment) -> Result<Applied, HelperError> {
        Ok(Applied { notes: self.ask(&Request::Apply(bounded(moment)?))?.0.lines })
    }

    /// Which rules of the configuration are in force, as [`crate::intercept::Rules::families`]; the report has nothing
    /// else.
    ///
    /// # Errors
    /// If `nft` or `ip` is missing or fails.
    pub fn check(&self, moment: Moment) -> Result<Report, HelperError> {
        let answer = self.ask(&Request::Check(bounded(moment)?))?.0;
        let families = answer.families.map(FamilyReport::from).into();
        Ok(Report { families, ..Report::default() })
    }

    /// Stops intercepting new connections, as [`crate::intercept::Rules::release`].
    ///
    /// # Errors
    /// If nft fails; the rules are then unchanged.
    pub fn release(&self) -> Result<(), HelperError> {
        self.ask(&Request::Release).map(drop)
    }

    /// Removes the rules.
    ///
    /// # Errors
    /// If nft or ip fails.
    pub fn remove(&self) -> Result<(), HelperError> {
        self.ask(&Request::Remove).map(drop)
    }

    /// Reads the counters of what was only forwarded; `None` if there are none.
    ///
    /// # Errors
    /// If nft is missing or not permitted.
    pub fn forwarded(&self) -> Result<Option<Forwarded>, HelperError> {
        Ok(self.ask(&Request::Counters)?.0.forwarded)
    }

    /// The flow tables of the machine: connections that they carry go past the daemon.
    ///
    /// # Errors
    /// If nft is missing or not permitted.
    pub fn flow_tables(&self) -> Result<Vec<Flowtable>, HelperError> {
        let lines = self.ask(&Request::FlowTables)?.0.lines;
        Ok(lines.iter().map(|line| Flowtable::of_line(line)).collect())
    }

    /// Opens a packet socket for a configured interface, which may appear later. The socket receives nothing yet.
    ///
    /// # Errors
    /// If the configuration does not name the interface for overhearing, or the kernel refuses.
    pub fn packet_socket(&self, interface: &str) -> Result<OwnedFd, HelperError> {
        self.socket(&Request::Capture(vec![interface.to_owned()]))
    }

    /// Opens the configured port of the transparent listener, which listens.
    ///
    /// # Errors
    /// As of the kernel: [`io::ErrorKind::AddrInUse`], for example.
    pub fn transparent(&self) -> Result<TcpListener, HelperError> {
        self.socket(&Request::Transparent).map(TcpListener::from)
    }

    /// Sets BBR as the congestion control of a connection. It waits briefly.
    ///
    /// # Errors
    /// If the kernel lacks it, or the helper is busy.
    pub fn set_bbr(&self, connection: &impl AsFd) -> Result<(), HelperError> {
        self.change(&Request::SetBbr, connection)
    }

    /// Lets a connection's packets leave by any interface, which was accepted on a socket that is bound to one. It
    /// waits briefly.
    ///
    /// # Errors
    /// As of the kernel, or the helper is busy.
    pub fn unbind(&self, connection: &impl AsFd) -> Result<(), HelperError> {
        self.change(&Request::Unbind, connection)
    }

    /// Has the helper read the configuration again.
    ///
    /// # Errors
    /// If the configuration is wrong; what it was holds on.
    pub fn reload(&self) -> Result<(), HelperError> {
        self.ask(&Request::Reload).map(drop)
    }

    fn socket(&self, request: &Request) -> Result<OwnedFd, HelperError> {
        let (_, socket) = self.ask(request)?;
        socket.ok_or_else(|| HelperError::Refused("the helper passed no socket".to_owned()))
    }

    fn change(&self, request: &Request, connection: &impl AsFd) -> Result<(), HelperError> {
        let passed = connection.as_fd().try_clone_to_owned().map_err(HelperError::Kernel)?;
        self.running()?.ask(request, Some(&passed), Wait::Brief).map(drop)
    }

    fn ask(&self, request: &Request) -> Result<(Answer, Option<OwnedFd>), HelperError> {
        self.running()?.ask(request, None, Wait::Long)
    }

    fn running(&self) -> Result<&Running, HelperError> {
        self.0.as_deref().map_err(|why| HelperError::None(why))
    }
}

impl Running {
    fn new(socket: OwnedFd, child: Child, patience: Duration) -> Self {
        Self {
            socket,
            child: Mutex::new(child),
            turn: Mutex::default(),
            has_ended: AtomicBool::new(false),
            patience,
            is_silent: AtomicBool::new(false),
        }
    }

    fn ask(
        &self,
        request: &Request,
        passed: Option<&OwnedFd>,
        wait: Wait,
    ) -> Result<(Answer, Option<OwnedFd>), HelperError> {
        let turn = &mut *self.turn(wait)?;
        if turn.late == Late::Long || (turn.late, wait) == (Late::Brief, Wait::Brief) {
            // The late answer is for nobody.
            self.receive(Duration::ZERO)?;
            turn.late = Late::No;
        }
        let (patience, late) = match wait {
            Wait::Long => (self.patience, Late::Long),
            Wait::Brief => (PATIENCE_BRIEF, Late::Brief),
        };
        turn.number = turn.number.wrapping_add(1);
        let sent = message::send(&self.socket, &request.encode(turn.number), passed);
        sent.map_err(|error| self.lost(error))?;
        let begun = Instant::now();
        loop {
            let received = self.receive(patience.saturating_sub(begun.elapsed()));
            turn.late = if matches!(received, Err(HelperError::Silent)) { late } else { Late::No };
            // What was waited for briefly says little: that it is slow.
            self.is_silent.store(turn.late == Late::Long, Ordering::Relaxed);
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

    fn turn(&self, wait: Wait) -> Result<MutexGuard<'_, Turn>, HelperError> {
        match (wait, self.turn.try_lock()) {
            (_, Ok(turn)) => Ok(turn),
            (Wait::Brief, Err(TryLockError::WouldBlock)) => Err(HelperError::Busy),
            _ => Ok(locked(&self.turn)),
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

fn bounded(moment: Moment) -> Result<Moment, HelperError> {
    if moment.out.len() > message::NAMES_MAX {
        let (count, most) = (moment.out.len(), message::NAMES_MAX);
        return Err(HelperError::Refused(format!(
            "{count} interfaces lead out, and only {most} may"
        )));
    }
    Ok(moment)
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A daemon's end whose other end is the test.
    fn pair() -> (Running, OwnedFd) {
        let (kind, flags) = (SocketType::SEQPACKET, SocketFlags::CLOEXEC);
        let (socket, theirs) =
            socketpair(AddressFamily::UNIX, kind, flags, None).expect("two sockets");
        rustix::io::ioctl_fionbio(&socket, true).expect("a mode");
        let child = Command::new("true").spawn().expect("a process");
        (Running::new(socket, child, PATIENCE), theirs)
    }

    /// Takes a request, and returns its number.
    fn take(theirs: &OwnedFd) -> u32 {
        let mut bytes = [0; message::REQUEST_BYTES];
        message::receive(theirs, &mut bytes).expect("a request");
        Request::decode(&bytes).0
    }

    fn answer(theirs: &OwnedFd, number: u32) {
        let answer = Answer { number, ..Answer::default() };
        message::send(theirs, &answer.encode(), None).expect("it takes answers");
    }

    #[test]
    fn who_waits_briefly_does_not_wait_for_a_turn() {
        let (running, theirs) = pair();
        let turn = locked(&running.turn);
        let asked = running.ask(&Request::Unbind, None, Wait::Brief);
        assert!(matches!(asked, Err(HelperError::Busy)), "{asked:?}");
        drop(turn);
        // A turn that is free is taken.
        answer(&theirs, 1);
        running.ask(&Request::Unbind, None, Wait::Brief).expect("an answer");
        assert_eq!(take(&theirs), 1, "the refused call had a number, or sent something");
    }

    #[test]
    fn who_waited_in_vain_is_told_until_it_answers() {
        let (running, theirs) = pair();
        let helper =
            Helper(Ok(Arc::new(Running { patience: Duration::from_millis(1), ..running })));
        assert!(matches!(helper.release(), Err(HelperError::Silent)) && helper.is_silent());
        assert!(matches!(helper.release(), Err(HelperError::Silent)) && helper.is_silent());
        let late = take(&theirs);
        answer(&theirs, late);
        answer(&theirs, late + 1);
        helper.release().expect("the second answer");
        assert!(!helper.is_silent());
    }

    #[test]
    fn a_late_answer_costs_one_brief_wait_and_nothing_else() {
        let (running, theirs) = pair();
        let brief = || running.ask(&Request::SetBbr, None, Wait::Brief);
        for _ in 0..3 {
            assert!(matches!(brief(), Err(HelperError::Silent)));
        }
        assert_eq!(locked(&running.turn).number, 1, "more than one was sent");
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let late = take(&theirs);
                let next = take(&theirs);
                answer(&theirs, late);
                answer(&theirs, next);
            });
            let asked = running.ask(&Request::Counters, None, Wait::Long);
            assert_eq!(asked.expect("the right answer").0.number, 2);
        });
        answer(&theirs, 3);
        brief().expect("it answers again");
    }
}
