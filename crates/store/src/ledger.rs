//! The ledger: sums of bytes by hour, day and month, and since the beginning.
//!
//! *What this is:* a table of counts that grow, in a fixed budget of memory and disk. What is counted has a
//! [`Topic`], a name and a column; what the columns mean is the caller's. *Who calls it:* the daemon adds what was
//! counted since it last did, and writes the file: a snapshot, and behind it entries as they are added (`codec.rs`).
//! *What it never does:* read a clock or a file. *Where to start:* [`Ledger::add`], [`Ledger::extract`].
//!
//! *Limits:* [`Period::kept`] sums of each period; [`Topic::names_max`] names of each topic, further ones count as
//! [`OTHER`]; [`HOSTS_MAX`] hosts, of which the one used longest ago is evicted; [`COLUMNS_MAX`] columns. *A wrong
//! clock:* a sum of a period in the future, or long past, is kept as any other. When there are too many, the one that was
//! begun first is dropped, whatever its date: so what a clock that is wrong begins neither keeps out the present, nor
//! takes more of the past than time does.

mod calendar;
mod codec;
mod sums;

pub use calendar::Period;
pub use codec::{FILE_BYTES_MAX, Lost, Reading, SNAPSHOT_BYTES_MAX, entry, read};

use sums::{Slot, Sums};

/// The name that further names count as.
pub const OTHER: &str = "other";
/// Hosts that are kept.
pub const HOSTS_MAX: usize = 256;
/// A name's length at most, in bytes.
pub const NAME_BYTES_MAX: usize = 255;
/// Columns of a topic; counts of further ones are dropped.
pub const COLUMNS_MAX: u8 = 32;

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Topic {
    /// Content of a class; the name is the class's.
    Class,
    /// What was not stored; the name is the reason.
    Unstored,
    /// What crossed the wire on connections that end here; the name says with whom.
    Wire,
    /// What was only forwarded; the name is the kind of traffic.
    Forwarded,
    /// Content of a host. It is kept since the host was first seen, and not by period.
    Host,
}

impl Topic {
    /// Each of them: `ALL[topic as usize] == topic`.
    pub const ALL: [Self; 5] =
        [Self::Class, Self::Unstored, Self::Wire, Self::Forwarded, Self::Host];

    /// How many names it may have besides [`OTHER`].
    pub const fn names_max(self) -> usize {
        match self {
            Self::Class => 64,
            Self::Unstored => 40,
            Self::Wire | Self::Forwarded => 8,
            Self::Host => HOSTS_MAX,
        }
    }
}

/// A count.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Amount {
    /// What is counted.
    pub topic: Topic,
    /// Its name.
    pub name: String,
    /// Its column.
    pub column: u8,
    /// How much.
    pub count: u64,
}

/// A host, and what was counted for it since it was first seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// The host.
    pub name: String,
    /// When it was first seen, in seconds since 1970; 0 if the date was not known.
    pub first: u64,
    /// When it was last seen.
    pub last: u64,
    /// The counts of columns 0 and 1.
    pub counts: [u64; 2],
}

/// Sums of a stretch of time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extract {
    /// The periods that it is made of.
    pub period: Period,
    /// When the first of them begins, in seconds since 1970.
    pub from: u64,
    /// The sums of all.
    pub total: Vec<Amount>,
    /// The sums of each that has any, by its beginning.
    pub parts: Vec<(u64, Vec<Amount>)>,
}

/// The sums.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    /// The date of the first count, in seconds since 1970; 0 until one has a date.
    begun: u64,
    /// The names that slots refer to.
    names: Vec<(Topic, String)>,
    ever: Sums,
    /// For each period, its sums by number, in the order in which they were begun.
    rings: [Vec<(u32, Sums)>; 3],
    hosts: Vec<Host>,
}

impl Ledger {
    /// Adds counts. `date` is in seconds since 1970; `None`: it is not known, and they count only among all.
    pub fn add(&mut self, date: Option<u64>, amounts: &[Amount]) {
        if let Some(date) = date
            && (self.begun == 0 || date < self.begun)
        {
            self.begun = date;
        }
        for amount in amounts.iter().filter(|it| it.count > 0 && it.column < COLUMNS_MAX) {
            if amount.topic == Topic::Host {
                self.add_host(date.unwrap_or(0), amount);
                continue;
            }
            let slot = Slot::new(self.name(amount.topic, &amount.name), amount.column);
            self.ever.add(slot, amount.count);
            for period in date.map_or(&[][..], |_| &Period::ALL) {
                let number = period.number(date.unwrap_or(0));
                ring(&mut self.rings[*period as usize], *period, number).add(slot, amount.count);
            }
        }
    }

    /// When counting began, in seconds since 1970; 0 if no date was ever known.
    pub fn begun(&self) -> u64 {
        self.begun
    }

    /// All counts since the beginning.
    pub fn ever(&self) -> Vec<Amount> {
        self.amounts(&self.ever)
    }

    /// The counts of one period.
    pub fn of(&self, period: Period, number: u32) -> Vec<Amount> {
        let sums = self.rings[period as usize].iter().find(|(it, _)| *it == number);
        sums.map_or_else(Vec::new, |(_, sums)| self.amounts(sums))
    }

    /// The counts of the last `seconds` before `now`, in whole hours, days or months: the period that contains `now`
    /// is the last. `None`: since the beginning, and then also what was counted without a date.
    pub fn extract(&self, seconds: Option<u64>, now: u64) -> Extract {
        let Some(seconds) = seconds else {
            let parts = self.parts(Period::Month, 0, u32::MAX);
            return Extract { period: Period::Month, from: self.begun, total: self.ever(), parts };
        };
        let fits = |period: &Period, of: u64| seconds.div_ceil(of) <= period.kept() as u64;
        let (period, back) = if fits(&Period::Hour, 3600) {
            (Period::Hour, seconds.div_ceil(3600).max(1) * 3600 - 3600)
        } else if fits(&Period::Day, 86_400) {
            (Period::Day, seconds.div_ceil(86_400) * 86_400 - 86_400)
        } else {
            (Period::Month, seconds)
        };
        let (from, to) = (period.number(now.saturating_sub(back)), period.number(now));
        let mut total = Sums::default();
        let ring = &self.rings[period as usize];
        let within = ring.iter().filter(|(number, _)| (from..=to).contains(number));
        within.for_each(|(_, sums)| total.add_all(sums));
        let parts = self.parts(period, from, to);
        Extract { period, from: period.start(from), total: self.amounts(&total), parts }
    }

    /// The hosts, the one with the most bytes first.
    pub fn hosts(&self) -> Vec<Host> {
        let mut hosts = self.hosts.clone();
        hosts.sort_by(|a, b| b.counts.cmp(&a.counts).then_with(|| a.name.cmp(&b.name)));
        hosts
    }

    /// Forgets the hosts: they are not to be kept any more. Whether there were any.
    pub fn forget_hosts(&mut self) -> bool {
        !std::mem::take(&mut self.hosts).is_empty()
    }

    fn parts(&self, period: Period, from: u32, to: u32) -> Vec<(u64, Vec<Amount>)> {
        let ring = self.rings[period as usize].iter();
        let within = ring.filter(|(number, _)| (from..=to).contains(number));
        let part = |(number, sums): &(u32, Sums)| (period.start(*number), self.amounts(sums));
        let mut parts: Vec<_> = within.map(part).collect();
        parts.sort_by_key(|(start, _)| *start);
        parts
    }

    fn amounts(&self, sums: &Sums) -> Vec<Amount> {
        let amount = |(slot, count): &(Slot, u64)| {
            let (topic, name) = self.names.get(slot.name())?;
            Some(Amount { topic: *topic, name: name.clone(), column: slot.column(), count: *count })
        };
        let mut amounts: Vec<_> = sums.iter().filter_map(amount).collect();
        amounts.sort();
        amounts
    }

    /// The number of a name, which is new or known.
    fn name(&mut self, topic: Topic, name: &str) -> u16 {
        let known = |name: &str| self.names.iter().position(|(t, n)| *t == topic && n == name);
        let others = self.names.iter().filter(|(t, n)| *t == topic && n != OTHER).count();
        let name = match known(name) {
            Some(at) => return at as u16,
            None if others >= topic.names_max() || !is_name(name) => OTHER,
            None => name,
        };
        // `OTHER` may be there already.
        let at = known(name).unwrap_or(self.names.len());
        if at == self.names.len() {
            self.names.push((topic, name.to_owned()));
        }
        at as u16
    }

    fn add_host(&mut self, date: u64, amount: &Amount) {
        let name = if is_name(&amount.name) { &amount.name } else { OTHER };
        let at = self.hosts.iter().position(|host| host.name == name).unwrap_or_else(|| {
            if self.hosts.len() >= HOSTS_MAX {
                let oldest = self.hosts.iter().enumerate().min_by_key(|(_, host)| host.last);
                let oldest = oldest.map_or(0, |(at, _)| at);
                self.hosts.swap_remove(oldest);
            }
            self.hosts.push(Host {
                name: name.to_owned(),
                first: date,
                last: date,
                counts: [0; 2],
            });
            self.hosts.len() - 1
        });
        let host = &mut self.hosts[at];
        host.last = host.last.max(date);
        if let Some(count) = host.counts.get_mut(usize::from(amount.column)) {
            *count = count.saturating_add(amount.count);
        }
    }
}

/// Whether a text may be a name: it is not empty, not too long, and a person can see all of it.
fn is_name(text: &str) -> bool {
    (1..=NAME_BYTES_MAX).contains(&text.len()) && !text.chars().any(char::is_control)
}

/// The sums of a period. If they are new and there are too many, the first are dropped.
fn ring(ring: &mut Vec<(u32, Sums)>, period: Period, number: u32) -> &mut Sums {
    let at = ring.iter().position(|(it, _)| *it == number).unwrap_or_else(|| {
        if ring.len() >= period.kept() {
            ring.remove(0);
        }
        ring.push((number, Sums::default()));
        ring.len() - 1
    });
    &mut ring[at].1
}
