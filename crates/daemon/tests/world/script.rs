//! An origin that sends exactly the bytes of a test's script.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use super::{TIMEOUT, client::find};

/// A listener that runs the script for each connection, on a thread of its own.
pub struct Script {
    pub address: SocketAddr,
    shared: Arc<Shared>,
    acceptor: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    stops: AtomicBool,
    heads: Mutex<Vec<String>>,
    streams: Mutex<Vec<TcpStream>>,
}

/// One connection to the origin. It is closed when the script returns.
pub struct Visit {
    /// The connection's number, from 0.
    pub number: usize,
    pub stream: TcpStream,
    held: Vec<u8>,
    shared: Arc<Shared>,
}

impl Script {
    /// Starts an origin on loopback.
    pub fn start(script: impl Fn(&mut Visit) + Send + Sync + 'static) -> Self {
        Self::on(TcpListener::bind("127.0.0.1:0").expect("a port on loopback"), script)
    }

    /// Starts an origin on an open socket, perhaps in another namespace.
    pub fn on(listener: TcpListener, script: impl Fn(&mut Visit) + Send + Sync + 'static) -> Self {
        let address = listener.local_addr().expect("its address");
        let (shared, script) = (Arc::<Shared>::default(), Arc::new(script));
        let for_acceptor = Arc::clone(&shared);
        let acceptor = thread::spawn(move || {
            for (number, stream) in listener.incoming().flatten().enumerate() {
                if for_acceptor.stops.load(Ordering::Relaxed) {
                    return;
                }
                let (script, shared) = (Arc::clone(&script), Arc::clone(&for_acceptor));
                shared.remember(&stream);
                let _ = stream.set_nodelay(true);
                let _ = stream.set_read_timeout(Some(TIMEOUT));
                let mut visit = Visit { number, stream, held: Vec::new(), shared };
                thread::spawn(move || script(&mut visit));
            }
        });
        Self { address, shared, acceptor: Some(acceptor) }
    }

    /// An origin that answers one request per connection with these bytes, and closes.
    pub fn saying(answer: impl Into<Vec<u8>>) -> Self {
        let answer = answer.into();
        Self::start(move |visit| {
            if visit.head().is_some() {
                visit.send(&answer);
            }
        })
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}/{path}", self.address)
    }

    /// The heads of all requests so far, in their order.
    pub fn heads(&self) -> Vec<String> {
        self.shared.heads.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Shared {
    fn remember(&self, stream: &TcpStream) {
        let clone = stream.try_clone().expect("a second handle");
        self.streams.lock().unwrap_or_else(PoisonError::into_inner).push(clone);
    }
}

impl Drop for Script {
    fn drop(&mut self) {
        self.shared.stops.store(true, Ordering::Relaxed);
        for stream in self.shared.streams.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            // This wakes scripts that wait on their connections; most connections have ended already.
            let _ = stream.shutdown(Shutdown::Both);
        }
        // The acceptor blocks in `accept`, which only a connection ends. An acceptor in another namespace cannot be
        // reached from here; it ends with the test's process.
        if TcpStream::connect(self.address).is_ok()
            && let Some(acceptor) = self.acceptor.take()
        {
            let _ = acceptor.join();
        }
    }
}

impl Visit {
    /// The next request's head, or `None` if the connection ends before.
    pub fn head(&mut self) -> Option<String> {
        let end = self.fill_until(|held| find(held, b"\r\n\r\n").map(|at| at + 4))?;
        let head: Vec<u8> = self.held.drain(..end).collect();
        let head = String::from_utf8_lossy(&head).into_owned();
        self.shared.heads.lock().unwrap_or_else(PoisonError::into_inner).push(head.clone());
        Some(head)
    }

    /// This many bytes after the head; `None` if the connection ends before.
    pub fn body(&mut self, length: usize) -> Option<Vec<u8>> {
        self.fill_until(|held| (held.len() >= length).then_some(length))?;
        Some(self.held.drain(..length).collect())
    }

    /// Content in chunks after the head; `None` if it breaks off.
    pub fn chunked(&mut self) -> Option<Vec<u8>> {
        let mut content = Vec::new();
        loop {
            let end = self.fill_until(|held| find(held, b"\r\n").map(|at| at + 2))?;
            let line: Vec<u8> = self.held.drain(..end).collect();
            let size = std::str::from_utf8(&line).ok()?.trim_end();
            let size = usize::from_str_radix(size, 16).ok()?;
            let mut chunk = self.body(size + 2)?;
            chunk.truncate(size);
            if size == 0 {
                return Some(content);
            }
            content.extend(chunk);
        }
    }

    /// Sends bytes; false if the other end has closed. Scripts may ignore that.
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) -> bool {
        self.stream.write_all(bytes.as_ref()).is_ok()
    }

    /// Waits until the other end closes.
    pub fn wait_for_end(&mut self) {
        self.fill_until(|_| None::<usize>);
    }

    fn fill_until(&mut self, enough: impl Fn(&[u8]) -> Option<usize>) -> Option<usize> {
        let mut buffer = [0; 16 * 1024];
        loop {
            if let Some(end) = enough(&self.held) {
                return Some(end);
            }
            match self.stream.read(&mut buffer) {
                Ok(count) if count > 0 => self.held.extend_from_slice(&buffer[..count]),
                // The process was stopped for a while.
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                _ => return None,
            }
        }
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        // Dropping `stream` would not close the connection: other handles on it exist.
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}
