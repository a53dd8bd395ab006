//! `hearsay run`: starts the daemon, and runs it until it is told to stop.
//!
//! *Start-up:* the helper (`rights.rs`), control socket, listeners; from there on with few rights: store, engine,
//! interception rules. If a part that traffic
//! does not need fails, the daemon logs a warning and runs without it. *The loop* is tokio's, on
//! one thread: clients (`clients.rs`), origins (`origins.rs`), peers (`links.rs`), the capture
//! (`overhear.rs`) and the store's threads (`disk.rs`) feed the engine through [`Driver`]. *The
//! end:* the listeners close first, so that new connections bypass the daemon. Open connections get
//! time to finish (`drain.rs`). Then the links to peers are closed, the rules are removed, and the
//! store is synced. *Meanwhile:* SIGHUP makes the daemon read the configuration again
//! (`reload.rs`). systemd is told of each of these (`service.rs`).

use crate::clients::{self, ListenerKind};
use crate::config::{Config, Given, control_paths};
use crate::connections::ConnectionLimit;
use crate::control::{self, ControlError};
use crate::disk::{self, Disk};
use crate::doctor::BUILT;
use crate::doors::{Doors, For};
use crate::drain::drain;
use crate::driver::{Driver, Network};
use crate::entropy;
use crate::identity::Identity;
use crate::keeper::Keeper;
use crate::log::Log;
use crate::mesh;
use crate::observe::Observer;
use crate::overhear::CaptureState;
use crate::reload::Reload;
use crate::request_log;
use crate::rights;
use crate::selftest;
use crate::service::ServiceManager;
use crate::transparent::{self, Transparent};
use crate::uplink::Uplink;
use host::dial::Dialler;
use host::egress;
use host::helper::Helper;
use host::origin::Pool;
use host::tls::Tls;
use host::traffic::Traffic;
use node::driver::CLOCK_EVERY;
use node::{Input, Node, StoreInput};
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;
use store::Recovery;
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::task::{AbortHandle, LocalSet, spawn_local};

/// How long links may take to send what is still buffered when the daemon stops.
const HANG_UP: Duration = Duration::from_millis(500);
/// Blocking threads that list the store for the control socket, besides those that resolve names.
const OBSERVERS_MAX: usize = 2;
/// Blocking threads that wait for the helper: of the reload, the ledger and the self-test.
const ASKERS_MAX: usize = 3;

/// Why the daemon could not start.
#[derive(Debug, thiserror::Error)]
pub enum DriveError {
    /// The control socket cannot be opened.
    #[error(transparent)]
    Control(#[from] ControlError),
    /// Another process uses the store.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// A port cannot be opened.
    #[error("cannot listen on {address}: {error}{hint}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The kernel's error.
        error: std::io::Error,
        /// What the operator can do.
        hint: String,
    },
    /// The tokio runtime or a signal handler cannot be set up.
    #[error("cannot set up the event loop or the signal handlers: {0}")]
    Runtime(#[from] std::io::Error),
}

/// Runs the daemon until it is told to stop. A reload makes new settings from `given`, and sets the log's level.
pub fn run(config: Config, given: (Given, Log), helper: Helper) -> Result<(), DriveError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(host::resolve::LOOKUPS_MAX + OBSERVERS_MAX + ASKERS_MAX)
        .build()?;
    LocalSet::new().block_on(&runtime, drive(config, given, helper))
}

async fn drive(config: Config, given: (Given, Log), helper: Helper) -> Result<(), DriveError> {
    let (mut stop, hangup) = (Stop::new()?, signal(SignalKind::hangup())?);
    let control = control::ControlSocket::open(&config.control)?;
    let mut listeners = open_listeners(&config, &helper)?;
    let log_file = request_log::prepare(&config.requests);
    let in_force = rights::confine(&config, &given.0);
    let (answers, answered) = mpsc::unbounded_channel();
    let (disk, index) = open_store(&config, &answers)?;
    let is_known = config.mesh.routing().is_some() || config.uplink.far.is_some();
    let identity = is_known.then(|| Identity::of(&config.store.place));
    let pair = identity.as_ref().and_then(|it| Uplink::open(&config, it, access(&config)));
    let (pair, results) = pair.unzip();
    let capture = CaptureState::open(&config, &helper);
    let settings = engine_config(&config, identity.as_ref(), &capture);
    let reach = settings.reach.clone();
    let engine = Node::new(settings, index);
    let egress = egress::follow(config.access.out.clone(), &config.mesh.interfaces).await?;
    let dialler = Dialler::new(access(&config), egress.clone(), Traffic::default());
    let pool = Pool::new(dialler, Tls::of_system());
    let limit = ConnectionLimit::new(clients::connections_max(), config.memory_bytes);
    let (datagrams, receivers) = mesh::datagrams(&config).unzip();
    let network = Network { pool, limit, uplink: pair.clone(), datagrams, helper: helper.clone() };
    let driver = Driver::new(engine, reach, config.name.clone(), disk, network);
    if let Some((pair, results)) = pair.zip(results) {
        spawn_local(pair.run(driver.clone(), results));
    }
    driver.requests().begin(&config, log_file);
    spawn_loops(&driver, answered);
    let keeper = Keeper::open(&config, driver.clone(), BUILT);
    spawn_local(Rc::clone(&keeper).run());
    let (addresses, ledger) = (listeners.addresses(), Rc::clone(&keeper));
    let observer = Rc::new(Observer::new(driver.clone(), &config, addresses, ledger, in_force));
    observer.is(identity);
    spawn_local(rights::say_end(helper));
    mesh::say_sealing(&config);
    observer.hears(capture.listen(&driver));
    mesh::follow_routes(&config, &driver, &observer).await;
    driver.set_flow_ports(config.flow_ports());
    let mut transparent = Transparent::new(driver.clone(), Rc::clone(&observer), egress.clone());
    if let Some(listener) = listeners.transparent.take() {
        transparent.begin(&config, listener).await;
    }
    // Who asks for the status learns from it that all is in place.
    spawn_local(control.serve(Rc::clone(&observer)));
    let (mut accepting, doors) = listeners.serve(&driver, &observer);
    accepting.extend(mesh::accept_peers(&config, &driver));
    accepting.extend(mesh::receive(receivers.unwrap_or_default(), &driver));
    spawn_local(selftest::run(Rc::clone(&observer)));
    let (addresses, mirrors) = (&observer.addresses, &config.mirror.listen);
    tracing::info!(version = env!("CARGO_PKG_VERSION"), ?addresses, ?mirrors, "ready");

    let manager = ServiceManager::begin();
    let told = Rc::clone(&manager);
    let mut reload =
        Reload::new((given, config), driver.clone(), observer, (transparent, doors), told);
    tokio::select! {
        () = stop.wait() => {}
        () = reload.heed(hangup, egress) => {}
    }
    manager.stopping();
    // From here on new connections bypass the daemon. The rules stay: open intercepted connections
    // need them.
    accepting.iter().for_each(AbortHandle::abort);
    reload.doors.close();
    reload.transparent.stop_accepting();
    drain(&driver, reload.held.drain, stop.wait()).await;
    driver.links().hang_up(HANG_UP).await;
    // Before the rules go, and with them their counters.
    keeper.keep().await;
    reload.transparent.end().await;
    driver.requests().finish();
    driver.with_disk(Disk::finish);
    tracing::info!("stopped");
    Ok(())
}

/// Opens the store. Until then a panic may come of a damaged file, which is replaced; afterwards it ends the daemon.
fn open_store(
    config: &Config,
    answers: &UnboundedSender<StoreInput>,
) -> Result<(Disk, store::Index), DriveError> {
    say_panics();
    let (disk, index, recovery) = Disk::open(&config.store, answers)?;
    if disk.trouble().is_none() {
        say_store(&recovery, index.report().index_bytes);
    }
    abort_on_panic();
    Ok((disk, index))
}

fn say_store(recovery: &Recovery, index_bytes: u64) {
    tracing::info!(
        units = recovery.units,
        segments = recovery.segments,
        index_bytes,
        dropped_units = recovery.dropped_units,
        dropped_segments = recovery.dropped_segments,
        "the store is open"
    );
}

fn engine_config(
    config: &Config,
    identity: Option<&Identity>,
    capture: &CaptureState,
) -> node::Config {
    node::Config {
        name: config.name.clone(),
        secret: config.mesh.object_secret(),
        seed: entropy::bytes(),
        memory_bytes: config.memory_bytes,
        profile: config.experiment.units,
        // At most half of the store, so that one object cannot evict everything else.
        object_bytes_max: config.store.size_bytes / 2,
        undecided_bytes_max: config.store.object_bytes_max.unwrap_or(u64::MAX),
        allow: config.allow.clone(),
        access: access(config),
        built: BUILT,
        mesh: mesh::engine_config(config, identity, capture.budget()),
        reach: config.reach(),
    }
}

fn access(config: &Config) -> node::Access {
    config.access.rules(&config.mesh.direct)
}

/// Starts the tasks that feed the engine besides clients, origins and peers: the store's answers,
/// its timer and the date.
fn spawn_loops(driver: &Driver, mut answered: UnboundedReceiver<StoreInput>) {
    driver.set_clock();
    let disk = driver.clone();
    spawn_local(async move {
        while let Some(answer) = answered.recv().await {
            disk.feed(Input::Store(answer));
        }
    });
    let timer = driver.clone();
    spawn_local(async move { timer.tick().await });
    let limit = Rc::clone(driver.limit());
    spawn_local(async move { limit.tend().await });
    let clock = driver.clone();
    spawn_local(async move {
        loop {
            tokio::time::sleep(CLOCK_EVERY).await;
            clock.set_clock();
        }
    });
}

/// The open listening sockets.
struct Listeners {
    explicit: Vec<(SocketAddr, TcpListener)>,
    doors: Vec<((For, SocketAddr), TcpListener)>,
    transparent: Option<TcpListener>,
}

fn open_listeners(config: &Config, helper: &Helper) -> Result<Listeners, DriveError> {
    let mut explicit = Vec::new();
    for address in &config.listen {
        let listener = listen(config, *address, host::listen::explicit)?;
        explicit.push((listener.local_addr()?, listener));
    }
    let mirror = config.mirror.listen.iter().map(|it| (For::Mirror, *it));
    let doors = mirror.chain(config.metrics.map(|it| (For::Metrics, it)));
    let open = |door: (For, SocketAddr)| {
        listen(config, door.1, host::listen::explicit).map(|listener| (door, listener))
    };
    let doors = doors.map(open).collect::<Result<_, _>>()?;
    let transparent = match config.rules().is_none() {
        true => None,
        false => {
            let address = transparent::address(&config.intercept);
            Some(listen(config, address, |_| transparent::open(&config.intercept, helper))?)
        }
    };
    Ok(Listeners { explicit, doors, transparent })
}

fn listen(
    config: &Config,
    address: SocketAddr,
    open: impl Fn(SocketAddr) -> std::io::Result<TcpListener>,
) -> Result<TcpListener, DriveError> {
    use std::io::ErrorKind;
    open(address).map_err(|error| {
        let hint = match error.kind() {
            ErrorKind::AddrInUse => taken_by(config),
            ErrorKind::AddrNotAvailable => ". This machine does not have that address".into(),
            ErrorKind::PermissionDenied => {
                ". That needs root, or CAP_NET_ADMIN to intercept".into()
            }
            _ => String::new(),
        };
        DriveError::Listen { address, error, hint }
    })
}

/// Who may have a port that this daemon needs, and what to do.
fn taken_by(config: &Config) -> String {
    let others = control_paths(None).into_iter().filter(|it| *it != config.control);
    match others.map(|it| (control::is_open(&it), it)).find(|(is_open, _)| *is_open) {
        Some((_, path)) => format!(
            ". Another hearsay is running, with another control socket: {}. Stop it, or give this one ports and a store of \
             its own",
            path.display()
        ),
        None => ". Another program has this port: stop it, or choose another".into(),
    }
}

impl Listeners {
    fn addresses(&self) -> Vec<SocketAddr> {
        self.explicit.iter().map(|(address, _)| *address).collect()
    }

    /// Starts to accept. Returns the handles of the accept loops, to stop them later, and the listeners that a reload may
    /// close.
    fn serve(self, driver: &Driver, observer: &Rc<Observer>) -> (Vec<AbortHandle>, Doors) {
        let accept = |(_, listener)| {
            let accepting = clients::accept(driver.clone(), listener, ListenerKind::Explicit);
            spawn_local(accepting).abort_handle()
        };
        let explicit = self.explicit.into_iter().map(accept).collect();
        let mut doors = Doors::default();
        for (door, listener) in self.doors {
            doors.open(door, listener, driver, observer);
        }
        (explicit, doors)
    }
}

/// Logs panics while the store is opened. There the database library panics when a file is damaged,
/// and the store replaces that file.
fn say_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let payload = panic.payload();
        let text = payload.downcast_ref::<&str>().copied();
        let text = text.or(payload.downcast_ref::<String>().map(String::as_str));
        tracing::warn!(at = ?panic.location(), "damaged data: {}", text.unwrap_or_default());
    }));
}

/// Makes a panic abort the process from here on: traffic bypasses a dead daemon, but hangs at one
/// that is half dead. The writer thread alone may panic: it replaces a damaged file, or aborts the
/// process itself.
pub fn abort_on_panic() {
    drop(std::panic::take_hook());
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        report(panic);
        if std::thread::current().name() != Some(disk::WRITER) {
            std::process::abort();
        }
    }));
}

/// The signals that stop the daemon.
struct Stop {
    terminate: Signal,
    interrupt: Signal,
    /// SIGXFSZ, caught and ignored: a write beyond the file size limit then fails with an error instead of
    /// killing the daemon.
    _file_size: Signal,
}

impl Stop {
    fn new() -> Result<Self, std::io::Error> {
        let terminate = signal(SignalKind::terminate())?;
        let interrupt = signal(SignalKind::interrupt())?;
        let file_size = SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw());
        Ok(Self { terminate, interrupt, _file_size: signal(file_size)? })
    }

    async fn wait(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}
