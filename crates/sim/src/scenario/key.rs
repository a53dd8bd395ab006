//! The keys of a scenario: what may be changed, within which limits, and what each means.

use std::fmt;
use std::ops::RangeInclusive;

use radio::{Phy, Rate};
use toml::de::DeValue;

use super::problem::quote;
use super::workload::Order;
use super::{Key, Routing};

/// What the keys say now; where there is no sensible default, `None` until somebody says it.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub hops: u64,
    pub spacing_m: f64,
    pub gateway: Option<String>,
    pub receivers: Option<Vec<String>>,
    pub requests: Vec<Wish>,
    pub bytes: u64,
    pub files: u64,
    pub rounds: u64,
    pub order: Order,
    pub stagger_s: f64,
    pub routing: Routing,
    pub range_m: f64,
    pub carrier_sense_m: f64,
    pub loss: f64,
    pub loss_exponent: f64,
    pub broadcast_loss_share: f64,
    pub data: Rate,
    pub basic: Rate,
    pub queue_frames: u64,
    pub uplink_mbps: f64,
    pub uplink_delay_ms: f64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            hops: 4,
            spacing_m: 200.0,
            gateway: None,
            receivers: None,
            requests: Vec::new(),
            bytes: 1_000_000,
            files: 1,
            rounds: 1,
            order: Order::Listed,
            stagger_s: 0.0,
            routing: Routing::Static,
            range_m: 250.0,
            carrier_sense_m: 550.0,
            loss: 0.0,
            loss_exponent: 2.0,
            broadcast_loss_share: 0.25,
            data: Rate::Mbps11,
            basic: Rate::Mbps1,
            queue_frames: 50,
            uplink_mbps: 100.0,
            uplink_delay_ms: 10.0,
        }
    }
}

impl Settings {
    /// Every key of such a layout, with its value now.
    pub fn keys(&self, layout: Layout) -> Vec<Key> {
        let mut now = self.clone();
        let known = KEYS.iter().filter(|spec| spec.applies_to(layout));
        known
            .map(|spec| Key { name: spec.name, value: spec.show(&mut now), meaning: spec.meaning })
            .collect()
    }
}

/// A request as it is written: a router, and which file, counted from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wish {
    pub router: String,
    pub file: u64,
}

/// Where the routers stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    /// In a line, as many as `hops` says.
    Chain,
    /// Where `[routers]` says.
    Placed,
}

/// One key.
pub(super) struct Spec {
    /// As it is written.
    pub name: &'static str,
    /// What it means, with its unit.
    pub meaning: &'static str,
    /// `None`: in both.
    layout: Option<Layout>,
    slot: Slot,
}

type Field<T> = fn(&mut Settings) -> &mut T;

/// Where a value goes, and what it may be.
enum Slot {
    Whole(RangeInclusive<u64>, Field<u64>),
    Number(RangeInclusive<f64>, Field<f64>),
    Rate(Field<Rate>),
    Order(Field<Order>),
    Routing(Field<Routing>),
    Router(Field<Option<String>>),
    Routers(Field<Option<Vec<String>>>),
    Requests(Field<Vec<Wish>>),
}

/// Farther apart is no mesh.
pub(super) const METRES_MAX: f64 = 1_000_000.0;
/// How many files there may be.
const FILES: RangeInclusive<u64> = 1..=1_000;
/// A day.
const STAGGER_S_MAX: f64 = 86_400.0;

/// Every key, in the order in which reports list them.
pub(super) static KEYS: [Spec; 21] = [
    Spec {
        name: "hops",
        meaning: "links from the gateway to the last router of a chain",
        layout: Some(Layout::Chain),
        slot: Slot::Whole(1..=64, |it| &mut it.hops),
    },
    Spec {
        name: "spacing_m",
        meaning: "distance between neighbours of a chain, in metres",
        layout: Some(Layout::Chain),
        slot: Slot::Number(1.0..=10_000.0, |it| &mut it.spacing_m),
    },
    Spec {
        name: "gateway",
        meaning: "the router that has the uplink",
        layout: Some(Layout::Placed),
        slot: Slot::Router(|it| &mut it.gateway),
    },
    Spec {
        name: "receivers",
        meaning: "routers whose clients ask for files, in their order",
        layout: None,
        slot: Slot::Routers(|it| &mut it.receivers),
    },
    Spec {
        name: "requests",
        meaning: "who asks for which file, ROUTER:FILE; none: each of `receivers` for each of `files`",
        layout: None,
        slot: Slot::Requests(|it| &mut it.requests),
    },
    Spec {
        name: "bytes",
        meaning: "size of each file, in bytes",
        layout: None,
        slot: Slot::Whole(1..=1_000_000_000, |it| &mut it.bytes),
    },
    Spec {
        name: "files",
        meaning: "how many different files there are",
        layout: None,
        slot: Slot::Whole(FILES, |it| &mut it.files),
    },
    Spec {
        name: "rounds",
        meaning: "how many times all that is asked for",
        layout: None,
        slot: Slot::Whole(1..=1_000, |it| &mut it.rounds),
    },
    Spec {
        name: "order",
        meaning: "of the requests: \"listed\", or \"random\" by the seed",
        layout: None,
        slot: Slot::Order(|it| &mut it.order),
    },
    Spec {
        name: "stagger_s",
        meaning: "seconds from the start of a transfer to the start of the next; 0: when it has ended",
        layout: None,
        slot: Slot::Number(0.0..=STAGGER_S_MAX, |it| &mut it.stagger_s),
    },
    Spec {
        name: "routing",
        meaning: "\"static\": the scenario's routes; \"babel\": those that babeld finds",
        layout: None,
        slot: Slot::Routing(|it| &mut it.routing),
    },
    Spec {
        name: "range_m",
        meaning: "frames can be received up to here, in metres",
        layout: None,
        slot: Slot::Number(1.0..=METRES_MAX, |it| &mut it.range_m),
    },
    Spec {
        name: "carrier_sense_m",
        meaning: "carriers are sensed and disturb up to here, in metres",
        layout: None,
        slot: Slot::Number(1.0..=METRES_MAX, |it| &mut it.carrier_sense_m),
    },
    Spec {
        name: "loss",
        meaning: "probability that a link as long as range_m loses a data frame",
        layout: None,
        slot: Slot::Number(0.0..=1.0, |it| &mut it.loss),
    },
    Spec {
        name: "loss_exponent",
        meaning: "a link of length d loses loss * (d / range_m) ^ loss_exponent",
        layout: None,
        slot: Slot::Number(0.0..=16.0, |it| &mut it.loss_exponent),
    },
    Spec {
        name: "broadcast_loss_share",
        meaning: "of a link's loss, what broadcasts at the basic rate suffer of it",
        layout: None,
        slot: Slot::Number(0.0..=1.0, |it| &mut it.broadcast_loss_share),
    },
    Spec {
        name: "data_mbps",
        meaning: "rate of data frames, in Mbit/s",
        layout: None,
        slot: Slot::Rate(|it| &mut it.data),
    },
    Spec {
        name: "basic_mbps",
        meaning: "rate of broadcasts and acknowledgements, in Mbit/s",
        layout: None,
        slot: Slot::Rate(|it| &mut it.basic),
    },
    Spec {
        name: "queue_frames",
        meaning: "frames that may wait in a router's interface",
        layout: None,
        slot: Slot::Whole(1..=10_000, |it| &mut it.queue_frames),
    },
    Spec {
        name: "uplink_mbps",
        meaning: "rate of the gateway's uplink each way, in Mbit/s",
        layout: None,
        slot: Slot::Number(0.001..=100_000.0, |it| &mut it.uplink_mbps),
    },
    Spec {
        name: "uplink_delay_ms",
        meaning: "delay of the uplink one way, in milliseconds",
        layout: None,
        slot: Slot::Number(0.0..=60_000.0, |it| &mut it.uplink_delay_ms),
    },
];

/// The key of this name.
pub(super) fn find(name: &str) -> Option<&'static Spec> {
    KEYS.iter().find(|spec| spec.name == name)
}

impl Spec {
    /// Whether it means anything there.
    pub fn applies_to(&self, layout: Layout) -> bool {
        self.layout.is_none_or(|it| it == layout)
    }

    /// Takes a value, `raw` as it was written; or says what it must be.
    pub fn set(&self, to: &mut Settings, value: &DeValue<'_>, raw: &str) -> Result<(), String> {
        let taken = match &self.slot {
            Slot::Whole(range, field) => {
                put(whole(value).filter(|it| range.contains(it)), field(to))
            }
            Slot::Number(range, field) => {
                put(number(value).filter(|it| range.contains(it)), field(to))
            }
            Slot::Rate(field) => put(number(value).and_then(rate), field(to)),
            Slot::Order(field) => put(value.as_str().and_then(Order::from_word), field(to)),
            Slot::Routing(field) => put(value.as_str().and_then(Routing::from_word), field(to)),
            Slot::Router(field) => put(router(value).map(Some), field(to)),
            Slot::Routers(field) => put(routers(value).map(Some), field(to)),
            Slot::Requests(field) => put(requests(value), field(to)),
        };
        taken.ok_or_else(|| {
            format!("`{}` must be {}, not {}", self.name, self.slot.form(), quote(raw))
        })
    }

    fn show(&self, now: &mut Settings) -> String {
        match &self.slot {
            Slot::Whole(_, field) => field(now).to_string(),
            Slot::Number(_, field) => field(now).to_string(),
            Slot::Rate(field) => mbps(*field(now)).to_string(),
            Slot::Order(field) => field(now).word().to_owned(),
            Slot::Routing(field) => field(now).word().to_owned(),
            Slot::Router(field) => field(now).clone().unwrap_or_default(),
            Slot::Routers(field) => field(now).as_deref().unwrap_or_default().join(" "),
            Slot::Requests(field) => {
                field(now).iter().map(Wish::to_string).collect::<Vec<_>>().join(" ")
            }
        }
    }
}

impl Slot {
    /// What a value must be.
    fn form(&self) -> String {
        match self {
            Self::Whole(range, _) => {
                format!("a whole number from {} to {}", range.start(), range.end())
            }
            Self::Number(range, _) => {
                format!("a number from {} to {}", range.start(), range.end())
            }
            Self::Rate(_) => "a rate of 802.11b: 1, 2, 5.5 or 11".to_owned(),
            Self::Order(_) => "\"listed\" or \"random\"".to_owned(),
            Self::Routing(_) => "\"static\" or \"babel\"".to_owned(),
            Self::Router(_) => "the name of a router".to_owned(),
            Self::Routers(_) => "a list of routers, like [\"1\", \"2\"] or \"1 2\"".to_owned(),
            Self::Requests(_) => {
                "a list of routers and files, counted from 1, like [\"4\", \"2:3\"] or \"4 2:3\""
                    .to_owned()
            }
        }
    }
}

fn put<T>(value: Option<T>, field: &mut T) -> Option<()> {
    *field = value?;
    Some(())
}

/// In Mbit/s.
pub(super) fn mbps(rate: Rate) -> f64 {
    rate.mbps()
}

/// The rate of 802.11b of so many Mbit/s.
fn rate(mbps: f64) -> Option<Rate> {
    Rate::from_mbps(mbps).filter(|rate| Phy::B.has(*rate))
}

fn integer(value: &DeValue<'_>) -> Option<i128> {
    let integer = value.as_integer()?;
    i128::from_str_radix(integer.as_str(), integer.radix()).ok()
}

/// Also written as `1e6`.
fn whole(value: &DeValue<'_>) -> Option<u64> {
    /// Up to here a double holds every whole number.
    const EXACT_MAX: f64 = (1_u64 << 53) as f64;
    if let Some(integer) = integer(value) {
        return u64::try_from(integer).ok();
    }
    let number = number(value).filter(|it| it.fract() == 0.0)?;
    (0.0..=EXACT_MAX).contains(&number).then_some(number as u64)
}

/// Also written as a whole one.
pub(super) fn number(value: &DeValue<'_>) -> Option<f64> {
    match value.as_float() {
        Some(float) => float.as_str().parse().ok().filter(|it: &f64| it.is_finite()),
        None => integer(value).map(|it| it as f64),
    }
}

/// Routers are mostly called by numbers, so those need no quotes.
fn router(value: &DeValue<'_>) -> Option<String> {
    match value.as_str() {
        Some(name) => (!name.trim().is_empty()).then(|| name.trim().to_owned()),
        None => integer(value).map(|it| it.to_string()),
    }
}

impl fmt::Display for Wish {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.router, self.file)
    }
}

/// Without a file it is the first.
fn wish(text: &str) -> Option<Wish> {
    let (router, file) = match text.split_once(':') {
        Some((router, file)) => (router, file.parse().ok().filter(|it| FILES.contains(it))?),
        None => (text, 1),
    };
    (!router.is_empty()).then(|| Wish { router: router.to_owned(), file })
}

/// There may be none.
fn requests(value: &DeValue<'_>) -> Option<Vec<Wish>> {
    let none = value.as_str().is_some_and(|text| text.trim().is_empty())
        || value.as_array().is_some_and(|list| list.iter().next().is_none());
    let names = if none { Vec::new() } else { routers(value)? };
    names.iter().map(|text| wish(text)).collect()
}

fn routers(value: &DeValue<'_>) -> Option<Vec<String>> {
    let names: Vec<_> = match (value.as_array(), value.as_str()) {
        (Some(list), _) => list.iter().map(|it| router(it.get_ref())).collect::<Option<_>>()?,
        (None, Some(names)) => names.split_whitespace().map(str::to_owned).collect(),
        (None, None) => vec![router(value)?],
    };
    (!names.is_empty()).then_some(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(key: &str, value: &str) -> Result<String, String> {
        let mut settings = Settings::default();
        let spec = find(key).unwrap();
        spec.set(&mut settings, DeValue::parse(value).unwrap().get_ref(), value)?;
        Ok(spec.show(&mut settings))
    }

    #[test]
    fn values_are_taken_as_people_write_them() {
        for (key, value, shown) in [
            ("bytes", "1_000", "1000"),
            ("bytes", "1e6", "1000000"),
            ("hops", "0x10", "16"),
            ("loss", "0", "0"),
            ("loss", "0.25", "0.25"),
            ("data_mbps", "5.5", "5.5"),
            ("data_mbps", "2", "2"),
            ("order", "'random'", "random"),
            ("routing", "'babel'", "babel"),
            ("gateway", "8", "8"),
            ("gateway", "'roof'", "roof"),
            ("receivers", "['1', 2]", "1 2"),
            ("receivers", "' 1 2 '", "1 2"),
            ("receivers", "7", "7"),
            ("requests", "['4', 4, '2:3']", "4:1 4:1 2:3"),
            ("requests", "' 4 roof:2 '", "4:1 roof:2"),
            ("requests", "4", "4:1"),
            ("requests", "''", ""),
            ("requests", "[]", ""),
        ] {
            assert_eq!(set(key, value).as_deref(), Ok(shown), "{key} = {value}");
        }
    }

    #[test]
    fn what_does_not_fit_is_refused_with_what_would() {
        for (key, value, form) in [
            ("hops", "0", "a whole number from 1 to 64"),
            ("hops", "65", "a whole number from 1 to 64"),
            ("hops", "4.5", "a whole number from 1 to 64"),
            ("hops", "'4'", "a whole number from 1 to 64"),
            ("hops", "nan", "a whole number from 1 to 64"),
            ("bytes", "-1", "a whole number from 1 to 1000000000"),
            ("bytes", "99999999999999999999", "a whole number from 1 to 1000000000"),
            ("loss", "1.1", "a number from 0 to 1"),
            ("loss", "nan", "a number from 0 to 1"),
            ("stagger_s", "inf", "a number from 0 to 86400"),
            ("data_mbps", "54", "a rate of 802.11b: 1, 2, 5.5 or 11"),
            ("order", "'backwards'", "\"listed\" or \"random\""),
            ("routing", "1", "\"static\" or \"babel\""),
            ("gateway", "''", "the name of a router"),
            ("receivers", "[]", "a list of routers, like [\"1\", \"2\"] or \"1 2\""),
            (
                "requests",
                "'4:0'",
                "a list of routers and files, counted from 1, like [\"4\", \"2:3\"] or \"4 2:3\"",
            ),
            (
                "requests",
                "':1'",
                "a list of routers and files, counted from 1, like [\"4\", \"2:3\"] or \"4 2:3\"",
            ),
            ("receivers", "[true]", "a list of routers, like [\"1\", \"2\"] or \"1 2\""),
        ] {
            let expected = format!("`{key}` must be {form}, not {value}");
            assert_eq!(set(key, value), Err(expected), "{key} = {value}");
        }
    }

    #[test]
    fn no_two_keys_have_one_name() {
        let mut names: Vec<_> = KEYS.iter().map(|spec| spec.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), KEYS.len());
    }
}
