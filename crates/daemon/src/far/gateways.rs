//! The gateways that may connect: the histories of each are open from its first connection until some time after its
//! last, so that those which are away cost neither descriptors nor memory.

use super::gateway::{Gateway, Setting, Share};
use node::uplink::Guest;
use std::cell::Cell;
use std::collections::HashMap;
use std::net::IpAddr;
use std::rc::Rc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::Mutex;
use tokio::task::spawn_local;
use wire::PublicKey;

/// How long a gateway that is away stays open: its uplink may be bad, and to open a large history takes a while.
const KEPT: Duration = Duration::from_secs(10 * 60);

/// All gateways that `--near` names.
pub struct Gateways {
    slots: HashMap<PublicKey, Rc<Slot>>,
    setting: Rc<Setting>,
}

#[derive(Default)]
struct Slot {
    /// Locked while it is being opened or closed.
    open: Mutex<Option<Gateway>>,
    /// Connections that there have been, and that are there.
    visits: Cell<u64>,
    present: Cell<usize>,
    /// A task waits to close it.
    is_watched: Cell<bool>,
}

impl Gateways {
    /// Gateways with these keys.
    pub fn new(keys: &[PublicKey], setting: Setting) -> Self {
        let slots = keys.iter().map(|key| (*key, Rc::default())).collect();
        Self { slots, setting: Rc::new(setting) }
    }

    /// Whether there is a gateway with this key.
    pub fn has(&self, key: &PublicKey) -> bool {
        self.slots.contains_key(key)
    }

    /// Serves a gateway's connection until it ends.
    pub async fn serve(&self, key: PublicKey, stream: TcpStream, guest: Guest, address: IpAddr) {
        let Some(slot) = self.slots.get(&key) else { return };
        slot.visits.set(slot.visits.get() + 1);
        slot.present.set(slot.present.get() + 1);
        let (gateway, is_new) = slot.gateway(key, &self.setting, self.share(1)).await;
        if is_new {
            self.share_out();
        }
        match gateway {
            Ok(gateway) => gateway.serve(stream, guest, address).await,
            Err(error) => tracing::error!(gateway = %key, "cannot serve this gateway: {error}"),
        }
        slot.present.set(slot.present.get() - 1);
        // One task is enough, however often it comes and goes.
        if !slot.is_watched.replace(true) {
            spawn_local(Rc::clone(slot).close_later(KEPT));
        }
    }

    /// Those that are open.
    fn open(&self) -> Vec<Gateway> {
        let slots = self.slots.values();
        slots.filter_map(|slot| slot.open.try_lock().ok()?.clone()).collect()
    }

    /// The share of each gateway if this many more are opened.
    fn share(&self, more: usize) -> Share {
        Share::of(self.setting.memory, self.open().len() + more)
    }

    /// Gives each gateway that is open the same share of the memory.
    fn share_out(&self) {
        let (open, share) = (self.open(), self.share(0));
        open.iter().for_each(|gateway| gateway.limit(share));
    }

    /// Ends all connections, with what has crossed durable.
    pub async fn close(&self) {
        for slot in self.slots.values() {
            if let Some(gateway) = slot.open.lock().await.take() {
                gateway.close().await;
            }
        }
    }
}

impl Slot {
    /// The gateway, and whether it had to be opened, with this share of the memory.
    async fn gateway(
        &self,
        key: PublicKey,
        setting: &Rc<Setting>,
        share: Share,
    ) -> (Result<Gateway, String>, bool) {
        let mut open = self.open.lock().await;
        if let Some(gateway) = &*open {
            return (Ok(gateway.clone()), false);
        }
        let gateway = Gateway::open(key, setting, share).await;
        *open = gateway.clone().ok();
        (gateway, true)
    }

    /// Closes it once it has been away for this time; gives up if it is there.
    async fn close_later(self: Rc<Self>, time: Duration) {
        loop {
            let visits = self.visits.get();
            tokio::time::sleep(time).await;
            if self.present.get() > 0 {
                return self.is_watched.set(false);
            }
            if self.visits.get() == visits {
                break;
            }
        }
        self.is_watched.set(false);
        let mut open = self.open.lock().await;
        if self.present.get() == 0
            && let Some(gateway) = open.take()
        {
            // Who comes back meanwhile waits until all is durable.
            gateway.close().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config;
    use crate::far::room::Room;
    use crate::pair::Workers;
    use host::dial::Dialler;
    use host::origin::Pool;
    use host::traffic::Traffic;

    const KEY: PublicKey = PublicKey([7; 32]);

    const SOON: Duration = Duration::from_millis(10);

    async fn gateways() -> Gateways {
        let egress = host::egress::follow(Vec::new(), &[]).await.unwrap();
        let dialler = Dialler::new(node::Access::default(), egress, Traffic::default());
        let setting = Setting {
            place: config::Place::Memory,
            store_bytes: 1 << 20,
            memory: 1 << 20,
            identity: [1; 32],
            pool: Pool::new(dialler, None),
            idle_each: 1,
            workers: Workers::start(1).unwrap(),
            room: Room::new(1),
        };
        Gateways::new(&[KEY], setting)
    }

    #[test]
    fn memory_is_shared_by_those_that_are_open() {
        let all = Share::of(260 << 10, 1);
        assert_eq!((all.content_bytes, all.units_max), (130 << 10, 1024));
        assert_eq!(Share::of(260 << 10, 4).units_max, 256);
        assert_eq!(Share::of(260 << 10, 0), all, "before the first one");
    }

    #[test]
    fn a_gateway_is_closed_some_time_after_its_last_connection_unless_it_came_back() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        tokio::task::LocalSet::new().block_on(&runtime, async {
            let gateways = gateways().await;
            let slot = &gateways.slots[&KEY];
            let is_open = async || slot.open.lock().await.is_some();
            assert!(!is_open().await, "before its first connection");
            slot.gateway(KEY, &gateways.setting, gateways.share(1)).await.0.unwrap();
            slot.present.set(1);
            Rc::clone(slot).close_later(Duration::ZERO).await;
            assert!(is_open().await, "it is there");
            slot.present.set(0);
            let begun = std::time::Instant::now();
            let closing = spawn_local(Rc::clone(slot).close_later(SOON));
            tokio::task::yield_now().await;
            // It comes and goes while the task waits.
            slot.visits.set(1);
            closing.await.unwrap();
            assert!(begun.elapsed() >= 2 * SOON, "the time begins anew");
            assert!(!is_open().await);
            slot.gateway(KEY, &gateways.setting, gateways.share(1)).await.0.unwrap();
            assert!(is_open().await, "it can be opened again");
            gateways.close().await;
        });
    }
}
