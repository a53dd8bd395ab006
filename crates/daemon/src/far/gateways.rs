//! The gateways that may connect: the histories of each are open from its first connection until some time after its
//! last, so that those which are away cost neither descriptors nor memory.

use super::gateway::{Gateway, Setting};
use super::share::{Share, share_out};
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
/// How often the memory is shared out anew, as far as indexes have grown.
const SHARE_EVERY: Duration = Duration::from_secs(60);

/// All gateways that `--near` names.
#[derive(Clone)]
pub struct Gateways(Rc<Inner>);

struct Inner {
    slots: HashMap<PublicKey, Slot>,
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
        let slots = keys.iter().map(|key| (*key, Slot::default())).collect();
        Self(Rc::new(Inner { slots, setting: Rc::new(setting) }))
    }

    /// Whether there is a gateway with this key.
    pub fn has(&self, key: &PublicKey) -> bool {
        self.0.slots.contains_key(key)
    }

    /// Serves a gateway's connection until it ends.
    pub async fn serve(&self, key: PublicKey, stream: TcpStream, guest: Guest, address: IpAddr) {
        let Some(slot) = self.0.slots.get(&key) else { return };
        slot.visits.set(slot.visits.get() + 1);
        slot.present.set(slot.present.get() + 1);
        match self.open(key, slot).await {
            Ok(gateway) => gateway.serve(stream, guest, address).await,
            Err(error) => tracing::error!(gateway = %key, "cannot serve this gateway: {error}"),
        }
        slot.present.set(slot.present.get() - 1);
        // One task is enough, however often it comes and goes.
        if !slot.is_watched.replace(true) {
            let all = self.clone();
            spawn_local(async move { all.close_later(key, KEPT).await });
        }
    }

    /// The gateway of a slot; opens it if it is not.
    async fn open(&self, key: PublicKey, slot: &Slot) -> Result<Gateway, String> {
        let mut open = slot.open.lock().await;
        if let Some(gateway) = &*open {
            return Ok(gateway.clone());
        }
        let mut units: Vec<_> = self.present().iter().map(Gateway::units).collect();
        units.push(0);
        let share = share_out(self.0.setting.memory, &units).pop();
        let share = share.unwrap_or(Share { content_bytes: 0, units_max: 0 });
        let gateway = Gateway::open(key, &self.0.setting, share).await?;
        *open = Some(gateway.clone());
        drop(open);
        self.share_out();
        Ok(gateway)
    }

    /// Those that are open.
    fn present(&self) -> Vec<Gateway> {
        let slots = self.0.slots.values();
        slots.filter_map(|slot| slot.open.try_lock().ok()?.clone()).collect()
    }

    /// Gives each gateway that is open its share of the memory.
    fn share_out(&self) {
        let open = self.present();
        let units: Vec<_> = open.iter().map(Gateway::units).collect();
        let shares = share_out(self.0.setting.memory, &units);
        open.iter().zip(shares).for_each(|(gateway, share)| gateway.limit(share));
    }

    /// Shares the memory out anew from time to time.
    pub async fn keep_shares(&self) {
        loop {
            tokio::time::sleep(SHARE_EVERY).await;
            self.share_out();
        }
    }

    /// Closes a gateway once it has been away for this time; gives up if it is there.
    async fn close_later(&self, key: PublicKey, time: Duration) {
        let Some(slot) = self.0.slots.get(&key) else { return };
        loop {
            let visits = slot.visits.get();
            tokio::time::sleep(time).await;
            if slot.present.get() > 0 {
                return slot.is_watched.set(false);
            }
            if slot.visits.get() == visits {
                break;
            }
        }
        slot.is_watched.set(false);
        let mut open = slot.open.lock().await;
        if slot.present.get() == 0
            && let Some(gateway) = open.take()
        {
            // Who comes back meanwhile waits until all is durable.
            gateway.close().await;
        }
        drop(open);
        self.share_out();
    }

    /// Ends all connections, with what has crossed durable.
    pub async fn close(&self) {
        for slot in self.0.slots.values() {
            if let Some(gateway) = slot.open.lock().await.take() {
                gateway.close().await;
            }
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
    fn a_gateway_is_closed_some_time_after_its_last_connection_unless_it_came_back() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        tokio::task::LocalSet::new().block_on(&runtime, async {
            let gateways = gateways().await;
            let slot = &gateways.0.slots[&KEY];
            let is_open = async || slot.open.lock().await.is_some();
            assert!(!is_open().await, "before its first connection");
            gateways.open(KEY, slot).await.unwrap();
            slot.present.set(1);
            gateways.close_later(KEY, Duration::ZERO).await;
            assert!(is_open().await, "it is there");
            slot.present.set(0);
            let begun = std::time::Instant::now();
            let all = gateways.clone();
            let closing = spawn_local(async move { all.close_later(KEY, SOON).await });
            tokio::task::yield_now().await;
            // It comes and goes while the task waits.
            slot.visits.set(1);
            closing.await.unwrap();
            assert!(begun.elapsed() >= 2 * SOON, "the time begins anew");
            assert!(!is_open().await);
            gateways.open(KEY, slot).await.unwrap();
            assert!(is_open().await, "it can be opened again");
            gateways.close().await;
        });
    }
}
