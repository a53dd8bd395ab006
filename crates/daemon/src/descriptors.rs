//! How many file descriptors this process may have.

use rustix::process::{Resource, getrlimit, setrlimit};

/// Raises the limit as far as allowed, up to what is wanted, and returns how many there are.
pub fn raise(wanted: u64) -> u64 {
    let mut limit = getrlimit(Resource::Nofile);
    let raised = limit.maximum.map_or(wanted, |most| most.min(wanted));
    if limit.current.is_some_and(|current| current < raised) {
        limit.current = Some(raised);
        if let Err(error) = setrlimit(Resource::Nofile, limit) {
            tracing::warn!(%error, "cannot raise the limit of file descriptors: fewer connections are served at one time");
        }
    }
    getrlimit(Resource::Nofile).current.unwrap_or(wanted)
}
