//! Clients of the explicit proxy that are refused for lack of room: each gets a 503.

use host::parting::part;
use std::cell::Cell;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::task::spawn_local;

/// `Retry-After` in seconds (RFC 9110 §10.2.3).
pub const RETRY_AFTER_SECONDS: u64 = 5;
/// The body when the proxy is full.
pub const NO_ROOM: &[u8] =
    b"This proxy has no room for more connections. Try again in some seconds.\n";

/// The body when the client's network has as many connections as it may.
pub const OVER_SHARE: &[u8] =
    b"You have your share of this proxy's connections. Close some, or try again in some seconds.\n";

/// At most this many connections linger at one time until their clients have read the answer.
/// Others are closed at once, and their clients may lose it.
const WAITING_MAX: usize = 32;
/// How long a connection lingers.
const TIMEOUT: Duration = Duration::from_secs(2);

thread_local! {
    static WAITING: Cell<usize> = const { Cell::new(0) };
}

/// Answers 503 with the reason `why`, without reading the request and without waiting.
pub fn turn_away(stream: TcpStream, why: &[u8]) {
    let text = format!(
        "HTTP/1.1 503 Service Unavailable\r\nRetry-After: {RETRY_AFTER_SECONDS}\r\n\
         Connection: close\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n\r\n",
        why.len()
    );
    // A new connection's send buffer holds all of this; if the write fails, the client has gone.
    let _ = stream.try_write(&[text.as_bytes(), why].concat());
    if WAITING.get() < WAITING_MAX {
        WAITING.set(WAITING.get() + 1);
        spawn_local(async move {
            let _ = tokio::time::timeout(TIMEOUT, part(stream)).await;
            WAITING.set(WAITING.get() - 1);
        });
    }
}
