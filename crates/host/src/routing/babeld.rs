//! babeld's view of the mesh, from its local socket: metrics, the gateway, the neighbours.
//!
//! babeld may be absent, start late, or restart; this module then waits and tries again. What it
//! knew last is kept until babeld has listed everything anew, because the kernel still has the
//! routes of a babeld that died. The protocol: babeld sends a greeting and `ok`; the client sends
//! `monitor`; babeld lists all it knows, sends `ok`, and from then on reports each change. To an empty line it answers
//! `ok`: so a babeld that hangs is told from one that has nothing to report.

use std::fmt;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::pin::Pin;
use std::time::{Duration, SystemTime};

use tokio::net::TcpStream;
use tokio::time::{Instant, sleep_until, timeout, timeout_at};
use wire::Date;

mod line;
mod lines;
mod table;

use line::Line;
pub use line::parse;
pub use lines::Lines;
pub use table::{KnownPath, Table};

#[cfg(test)]
pub use table::tests::table;

/// The least and the greatest interval between attempts to connect.
const RETRY_MIN: Duration = Duration::from_millis(250);
const RETRY_MAX: Duration = Duration::from_secs(30);
/// After a connection that broke off sooner, the interval grows: such a babeld must not keep us busy.
const STEADY: Duration = Duration::from_secs(10);
/// The time limit for connecting, and for the complete list.
const LISTING_MAX: Duration = Duration::from_secs(5);
/// A babeld that has reported nothing for this long is asked whether it still runs …
const QUIET: Duration = Duration::from_secs(30);
/// … and has this long to answer.
const ANSWER_MAX: Duration = Duration::from_secs(10);

/// The connection to babeld.
#[derive(Debug)]
pub struct Babeld {
    address: SocketAddr,
    state: State,
    retry: Duration,
    /// The last connection broke off soon after babeld had listed its routes.
    was_brief: bool,
    /// What babeld knew when its connection ended.
    last: Option<(Table, Date)>,
    /// If another program answers there, it will do so each time: this is logged once.
    has_complained: bool,
}

enum State {
    Waiting(Instant),
    Dialling(Pin<Box<dyn Future<Output = io::Result<TcpStream>>>>),
    Open(Box<Conversation>),
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Waiting(_) => "Waiting",
            Self::Dialling(_) => "Dialling",
            Self::Open(_) => "Open",
        })
    }
}

struct Conversation {
    stream: TcpStream,
    lines: Lines,
    stage: Stage,
    /// The time limit for the complete list; after it, for the next sign of life.
    deadline: Instant,
    /// It was asked whether it still runs.
    is_asked: bool,
    /// When the list was complete.
    listed: Option<Instant>,
    table: Table,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The protocol's name and version must follow.
    Silent,
    /// More about babeld itself must follow.
    Greeting,
    /// The list must follow.
    Listing,
    /// Changes will follow.
    Listed,
}

/// What babeld has announced.
#[derive(Clone, Copy, Debug)]
pub struct Announced<'a> {
    pub table: &'a Table,
    /// Since when babeld has not answered; `None` if it is connected.
    pub stopped: Option<Date>,
}

impl Announced<'_> {
    /// Whether a route that babeld installed counts only if babeld announces it.
    pub fn has_veto(&self) -> bool {
        self.stopped.is_none()
    }
}

/// Why a connection ended.
#[derive(Debug, thiserror::Error)]
enum End {
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("it does not speak babeld's protocol, version 1")]
    Strange,
    #[error("it did not list its routes in time")]
    Slow,
    #[error("it does not answer")]
    Mute,
}

impl Stage {
    /// The stage after a line, which is applied to the table if it belongs there.
    fn after(self, text: &str, table: &mut Table) -> Result<Self, End> {
        let line = parse(text);
        match (self, line) {
            (Self::Silent, Some(Line::Greeting(1))) => Ok(Self::Greeting),
            // Another version may not know the question.
            (Self::Listed, Some(Line::Refused)) => Ok(self),
            (Self::Silent, _) | (_, Some(Line::Refused)) => Err(End::Strange),
            (Self::Greeting, Some(Line::Ok)) => Ok(Self::Listing),
            (Self::Listing, Some(Line::Ok)) => Ok(Self::Listed),
            (Self::Listing | Self::Listed, Some(line)) => {
                table.apply(line);
                Ok(self)
            }
            (Self::Greeting, _) => Ok(self),
            // Another version may send lines that are unknown here.
            (Self::Listing | Self::Listed, None) => {
                tracing::debug!(text, "unknown line from babeld");
                Ok(self)
            }
        }
    }
}

impl Babeld {
    /// A connection that is made when [`changed`](Self::changed) is first called.
    pub fn new(address: SocketAddr) -> Self {
        let state = State::Waiting(Instant::now());
        let (retry, last) = (RETRY_MIN, None);
        Self { address, state, retry, was_brief: false, last, has_complained: false }
    }

    /// What babeld knows, once it has listed everything; else what it knew last.
    pub fn announced(&self) -> Option<Announced<'_>> {
        match &self.state {
            State::Open(it) if it.stage == Stage::Listed => {
                Some(Announced { table: &it.table, stopped: None })
            }
            _ => {
                let (table, stopped) = self.last.as_ref()?;
                Some(Announced { table, stopped: Some(*stopped) })
            }
        }
    }

    /// Forgets what babeld knew before its connection ended.
    pub fn forget(&mut self) {
        self.last = None;
    }

    /// Called after an event which suggests that babeld may have started.
    pub fn look_again(&mut self) {
        if self.was_brief {
            return;
        }
        self.retry = RETRY_MIN;
        if let State::Waiting(at) = &mut self.state {
            *at = (*at).min(Instant::now() + RETRY_MIN);
        }
    }

    /// Waits until babeld may have reported a change, or has gone. The future may be dropped at any
    /// time.
    pub async fn changed(&mut self) {
        loop {
            match &mut self.state {
                State::Waiting(at) => {
                    sleep_until(*at).await;
                    let dial = timeout(LISTING_MAX, TcpStream::connect(self.address));
                    let dial =
                        async { dial.await.unwrap_or_else(|_| Err(ErrorKind::TimedOut.into())) };
                    self.state = State::Dialling(Box::pin(dial));
                }
                State::Dialling(dial) => match dial.await {
                    Ok(stream) => self.state = State::Open(Box::new(Conversation::new(stream))),
                    // babeld is not running: this is no error.
                    Err(_) => self.wait(),
                },
                State::Open(conversation) => {
                    let was_listed = conversation.stage == Stage::Listed;
                    match conversation.hear().await {
                        Ok(()) if conversation.stage == Stage::Listed => {
                            if !was_listed {
                                tracing::info!(address = %self.address, "babeld has listed its routes");
                                conversation.listed = Some(Instant::now());
                                (self.last, self.has_complained) = (None, false);
                            }
                            return;
                        }
                        Ok(()) => {}
                        Err(why) => {
                            self.hang_up(&why);
                            return;
                        }
                    }
                }
            }
        }
    }

    fn hang_up(&mut self, why: &End) {
        let (address, now) = (self.address, Instant::now());
        let ended = match std::mem::replace(&mut self.state, State::Waiting(now)) {
            State::Open(it) => it.listed.map(|since| (since, it.table)),
            _ => None,
        };
        match ended {
            Some((since, table)) => {
                tracing::warn!(
                    %address, %why,
                    "babeld has gone: its last routes are used as long as the kernel has them"
                );
                self.last = Some((table, today()));
                self.was_brief = now - since < STEADY;
                self.retry = if self.was_brief { self.retry } else { RETRY_MIN };
            }
            _ if !self.has_complained => {
                tracing::warn!(%address, %why, "no routes from babeld");
                self.has_complained = true;
            }
            _ => {}
        }
        self.wait();
    }

    fn wait(&mut self) {
        self.state = State::Waiting(Instant::now() + self.retry);
        self.retry = (self.retry * 2).min(RETRY_MAX);
    }
}

impl Conversation {
    fn new(stream: TcpStream) -> Self {
        let deadline = Instant::now() + LISTING_MAX;
        let (lines, table) = (Lines::default(), Table::default());
        let (stage, listed, is_asked) = (Stage::Silent, None, false);
        Self { stream, lines, stage, deadline, is_asked, listed, table }
    }

    /// Waits for bytes and handles them.
    async fn hear(&mut self) -> Result<(), End> {
        match timeout_at(self.deadline, self.stream.readable()).await {
            Ok(readable) => readable?,
            Err(_) if self.stage != Stage::Listed => return Err(End::Slow),
            Err(_) if self.is_asked => return Err(End::Mute),
            Err(_) => {
                self.stream.try_write(b"\n")?;
                (self.is_asked, self.deadline) = (true, Instant::now() + ANSWER_MAX);
                return Ok(());
            }
        }
        let mut buffer = [0; 4096];
        let length = match self.stream.try_read(&mut buffer) {
            Ok(0) => return Err(io::Error::from(ErrorKind::UnexpectedEof).into()),
            Ok(length) => length,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        let (before, table) = (self.stage, &mut self.table);
        let mut stage = Ok(before);
        let split = self.lines.feed(buffer.get(..length).unwrap_or(&buffer), |text| {
            if let Ok(before) = stage {
                stage = before.after(text, table);
            }
        });
        split.map_err(|_| End::Strange)?;
        self.stage = stage?;
        if self.stage == Stage::Listed {
            (self.is_asked, self.deadline) = (false, Instant::now() + QUIET);
        }
        if before != Stage::Listing && self.stage == Stage::Listing {
            // Nothing was sent before, so the socket has room.
            self.stream.try_write(b"monitor\n")?;
        }
        Ok(())
    }
}

fn today() -> Date {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Date::from_unix(since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    const GREETING: &[u8] = b"BABEL 1.0\nversion babeld-1.12.1\nhost vm\nok\n";

    async fn listener() -> (TcpListener, Babeld) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let babeld = Babeld::new(listener.local_addr().unwrap());
        (listener, babeld)
    }

    /// Sends the greeting, and expects `monitor`.
    async fn greet(listener: &TcpListener) -> TcpStream {
        let mut stream = listener.accept().await.unwrap().0;
        stream.write_all(GREETING).await.unwrap();
        let mut asked = [0; 8];
        stream.read_exact(&mut asked).await.unwrap();
        assert_eq!(&asked, b"monitor\n");
        stream
    }

    const FIRST: &[u8] = b"add xroute a prefix 10.77.0.2/32 from 0.0.0.0/0 metric 0\nok\n";

    /// Answers as babeld does, with this list.
    async fn list(listener: &TcpListener, lines: &[u8]) -> TcpStream {
        let mut stream = greet(listener).await;
        stream.write_all(lines).await.unwrap();
        stream
    }

    /// The own address that babeld announces, and whether babeld has stopped.
    fn known(babeld: &Babeld) -> Option<(Option<std::net::IpAddr>, bool)> {
        let it = babeld.announced()?;
        Some((it.table.own_address(|_| true), it.stopped.is_some()))
    }

    #[tokio::test(flavor = "current_thread")]
    async fn what_was_told_last_counts_until_all_is_told_anew() {
        let (listener, mut babeld) = listener().await;
        let (stream, ()) = tokio::join!(list(&listener, FIRST), babeld.changed());
        let own = "10.77.0.2".parse().ok();
        assert_eq!(known(&babeld), Some((own, false)));
        drop(stream);
        babeld.changed().await;
        assert_eq!(known(&babeld), Some((own, true)));
        let since = babeld.announced().and_then(|it| it.stopped);
        // The new list is not complete: it ends, or never begins.
        let other = &b"add xroute a prefix 10.77.0.9/32 from 0.0.0.0/0 metric 0\n"[..];
        let half = async { drop(list(&listener, other).await) };
        tokio::join!(half, babeld.changed());
        assert_eq!(known(&babeld), Some((own, true)));
        let stranger = async { listener.accept().await.unwrap().0.write_all(b"nonsense\n").await };
        let (_, ()) = tokio::join!(stranger, babeld.changed());
        assert_eq!(babeld.announced().and_then(|it| it.stopped), since);
        // It is complete, and nothing of the old one is left.
        let (_stream, ()) = tokio::join!(list(&listener, b"ok\n"), babeld.changed());
        assert_eq!(known(&babeld), Some((None, false)));
        babeld.forget();
        assert_eq!(known(&babeld), Some((None, false)), "only what is over is forgotten");
    }

    #[tokio::test(flavor = "current_thread", start_paused = true)]
    async fn who_is_quiet_is_asked_and_who_does_not_answer_has_gone() {
        let (listener, mut babeld) = listener().await;
        let (mut stream, ()) = tokio::join!(list(&listener, FIRST), babeld.changed());
        let own = "10.77.0.2".parse().ok();
        for answer in ["ok\n", "bad\n"] {
            let mut asked = [0; 1];
            let listens = stream.read_exact(&mut asked);
            tokio::pin!(listens);
            // It may say too early that something has changed.
            loop {
                tokio::select! {
                    heard = &mut listens => break assert!(heard.is_ok()),
                    () = babeld.changed() => {}
                }
            }
            assert_eq!(&asked, b"\n");
            stream.write_all(answer.as_bytes()).await.unwrap();
            babeld.changed().await;
            assert_eq!(known(&babeld), Some((own, false)), "{answer}");
        }
        // It hangs: the connection is still there.
        let before = Instant::now();
        while known(&babeld) == Some((own, false)) {
            babeld.changed().await;
        }
        assert_eq!(known(&babeld), Some((own, true)));
        assert!(before.elapsed() >= QUIET + ANSWER_MAX);
    }

    #[tokio::test(flavor = "current_thread")]
    async fn what_is_over_can_be_forgotten() {
        let (listener, mut babeld) = listener().await;
        let (stream, ()) = tokio::join!(list(&listener, FIRST), babeld.changed());
        drop(stream);
        babeld.changed().await;
        babeld.forget();
        assert_eq!(known(&babeld), None);
    }

    /// The interval before the next attempt.
    fn wait(babeld: &Babeld) -> Duration {
        let State::Waiting(at) = babeld.state else { panic!("{babeld:?}") };
        at - Instant::now()
    }

    #[tokio::test(flavor = "current_thread", start_paused = true)]
    async fn a_babeld_that_comes_and_goes_is_asked_less_often() {
        let (listener, mut babeld) = listener().await;
        let mut waits = Vec::new();
        for _ in 0..4 {
            let (stream, ()) = tokio::join!(list(&listener, FIRST), babeld.changed());
            drop(stream);
            babeld.changed().await;
            // Its routes come and go with it.
            babeld.look_again();
            waits.push(wait(&babeld).as_millis().next_multiple_of(10));
        }
        assert_eq!(waits, [250, 500, 1000, 2000]);
        // One that stayed is asked soon.
        let (stream, ()) = tokio::join!(list(&listener, FIRST), babeld.changed());
        tokio::time::advance(STEADY).await;
        drop(stream);
        babeld.changed().await;
        assert!(wait(&babeld) <= RETRY_MIN, "{:?}", wait(&babeld));
    }

    #[tokio::test(flavor = "current_thread")]
    async fn who_is_not_babeld_is_left_alone() {
        for said in [&b"SSH-2.0-OpenSSH_10.0\n"[..], &[b'x'; 8192], b"BABEL 2.0\n", b""] {
            let (listener, mut babeld) = listener().await;
            let told = async {
                // Bytes that the client left unread may cause an error here.
                let _ = listener.accept().await.unwrap().0.write_all(said).await;
            };
            tokio::join!(told, babeld.changed());
            assert!(babeld.announced().is_none() && matches!(babeld.state, State::Waiting(_)));
        }
    }

    #[tokio::test(flavor = "current_thread", start_paused = true)]
    async fn who_says_nothing_is_not_waited_for() {
        let (listener, mut babeld) = listener().await;
        let accepted = async { listener.accept().await.unwrap().0 };
        let (_stream, ()) = tokio::join!(accepted, babeld.changed());
        assert!(babeld.announced().is_none() && matches!(babeld.state, State::Waiting(_)));
    }
}
