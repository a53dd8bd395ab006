//! This machine's links.

use std::collections::BTreeMap;
use std::io;

use super::fib::LINKS_MAX;
use super::message::Link;
use super::{listing, message};

/// The current links by index.
pub fn all_links() -> io::Result<BTreeMap<u32, Link>> {
    let links = listing::list(message::GETLINK, |message| {
        (message.kind == message::NEWLINK).then(|| message.link()).flatten()
    })?;
    Ok(links.into_iter().take(LINKS_MAX).map(|link| (link.index, link)).collect())
}
