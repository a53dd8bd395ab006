//! What the control socket shows of the running daemon.

use crate::config::{Config, Place};
use crate::control::{ManifestPage, ObjectLine, Observed, UnitLine};
use crate::driver::Driver;
use crate::identity::Identity;
use crate::judge::Judge;
use crate::keeper::Keeper;
use crate::ledger::LedgerPage;
use crate::overhear::Heard;
use crate::publish::{PublishedLine, Publishes, UNLISTED};
use crate::purge::{self, Filter, PurgeLine, Purges, Stored};
use crate::status::{
    Clients, Finding, Intercept, Mesh, Overhear, PeerLine, Process, Rights, Route, SelfTest,
    Status, Store, StoreKind,
};
use crate::uplink::Uplink;
use classes::Verdict;
use host::datagrams::Datagrams;
use host::helper::Helper;
use host::intercept::{Flows, missing_interfaces};
use host::rights::InForce;
use hyper::body::Incoming;
use node::{Audience, PutError, Record, RouteTable, Row, Target};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Instant, SystemTime};
use store::CatalogueReader;
use tokio::sync::watch;
use wire::{Date, ObjectKey, Oid};

/// How many rows are read for one list, at most.
const ROWS_MAX: usize = 100_000;

/// Reads the daemon's state from its driver and its configuration.
pub struct Observer {
    driver: Driver,
    config: RefCell<Config>,
    started: Instant,
    /// Where the explicit proxy listens.
    pub addresses: Vec<SocketAddr>,
    intercept: RefCell<(bool, Option<String>)>,
    routes: RefCell<Option<Routes>>,
    /// Why the identity is a temporary one, if it is.
    is_temporary: RefCell<Option<String>>,
    heard: RefCell<Option<Heard>>,
    in_force: InForce,
    tested: RefCell<BTreeMap<String, SelfTest>>,
    ledger: Rc<Keeper>,
}

/// The current route to the gateway, or why it cannot be known.
pub type Routes = Result<watch::Receiver<RouteTable>, String>;

impl Observer {
    /// Observes a daemon from its start.
    pub fn new(
        driver: Driver,
        config: &Config,
        addresses: Vec<SocketAddr>,
        ledger: Rc<Keeper>,
        in_force: InForce,
    ) -> Self {
        let (config, intercept) = (RefCell::new(config.clone()), RefCell::default());
        let (routes, is_temporary, heard) =
            (RefCell::default(), RefCell::default(), RefCell::default());
        let (started, tested) = (Instant::now(), RefCell::default());
        Self {
            driver,
            config,
            started,
            addresses,
            intercept,
            routes,
            is_temporary,
            heard,
            in_force,
            tested,
            ledger,
        }
    }

    /// Notes that the settings changed.
    pub fn holds(&self, config: &Config) {
        self.config.borrow_mut().clone_from(config);
        self.ledger.holds(config);
    }

    /// Notes the routes, if the daemon is in a mesh.
    pub fn follows(&self, routes: Routes) {
        *self.routes.borrow_mut() = Some(routes);
    }

    /// Notes the identity that the engine was given.
    pub fn is(&self, identity: Option<Identity>) {
        *self.is_temporary.borrow_mut() = identity.and_then(|it| it.is_temporary);
    }

    /// Notes the capture, or why it could not be opened; `None` if overhearing is off.
    pub fn hears(&self, heard: Option<Heard>) {
        *self.heard.borrow_mut() = heard;
    }

    /// The process that has the daemon's rights.
    pub fn helper(&self) -> Helper {
        self.driver.helper().clone()
    }

    /// Interception rules are missing.
    pub fn misses_rules(&self) {
        self.driver.rules_lost().notify_one();
    }

    fn rights(&self) -> Rights {
        let helper = self.driver.helper();
        Rights {
            limits: self.in_force.clone(),
            helper: helper.works(),
            helper_process: helper.process(),
            helper_silent: helper.is_silent(),
        }
    }

    /// Notes what the daemon's own checks found.
    pub fn tested(&self, found: Vec<Finding>) {
        let named = |it: Finding| (it.check.name().to_owned(), it.into());
        *self.tested.borrow_mut() = found.into_iter().map(named).collect();
    }

    /// The settings now.
    pub fn config(&self) -> Config {
        self.config.borrow().clone()
    }

    fn overhear(&self) -> Option<Overhear> {
        let config = self.config.borrow();
        let interface = config.overhear.interface.clone()?;
        let memory_bytes = config.overhear.memory_bytes;
        Some(match self.heard.borrow().as_ref()? {
            Ok(capture) => Overhear::new(interface, memory_bytes, capture.report()),
            Err(error) => Overhear::failed(interface, memory_bytes, error.clone()),
        })
    }

    fn clients(&self) -> Clients {
        let limit = self.driver.limit();
        Clients {
            connections: limit.len() as u64,
            refused: limit.refused(),
            past: limit.passed(),
            ..limit.counters()
        }
    }

    fn mesh(&self) -> Option<Mesh> {
        let (id, public_key) = self.driver.identity()?;
        let config = self.config.borrow();
        let mesh = &config.mesh;
        Some(Mesh {
            scheme: mesh.selection.name().into(),
            port: mesh.port,
            has_key: mesh.key.is_some(),
            id: id.to_string(),
            public_key: public_key.to_string(),
            is_temporary: self.is_temporary.borrow().clone(),
        })
    }

    fn route(&self) -> Option<Route> {
        let config = self.config.borrow();
        let interfaces = &config.mesh.interfaces;
        let routes = self.routes.borrow();
        let route = match routes.as_ref()? {
            Ok(routes) => Route::new(interfaces, &routes.borrow(), today()),
            Err(error) => Route::failed(interfaces, error.clone()),
        };
        Some(route.look_below_ip())
    }

    /// Notes whether interception works, and what the operator should know.
    pub fn intercepts(&self, works: bool, note: Option<String>) {
        *self.intercept.borrow_mut() = (works, note);
    }

    fn judge(&self) -> Judge {
        let classes = Arc::clone(&self.driver.reach().classes);
        Judge { classes, proven: self.driver.proven() }
    }

    fn catalogue(&self) -> Option<CatalogueReader> {
        self.driver.with_disk(|disk| disk.rows().cloned())
    }
}

impl Observed for Observer {
    fn status(&self) -> Status {
        let (report, now) = (self.driver.report(), self.ledger.now());
        let (works, note) = self.intercept.borrow().clone();
        let config = self.config.borrow();
        let rules = config.rules_of_any();
        let store = &config.store;
        let (kind, path) = match &store.place {
            Place::Memory => (StoreKind::Memory, None),
            Place::Dir(path) => (StoreKind::Disk, Some(path.clone())),
        };
        let unlisted = report.published_unread.then(|| UNLISTED.to_owned());
        let error = self.driver.with_disk(|disk| disk.trouble()).or(unlisted);
        Status {
            version: env!("CARGO_PKG_VERSION").into(),
            name: config.name.clone(),
            process: Process::here(self.started),
            rights: Some(self.rights()),
            listeners: self.addresses.clone(),
            mirrors: config.mirror.listen.clone(),
            metrics: config.metrics,
            intercept: Intercept {
                interfaces_missing: missing_interfaces(&rules.all_interfaces()),
                interfaces: rules.interfaces,
                port: rules.listen_port,
                ports: rules.ports,
                flows: rules.flows.map(|it| Flows { reach: self.driver.reaches(), ..it }),
                out: self.driver.pool().dialler().egress().interfaces(),
                works,
                note,
            },
            route: self.route(),
            mesh: self.mesh(),
            datagrams: self.driver.datagrams().map(Datagrams::counts),
            overhear: self.overhear(),
            uplink: self.driver.pair().map(Uplink::line),
            store: Store {
                kind,
                path,
                size_bytes: store.size_bytes,
                used_bytes: report.index.bytes_on_disk,
                works: report.store_works && error.is_none(),
                error,
            },
            memory_budget_bytes: config.memory_bytes,
            clients: self.clients(),
            relayed_bytes: self.driver.relayed().passed.total(),
            ledger: Some(self.ledger.summary()),
            classes: now.classes,
            wire: now.wire,
            forwarded: now.forwarded,
            selftest: self.tested.borrow().clone(),
            request_log: self.driver.requests().status(),
            report,
        }
    }

    fn peers(&self) -> Vec<PeerLine> {
        self.driver.peers().iter().map(PeerLine::from).collect()
    }

    fn ledger(&self, seconds: Option<u64>) -> LedgerPage {
        self.ledger.page(seconds)
    }

    async fn objects(&self, limit: usize) -> Vec<ObjectLine> {
        let Some(catalogue) = self.catalogue() else { return Vec::new() };
        let judge = self.judge();
        // Reading the catalogue waits for the disk, so it is done on another thread.
        let listed = tokio::task::spawn_blocking(move || newest(&catalogue, &judge, limit)).await;
        listed.unwrap_or_default()
    }

    async fn manifest(&self, url: &str, page: u64) -> Option<ManifestPage> {
        let catalogue = self.catalogue()?;
        let uri: http::Uri = url.parse().ok()?;
        let target = Target::read(&uri)?;
        // Responses for any audience are shown.
        let secret = self.config.borrow().mesh.object_secret();
        let keys = Audience::ALL.map(|audience| target.key(&secret, audience));
        let read = tokio::task::spawn_blocking(move || read_page(&catalogue, &keys, page));
        read.await.ok()?
    }
}

impl Publishes for Observer {
    async fn put(&self, length: u64, content: Incoming) -> Result<Oid, PutError> {
        self.driver.put(length, content).await
    }

    async fn withdraw(&self, name: Oid) -> Result<Oid, PutError> {
        self.driver.withdraw(name).await
    }

    fn published(&self) -> Result<Vec<PublishedLine>, PutError> {
        Publishes::published(&self.driver)
    }
}

impl Purges for Observer {
    async fn purge(&self, filter: Filter, dry_run: bool) -> Result<PurgeLine, String> {
        let missing = || "the store does not work: see `hearsay status`".to_owned();
        let catalogue = self.catalogue().ok_or_else(missing)?;
        let (secret, is_sealed) = {
            let mesh = &self.config.borrow().mesh;
            (mesh.object_secret(), mesh.key.is_some())
        };
        let published = self.driver.published().map_err(|_| UNLISTED.to_owned())?;
        let published = published.into_iter().map(|it| it.key).collect();
        let (judge, today) = (self.judge(), today());
        let stored = Stored { catalogue, judge, secret, is_sealed, published, today };
        purge::purge(&self.driver, stored, filter, dry_run).await
    }
}

fn newest(catalogue: &CatalogueReader, judge: &Judge, limit: usize) -> Vec<ObjectLine> {
    let (mut lines, mut seen) = (Vec::new(), 0);
    let now = today();
    // Rows that cannot be read are not listed; the log says why.
    let _ = catalogue.for_each(None, |_, bytes| {
        seen += 1;
        if let Some(row) = Row::decode(bytes) {
            let verdict = judge.of(&row.uri);
            lines.extend(row.records.iter().map(|record| line(&row.uri, record, &verdict, now)));
        }
        seen < ROWS_MAX
    });
    lines.sort_by_key(|line| line.age_seconds);
    lines.truncate(limit);
    lines
}

fn line(url: &str, record: &Record, verdict: &Verdict, now: Date) -> ObjectLine {
    let (age_seconds, fresh_seconds) = record.age_and_freshness(verdict, now);
    ObjectLine { url: url.to_owned(), length: record.length, age_seconds, fresh_seconds }
}

/// A page of the manifest of the record that was received last under any of these keys.
fn read_page(catalogue: &CatalogueReader, keys: &[ObjectKey], page: u64) -> Option<ManifestPage> {
    let records = keys.iter().filter_map(|key| selected(catalogue, key));
    let record = records.max_by_key(|record| record.received)?;
    let number = u32::try_from(page).ok()?;
    let segment = node::stored_segment(&catalogue.segment(&record.id, number).ok()??)?;
    let text = |name| record.headers.get(name).and_then(|value| value.to_str().ok());
    let unit = |entry: &content::Entry| UnitLine {
        name: entry.id.to_string(),
        length: entry.length,
        key: entry.key.map(|key| blake3::Hash::from(key).to_string()),
    };
    Some(ManifestPage {
        record: record.id.to_string(),
        etag: text(http::header::ETAG).map(ToOwned::to_owned),
        last_modified: text(http::header::LAST_MODIFIED).map(ToOwned::to_owned),
        length: record.length,
        units: segment.entries.iter().map(unit).collect(),
        next_page: segment.closing.is_none().then_some(page + 1),
    })
}

/// The record under a key that a request of `hearsay get` selects.
fn selected(catalogue: &CatalogueReader, key: &ObjectKey) -> Option<Rc<Record>> {
    let row = Row::decode(&catalogue.get(key).ok()??)?;
    let mut request = http::HeaderMap::new();
    request.insert(http::header::ACCEPT_ENCODING, http::HeaderValue::from_static("identity"));
    row.records.into_iter().find(|record| record.is_selected_by(&request))
}

fn today() -> Date {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Date::from_unix(since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;
    use content::{Entry, ManifestBuilder, Profile};
    use std::sync::Arc;
    use store::{Catalogue, CatalogueOptions, Change, Memory};
    use wire::{RecordId, Signature};

    fn record(id: u8, received: u64) -> Record {
        let date = Date::from_unix(received);
        Record {
            id: RecordId([id; 16]),
            status: http::StatusCode::OK,
            headers: http::HeaderMap::new(),
            selecting: Vec::new(),
            requested: date,
            received: date,
            clocked: true,
            invalid: false,
            carried: 0,
            record_signature: None,
            verified: None,
            length: 5,
            offsets: vec![0],
        }
    }

    #[test]
    fn a_manifest_is_shown_for_any_signer_and_any_client() {
        let files = Arc::new(Memory::new());
        let mut catalogue = Catalogue::open(files, CatalogueOptions::default()).expect("memory");
        let mut manifest = ManifestBuilder::new(Profile::DEFAULT);
        let id = content::name(b"hello");
        manifest.push(Entry { id, length: 5, parent_end: true, key: None });
        let segment = manifest.close().encode();
        let signed = [&[1], &Signature([7; 64]).as_bytes()[..], &segment].concat();
        let keys = [ObjectKey([1; 32]), ObjectKey([2; 32])];
        let mut put = |key, record: Record, bytes: Vec<u8>| {
            let id = record.id;
            let mut row = Row::default();
            row.put(Rc::new(record));
            let put = Change::Put { key, row: row.encode(), records: vec![id] };
            let segment = Change::PutSegment { record: id, number: 0, bytes };
            catalogue.apply(&[put, segment]).expect("memory does not fail");
            let page = read_page(&catalogue.reader(), &keys, 0).expect("it is there");
            assert_eq!((page.units.len(), page.next_page), (1, None));
            page.record
        };
        // Signed, as a peer sent it, under the second key.
        assert_eq!(put(keys[1], record(1, 10), signed), RecordId([1; 16]).to_string());
        // The record that was received last is shown, under whichever key it is.
        assert_eq!(put(keys[0], record(2, 11), segment.clone()), RecordId([2; 16]).to_string());
        assert_eq!(put(keys[1], record(3, 12), segment), RecordId([3; 16]).to_string());
    }
}
