//! babeld's view of the mesh, from its local socket: metrics, the gateway, the neighbours.
//!
//! babeld may be absent, start late, or restart; this module then waits and tries again, and
//! forgets what it knew. The protocol: babeld sends a greeting and `ok`; the client sends
//! `monitor`; babeld lists all it knows, sends `ok`, and from then on reports each change.

use std::fmt;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::pin::Pin;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::{Instant, sleep_until, timeout, timeout_at};

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
/// The time limit for connecting, and for the complete list.
const LISTING_MAX: Duration = Duration::from_secs(5);

/// The connection to babeld.
#[derive(Debug)]
pub struct Babeld {
    address: SocketAddr,
    state: State,
    retry: Duration,
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
    /// The time limit for the complete list.
    deadline: Instant,
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

/// Why a connection ended.
#[derive(Debug, thiserror::Error)]
enum End {
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("it does not speak babeld's protocol, version 1")]
    Strange,
    #[error("it did not list its routes in time")]
    Slow,
}

impl Stage {
    /// The stage after a line, which is applied to the table if it belongs there.
    fn after(self, text: &str, table: &mut Table) -> Result<Self, End> {
        let line = parse(text);
        match (self, line) {
            (Self::Silent, Some(Line::Greeting(1))) => Ok(Self::Greeting),
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
        Self { address, state, retry: RETRY_MIN, has_complained: false }
    }

    /// What babeld knows, once it has listed everything.
    pub fn table(&self) -> Option<&Table> {
        match &self.state {
            State::Open(it) if it.stage == Stage::Listed => Some(&it.table),
            _ => None,
        }
    }

    /// Called after an event which suggests that babeld may have started.
    pub fn look_again(&mut self) {
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
                                (self.retry, self.has_complained) = (RETRY_MIN, false);
                            }
                            return;
                        }
                        Ok(()) => {}
                        Err(why) => {
                            self.hang_up(was_listed, &why);
                            return;
                        }
                    }
                }
            }
        }
    }

    fn hang_up(&mut self, was_listed: bool, why: &End) {
        if was_listed || !self.has_complained {
            let address = self.address;
            tracing::warn!(%address, %why, "no routes from babeld: only the kernel's routes are used");
            self.has_complained = !was_listed;
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
        Self { stream, lines, stage: Stage::Silent, deadline, table }
    }

    /// Waits for bytes and handles them.
    async fn hear(&mut self) -> Result<(), End> {
        if self.stage == Stage::Listed {
            self.stream.readable().await?;
        } else {
            timeout_at(self.deadline, self.stream.readable()).await.map_err(|_| End::Slow)??;
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
        if before != Stage::Listing && self.stage == Stage::Listing {
            // Nothing was sent before, so the socket has room.
            self.stream.try_write(b"monitor\n")?;
        }
        Ok(())
    }
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

    #[tokio::test(flavor = "current_thread")]
    async fn what_was_not_told_whole_does_not_count() {
        let (listener, mut babeld) = listener().await;
        let told = async {
            let mut stream = greet(&listener).await;
            stream
                .write_all(b"add xroute a prefix 10.77.0.2/32 from 0.0.0.0/0 metric 0\nok\n")
                .await?;
            Ok::<_, io::Error>(stream)
        };
        let (stream, ()) = tokio::join!(told, babeld.changed());
        assert_eq!(babeld.table().unwrap().own_address(|_| true), "10.77.0.2".parse().ok());
        // babeld restarts: what it reported before is forgotten until the new list is complete.
        drop(stream);
        babeld.changed().await;
        assert!(babeld.table().is_none());
        let told = async { greet(&listener).await.write_all(b"ok\n").await };
        let (_, ()) = tokio::join!(told, babeld.changed());
        assert_eq!(babeld.table().unwrap().own_address(|_| true), None);
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
            assert!(babeld.table().is_none() && matches!(babeld.state, State::Waiting(_)));
        }
    }

    #[tokio::test(flavor = "current_thread", start_paused = true)]
    async fn who_says_nothing_is_not_waited_for() {
        let (listener, mut babeld) = listener().await;
        let accepted = async { listener.accept().await.unwrap().0 };
        let (_stream, ()) = tokio::join!(accepted, babeld.changed());
        assert!(babeld.table().is_none() && matches!(babeld.state, State::Waiting(_)));
    }
}
