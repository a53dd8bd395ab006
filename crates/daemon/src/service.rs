//! The daemon under systemd: what it tells the service manager, and where that keeps its directories.
//!
//! *What this is:* the sender's side of sd_notify(3): the manager names a datagram socket in `$NOTIFY_SOCKET`, and the
//! daemon sends it lines such as `READY=1`. *Who calls it:* `run.rs` and `reload.rs`. *What it never does:* wait, or fail
//! the daemon: without a manager, or with one that does not listen, nothing is sent.

use std::cell::Cell;
use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// The service manager, if one has started this process.
#[derive(Debug, Default)]
pub struct ServiceManager {
    to: Option<(UnixDatagram, SocketAddr)>,
    /// How often the manager must hear that the loop runs; `None`: it does not watch.
    watchdog: Option<Duration>,
    is_reloading: Cell<bool>,
}

impl ServiceManager {
    /// Tells the manager that all listeners are open, and from now on that the loop runs. Needs a `LocalSet`.
    pub fn begin() -> Rc<Self> {
        let manager = Rc::new(Self::of_environment());
        manager.ready();
        let watched = Rc::clone(&manager);
        tokio::task::spawn_local(async move { watched.reassure().await });
        manager
    }

    /// The manager that this process's environment names.
    fn of_environment() -> Self {
        let variable = |name| std::env::var_os(name);
        let Some(path) = variable("NOTIFY_SOCKET").filter(|path| !path.is_empty()) else {
            return Self::default();
        };
        let number = |name| variable(name)?.to_str()?.parse::<u64>().ok();
        // The variables may have been meant for a process that has started this one.
        let is_ours = number("WATCHDOG_PID").is_none_or(|id| id == u64::from(std::process::id()));
        let watchdog = number("WATCHDOG_USEC").filter(|usec| is_ours && *usec > 0);
        match open(&path) {
            Ok(to) => Self {
                to: Some(to),
                watchdog: watchdog.map(Duration::from_micros),
                is_reloading: Cell::default(),
            },
            Err(error) => {
                tracing::warn!(
                    ?path,
                    "the service manager will not hear from this daemon: {error}"
                );
                Self::default()
            }
        }
    }

    /// All is in place, or in place again.
    pub fn ready(&self) {
        self.is_reloading.set(false);
        self.send("READY=1\n");
    }

    /// The configuration is being read again; [`Self::ready`] follows.
    pub fn reloading(&self) {
        self.is_reloading.set(true);
        // The manager compares this with the time when it asked for it.
        let now = clock_gettime(ClockId::Monotonic);
        let seconds = Duration::from_secs(now.tv_sec.try_into().unwrap_or_default());
        let now = seconds + Duration::from_nanos(now.tv_nsec.try_into().unwrap_or_default());
        self.send(&format!("RELOADING=1\nMONOTONIC_USEC={}\n", now.as_micros()));
    }

    /// The daemon waits for open connections, and ends. A reload that this cuts short is over, for who waits for it.
    pub fn stopping(&self) {
        if self.is_reloading.get() {
            self.ready();
        }
        self.send("STOPPING=1\n");
    }

    /// Tells the manager that the loop runs, twice in each of its intervals; never returns. A task of the loop, so that
    /// a loop that hangs is not heard of, and the manager restarts the daemon.
    async fn reassure(&self) {
        let Some(interval) = self.watchdog else { return std::future::pending().await };
        loop {
            self.send("WATCHDOG=1\n");
            tokio::time::sleep(interval / 2).await;
        }
    }

    fn send(&self, state: &str) {
        let Some((socket, address)) = &self.to else { return };
        if let Err(error) = socket.send_to_addr(state.as_bytes(), address) {
            tracing::debug!(state = state.trim_end(), "the service manager was not told: {error}");
        }
    }
}

fn open(path: &OsStr) -> io::Result<(UnixDatagram, SocketAddr)> {
    let address = match path.as_bytes() {
        // A name of the kernel's abstract namespace, which no file has.
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
        [b'/', ..] => SocketAddr::from_pathname(Path::new(path))?,
        _ => return Err(io::Error::new(io::ErrorKind::Unsupported, "no path, and no @name")),
    };
    let socket = UnixDatagram::unbound()?;
    // A manager that does not read must not stop the loop.
    socket.set_nonblocking(true)?;
    Ok((socket, address))
}
