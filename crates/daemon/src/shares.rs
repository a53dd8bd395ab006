//! Places for connections of peers that are taken in: a number in all, and none for a peer that has its share.

use node::driver::shares::{Shares, connections_each};
use std::cell::RefCell;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// After a failed accept, as when descriptors run out, there is a pause.
pub const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// All places.
pub struct Places {
    vacant: Arc<Semaphore>,
    each_max: usize,
    taken: RefCell<Shares<IpAddr>>,
}

/// A peer's place, for as long as its link is held.
pub struct Place {
    places: Rc<Places>,
    peer: IpAddr,
    _permit: OwnedSemaphorePermit,
}

impl Places {
    /// This many in all.
    pub fn new(all: usize) -> Rc<Self> {
        Rc::new(Self {
            vacant: Arc::new(Semaphore::new(all)),
            each_max: connections_each(all),
            taken: RefCell::default(),
        })
    }

    /// Waits until one is vacant, before it is known who is to get it.
    pub async fn wait(&self) -> OwnedSemaphorePermit {
        let vacant = Arc::clone(&self.vacant).acquire_owned().await;
        vacant.expect("the semaphore is never closed")
    }

    /// Gives a vacant place to a peer, unless its address has its share. This machine may have all.
    pub fn take(self: &Rc<Self>, vacant: OwnedSemaphorePermit, peer: IpAddr) -> Option<Rc<Place>> {
        let peer = peer.to_canonical();
        let mut taken = self.taken.borrow_mut();
        if taken.of(&peer) >= self.each_max && !peer.is_loopback() {
            return None;
        }
        taken.add(peer);
        Some(Rc::new(Place { places: Rc::clone(self), peer, _permit: vacant }))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.taken.borrow_mut().release(&self.peer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(flavor = "current_thread")]
    async fn one_address_gets_its_share_and_what_it_gives_back() {
        let places = Places::new(160);
        let (greedy, other) = (IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 2]));
        let mut held = Vec::new();
        while let Some(place) = places.take(places.wait().await, greedy) {
            held.push(place);
        }
        assert_eq!(held.len(), 20);
        assert!(places.take(places.wait().await, other).is_some());
        held.pop();
        assert!(places.take(places.wait().await, greedy).is_some());
        held.clear();
        assert!(places.taken.borrow().is_empty());
        assert_eq!(places.vacant.available_permits(), 160);
    }

    #[tokio::test(flavor = "current_thread")]
    async fn this_machine_may_have_all() {
        let places = Places::new(64);
        let mut held = Vec::new();
        for _ in 0..64 {
            held.push(places.take(places.wait().await, [127, 0, 0, 1].into()).unwrap());
        }
    }
}
