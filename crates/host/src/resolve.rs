//! DNS lookups by the system's resolver.
//!
//! *What this is:* each lookup runs in a thread, and cannot be interrupted, so there are few
//! threads and a queue. While more than half of the queue is taken, a client that has its share of
//! places gets no more. *Who calls it:* `dial.rs`, and a driver that must know whether a name has
//! the address that a client dialled. *Limits:* [`LOOKUPS_MAX`] threads, `QUEUE_MAX` places.

use dns_lookup::{LookupErrorKind, lookup_host};
use node::Looked;
use node::driver::Network;
use node::driver::shares::share;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};
use tokio::time::{Instant, timeout_at};

/// Time limit of a lookup, including its wait.
const LOOKUP: Duration = Duration::from_secs(10);
/// Lookups at a time, each in a thread that cannot be interrupted.
pub const LOOKUPS_MAX: usize = 8;
/// Lookups in progress or waiting; more are refused.
const QUEUE_MAX: usize = LOOKUPS_MAX + 64;
/// Threads per client: names whose servers do not answer occupy them for seconds.
const LOOKUPS_EACH: usize = 2;

/// Permits for the threads.
static LOOKUPS: Semaphore = Semaphore::const_new(LOOKUPS_MAX);
/// The lookups that are waiting or in progress.
static QUEUE: LazyLock<Mutex<Queue>> = LazyLock::new(Mutex::default);

/// The lookups of each client.
#[derive(Default)]
struct Queue {
    clients: HashMap<Network, Waiting>,
    all: usize,
}

struct Waiting {
    names: usize,
    threads: Arc<Semaphore>,
}

/// A place in the queue, released when it is dropped.
struct Queued {
    network: Network,
    threads: Arc<Semaphore>,
}

impl Queued {
    /// `None` if the queue is full, or more than half full while the client has its share.
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

    /// Waits for a thread: within the client's limit, and within that of all clients.
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

/// The addresses of a name, in the resolver's order.
pub async fn resolve(host: &str, client: IpAddr) -> Looked {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    if let Ok(address) = host.parse() {
        return Looked::Addresses(vec![address]);
    }
    let deadline = Instant::now() + LOOKUP;
    let Some(queued) = Queued::new(client) else { return Looked::NotAsked };
    let Ok(Some(thread)) = timeout_at(deadline, queued.thread()).await else {
        return Looked::NotAsked;
    };
    let host = host.to_owned();
    // The lookup keeps its place and thread even if the caller no longer waits.
    let look = tokio::task::spawn_blocking(move || {
        let found = look_up(&host);
        drop((thread, queued));
        found
    });
    let found = timeout_at(deadline, look).await;
    found.ok().and_then(Result::ok).unwrap_or(Looked::Unanswered)
}

/// Asks the system's resolver. Whether it says that a name has no address, or says nothing, the standard library does not tell.
fn look_up(host: &str) -> Looked {
    match lookup_host(host) {
        Ok(found) => Looked::Addresses(found.collect()),
        Err(error) => match error.kind() {
            LookupErrorKind::NoName | LookupErrorKind::NoData => Looked::Addresses(Vec::new()),
            // A server that fails says nothing of the name, nor does a resolver without servers.
            _ => Looked::Unanswered,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(flavor = "current_thread")]
    async fn one_client_waits_for_its_share_of_names_and_leaves_threads_to_others() {
        let (greedy, other) = (IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 2]));
        let taken: Vec<_> = std::iter::from_fn(|| Queued::new(greedy)).collect();
        // While half of the places are free, a client gets more than its share.
        assert_eq!(taken.len(), QUEUE_MAX / 2 + 1);
        assert_eq!(resolve("localhost", greedy).await, Looked::NotAsked);
        let found = resolve("localhost", other).await;
        assert!(matches!(&found, Looked::Addresses(all) if !all.is_empty()), "{found:?}");
        // An address needs no lookup.
        let literal = Looked::Addresses(vec!["::1".parse().unwrap()]);
        assert_eq!(resolve("[::1]", greedy).await, literal);
        let _all = Arc::clone(&taken[0].threads).acquire_many_owned(2).await.unwrap();
        drop(taken);
        assert_ne!(
            resolve("localhost", greedy).await,
            Looked::NotAsked,
            "its places were not released"
        );
        assert!(QUEUE.lock().unwrap().clients.is_empty());
    }
}
