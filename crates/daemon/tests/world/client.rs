//! Clients: curl, and connections that send arbitrary bytes.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::process::{Command, Stdio};
use std::time::Duration;

use super::{Place, Process, Reply, TIMEOUT};

/// A curl that is not started yet.
pub struct Curl {
    command: Command,
    dir: tempfile::TempDir,
}

/// Environment variables that would give curl another proxy.
const PROXY_VARIABLES: [&str; 6] =
    ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY"];

impl Curl {
    /// A curl without a proxy.
    pub fn new(place: Place, url: &str) -> Self {
        let dir = tempfile::Builder::new().prefix("hearsay-curl.").tempdir();
        let dir = dir.expect("a directory for curl");
        let mut command = place.command("curl");
        // `-q` ignores ~/.curlrc, and must be the first argument.
        command.args(["-q", "-sS", "--max-time", "40"]);
        command.arg("-D").arg(dir.path().join("head")).arg("-o").arg(dir.path().join("body"));
        command.arg(url);
        for name in PROXY_VARIABLES {
            command.env_remove(name);
        }
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        Self { command, dir }
    }

    /// A curl that uses a proxy.
    pub fn by_proxy(proxy: SocketAddr, url: &str) -> Self {
        Self::new(Place::Here, url).args(&["-x", &format!("http://{proxy}")])
    }

    pub fn args(mut self, args: &[&str]) -> Self {
        self.command.args(args);
        self
    }

    pub fn field(self, line: &str) -> Self {
        self.args(&["-H", line])
    }

    /// Runs curl to its end.
    pub fn run(self) -> Reply {
        self.start().wait()
    }

    /// Starts curl in the background.
    pub fn start(mut self) -> Running {
        let child = self.command.spawn().expect("curl starts: is it installed?");
        Running { process: Process(child), dir: self.dir }
    }
}

/// A curl that is running.
pub struct Running {
    process: Process,
    dir: tempfile::TempDir,
}

impl Running {
    /// Bytes of content that have arrived so far.
    pub fn received(&self) -> u64 {
        std::fs::metadata(self.dir.path().join("body")).map_or(0, |it| it.len())
    }

    pub fn wait(mut self) -> Reply {
        let mut said = String::new();
        if let Some(mut stderr) = self.process.0.stderr.take() {
            let _ = stderr.read_to_string(&mut said);
        }
        let exit = self.process.0.wait().expect("curl ends").code().unwrap_or(-1);
        let read = |name| std::fs::read(self.dir.path().join(name)).unwrap_or_default();
        let head = String::from_utf8_lossy(&read("head")).into_owned();
        Reply { body: read("body"), exit, said, ..Reply::of_head(&head) }
    }

    /// Kills curl, which breaks off its transfer.
    pub fn kill(mut self) {
        self.process.kill();
    }
}

/// A connection that sends arbitrary bytes.
pub struct Raw {
    stream: TcpStream,
    held: Vec<u8>,
}

impl Raw {
    #[track_caller]
    pub fn connect(address: SocketAddr) -> Self {
        Self::new(TcpStream::connect_timeout(&address, TIMEOUT).expect("it accepts connections"))
    }

    pub fn new(stream: TcpStream) -> Self {
        stream.set_read_timeout(Some(TIMEOUT)).expect("a timeout");
        stream.set_write_timeout(Some(TIMEOUT)).expect("a timeout");
        stream.set_nodelay(true).expect("no delay");
        Self { stream, held: Vec::new() }
    }

    /// Sends bytes. Errors are ignored: the response shows whether the other end took the bytes.
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) -> &mut Self {
        let _ = self.stream.write_all(bytes.as_ref());
        self
    }

    /// Sends bytes one by one, each in a segment of its own.
    pub fn dribble(&mut self, bytes: impl AsRef<[u8]>) -> &mut Self {
        for byte in bytes.as_ref() {
            self.send([*byte]);
        }
        self
    }

    /// Closes the sending side.
    pub fn finish(&mut self) -> &mut Self {
        let _ = self.stream.shutdown(Shutdown::Write);
        self
    }

    /// The next response, whose head must give its length; empty if the connection ends before.
    #[track_caller]
    pub fn reply(&mut self) -> Reply {
        let Some(end) = self.fill_until(|held| find(held, b"\r\n\r\n").map(|at| at + 4)) else {
            return Reply { exit: 52, ..Reply::default() };
        };
        let head = String::from_utf8_lossy(&self.held[..end]).into_owned();
        let mut reply = Reply::of_head(&head);
        let length = reply.field("content-length").parse().unwrap_or(0);
        let whole = self.fill_until(|held| (held.len() >= end + length).then_some(end + length));
        let until = whole.unwrap_or(self.held.len());
        reply.exit = if whole.is_some() { 0 } else { 18 };
        reply.body = self.held[end..until].to_vec();
        self.held.drain(..until);
        reply
    }

    /// Exactly this many bytes, or fewer if the connection ends.
    #[track_caller]
    pub fn take(&mut self, count: usize) -> Vec<u8> {
        let until = self.fill_until(|held| (held.len() >= count).then_some(count));
        let until = until.unwrap_or(self.held.len());
        self.held.drain(..until).collect()
    }

    /// Whether the connection ends within this time.
    pub fn ends_within(&self, time: Duration) -> bool {
        let _ = self.stream.set_read_timeout(Some(time));
        let read = self.stream.peek(&mut [0; 1]);
        let _ = self.stream.set_read_timeout(Some(TIMEOUT));
        match read {
            Ok(bytes) => bytes == 0,
            Err(error) => !is_timeout(&error) && error.kind() != ErrorKind::Interrupted,
        }
    }

    /// Waits until the other end closes, without a further byte.
    #[track_caller]
    pub fn wait_for_end(&mut self) {
        let rest = self.rest();
        assert!(rest.is_empty(), "it said more: {:?}", String::from_utf8_lossy(&rest));
    }

    /// How the connection ends, without a further byte: in order, or by which error.
    pub fn end(&mut self) -> Result<(), ErrorKind> {
        let length = self.stream.read(&mut [0; 1]).map_err(|error| error.kind())?;
        assert_eq!((length, self.held.len()), (0, 0), "it said more");
        Ok(())
    }

    /// All bytes until the other end closes; it must close.
    #[track_caller]
    pub fn rest(&mut self) -> Vec<u8> {
        let end = self.fill_until(|_| None::<usize>);
        assert!(end.is_none());
        std::mem::take(&mut self.held)
    }

    /// As [`Self::rest`], as text.
    #[track_caller]
    pub fn rest_text(&mut self) -> String {
        String::from_utf8_lossy(&self.rest()).into_owned()
    }

    /// Reads until `enough` returns a length; `None` if the connection ends before.
    #[track_caller]
    fn fill_until(&mut self, enough: impl Fn(&[u8]) -> Option<usize>) -> Option<usize> {
        let mut buffer = [0; 16 * 1024];
        loop {
            if let Some(end) = enough(&self.held) {
                return Some(end);
            }
            match self.stream.read(&mut buffer) {
                Ok(0) => return None,
                Ok(count) => self.held.extend_from_slice(&buffer[..count]),
                Err(error) if is_timeout(&error) => {
                    let held = String::from_utf8_lossy(&self.held);
                    panic!("the connection neither answers nor ends; it said {held:?}")
                }
                // The process was stopped for a while.
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // A reset also ends the connection.
                Err(_) => return None,
            }
        }
    }
}

fn is_timeout(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

pub(super) fn find(bytes: &[u8], part: &[u8]) -> Option<usize> {
    bytes.windows(part.len()).position(|window| window == part)
}
