//! Clients of the explicit proxy for whom there is no room: a few bytes each, and not for long.

use host::parting::part;
use std::cell::Cell;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::task::spawn_local;

/// When a client may try again, in seconds.
pub const RETRY_AFTER_SECONDS: u64 = 5;
/// Why.
pub const NO_ROOM: &[u8] =
    b"This proxy has no room for more connections. Try again in some seconds.\n";

/// Why, to a client that has many connections.
pub const OVER_SHARE: &[u8] =
    b"You have your share of this proxy's connections. Close some, or try again in some seconds.\n";

/// Clients that are waited for at one time, so that they get to read the answer; the others may lose it.
const WAITING_MAX: usize = 32;
/// A client gets this long to read it.
const TIMEOUT: Duration = Duration::from_secs(2);

thread_local! {
    static WAITING: Cell<usize> = const { Cell::new(0) };
}

/// Answers why there is no room, without looking at what is asked, and without waiting on this side.
pub fn turn_away(stream: TcpStream, why: &[u8]) {
    let text = format!(
        "HTTP/1.1 503 Service Unavailable\r\nRetry-After: {RETRY_AFTER_SECONDS}\r\n\
         Connection: close\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n\r\n",
        why.len()
    );
    // A new connection takes this much at once; one that does not has gone.
    let _ = stream.try_write(&[text.as_bytes(), why].concat());
    if WAITING.get() < WAITING_MAX {
        WAITING.set(WAITING.get() + 1);
        spawn_local(async move {
            let _ = tokio::time::timeout(TIMEOUT, part(stream)).await;
            WAITING.set(WAITING.get() - 1);
        });
    }
}
