//! This machine's links.

use std::collections::BTreeMap;
use std::io;

use super::fib::LINKS_MAX;
use super::message::{Device, Link};
use super::{listing, message};

/// The current links by index.
pub fn all_links() -> io::Result<BTreeMap<u32, Link>> {
    let links = listing::list(message::GETLINK, |message| {
        (message.kind == message::NEWLINK).then(|| message.link()).flatten()
    })?;
    Ok(links.into_iter().take(LINKS_MAX).map(|link| (link.index, link)).collect())
}

/// This machine's interfaces as an operator sees them, by name.
///
/// # Errors
/// If the kernel does not list them.
pub fn devices() -> io::Result<BTreeMap<String, Device>> {
    let found = listing::list(message::GETLINK, |message| {
        (message.kind == message::NEWLINK).then(|| message.device()).flatten()
    })?;
    Ok(found.into_iter().take(LINKS_MAX).map(|it| (it.name.clone(), it)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_seen_with_its_frames_and_size() {
        let found = devices().unwrap();
        // ARPHRD_LOOPBACK; each namespace has it, with the index 1.
        let lo = &found["lo"];
        assert_eq!((lo.index, lo.frames, lo.master, lo.is_batman_adv), (1, 772, None, false));
        assert!(lo.mtu >= 1280, "{lo:?}");
    }
}
