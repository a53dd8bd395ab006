//! The end: what is under way gets time to finish, unless somebody insists.

use crate::driver::Driver;
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout_at};

/// What is under way for peers and for `hearsay put` gets this long at most: who misses it takes another way.
const OTHERS: Duration = Duration::from_secs(3);
/// How often it is looked whether all is done.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Waits until nobody is being served, as long as the operator gives, and not after `insisted`.
pub async fn drain(driver: &Driver, patience: Duration, insisted: impl Future<Output = ()>) {
    let open = || driver.limit().len();
    driver.limit().finish();
    // Those that idle end at once.
    tokio::task::yield_now().await;
    if open() > 0 && !patience.is_zero() {
        tracing::info!(open = open(), ?patience, "stopping: open connections may finish");
    }
    let deadline = Instant::now() + patience;
    tokio::select! {
        () = done(driver, deadline) => {}
        () = insisted => tracing::info!("told again to stop"),
    }
    if open() > 0 {
        tracing::info!(open = open(), "not all clients had finished");
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
    // Connections that have not finished by then are dropped.
    let _ = timeout_at(deadline, clients).await;
    let _ = timeout_at(deadline.min(Instant::now() + OTHERS), others).await;
}
