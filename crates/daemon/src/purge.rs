//! `hearsay cache rm`, the daemon's side: removes stored objects, in steps between which clients are served.
//!
//! *Who calls it:* `control.rs`, by [`Purges`]; the client's side is `cache.rs`. *What it never does:* read the catalogue on
//! the loop's thread, give the engine more than [`KEYS_MAX`] keys at once, or remove what is published here. *Where to
//! start:* [`purge`].

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use classes::HostPattern;
use node::{Audience, Input, Row, Target};
use serde::{Deserialize, Serialize};
use store::CatalogueReader;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep};
use wire::{Date, ObjectKey};

use crate::driver::Driver;
use crate::judge::Judge;
use crate::query;

/// How many rows are removed in a step: the engine handles them in one input.
const KEYS_MAX: usize = 256;
/// How many rows are read in a step, on another thread.
const ROWS_MAX: usize = 8192;
/// How often is looked whether the catalogue has removed them.
const LOOK_EVERY: Duration = Duration::from_millis(2);
/// A disk that takes longer for a step does not work.
const STEP_MAX: Duration = Duration::from_secs(30);

/// Removes stored objects.
pub trait Purges {
    /// Removes what the filter chooses, or only counts it.
    async fn purge(&self, filter: Filter, dry_run: bool) -> Result<PurgeLine, String>;
}

/// What was removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PurgeLine {
    /// How many stored responses.
    pub objects: u64,
    /// The bytes of their content.
    pub bytes: u64,
    /// Whether they were only counted.
    pub dry_run: bool,
}

/// Which objects are removed: those that all of this chooses.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// That of this URL.
    pub url: Option<Target>,
    /// Those of this host.
    pub host: Option<HostPattern>,
    /// Those of the content class with this name.
    pub class: Option<String>,
    /// Those that were fetched or confirmed at least this many seconds ago.
    pub older: Option<u64>,
}

/// Where objects are looked for, and what their URLs mean.
pub struct Stored {
    /// The catalogue.
    pub catalogue: CatalogueReader,
    /// What the classes say of URLs.
    pub judge: Judge,
    /// The secret from which keys follow.
    pub secret: [u8; 32],
    /// Whether there is a mesh key, so that rows have no URLs.
    pub is_sealed: bool,
    /// The rows of what is published here.
    pub published: BTreeSet<ObjectKey>,
    /// The date.
    pub today: Date,
}

impl Filter {
    /// Reads a query.
    ///
    /// # Errors
    /// Why it is none, for people.
    pub fn read(query: &str) -> Result<Self, String> {
        let text = |name| query::text(query, name);
        let url = text("url").map(|url| {
            let target = url.parse().ok().and_then(|uri| Target::read(&uri));
            target.ok_or_else(|| format!("{url} is no URL of http or https"))
        });
        let filter = Self {
            url: url.transpose()?,
            host: text("host").map(|host| host_of(&host)).transpose()?,
            class: text("class"),
            older: query::number(query, "older"),
        };
        let chooses = filter.url.is_some()
            || filter.host.is_some()
            || filter.class.is_some()
            || filter.older.is_some();
        if chooses { Ok(filter) } else { Err("the query chooses nothing".to_owned()) }
    }

    /// Whether it chooses a row. One of which a response is too young stays whole.
    fn has(&self, row: &Row, stored: &Stored) -> bool {
        let target = row.uri.parse().ok().and_then(|uri| Target::read(&uri));
        let is_of_host =
            |host: &HostPattern| target.as_ref().is_some_and(|it| host.has_host(it.host()));
        let verdict = stored.judge.of(&row.uri);
        let is_old = |seconds: u64| {
            let mut records = row.records.iter();
            records.all(|it| it.age_and_freshness(&verdict, stored.today).0 >= seconds)
        };
        !row.records.is_empty()
            && self.host.as_ref().is_none_or(is_of_host)
            && self.class.as_ref().is_none_or(|it| stored.judge.class(&verdict) == it)
            && self.older.is_none_or(is_old)
    }

    /// Why it cannot choose anything, if it cannot.
    fn check(&self, stored: &Stored) -> Result<(), String> {
        if stored.is_sealed && (self.host.is_some() || self.class.is_some()) {
            let why = "with a mesh key the store knows no URLs, so that neither a host nor a class can be looked for: name \
                       the URL, or --older";
            return Err(why.to_owned());
        }
        match &self.class {
            Some(class) if !stored.judge.has_class(class) => Err(format!(
                "there is no class {class:?}: `hearsay mirror list` shows them, and there is \"other\""
            )),
            _ => Ok(()),
        }
    }
}

/// A host without a port: objects of all its ports are meant.
fn host_of(text: &str) -> Result<HostPattern, String> {
    let lower = text.to_ascii_lowercase();
    let has_port =
        lower.rsplit_once(':').is_some_and(|(host, _)| !host.is_empty() && !lower.ends_with(']'));
    match lower.parse() {
        Ok(pattern) if !has_port => Ok(pattern),
        _ => Err(format!(
            "{text} is no host: expected one without a port, such as deb.debian.org, *.ubuntu.com or 192.0.2.1"
        )),
    }
}

/// Some rows that a filter chooses.
#[derive(Default)]
struct Found {
    keys: Vec<ObjectKey>,
    objects: u64,
    bytes: u64,
    /// The last of these that the catalogue has, as it was.
    last: Option<(ObjectKey, Vec<u8>)>,
    /// The last row that was read; `None`: there is no more.
    next: Option<ObjectKey>,
}

impl Found {
    fn add(&mut self, key: ObjectKey, row: &Row, bytes: &[u8]) {
        self.keys.push(key);
        self.objects += row.records.len() as u64;
        self.bytes += row.records.iter().map(|record| record.length).sum::<u64>();
        if !bytes.is_empty() {
            self.last = Some((key, bytes.to_vec()));
        }
    }
}

/// Removes what a filter chooses, or only counts it.
///
/// # Errors
/// Why not all of it was removed, for people. What was removed until then stays so.
pub async fn purge(
    driver: &Driver,
    stored: Stored,
    filter: Filter,
    dry_run: bool,
) -> Result<PurgeLine, String> {
    filter.check(&stored)?;
    if let Some(why) = driver.with_disk(|disk| disk.trouble()).filter(|_| !dry_run) {
        return Err(format!("the store does not work, so that nothing can be removed: {why}"));
    }
    let search = Arc::new((stored, filter));
    let mut line = PurgeLine { dry_run, ..PurgeLine::default() };
    let mut after = None;
    loop {
        let (looked, from) = (Arc::clone(&search), after);
        let found = spawn_blocking(move || find(&looked, from)).await;
        let found = found.map_err(|error| error.to_string())?.map_err(|error| error.to_string())?;
        after = found.next;
        line.objects += found.objects;
        line.bytes += found.bytes;
        if !dry_run && !found.keys.is_empty() {
            remove(driver, &search.0.catalogue, found).await?;
        }
        if after.is_none() {
            return Ok(line);
        }
        tokio::task::yield_now().await;
    }
}

/// The next rows that are chosen, in the order of their keys.
fn find(
    (stored, filter): &(Stored, Filter),
    after: Option<ObjectKey>,
) -> Result<Found, store::Error> {
    let mut found = Found::default();
    if let Some(target) = &filter.url {
        let keys = Audience::ALL.map(|audience| target.key(&stored.secret, audience));
        for key in keys.into_iter().filter(|key| !stored.published.contains(key)) {
            let bytes = stored.catalogue.get(&key)?.unwrap_or_default();
            // Also one that is not written yet.
            found.add(key, &Row::decode(&bytes).unwrap_or_default(), &bytes);
        }
        return Ok(found);
    }
    let (mut rows, mut last) = (0, None);
    let mut is_over = true;
    stored.catalogue.for_each(after.as_ref(), |key, bytes| {
        rows += 1;
        last = Some(key);
        if let Some(row) = Row::decode(bytes)
            && !stored.published.contains(&key)
            && filter.has(&row, stored)
        {
            found.add(key, &row, bytes);
        }
        is_over = rows < ROWS_MAX && found.keys.len() < KEYS_MAX;
        is_over
    })?;
    found.next = last.filter(|_| !is_over);
    Ok(found)
}

/// Has the engine remove rows, and waits until the catalogue has.
async fn remove(driver: &Driver, catalogue: &CatalogueReader, found: Found) -> Result<(), String> {
    let Found { keys, last, .. } = found;
    driver.feed(Input::Purge(keys));
    let Some((last, before)) = last else { return Ok(()) };
    let until = Instant::now() + STEP_MAX;
    loop {
        let catalogue = catalogue.clone();
        let now = spawn_blocking(move || catalogue.get(&last)).await;
        let now = now.map_err(|error| error.to_string())?.map_err(|error| error.to_string())?;
        // The writer does one thing after the other: the last one shows that all are done.
        if now.as_ref() != Some(&before) {
            return Ok(());
        }
        if Instant::now() > until {
            return Err(
                "the store has not removed what it was told to: see `hearsay status`".to_owned()
            );
        }
        sleep(LOOK_EVERY).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_is_read_or_refused() {
        let read = |query: &str| {
            Filter::read(query).map_err(|why| why.chars().take(24).collect::<String>())
        };
        let url = read("url=http%3A%2F%2Fa.test%2Fx").unwrap().url.unwrap();
        assert_eq!((url.host(), url.path()), ("a.test", "/x"));
        let both = read("host=A.test&older=60").unwrap();
        assert!(both.host.unwrap().has_host("a.test") && both.older == Some(60));
        assert!(read("host=*.a.test").unwrap().host.unwrap().has_host("b.a.test"));
        for (query, why) in [
            ("", "the query chooses nothin"),
            ("dry-run=1", "the query chooses nothin"),
            ("url=a.test", "a.test is no URL of http"),
            ("url=ftp%3A%2F%2Fa.test%2F", "ftp://a.test/ is no URL "),
            ("host=a.test:80", "a.test:80 is no host: ex"),
            ("host=*", "* is no host: expected o"),
        ] {
            assert_eq!(read(query).err().as_deref(), Some(why), "{query}");
        }
    }
}
