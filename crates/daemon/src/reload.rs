//! SIGHUP: the configuration is read again while the daemon runs.
//!
//! *What this is:* [`KEYS`], which says of each setting whether it can change at run time, and
//! [`Reload`], which applies the changes. To make a setting changeable, write `live!` on its line in
//! [`KEYS`]. If a part of the daemon must know the new value, add a line to [`Reload::put_in_force`].
//! *What it never does:* end a transfer, apply any part of a file that has an error, or hold up clients while the helper
//! sets rules: it is asked by [`Helper::aside`], one request after the other.

use crate::changes::{self, Changes, Key, fixed, live};
use crate::config::{Config, Given};
use crate::doors::Doors;
use crate::driver::Driver;
use crate::log::Log;
use crate::observe::Observer;
use crate::service::ServiceManager;
use crate::stranded::Stranded;
use crate::transparent::Transparent;
use crate::uplink::{Feed as _, Uplink};
use host::egress::Egress;
use host::helper::{Helper, HelperError};
use node::Input;
use node::uplink::NearInput;
use std::rc::Rc;
use std::time::Duration;
use tokio::signal::unix::Signal;
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};

/// When a helper that did not answer in time is asked again.
const AGAIN_AFTER: Duration = Duration::from_secs(30);
/// How often is looked for what the kernel does not tell of: few small files are read.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// All settings.
const KEYS: [Key<Config>; 52] = [
    fixed!("listen", listen),
    live!("allow", allow),
    fixed!("name", name),
    fixed!("memory", memory_bytes),
    live!("drain", drain),
    fixed!("control", control),
    fixed!("[store] path", store.place),
    fixed!("[store] size", store.size_bytes),
    fixed!("[store] policy", store.policy),
    fixed!("[store] object-max", store.object_bytes_max),
    fixed!("[access] out", access.out),
    live!("[access] private", access.private),
    live!("[access] ports", access.ports),
    fixed!("classes.d", classes),
    live!("[intercept] interfaces", intercept.interfaces),
    fixed!("[intercept] port", intercept.port),
    live!("[intercept] ports", intercept.flows),
    live!("[intercept] http", intercept.ports),
    live!("[mirror] listen", mirror.listen),
    live!("[mirror] allow", mirror.allow),
    fixed!("[mesh] interfaces", mesh.interfaces),
    fixed!("[mesh] babeld", mesh.babeld),
    fixed!("[mesh] gateway", mesh.gateway),
    fixed!("[mesh] scheme", mesh.selection),
    fixed!("[mesh] key", mesh.key),
    live!("[mesh] gateways", mesh.gateways),
    fixed!("[mesh] port", mesh.port),
    live!("[mesh] direct", mesh.direct),
    fixed!("[overhear] mode", overhear.mode),
    fixed!("[overhear] interface", overhear.interface),
    fixed!("[overhear] memory", overhear.memory_bytes),
    fixed!("[uplink] far", uplink.far),
    fixed!("[uplink] far-key", uplink.far),
    live!("[metrics] listen", metrics),
    live!("[ledger] hosts", ledger.hosts),
    live!("[log] level", log),
    live!("[log] requests", requests.file),
    live!("[log] format", requests.format),
    live!("[log] clients", requests.clients),
    live!("[log] size", requests.size_bytes),
    live!("[log] keep", requests.keep),
    fixed!("[experiment] paper", experiment.paper),
    fixed!("[experiment] units", experiment.units),
    fixed!("[experiment] streams", experiment.overhear.joins_streams),
    fixed!("[experiment] halves", experiment.overhear.repairs),
    fixed!("[experiment] heads", experiment.overhear.guesses_heads),
    fixed!("[experiment] cancel", experiment.overhear.cancels),
    fixed!("[experiment] locate", experiment.search.locating),
    fixed!("[experiment] search-timeout", experiment.search.timeout),
    fixed!("[experiment] squares", experiment.squares),
    fixed!("[experiment] uplink", experiment.uplink),
    fixed!("[experiment] http", experiment.http),
];

/// Copies to `held` the settings that can change at run time.
pub fn take_over(held: &mut Config, new: &Config) -> Changes {
    changes::take_over(&KEYS, held, new)
}

/// The engine's settings that can change at run time.
fn engine_settings(config: &Config) -> node::Settings {
    node::Settings {
        allow: config.allow.clone(),
        gateways: config.mesh.gateways.clone(),
        mirror: config.mirror.allow.clone().into(),
        access: config.access.rules(&config.mesh.direct),
    }
}

/// Reads the configuration again at each SIGHUP.
pub struct Reload {
    /// The sources of the settings; the command line still overrides the file.
    given: Given,
    /// The current settings.
    pub held: Config,
    driver: Driver,
    observer: Rc<Observer>,
    pub transparent: Transparent,
    pub doors: Doors,
    log: Log,
    /// Told before and after each reload.
    manager: Rc<ServiceManager>,
    /// When the helper is asked again, if it has not answered in time.
    again: Option<Instant>,
}

impl Reload {
    /// With these settings in force, and where they come from.
    pub fn new(
        ((given, log), held): ((Given, Log), Config),
        driver: Driver,
        observer: Rc<Observer>,
        (transparent, doors): (Transparent, Doors),
        manager: Rc<ServiceManager>,
    ) -> Self {
        Self { given, held, driver, observer, transparent, doors, log, manager, again: None }
    }

    /// Reloads at SIGHUP, and adapts the interception rules to changed routes, to what the far end reaches, and to what
    /// else of the kernel they depend on; never returns.
    pub async fn heed(&mut self, mut hangup: Signal, mut egress: Egress) {
        let mut reach = self.driver.pair().map(Uplink::reach);
        let mut is_crowded = self.driver.pair().map(|_| self.driver.limit().is_crowded());
        if reach.is_some() {
            // What changed while the first rules were set.
            self.follow().await;
        }
        let mut stranded = Stranded::new(self.driver.clone(), egress.clone());
        let mut look = interval(LOOK_EVERY);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let driver = self.driver.clone();
        loop {
            tokio::select! {
                _ = look.tick() => {
                    stranded.look();
                    self.look().await;
                }
                () = driver.rules_lost().notified() => self.mend().await,
                Some(()) = hangup.recv() => self.reload().await,
                () = changed(&mut reach) => {
                    // The far end is outside.
                    if reach.as_ref().is_some_and(|it| it.borrow().is_some()) {
                        self.driver.feed(Input::Probed(true));
                    }
                    self.follow().await;
                }
                () = changed(&mut is_crowded) => self.follow().await,
                () = egress.changed() => {
                    self.driver.pool().clear();
                    self.driver.feed(Input::OutwardChanged);
                    self.follow().await;
                }
                () = at(self.again) => self.tell_helper().await,
            }
        }
    }

    async fn reload(&mut self) {
        self.manager.reloading();
        self.read_again().await;
        self.manager.ready();
    }

    async fn read_again(&mut self) {
        match self.given.load() {
            Ok(new) => {
                let changes = take_over(&mut self.held, &new);
                self.doors.change(&mut self.held, &self.driver, &self.observer).await;
                self.put_in_force();
                self.tell_helper().await;
                changes.say();
                new.warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
            }
            Err(error) => changes::refuse(&error),
        }
    }

    fn put_in_force(&mut self) {
        let settings = engine_settings(&self.held);
        self.driver.pool().dialler().permit(settings.access.clone());
        self.driver.pool().clear();
        self.driver.uplink(NearInput::Access(settings.access.clone()));
        self.driver.feed(Input::Settings(settings));
        self.observer.holds(&self.held);
        self.driver.set_flow_ports(self.held.flow_ports());
        self.driver.allow_mirrored(self.held.mirror.allow.clone().into());
        self.log.set(self.held.log);
        self.driver.watch_engine();
        self.driver.requests().hold(&self.held.requests);
    }

    /// Has the helper read the configuration, and set the rules that follow from it. Clients are served meanwhile.
    async fn tell_helper(&mut self) {
        let taken = self.driver.helper().aside(Helper::reload).await;
        let is_late = matches!(taken, Err(HelperError::Silent));
        if let Err(error) = taken
            && !matches!(error, HelperError::None(_))
        {
            tracing::warn!(%error, "the helper process did not take the new settings");
        }
        self.transparent.change(&self.held).await;
        self.again = None;
        self.ask_again_if(is_late || self.transparent.is_late());
    }

    async fn follow(&mut self) {
        self.transparent.follow(&self.held).await;
        self.ask_again_if(self.transparent.is_late());
    }

    async fn look(&mut self) {
        self.transparent.look(&self.held).await;
        self.ask_again_if(self.transparent.is_late());
    }

    async fn mend(&mut self) {
        self.transparent.mend(&self.held).await;
        self.ask_again_if(self.transparent.is_late());
    }

    fn ask_again_if(&mut self, is_late: bool) {
        if is_late {
            self.again.get_or_insert_with(|| Instant::now() + AGAIN_AFTER);
        }
    }
}

/// Waits until this moment; forever if there is none.
async fn at(moment: Option<Instant>) {
    match moment {
        Some(moment) => sleep_until(moment).await,
        None => std::future::pending().await,
    }
}

/// Waits until this changes; never returns without it.
async fn changed<T>(watched: &mut Option<watch::Receiver<T>>) {
    let changed = match watched {
        Some(watched) => watched.changed().await.is_ok(),
        None => false,
    };
    if !changed {
        std::future::pending().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::changes::tests::every_key_is_known;
    use crate::config::{KEYS as IN_FILE, load_text};
    use host::intercept::FlowPorts;

    fn changes(old: &str, new: &str) -> (Changes, Config) {
        let mut held = load_text(old).expect("a right file");
        let changes = take_over(&mut held, &load_text(new).expect("a right file"));
        (changes, held)
    }

    #[test]
    fn what_can_change_is_taken_over_and_the_rest_is_named() {
        let new = "allow = [\"192.0.2.0/24\"]\nmemory = \"8MiB\"\n[store]\npath = \"/x\"\n\
                   [intercept]\ninterfaces = [\"br-lan\"]\nport = 7007\nports = [80, 8080]\n\
                   [mesh]\ndirect = [\"10.0.0.0/8\"]";
        let (changes, held) = changes("", new);
        let taken =
            ["allow", "[intercept] interfaces", "[intercept] ports", "[mesh] direct"].to_vec();
        let left = ["memory", "[store] path", "[intercept] port"].to_vec();
        assert_eq!(changes, Changes { taken, left });
        assert_eq!(engine_settings(&held).allow, ["192.0.2.0/24".parse().expect("a prefix")]);
        let direct = engine_settings(&held).access.direct;
        assert_eq!(direct, ["10.0.0.0/8".parse().expect("a prefix")]);
        assert_eq!(
            (held.intercept.interfaces.as_slice(), held.memory_bytes),
            (&["br-lan".into()][..], 16 << 20)
        );
        assert_eq!((held.intercept.port, held.intercept.ports), (3130, vec![80]));
        assert_eq!(held.intercept.flows, FlowPorts::Only(vec![8080]));
    }

    #[test]
    fn whether_http_bypasses_the_cache_needs_a_restart_as_the_far_end_does() {
        let key = "00".repeat(32);
        let bypass = format!(
            "[uplink]\nfar = \"far.example.org\"\nfar-key = \"{key}\"\n[experiment]\nhttp = \"bypass\""
        );
        let (changes, held) = changes("", &bypass);
        let left = ["[uplink] far", "[uplink] far-key", "[experiment] http"].to_vec();
        assert_eq!(changes, Changes { taken: vec![], left });
        assert_eq!(
            (held.rules_of_any().ports, held.flow_ports()),
            (vec![80], FlowPorts::default())
        );
    }

    #[test]
    fn the_same_file_changes_nothing() {
        let text = "allow = [\"192.0.2.0/24\"]\nmemory = \"8MiB\"";
        assert_eq!(changes(text, text).0, Changes::default());
    }

    #[test]
    fn every_key_of_the_file_is_known() {
        // The mesh's key is one setting with two keys in the file, a published scheme one with three.
        every_key_is_known(&KEYS, &IN_FILE, |key| match key {
            "key-file" => "key",
            "degree" | "smallest" => "uplink",
            key => key,
        });
    }
}
