//! `hearsay far`: the far end of gateways' uplinks, on a server where bandwidth is cheap.
//!
//! *Start-up:* the key, a port, a few threads for packing. A gateway's histories and its engine are there from its
//! first connection on. *The loop* is tokio's, on one thread. `far/door.rs` finds out who connects,
//! `far/gateways.rs` opens and closes, `far/share.rs` shares memory out, `far/gateway.rs` drives one gateway's engine, whose
//! flows take turns (`far/turns.rs`), `far/fetch.rs` asks origins,
//! `far/tcp.rs` has connections with servers of other protocols. It is no member of a mesh, stores
//! no responses, and needs no rights beyond its port: it gives up all others (`rights.rs`).

mod door;
mod fetch;
mod gateway;
mod gateways;
mod room;
mod share;
mod tcp;
mod turns;

use crate::cli::Far;
use crate::config::{Machine, Place};
use crate::exit::Failure;
use crate::identity::Identity;
use crate::pair::Workers;
use crate::run::abort_on_panic;
use crate::{entropy, log, out, rights};
use door::Door;
use gateway::Setting;
use gateways::Gateways;
use host::dial::Dialler;
use host::egress;
use host::origin::Pool;
use host::tls::Tls;
use host::traffic::Traffic;
use node::uplink::PairKeys;
use room::Room;
use std::rc::Rc;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::LocalSet;

/// Memory for all gateways without `--memory`, and what each adds.
const MEMORY: (u64, u64) = (64 << 20, 1 << 20);

/// Threads that pack and unpack for all gateways at most.
const WORKERS_MAX: usize = 4;
/// The size of the buffer of a connection with an origin: a hostile gateway has a thousand of them.
const BUFFER: usize = 16 * 1024;
/// Idle connections to origins, over all gateways' pools …
const IDLE_MAX: usize = 256;
/// … and of each at least.
const IDLE_EACH_MIN: usize = 8;

/// Runs the far end until it is told to stop.
pub fn run(args: Far) -> Result<(), Failure> {
    log::start(args.log)?;
    // Gateways go past a far end that is dead, but wait for one that is half dead.
    abort_on_panic();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(host::resolve::LOOKUPS_MAX)
        .build()
        .map_err(Failure::failed)?;
    LocalSet::new().block_on(&runtime, serve(args))
}

async fn serve(args: Far) -> Result<(), Failure> {
    let place = match &args.store {
        Some(place) => place.clone(),
        None => Machine::here().far_dir().map(Place::Dir).ok_or_else(|| {
            Failure::usage(
                "no default for --store without $HOME or $XDG_CACHE_HOME: give the directory",
            )
        })?,
    };
    if let Place::Dir(dir) = &place {
        std::fs::create_dir_all(dir).map_err(|error| {
            Failure::failed(format!("{}: cannot be made: {error}", dir.display()))
        })?;
    }
    let listener = host::pair::listen(args.listen)
        .map_err(|error| Failure::failed(format!("cannot listen on {}: {error}", args.listen)))?;
    let room = Room::new(args.near.len());
    rights::confine_far(&place, args.ca.as_deref());
    let identity = Identity::of(&place);
    let tls = match Tls::new(args.ca.as_deref()) {
        Ok(tls) => Some(tls),
        Err(error) if args.ca.is_some() => return Err(Failure::usage(error)),
        Err(error) => {
            tracing::warn!("https cannot be fetched: {error}");
            None
        }
    };
    let egress = egress::follow(Vec::new(), &[]).await.map_err(Failure::failed)?;
    let access = node::Access { direct: args.private.clone(), ..node::Access::default() };
    let pool = Pool::new(Dialler::new(access, egress, Traffic::default()), tls);
    let pool = pool.with_buffers(BUFFER);
    let (memory, each) = MEMORY;
    let memory = args.memory.map_or(memory + each * args.near.len() as u64, |size| size.0);
    let setting = Setting {
        room,
        place,
        store_bytes: args.store_size.0,
        memory,
        identity: identity.seed,
        pool,
        idle_each: (IDLE_MAX / args.near.len().max(1)).max(IDLE_EACH_MIN),
        workers: Workers::start(workers()).map_err(Failure::failed)?,
    };
    let gateways = Gateways::new(&args.near, setting);
    let keys = PairKeys::new(&identity.seed, &entropy::bytes());
    let port = listener.local_addr().map_err(Failure::failed)?;
    say_lines(&keys, port)?;
    let door = Rc::new(Door::new(keys, gateways.clone()));
    let mut terminate = signal(SignalKind::terminate()).map_err(Failure::failed)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(Failure::failed)?;
    tokio::select! {
        () = Rc::clone(&door).accept(listener) => {}
        () = gateways.keep_shares() => {}
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    door.close().await;
    tracing::info!("stopped");
    Ok(())
}

/// How many threads pack for all gateways.
fn workers() -> usize {
    std::thread::available_parallelism().map_or(1, |it| it.get().min(WORKERS_MAX))
}

/// Prints what each gateway's configuration needs.
fn say_lines(keys: &PairKeys, address: std::net::SocketAddr) -> Result<(), Failure> {
    let host = match address.ip().is_unspecified() {
        true => "HOST".to_owned(),
        false if address.is_ipv6() => format!("[{}]", address.ip()),
        false => address.ip().to_string(),
    };
    tracing::info!(version = env!("CARGO_PKG_VERSION"), %address, "ready");
    let (port, key) = (address.port(), keys.key());
    out::line(format_args!("[uplink]\nfar = \"{host}:{port}\"\nfar-key = \"{key}\""))
}
