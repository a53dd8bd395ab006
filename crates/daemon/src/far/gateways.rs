//! The gateways that may connect: the histories of each are open from its first connection until some time after its
//! last, so that those which are away cost neither descriptors nor memory.

use super::gateway::{Gateway, Setting};
use super::share::{Share, share_out};
use crate::config::FarSettings;
use crate::status::{GatewayCounts, GatewayLine};
use node::uplink::Guest;
use std::cell::{Cell, RefCell};
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

/// Idle connections to origins, over all gateways' pools …
const IDLE_MAX: usize = 256;
/// … and of each at least.
const IDLE_EACH_MIN: usize = 8;

/// All gateways that the settings name.
#[derive(Clone)]
pub struct Gateways(Rc<Inner>);

struct Inner {
    slots: RefCell<HashMap<PublicKey, Rc<Slot>>>,
    /// Memory for indexes and content of all of them, in bytes.
    memory: Cell<u64>,
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
    /// The settings name it no longer.
    is_removed: Cell<bool>,
    /// What was counted before it was closed, since the far end's start.
    past: Cell<GatewayCounts>,
}

impl Gateways {
    /// The gateways that these settings name.
    pub fn new(settings: &FarSettings, setting: Setting) -> Self {
        let slots = settings.gateways.iter().map(|key| (*key, Rc::default())).collect();
        let memory = Cell::new(settings.memory_bytes());
        Self(Rc::new(Inner { slots: RefCell::new(slots), memory, setting: Rc::new(setting) }))
    }

    /// From now on, those that these settings name may connect, and reach what the settings permit. Others are closed.
    pub async fn admit(&self, settings: &FarSettings) {
        self.0.memory.set(settings.memory_bytes());
        self.0.setting.pool.dialler().permit(settings.access());
        let mut removed = Vec::new();
        {
            let mut slots = self.0.slots.borrow_mut();
            for key in &settings.gateways {
                slots.entry(*key).or_default();
            }
            slots.retain(|key, slot| {
                let stays = settings.gateways.contains(key);
                removed.extend((!stays).then(|| Rc::clone(slot)));
                stays
            });
        }
        for slot in removed {
            slot.is_removed.set(true);
            slot.close().await;
        }
        // Idle connections may lead to what is now forbidden.
        self.present().iter().for_each(Gateway::drop_idle);
        self.share_out();
    }

    /// Whether there is a gateway with this key.
    pub fn has(&self, key: &PublicKey) -> bool {
        self.0.slots.borrow().contains_key(key)
    }

    fn slot(&self, key: &PublicKey) -> Option<Rc<Slot>> {
        self.0.slots.borrow().get(key).cloned()
    }

    /// Serves a gateway's connection until it ends.
    pub async fn serve(&self, key: PublicKey, stream: TcpStream, guest: Guest, address: IpAddr) {
        let Some(slot) = self.slot(&key) else { return };
        slot.visits.set(slot.visits.get() + 1);
        slot.present.set(slot.present.get() + 1);
        match self.open(key, &slot).await {
            Ok(gateway) => gateway.serve(stream, guest, address).await,
            Err(error) => tracing::error!(gateway = %key, "cannot serve this gateway: {error}"),
        }
        slot.present.set(slot.present.get() - 1);
        // One task is enough, however often it comes and goes.
        if !slot.is_watched.replace(true) {
            let all = self.clone();
            spawn_local(async move { all.close_later(slot, KEPT).await });
        }
    }

    /// The gateway of a slot; opens it if it is not.
    async fn open(&self, key: PublicKey, slot: &Slot) -> Result<Gateway, String> {
        let mut open = slot.open.lock().await;
        if slot.is_removed.get() {
            return Err("the settings name its key no longer".to_owned());
        }
        if let Some(gateway) = &*open {
            return Ok(gateway.clone());
        }
        let mut units: Vec<_> = self.present().iter().map(Gateway::units).collect();
        units.push(0);
        let share = share_out(self.0.memory.get(), &units).pop();
        let share = share.unwrap_or(Share { content_bytes: 0, units_max: 0 });
        let pool = self.0.setting.pool.apart(self.idle_each());
        let gateway = Gateway::open(key, &self.0.setting, pool, share).await?;
        *open = Some(gateway.clone());
        drop(open);
        self.share_out();
        Ok(gateway)
    }

    /// Idle connections to origins that a gateway may keep.
    fn idle_each(&self) -> usize {
        (IDLE_MAX / self.0.slots.borrow().len().max(1)).max(IDLE_EACH_MIN)
    }

    /// Those that are open.
    fn present(&self) -> Vec<Gateway> {
        let slots = self.0.slots.borrow();
        slots.values().filter_map(|slot| slot.open.try_lock().ok()?.clone()).collect()
    }

    /// All gateways, in the order of their keys.
    pub fn lines(&self) -> Vec<GatewayLine> {
        let slots = self.0.slots.borrow();
        let mut lines: Vec<_> = slots.iter().map(|(key, slot)| slot.line(key)).collect();
        lines.sort_by(|a, b| a.key.cmp(&b.key));
        lines
    }

    /// Gives each gateway that is open its share of the memory.
    fn share_out(&self) {
        let open = self.present();
        let units: Vec<_> = open.iter().map(Gateway::units).collect();
        let shares = share_out(self.0.memory.get(), &units);
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
    async fn close_later(&self, slot: Rc<Slot>, time: Duration) {
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
        if slot.present.get() == 0 {
            // Who comes back meanwhile waits until all is durable.
            slot.shut(&mut open).await;
        }
        drop(open);
        self.share_out();
    }

    /// Ends all connections, with what has crossed durable.
    pub async fn close(&self) {
        let slots: Vec<_> = self.0.slots.borrow().values().cloned().collect();
        for slot in slots {
            slot.close().await;
        }
    }
}

impl Slot {
    /// Ends the gateway's connection, with what has crossed durable.
    async fn close(&self) {
        self.shut(&mut *self.open.lock().await).await;
    }

    async fn shut(&self, open: &mut Option<Gateway>) {
        if let Some(gateway) = open.take() {
            self.past.set(self.past.get().plus(gateway.counted()));
            gateway.close().await;
        }
    }

    /// While it is being opened or closed, what was counted before.
    fn line(&self, key: &PublicKey) -> GatewayLine {
        let open = self.open.try_lock().ok().and_then(|open| open.clone());
        let (now, address) = open.map(|it| it.figures()).unwrap_or_default();
        GatewayLine { key: key.to_string(), address, counts: self.past.get().plus(now) }
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

    fn settings(keys: &[PublicKey]) -> FarSettings {
        let gateways = keys.to_vec();
        let overrides = config::FarOverrides {
            gateways,
            store: Some(config::Place::Memory),
            memory: Some(config::Size::mib(1)),
            control: Some("/nowhere".into()),
            ..config::FarOverrides::default()
        };
        config::FarGiven { file: Some("/dev/null".into()), overrides }.load().unwrap()
    }

    async fn gateways() -> Gateways {
        let egress = host::egress::follow(Vec::new(), &[]).await.unwrap();
        let dialler = Dialler::new(node::Access::default(), egress, Traffic::default());
        let setting = Setting {
            place: config::Place::Memory,
            store_bytes: 1 << 20,
            identity: [1; 32],
            pool: Pool::new(dialler, None),
            workers: Workers::start(1).unwrap(),
            room: Room::new(1),
        };
        Gateways::new(&settings(&[KEY]), setting)
    }

    #[test]
    fn a_gateway_is_closed_some_time_after_its_last_connection_unless_it_came_back() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        tokio::task::LocalSet::new().block_on(&runtime, async {
            let gateways = gateways().await;
            let slot = gateways.slot(&KEY).unwrap();
            let is_open = async || slot.open.lock().await.is_some();
            assert!(!is_open().await, "before its first connection");
            gateways.open(KEY, &slot).await.unwrap();
            slot.present.set(1);
            gateways.close_later(Rc::clone(&slot), Duration::ZERO).await;
            assert!(is_open().await, "it is there");
            slot.present.set(0);
            let begun = std::time::Instant::now();
            let (all, there) = (gateways.clone(), Rc::clone(&slot));
            let closing = spawn_local(async move { all.close_later(there, SOON).await });
            tokio::task::yield_now().await;
            // It comes and goes while the task waits.
            slot.visits.set(1);
            closing.await.unwrap();
            assert!(begun.elapsed() >= 2 * SOON, "the time begins anew");
            assert!(!is_open().await);
            gateways.open(KEY, &slot).await.unwrap();
            assert!(is_open().await, "it can be opened again");
            gateways.close().await;
        });
    }

    #[test]
    fn a_gateway_whose_key_is_removed_is_closed_and_cannot_be_opened() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        tokio::task::LocalSet::new().block_on(&runtime, async {
            let gateways = gateways().await;
            let slot = gateways.slot(&KEY).unwrap();
            gateways.open(KEY, &slot).await.unwrap();
            let other = PublicKey([8; 32]);
            gateways.admit(&settings(&[KEY, other])).await;
            assert!(gateways.has(&other) && slot.open.lock().await.is_some(), "it stays");
            gateways.admit(&settings(&[other])).await;
            assert!(!gateways.has(&KEY) && slot.open.lock().await.is_none());
            // A connection that was let in before.
            assert!(gateways.open(KEY, &slot).await.is_err());
            gateways.admit(&settings(&[KEY])).await;
            let anew = gateways.slot(&KEY).unwrap();
            assert!(gateways.open(KEY, &anew).await.is_ok());
            gateways.close().await;
        });
    }
}
