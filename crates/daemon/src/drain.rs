//! Shutdown: open connections get time to finish, unless the daemon is told again to stop.

use crate::driver::Driver;
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout_at};

/// Exchanges of peers and of `hearsay put` get at most this long: a peer can ask another node, and
/// a `put` can be run again.
const OTHERS: Duration = Duration::from_secs(3);
/// How often to check whether all have finished.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Waits until every connection has ended, at most for `timeout`, or until `insisted`.
pub async fn drain(driver: &Driver, timeout: Duration, insisted: impl Future<Output = ()>) {
    let open = || driver.limit().len();
    driver.limit().finish();
    // Idle connections end at once.
    tokio::task::yield_now().await;
    if open() > 0 && !timeout.is_zero() {
        tracing::info!(open = open(), ?timeout, "stopping: waiting for open connections");
    }
    let deadline = Instant::now() + timeout;
    tokio::select! {
        () = done(driver, deadline) => {}
        () = insisted => tracing::info!("a second signal: stopping at once"),
    }
    if open() > 0 {
        tracing::info!(open = open(), "some clients had not finished");
    }
}

async fn done(driver: &Driver, deadline: Instant) {
    let clients = async {
        while driver.limit().len() > 0 {
            sleep(LOOK_EVERY).await;
        }
    };
    let others = async {
        while driver.report().exchanges > 0 {
            sleep(LOOK_EVERY).await;
        }
    };
    // Connections that are open after the deadline are dropped.
    let _ = timeout_at(deadline, clients).await;
    let _ = timeout_at(deadline.min(Instant::now() + OTHERS), others).await;
}
