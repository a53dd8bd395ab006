//! The definition of a key: where its value is stored, how it is read, and how it is shown.
//!
//! The keys themselves are in `keys.rs`.

use std::fmt;
use std::ops::RangeInclusive;

use node::SearchTimeout;
use radio::{Dcf, Decoding, Locking, LossScope, Phy, Rate};
use toml::de::DeValue;

use super::changes::{Changing, CutWish};
use super::choice::{Fading, Spreading, Word, mbps, rates};
use super::flows::{self, FlowWish};
use super::keys::{self, FILES};
use super::metric::Metric;
use super::plane::PlaneKeys;
use super::problem::quote;
use super::traffic::{LoadKeys, Traffic};
use super::transport::TcpKeys;
use super::uplink::UplinkKeys;
use super::variant::Variant;
use super::workload::Order;
use super::{Congestion, Key, Routing};

/// The current values of all keys. Keys without a sensible default are `None` until they are set.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub hops: u64,
    pub spacing_m: f64,
    pub gateway: Option<String>,
    pub receivers: Option<Vec<String>>,
    pub requests: Vec<Wish>,
    pub bytes: u64,
    pub files: u64,
    pub changed: f64,
    pub rounds: u64,
    pub order: Order,
    pub nodes: u64,
    pub area_m: f64,
    pub clients: u64,
    pub gateway_x: f64,
    pub gateway_y: f64,
    pub readers: u64,
    pub bytes_min: u64,
    pub bytes_max: u64,
    pub zipf: f64,
    pub alike_m: f64,
    pub page_files: f64,
    pub think_mean_s: f64,
    pub think_sigma: f64,
    pub max_age_s: u64,
    pub store_kb: u64,
    pub access_mbps: f64,
    pub traffic: Traffic,
    pub load: LoadKeys,
    pub metric: Metric,
    pub routing: Routing,
    pub congestion: Congestion,
    pub variant: Variant,
    pub liars: f64,
    pub changing: Changing,
    pub range_m: f64,
    pub carrier_sense_m: f64,
    pub spreading: Spreading,
    pub path_exponent: f64,
    pub shadowing_db: f64,
    pub fading: Fading,
    pub receiver: Locking,
    pub reception: Decoding,
    pub dcf: Dcf,
    pub per: f64,
    pub per_scope: LossScope,
    pub loss: f64,
    pub loss_exponent: f64,
    pub broadcast_loss_share: f64,
    pub loss_above_mac: f64,
    pub overhear_m: f64,
    pub overhear_exponent: f64,
    pub overhear_spell_ms: f64,
    pub phy: Phy,
    pub data: Rate,
    pub basic: Rate,
    pub rts: Option<u64>,
    pub queue_frames: u64,
    pub plane: PlaneKeys,
    pub uplink: UplinkKeys,
    pub tcp: TcpKeys,
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
            changed: 1.0,
            rounds: 1,
            order: Order::Listed,
            nodes: 50,
            area_m: 1000.0,
            clients: 25,
            gateway_x: 0.5,
            gateway_y: 0.5,
            readers: 5,
            bytes_min: 1024,
            bytes_max: 102_400,
            zipf: 0.8,
            alike_m: 250.0,
            page_files: 3.0,
            think_mean_s: 1000.0,
            think_sigma: 1.5,
            max_age_s: 5000,
            store_kb: 2048,
            access_mbps: 11.0,
            traffic: Traffic::Files,
            load: LoadKeys::default(),
            metric: Metric::Hops,
            routing: Routing::Static,
            congestion: Congestion::Reno,
            variant: Variant::default(),
            liars: 0.0,
            changing: Changing::default(),
            range_m: 250.0,
            carrier_sense_m: 550.0,
            spreading: Spreading::TwoRay,
            path_exponent: 3.0,
            shadowing_db: 0.0,
            fading: Fading::None,
            receiver: Locking::First,
            reception: Decoding::Capture,
            dcf: Dcf::Standard,
            per: 0.0,
            per_scope: LossScope::All,
            loss: 0.0,
            loss_exponent: 2.0,
            broadcast_loss_share: 0.25,
            loss_above_mac: 0.0,
            overhear_m: 0.0,
            overhear_exponent: 3.0,
            overhear_spell_ms: 0.0,
            phy: Phy::B,
            data: Rate::Mbps11,
            basic: Rate::Mbps1,
            rts: None,
            queue_frames: 50,
            plane: PlaneKeys::default(),
            uplink: UplinkKeys::default(),
            tcp: TcpKeys::default(),
        }
    }
}

impl Settings {
    /// The place that the gateway should be near. The nearest router is the gateway, unless one is named.
    pub fn gateway_place_m(&self) -> (f64, f64) {
        (self.gateway_x * self.area_m, self.gateway_y * self.area_m)
    }

    /// The kinds of frames that links lose.
    pub fn loss_scope(&self) -> LossScope {
        if self.per > 0.0 { self.per_scope } else { LossScope::Data }
    }

    /// Every key that applies to this layout, with its current value.
    pub fn keys(&self, layout: Layout) -> Vec<Key> {
        let mut now = self.clone();
        let known = keys::all().filter(|spec| spec.applies_to(layout, self.traffic));
        known
            .map(|spec| Key { name: spec.name, value: spec.show(&mut now), meaning: spec.meaning })
            .collect()
    }
}

/// A request as written: a router, and a file's number counted from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wish {
    pub router: String,
    pub file: u64,
}

/// Where the routers stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    /// In a line; the key `hops` gives their number.
    Chain,
    /// Where `[routers]` says.
    Placed,
    /// On a square at random, as many as `nodes` says.
    Random,
}

/// The definition of one key.
pub(super) struct Spec {
    /// Its name as written.
    pub name: &'static str,
    /// What it means, with its unit.
    pub meaning: &'static str,
    /// The layouts that it applies to; empty means all.
    pub layouts: &'static [Layout],
    /// The kinds of traffic that it applies to; empty means all.
    pub traffic: &'static [Traffic],
    pub slot: Slot,
}

/// The longest frame of 802.11 (maximum MPDU), in bytes.
const THRESHOLD_MAX: u64 = 2347;

pub(super) type Field<T> = fn(&mut Settings) -> &mut T;

/// Where a value is stored, and which values are allowed.
pub(super) enum Slot {
    Whole(RangeInclusive<u64>, Field<u64>),
    Number(RangeInclusive<f64>, Field<f64>),
    Rate(Field<Rate>),
    Word(fn(&mut Settings) -> &mut dyn Word),
    /// A paper or none, which sets other keys.
    Paper,
    /// True or false.
    Flag(Field<bool>),
    /// True, false, or the smallest length in bytes.
    Threshold(Field<Option<u64>>),
    /// A word, or milliseconds.
    Timeout(Field<SearchTimeout>),
    Router(Field<Option<String>>),
    Routers(Field<Option<Vec<String>>>),
    /// A list of routers, which may be empty.
    Movers(Field<Vec<String>>),
    Requests(Field<Vec<Wish>>),
    Cuts(Field<Vec<CutWish>>),
    Flows(Field<Vec<FlowWish>>),
}

/// The key of this name.
pub(super) fn find(name: &str) -> Option<&'static Spec> {
    keys::all().find(|spec| spec.name == name)
}

impl Spec {
    /// Whether the key applies to this layout and traffic.
    pub fn applies_to(&self, layout: Layout, traffic: Traffic) -> bool {
        (self.layouts.is_empty() || self.layouts.contains(&layout))
            && (self.traffic.is_empty() || self.traffic.contains(&traffic))
    }

    /// Sets the key to `value`, which was written as `raw`. Otherwise returns what values are allowed.
    pub fn set(&self, to: &mut Settings, value: &DeValue<'_>, raw: &str) -> Result<(), String> {
        let taken = match &self.slot {
            Slot::Whole(range, field) => {
                put(whole(value).filter(|it| range.contains(it)), field(to))
            }
            Slot::Number(range, field) => {
                put(number(value).filter(|it| range.contains(it)), field(to))
            }
            Slot::Rate(field) => put(number(value).and_then(Rate::from_mbps), field(to)),
            Slot::Word(field) => value.as_str().and_then(|word| field(to).take(word)),
            Slot::Paper => value.as_str().and_then(|name| to.follow(name)),
            Slot::Flag(field) => put(value.as_bool(), field(to)),
            Slot::Threshold(field) => put(threshold(value), field(to)),
            Slot::Timeout(field) => put(timeout(value), field(to)),
            Slot::Router(field) => put(router(value).map(Some), field(to)),
            Slot::Routers(field) => put(routers(value).map(Some), field(to)),
            Slot::Movers(field) => put(each(value, |name| Some(name.to_owned())), field(to)),
            Slot::Requests(field) => put(each(value, wish), field(to)),
            Slot::Cuts(field) => put(each(value, CutWish::read), field(to)),
            Slot::Flows(field) => match each(value, |text| Some(FlowWish::read(text))) {
                Some(read) => {
                    let read: Result<Vec<_>, _> = read.into_iter().collect();
                    *field(to) = read.map_err(|text| format!("`{}` has {text}", self.name))?;
                    Some(())
                }
                None => None,
            },
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
            Slot::Word(field) => field(now).word().to_owned(),
            Slot::Paper => now.variant.paper_name().to_owned(),
            Slot::Flag(field) => field(now).to_string(),
            Slot::Threshold(field) => match *field(now) {
                None => "false".to_owned(),
                Some(0) => "true".to_owned(),
                Some(bytes) => bytes.to_string(),
            },
            Slot::Timeout(field) => match *field(now) {
                SearchTimeout::Fixed(fixed) => fixed.as_millis().to_string(),
                SearchTimeout::Adaptive => SearchTimeout::ADAPTIVE.to_owned(),
            },
            Slot::Router(field) => field(now).clone().unwrap_or_default(),
            Slot::Routers(field) => field(now).as_deref().unwrap_or_default().join(" "),
            Slot::Movers(field) => field(now).join(" "),
            Slot::Requests(field) => {
                field(now).iter().map(Wish::to_string).collect::<Vec<_>>().join(" ")
            }
            Slot::Cuts(field) => {
                field(now).iter().map(CutWish::to_string).collect::<Vec<_>>().join(" ")
            }
            Slot::Flows(field) => {
                field(now).iter().map(FlowWish::to_string).collect::<Vec<_>>().join(" ")
            }
        }
    }
}

impl Slot {
    /// What values are allowed.
    fn form(&self) -> String {
        match self {
            Self::Whole(range, _) => {
                format!("a whole number from {} to {}", range.start(), range.end())
            }
            Self::Number(range, _) => {
                format!("a number from {} to {}", range.start(), range.end())
            }
            Self::Rate(_) => format!("a rate of 802.11: {}", rates(|_| true)),
            Self::Word(field) => one_of(&field(&mut Settings::default()).words()),
            Self::Paper => one_of(&Variant::papers().collect::<Vec<_>>()),
            Self::Flag(_) => "true or false".to_owned(),
            Self::Threshold(_) => {
                format!("true, false, or a whole number of bytes up to {THRESHOLD_MAX}")
            }
            Self::Timeout(_) => {
                let most = SearchTimeout::MAX.as_millis();
                format!("\"{}\" or a whole number of milliseconds from 1 to {most}", SearchTimeout::ADAPTIVE)
            }
            Self::Router(_) => "the name of a router".to_owned(),
            Self::Routers(_) | Self::Movers(_) => "a list of routers, like [\"1\", \"2\"] or \"1 2\"".to_owned(),
            Self::Requests(_) => {
                "a list of routers and files, counted from 1, like [\"4\", \"2:3\"] or \"4 2:3\""
                    .to_owned()
            }
            Self::Cuts(_) => {
                "a list of routers or links and seconds, like [\"3@10\", \"1:2@7.5\"] or \"3@10 1:2@7.5\""
                    .to_owned()
            }
            Self::Flows(_) => format!("a list of flows, like {}", flows::EXAMPLE),
        }
    }
}

/// Words that are allowed.
fn one_of(words: &[&str]) -> String {
    words.iter().map(|word| format!("\"{word}\"")).collect::<Vec<_>>().join(" or ")
}

fn put<T>(value: Option<T>, field: &mut T) -> Option<()> {
    *field = value?;
    Some(())
}

fn integer(value: &DeValue<'_>) -> Option<i128> {
    let integer = value.as_integer()?;
    i128::from_str_radix(integer.as_str(), integer.radix()).ok()
}

/// Takes a boolean, or a number of bytes.
fn threshold(value: &DeValue<'_>) -> Option<Option<u64>> {
    match value.as_bool() {
        Some(all) => Some(all.then_some(0)),
        None => whole(value).filter(|it| *it <= THRESHOLD_MAX).map(Some),
    }
}

/// Takes a word, or a number of milliseconds.
fn timeout(value: &DeValue<'_>) -> Option<SearchTimeout> {
    if value.as_str() == Some(SearchTimeout::ADAPTIVE) {
        return Some(SearchTimeout::Adaptive);
    }
    SearchTimeout::fixed(whole(value)?)
}

/// Takes also a whole number written as `1e6`.
fn whole(value: &DeValue<'_>) -> Option<u64> {
    /// Up to here a double represents every whole number.
    const EXACT_MAX: f64 = (1_u64 << 53) as f64;
    if let Some(integer) = integer(value) {
        return u64::try_from(integer).ok();
    }
    let number = number(value).filter(|it| it.fract() == 0.0)?;
    (0.0..=EXACT_MAX).contains(&number).then_some(number as u64)
}

/// Takes also an integer.
pub(super) fn number(value: &DeValue<'_>) -> Option<f64> {
    match value.as_float() {
        Some(float) => float.as_str().parse().ok().filter(|it: &f64| it.is_finite()),
        None => integer(value).map(|it| it as f64),
    }
}

/// Takes also an integer, because most routers are named by numbers, which then need no quotes.
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

/// Without a number, the request is for the first file.
fn wish(text: &str) -> Option<Wish> {
    let (router, file) = match text.split_once(':') {
        Some((router, file)) => (router, file.parse().ok().filter(|it| FILES.contains(it))?),
        None => (text, 1),
    };
    (!router.is_empty()).then(|| Wish { router: router.to_owned(), file })
}

/// Reads each of a list's texts with `read`; the list may be empty.
fn each<T>(value: &DeValue<'_>, read: fn(&str) -> Option<T>) -> Option<Vec<T>> {
    let none = value.as_str().is_some_and(|text| text.trim().is_empty())
        || value.as_array().is_some_and(|list| list.iter().next().is_none());
    let names = if none { Vec::new() } else { routers(value)? };
    names.iter().map(|text| read(text)).collect()
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
            ("traffic", "'udp'", "udp"),
            ("rts", "true", "true"),
            ("rts", "false", "false"),
            ("rts", "0", "true"),
            ("rts", "1000", "1000"),
            ("receiver", "'nolock'", "nolock"),
            ("routing", "'babel'", "babel"),
            ("congestion", "'bbr'", "bbr"),
            ("units", "'32KiB'", "32KiB"),
            ("streams", "'alone'", "alone"),
            ("halves", "'dropped'", "dropped"),
            ("heads", "'needed'", "needed"),
            ("paper", "'ditto'", "ditto"),
            ("paper", "'none'", "none"),
            ("cancel", "'off'", "off"),
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
            ("cuts", "'3@10 roof:1@7.50'", "3@10 roof:1@7.5"),
            ("cuts", "[]", ""),
        ] {
            assert_eq!(set(key, value).as_deref(), Ok(shown), "{key} = {value}");
        }
    }

    const CUTS: &str =
        "a list of routers or links and seconds, like [\"3@10\", \"1:2@7.5\"] or \"3@10 1:2@7.5\"";

    #[test]
    fn what_does_not_fit_is_refused_with_what_would() {
        for (key, value, form) in [
            ("hops", "0", "a whole number from 1 to 999"),
            ("hops", "1000", "a whole number from 1 to 999"),
            ("hops", "4.5", "a whole number from 1 to 999"),
            ("hops", "'4'", "a whole number from 1 to 999"),
            ("hops", "nan", "a whole number from 1 to 999"),
            ("bytes", "-1", "a whole number from 1 to 1000000000"),
            ("bytes", "99999999999999999999", "a whole number from 1 to 1000000000"),
            ("loss", "1.1", "a number from 0 to 1"),
            ("loss", "nan", "a number from 0 to 1"),
            ("stagger_s", "inf", "a number from 0 to 86400"),
            ("data_mbps", "22", "a rate of 802.11: 1, 2, 5.5, 6, 9, 11, 12, 18, 24, 36, 48 or 54"),
            ("order", "'backwards'", "\"listed\" or \"random\""),
            ("routing", "1", "\"static\" or \"babel\""),
            ("congestion", "'vegas'", "\"reno\" or \"cubic\" or \"bbr\""),
            ("units", "8", "\"8KiB\" or \"32KiB\""),
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
            ("speed_min_m_s", "0", "a number from 0.01 to 1000"),
            ("speed_max_m_s", "-3", "a number from 0.01 to 1000"),
            ("routes_every_s", "0", "a number from 0.1 to 3600"),
            ("mobility", "'brown'", "\"none\" or \"waypoint\""),
            ("cuts", "'3@-1'", CUTS),
            ("cuts", "'3'", CUTS),
            ("cuts", "'@5'", CUTS),
            ("cuts", "'1:@5'", CUTS),
            ("cuts", "'1@nan'", CUTS),
            ("receivers", "[true]", "a list of routers, like [\"1\", \"2\"] or \"1 2\""),
        ] {
            let expected = format!("`{key}` must be {form}, not {value}");
            assert_eq!(set(key, value), Err(expected), "{key} = {value}");
        }
    }

    #[test]
    fn no_two_keys_have_one_name() {
        let mut names: Vec<_> = keys::all().map(|spec| spec.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), keys::all().count());
    }
}
