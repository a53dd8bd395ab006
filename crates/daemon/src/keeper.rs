//! Keeps the ledger while the daemon runs.
//!
//! *What this is:* [`Keeper`] reads what the engine, the connections and the firewall have counted, adds what is new
//! to `store::ledger`, and writes it to the file beside the store. *Who calls it:* `run.rs` starts [`Keeper::run`]; the
//! observer asks for pages. *What it never does:* lose more than [`EVERY`] when the daemon is killed (of what was
//! only forwarded, [`FORWARDED_EVERY`]), wait for the
//! disk on the loop's thread, or keep a host's name unless `[ledger] hosts` is true.

use crate::config::{Config, Place};
use crate::driver::Driver;
use crate::ledger::{Counted, Damaged, LedgerFile, LedgerPage, Now, Summary, damaged, unix_now};
use crate::relayed;
use host::helper::Helper;
use host::intercept::{Forwarded, Kind};
use host::traffic::With;
use node::account::ClassBytes;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use store::ledger::{Amount, Ledger, Topic, entry};
use tokio::sync::Notify;
use tokio::time::{Instant, MissedTickBehavior, interval};
use wire::Date;

/// How often what is new is counted and written: so much of it is missing after a kill at most.
pub const EVERY: Duration = Duration::from_secs(5);
/// How often the firewall's counters of what was only forwarded are read: the helper starts a process for that.
const FORWARDED_EVERY: Duration = Duration::from_secs(30);
/// Between two writes, however often somebody looks.
const PAUSE: Duration = Duration::from_secs(1);
/// Entries that wait to be written, in bytes; with more, the whole file is written instead.
const UNWRITTEN_MAX: usize = 64 << 10;

/// Keeps the ledger of a running daemon.
pub struct Keeper {
    driver: Driver,
    name: String,
    /// Before this date, the clock is wrong.
    built: Date,
    intercepts: Cell<bool>,
    hosts: Cell<bool>,
    state: RefCell<State>,
    /// When what was forwarded was read last.
    read_at: Cell<Instant>,
    /// A person has looked: what was shown is kept.
    shown: Notify,
    writing: tokio::sync::Mutex<()>,
    /// The ledger that was damaged and kept, if there is one.
    damaged: Option<Damaged>,
    /// `None` if the store is in memory.
    file: Option<Arc<Mutex<LedgerFile>>>,
}

struct State {
    ledger: Ledger,
    counted: Counted,
    forwarded: Option<Forwarded>,
    /// Entries that are not in the file yet.
    unwritten: Vec<u8>,
}

impl Keeper {
    /// Opens the ledger beside the store. If it cannot be read, a new one is begun, which is said once.
    pub fn open(config: &Config, driver: Driver, built: Date) -> Rc<Self> {
        let (ledger, file, damaged) = match &config.store.place {
            Place::Memory => (Ledger::default(), None, None),
            Place::Dir(dir) => {
                let (ledger, file) = LedgerFile::open(dir);
                (ledger, Some(Arc::new(Mutex::new(file))), damaged(dir))
            }
        };
        let state =
            State { ledger, counted: Counted::default(), forwarded: None, unwritten: Vec::new() };
        let keeper = Rc::new(Self {
            driver,
            name: config.name.clone(),
            built,
            intercepts: Cell::default(),
            hosts: Cell::default(),
            state: RefCell::new(state),
            read_at: Cell::new(Instant::now()),
            shown: Notify::new(),
            writing: tokio::sync::Mutex::default(),
            damaged,
            file,
        });
        keeper.holds(config);
        keeper
    }

    /// These settings hold from now on.
    pub fn holds(&self, config: &Config) {
        // What goes by the far end alone has no counters.
        self.intercepts.set(config.rules().is_some_and(|it| !it.interfaces.is_empty()));
        self.hosts.set(config.ledger.hosts);
        self.driver.with_account(|account| account.count_hosts(config.ledger.hosts));
        let State { ledger, unwritten, .. } = &mut *self.state.borrow_mut();
        if !config.ledger.hosts && ledger.forget_hosts() {
            tracing::info!("the ledger's hosts are forgotten: `[ledger] hosts` is false");
            // The file still has them: it is written anew.
            unwritten.resize(UNWRITTEN_MAX + 1, 0);
        }
    }

    /// Counts and writes at intervals, and soon after it was shown; never returns.
    pub async fn run(self: Rc<Self>) {
        // Not begun anew when somebody looks: who looks often would keep it from coming.
        let mut due = interval(EVERY);
        due.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = due.tick() => match self.read_at.get().elapsed() {
                    past if past < FORWARDED_EVERY => self.write().await,
                    _ => self.keep().await,
                },
                () = self.shown.notified() => {
                    self.write().await;
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }

    /// Counts what is new, what was forwarded too, and writes it.
    pub async fn keep(&self) {
        self.read_at.set(Instant::now());
        if self.intercepts.get() {
            match self.driver.helper().aside(Helper::forwarded).await {
                Ok(forwarded) => {
                    if forwarded.is_none() {
                        self.driver.rules_lost().notify_one();
                    }
                    self.state.borrow_mut().forwarded = forwarded;
                }
                Err(error) => tracing::debug!(%error, "cannot read what was forwarded"),
            }
        }
        self.write().await;
    }

    /// Counts what is new, and writes it.
    async fn write(&self) {
        // What is written must be in the file before more is.
        let _one = self.writing.lock().await;
        self.count();
        if let Some((file, unwritten, whole)) = self.to_write() {
            // The write waits for the disk.
            let write = move || locked(&file).write(&unwritten, whole);
            let _ = tokio::task::spawn_blocking(write).await;
        }
    }

    /// What is to be written, if anything: entries, or the whole file where these would be too many.
    #[expect(clippy::type_complexity, reason = "it is taken apart at once")]
    fn to_write(&self) -> Option<(Arc<Mutex<LedgerFile>>, Vec<u8>, Option<Vec<u8>>)> {
        let file = self.file.clone()?;
        let State { ledger, unwritten, .. } = &mut *self.state.borrow_mut();
        if unwritten.is_empty() {
            return None;
        }
        let is_full = unwritten.len() > UNWRITTEN_MAX;
        let whole = is_full || !locked(&file).takes(unwritten.len());
        let whole = whole.then(|| ledger.snapshot());
        Some((file, std::mem::take(unwritten), whole))
    }

    /// Adds what was counted since the last time.
    fn count(&self) {
        let hosts = self.driver.with_account(|account| account.take_hosts());
        let state = &mut *self.state.borrow_mut();
        let now = counted(&self.driver, state.forwarded.as_ref());
        let mut amounts = state.counted.since(&now, &self.driver.report().not_stored);
        if self.hosts.get() {
            for (name, bytes) in hosts {
                let amount = |column, count| Amount {
                    topic: Topic::Host,
                    name: name.clone(),
                    column,
                    count,
                };
                amounts.extend([amount(0, bytes.served), amount(1, bytes.fetched)]);
            }
        }
        amounts.retain(|amount| amount.count > 0);
        if amounts.is_empty() {
            return;
        }
        let date = self.date();
        state.ledger.add(date, &amounts);
        if self.file.is_some() && state.unwritten.len() <= UNWRITTEN_MAX {
            state.unwritten.extend(entry(date, &amounts));
        }
    }

    /// The date, if the clock can be right.
    fn date(&self) -> Option<u64> {
        let now = unix_now();
        (now >= self.built.as_unix()).then_some(now)
    }

    /// The sums of the last `seconds`, or of all time.
    pub fn page(&self, seconds: Option<u64>) -> LedgerPage {
        self.count();
        self.shown.notify_one();
        let state = self.state.borrow();
        let page = LedgerPage::of(&state.ledger, &self.name, seconds, unix_now());
        LedgerPage { damaged: self.damaged.clone(), ..page }
    }

    /// What the status says of it.
    pub fn summary(&self) -> Summary {
        self.count();
        Summary::of(&self.state.borrow().ledger, unix_now())
    }

    /// What was counted since the start.
    pub fn now(&self) -> Now {
        counted(&self.driver, self.state.borrow().forwarded.as_ref())
    }
}

/// What was counted since the start.
fn counted(driver: &Driver, forwarded: Option<&Forwarded>) -> Now {
    let wire = driver.pool().dialler().traffic().totals();
    let wire = With::ALL.iter().zip(wire).map(|(with, it)| (with.name().to_owned(), it));
    let kinds = forwarded.into_iter().flat_map(|all| Kind::ALL.iter().zip(all));
    let mut classes = driver.with_account(|account| account.by_name());
    let relayed = driver.relayed().content();
    if relayed != ClassBytes::default() {
        classes.entry(relayed::CLASS.into()).or_default().add(relayed);
    }
    Now {
        classes,
        wire: wire.collect(),
        forwarded: kinds.map(|(kind, it)| (kind.name().to_owned(), *it)).collect(),
    }
}

fn locked(file: &Mutex<LedgerFile>) -> std::sync::MutexGuard<'_, LedgerFile> {
    file.lock().unwrap_or_else(PoisonError::into_inner)
}
