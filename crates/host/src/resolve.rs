//! Names of hosts, by the system's resolver.
//!
//! *What this is:* a thread for each look-up, which nothing can interrupt, so they are few; more wait, and while more
//! than half of those places are taken, none for a client that has its share. *Who calls it:* `dial.rs`, and a driver
//! that was asked whether a name is where a client dialled. *Limits:* [`LOOKUPS_MAX`] threads, `QUEUE_MAX` places.

use node::driver::Network;
use node::driver::shares::share;
use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};
use tokio::time::{Instant, timeout_at};

/// Looking up a name gets this long.
const LOOKUP: Duration = Duration::from_secs(10);
/// Names that are looked up at one time, each in a thread that nothing can interrupt.
pub const LOOKUPS_MAX: usize = 8;
/// Names that are looked up or wait for that; more are not looked up.
const QUEUE_MAX: usize = LOOKUPS_MAX + 64;
/// One client has this many threads, at most: names that nobody answers for keep them for seconds.
const LOOKUPS_EACH: usize = 2;

/// Threads for names that are being looked up.
static LOOKUPS: Semaphore = Semaphore::const_new(LOOKUPS_MAX);
/// Who waits for those or has them.
static QUEUE: LazyLock<Mutex<Queue>> = LazyLock::new(Mutex::default);

/// The names that each client waits for.
#[derive(Default)]
struct Queue {
    clients: HashMap<Network, Waiting>,
    all: usize,
}

struct Waiting {
    names: usize,
    threads: Arc<Semaphore>,
}

/// A place in the queue; given back when it is dropped.
struct Queued {
    network: Network,
    threads: Arc<Semaphore>,
}

impl Queued {
    /// `None`: all are taken, or more than half, and the client has its share.
    fn new(client: IpAddr) -> Option<Self> {
        let network = Network::of(client);
        let mut queue = QUEUE.lock().unwrap_or_else(PoisonError::into_inner);
        let names = queue.clients.get(&network).map_or(0, |waiting| waiting.names);
        let is_crowded = queue.all > QUEUE_MAX / 2;
        if queue.all >= QUEUE_MAX || is_crowded && names >= share(QUEUE_MAX) {
            return None;
        }
        queue.all += 1;
        let waiting = queue.clients.entry(network).or_insert_with(|| Waiting {
            names: 0,
            threads: Arc::new(Semaphore::new(LOOKUPS_EACH)),
        });
        waiting.names += 1;
        Some(Self { network, threads: Arc::clone(&waiting.threads) })
    }

    /// Waits for a thread: the client's own, and one of all.
    async fn thread(&self) -> Option<(OwnedSemaphorePermit, SemaphorePermit<'static>)> {
        let own = Arc::clone(&self.threads).acquire_owned().await.ok()?;
        Some((own, LOOKUPS.acquire().await.ok()?))
    }
}

impl Drop for Queued {
    fn drop(&mut self) {
        let mut queue = QUEUE.lock().unwrap_or_else(PoisonError::into_inner);
        queue.all -= 1;
        if let Some(waiting) = queue.clients.get_mut(&self.network) {
            waiting.names -= 1;
            if waiting.names == 0 {
                queue.clients.remove(&self.network);
            }
        }
    }
}

/// The addresses of a name, in the resolver's order, for a client; none if it has none, or the resolver does not
/// say. `None`: it was not looked up, for there was no place or no thread for it in time. Another time there may be.
pub async fn resolve(host: &str, port: u16, client: IpAddr) -> Option<Vec<SocketAddr>> {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    if let Ok(address) = host.parse() {
        return Some(vec![SocketAddr::new(address, port)]);
    }
    let deadline = Instant::now() + LOOKUP;
    let queued = Queued::new(client)?;
    let thread = timeout_at(deadline, queued.thread()).await.ok()??;
    let host = host.to_owned();
    // It keeps the places even if nobody waits any more.
    let look = tokio::task::spawn_blocking(move || {
        let found = (host.as_str(), port).to_socket_addrs().map(Iterator::collect);
        drop((thread, queued));
        found.unwrap_or_default()
    });
    let found = timeout_at(deadline, look).await;
    Some(found.ok().and_then(Result::ok).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(flavor = "current_thread")]
    async fn one_client_waits_for_its_share_of_names_and_leaves_threads_to_others() {
        let (greedy, other) = (IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 2]));
        let taken: Vec<_> = std::iter::from_fn(|| Queued::new(greedy)).collect();
        // More than its share, as long as half of the places are vacant.
        assert_eq!(taken.len(), QUEUE_MAX / 2 + 1);
        assert_eq!(resolve("localhost", 80, greedy).await, None);
        assert!(resolve("localhost", 80, other).await.is_some_and(|found| !found.is_empty()));
        // An address needs no place.
        assert_eq!(resolve("[::1]", 80, greedy).await, Some(vec!["[::1]:80".parse().unwrap()]));
        let _all = Arc::clone(&taken[0].threads).acquire_many_owned(2).await.unwrap();
        drop(taken);
        assert!(resolve("localhost", 80, greedy).await.is_some(), "it got nothing back");
        assert!(QUEUE.lock().unwrap().clients.is_empty());
    }
}
