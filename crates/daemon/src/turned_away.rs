//! Clients of the explicit proxy that are refused for lack of room: each gets a 503.

use host::parting::part;
use std::cell::Cell;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::task::spawn_local;

/// `Retry-After` in seconds (RFC 9110 §10.2.3).
pub const RETRY_AFTER_SECONDS: u64 = 5;

/// At most this many connections linger at one time until their clients have read the answer.
/// Others are closed at once, and their clients may lose it.
const WAITING_MAX: usize = 32;
/// How long a connection lingers.
const TIMEOUT: Duration = Duration::from_secs(2);

thread_local! {
    static WAITING: Cell<usize> = const { Cell::new(0) };
}

/// Answers 503 with this content, without reading the request and without waiting.
pub fn turn_away(stream: TcpStream, content: &[u8]) {
    let head = format!(
        "HTTP/1.1 503 Service Unavailable\r\nRetry-After: {RETRY_AFTER_SECONDS}\r\n\
         Connection: close\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n\r\n",
        content.len()
    );
    // A new connection's send buffer holds all of this; if the write fails, the client has gone.
    let _ = stream.try_write(&[head.as_bytes(), content].concat());
    if WAITING.get() < WAITING_MAX {
        WAITING.set(WAITING.get() + 1);
        spawn_local(async move {
            let _ = tokio::time::timeout(TIMEOUT, part(stream)).await;
            WAITING.set(WAITING.get() - 1);
        });
    }
}
