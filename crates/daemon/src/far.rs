//! `hearsay far`: the far end of gateways' uplinks, on a server where bandwidth is cheap.
//!
//! *Start-up:* the settings (`config/far.rs`), the control socket, a port, the key, a few threads for packing. A gateway's
//! histories and its engine are there from its
//! first connection on. *The loop* is tokio's, on one thread. `far/door.rs` finds out who connects,
//! `far/gateways.rs` opens and closes, `far/share.rs` shares memory out, `far/gateway.rs` drives one gateway's engine, whose
//! flows take turns (`far/turns.rs`), `far/fetch.rs` asks origins,
//! `far/tcp.rs` has connections with servers of other protocols. It is no member of a mesh, stores
//! no responses, and needs no rights beyond its port: it gives up all others (`rights.rs`). *Meanwhile:* `far/observe.rs`
//! answers `hearsay far status` and Prometheus, SIGHUP makes it read its settings again (`far/reload.rs`), and systemd is
//! told (`service.rs`).

mod door;
mod fetch;
mod gateway;
mod gateways;
mod observe;
mod reload;
mod room;
mod share;
mod tcp;
mod turns;

use crate::cli::Far;
use crate::config::{FarGiven, FarSettings, Place, far_control_paths};
use crate::control::ControlSocket;
use crate::exit::Failure;
use crate::identity::Identity;
use crate::log::Log;
use crate::pair::Workers;
use crate::run::abort_on_panic;
use crate::service::ServiceManager;
use crate::term::Style;
use crate::{ask, entropy, log, out, rights};
use door::Door;
use gateway::Setting;
use gateways::Gateways;
use host::dial::Dialler;
use host::egress;
use host::origin::Pool;
use host::tls::Tls;
use host::traffic::Traffic;
use node::uplink::PairKeys;
use observe::{MetricsPort, Observer};
use reload::Reload;
use room::Room;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Instant;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::{LocalSet, spawn_local};

/// Threads that pack and unpack for all gateways at most.
const WORKERS_MAX: usize = 4;
/// The size of the buffer of a connection with an origin: a hostile gateway has a thousand of them.
const BUFFER: usize = 16 * 1024;

/// Shows the far end that runs on this machine.
pub async fn show(control: Option<&Path>, json: bool) -> Result<(), Failure> {
    let status = ask::far_status(&far_control_paths(control)).await?;
    if json { out::json(&status) } else { out::print(status.page(Style::of_stdout())) }
}

/// Runs the far end until it is told to stop.
pub fn run(args: Far, control: Option<PathBuf>) -> Result<(), Failure> {
    let log = log::start(args.log)?;
    let given = args.given(control);
    let settings = given.load().map_err(Failure::usage)?;
    log.set(settings.log);
    // Gateways go past a far end that is dead, but wait for one that is half dead.
    abort_on_panic();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(host::resolve::LOOKUPS_MAX)
        .build()
        .map_err(Failure::failed)?;
    LocalSet::new().block_on(&runtime, serve(settings, (given, log)))
}

async fn serve(settings: FarSettings, (given, log): (FarGiven, Log)) -> Result<(), Failure> {
    let started = Instant::now();
    make_store(&settings.place)?;
    let control = ControlSocket::open(&settings.control).map_err(Failure::failed)?;
    let listener = listen(settings.listen, host::pair::listen)?;
    let address = listener.local_addr().map_err(Failure::failed)?;
    let metrics = settings.metrics.map(|it| listen(it, host::listen::explicit)).transpose()?;
    let room = Room::new(settings.gateways.len());
    rights::confine_far(&settings, given.path());
    let identity = Identity::of(&settings.place);
    let setting = setting(&settings, &identity, room.clone()).await?;
    let gateways = Gateways::new(&settings, setting);
    let keys = PairKeys::new(&identity.seed, &entropy::bytes());
    let key = keys.key().to_string();
    say_lines(&key, address)?;
    let door = Rc::new(Door::new(keys, gateways.clone()));
    let mut terminate = signal(SignalKind::terminate()).map_err(Failure::failed)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(Failure::failed)?;
    let hangup = signal(SignalKind::hangup()).map_err(Failure::failed)?;
    let observer = Rc::new(Observer {
        started,
        listen: address,
        key,
        gateways: gateways.clone(),
        door: Rc::clone(&door),
        room,
        held: settings.clone().into(),
    });
    spawn_local(control.serve(Rc::clone(&observer)));
    let mut port = MetricsPort::default();
    if let Some((address, listener)) = settings.metrics.zip(metrics) {
        port.open(address, listener, &observer);
    }
    let manager = ServiceManager::begin();
    let told = Rc::clone(&manager);
    let mut reload = Reload { given, held: settings, observer, metrics: port, log, manager: told };
    tokio::select! {
        () = Rc::clone(&door).accept(listener) => {}
        () = gateways.keep_shares() => {}
        () = reload.heed(hangup) => {}
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    manager.stopping();
    door.close().await;
    tracing::info!("stopped");
    Ok(())
}

fn make_store(place: &Place) -> Result<(), Failure> {
    let Place::Dir(dir) = place else { return Ok(()) };
    std::fs::create_dir_all(dir)
        .map_err(|error| Failure::failed(format!("{}: cannot be made: {error}", dir.display())))
}

fn listen(
    address: SocketAddr,
    open: impl Fn(SocketAddr) -> std::io::Result<TcpListener>,
) -> Result<TcpListener, Failure> {
    open(address).map_err(|error| Failure::failed(format!("cannot listen on {address}: {error}")))
}

/// What all gateways have in common.
async fn setting(
    settings: &FarSettings,
    identity: &Identity,
    room: Room,
) -> Result<Setting, Failure> {
    let tls = match Tls::new(settings.ca.as_deref()) {
        Ok(tls) => Some(tls),
        Err(error) if settings.ca.is_some() => return Err(Failure::usage(error)),
        Err(error) => {
            tracing::warn!("https cannot be fetched: {error}");
            None
        }
    };
    let egress = egress::follow(Vec::new(), &[]).await.map_err(Failure::failed)?;
    let pool = Pool::new(Dialler::new(settings.access(), egress, Traffic::default()), tls);
    Ok(Setting {
        room,
        place: settings.place.clone(),
        store_bytes: settings.store_bytes,
        identity: identity.seed,
        pool: pool.with_buffers(BUFFER),
        workers: Workers::start(workers()).map_err(Failure::failed)?,
    })
}

/// How many threads pack for all gateways.
fn workers() -> usize {
    std::thread::available_parallelism().map_or(1, |it| it.get().min(WORKERS_MAX))
}

/// Prints what each gateway's configuration needs.
fn say_lines(key: &str, address: SocketAddr) -> Result<(), Failure> {
    let host = match address.ip().is_unspecified() {
        true => "HOST".to_owned(),
        false if address.is_ipv6() => format!("[{}]", address.ip()),
        false => address.ip().to_string(),
    };
    tracing::info!(version = env!("CARGO_PKG_VERSION"), %address, "ready");
    let port = address.port();
    out::line(format_args!("[uplink]\nfar = \"{host}:{port}\"\nfar-key = \"{key}\""))
}
