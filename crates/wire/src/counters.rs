//! Counters, in one table for each struct that holds them, and reasons, in one enum for each thing that can be
//! refused.
//!
//! *What this is:* [`counters!`](crate::counters!) makes a struct with one public field a counter, and the table
//! of its [`Row`]s: name, kind, unit, label, help. [`reasons!`](crate::reasons) makes an enum whose variants have a
//! name and a help line; a [`Tally`] counts them. *Who calls it:* every crate that counts. The status, its JSON, the
//! metrics and `docs/metrics.md` follow from these tables. *What it never does:* count.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde::ser::{Serialize, Serializer};

/// What a figure may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It only grows, from zero at the start.
    Counter,
    /// It holds now: it grows and falls.
    Gauge,
}

/// What a figure counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Bytes.
    Bytes,
    /// Seconds.
    Seconds,
    /// Chunks, or parts of a chunk.
    Chunks,
    /// Frames on the link.
    Frames,
    /// TCP segments.
    Segments,
    /// UDP datagrams.
    Datagrams,
    /// Files of the store, each with many chunks.
    Files,
    /// TCP flows.
    Flows,
    /// Requests or their responses.
    Requests,
    /// Objects: records and what they describe.
    Objects,
    /// Peers.
    Peers,
    /// Connections.
    Connections,
    /// Hops.
    Hops,
    /// Events of the kind that the help line names.
    Events,
    /// 1 if it is so, else 0.
    Flag,
    /// A number in a unit of its own, which the help line names.
    Number,
}

/// The part of the daemon that a figure tells of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// The process and its memory.
    Process,
    /// Connections of clients.
    Clients,
    /// What was answered, and from where.
    Requests,
    /// Chunks and the store.
    Store,
    /// Published objects.
    Published,
    /// The route to the gateway; absent without a mesh.
    Route,
    /// Peers; absent without a mesh.
    Mesh,
    /// Captured frames and what was overheard; absent where that is off.
    Overhearing,
    /// The pair of the uplink; absent without a far end.
    Uplink,
    /// A far end, which is a process of its own.
    Far,
}

/// One figure of a struct.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// The field, in Rust and in JSON.
    pub field: &'static str,
    /// The part it belongs to.
    pub part: Part,
    /// What it may do.
    pub kind: Kind,
    /// What it counts.
    pub unit: Unit,
    /// The metric: in full, as Prometheus has it.
    pub metric: &'static str,
    /// The label that tells it from others of the same metric, and its value.
    pub label: Option<(&'static str, &'static str)>,
    /// What the metric is, if it has such a label.
    pub about: Option<&'static str>,
    /// The values of the label `reason`, for a [`Tally`], and what each means.
    pub reasons: fn() -> Vec<(&'static str, &'static str)>,
    /// What the figure is, in a sentence or two.
    pub help: &'static str,
}

/// A struct of figures with their table.
pub trait Counters {
    /// The table.
    const ROWS: &'static [Row];

    /// The figure of each row, in order.
    fn figures(&self) -> Vec<&dyn Figure>;
}

/// A field that a table may have.
pub trait Figure {
    /// Its values, each with its reason if it is counted by reason. Empty if there is none now.
    fn values(&self) -> Vec<(Option<&'static str>, u64)>;

    /// The reasons that it is counted by, and what each means.
    fn reasons() -> Vec<(&'static str, &'static str)>
    where
        Self: Sized,
    {
        Vec::new()
    }
}

impl Figure for u64 {
    fn values(&self) -> Vec<(Option<&'static str>, u64)> {
        vec![(None, *self)]
    }
}

impl Figure for bool {
    fn values(&self) -> Vec<(Option<&'static str>, u64)> {
        vec![(None, (*self).into())]
    }
}

impl Figure for Option<u64> {
    fn values(&self) -> Vec<(Option<&'static str>, u64)> {
        self.iter().map(|value| (None, *value)).collect()
    }
}

/// Every reason has a value from the start.
impl<R: Reason> Figure for Tally<R> {
    fn values(&self) -> Vec<(Option<&'static str>, u64)> {
        R::all().map(|reason| (Some(reason.name()), self.get(reason))).collect()
    }

    fn reasons() -> Vec<(&'static str, &'static str)> {
        R::all().map(|reason| (reason.name(), reason.help())).collect()
    }
}

/// An enum of reasons, by which a [`Tally`] counts.
pub trait Reason: Copy + Ord + 'static {
    /// Each of them, in order.
    fn all() -> impl Iterator<Item = Self>;

    /// A short name for labels, JSON and logs.
    fn name(self) -> &'static str;

    /// A sentence.
    fn help(self) -> &'static str;

    /// The help line as a part of another sentence: no capital, no full stop.
    fn clause(self) -> String {
        let help = self.help().trim_end_matches('.');
        let rest = help.get(1..).unwrap_or_default();
        help.get(..1).unwrap_or_default().to_ascii_lowercase() + rest
    }
}

/// What was counted for each reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tally<R, C = u64>(BTreeMap<R, C>);

impl<R: Reason, C: Copy + Default> Tally<R, C> {
    /// The count for a reason, to add to.
    pub fn of(&mut self, reason: R) -> &mut C {
        self.0.entry(reason).or_default()
    }

    /// The count for a reason; none is the default.
    pub fn get(&self, reason: R) -> C {
        self.0.get(&reason).copied().unwrap_or_default()
    }

    /// The reasons that occurred, in their order.
    pub fn occurred(&self) -> impl Iterator<Item = (R, C)> {
        self.0.iter().map(|(reason, count)| (*reason, *count))
    }
}

impl<R, C> Default for Tally<R, C> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<R: Ord, C> FromIterator<(R, C)> for Tally<R, C> {
    fn from_iter<T: IntoIterator<Item = (R, C)>>(counts: T) -> Self {
        Self(counts.into_iter().collect())
    }
}

/// A map from names to counts.
impl<R: Reason, C: Serialize> Serialize for Tally<R, C> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(reason, count)| (reason.name(), count)))
    }
}

/// Reasons of another version, which are not known here, are left out.
impl<'de, R: Reason, C: Deserialize<'de>> Deserialize<'de> for Tally<R, C> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Names<R, C>(PhantomData<(R, C)>);
        impl<'de, R: Reason, C: Deserialize<'de>> Visitor<'de> for Names<R, C> {
            type Value = Tally<R, C>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("counts by reason")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Self::Value, M::Error> {
                let mut tally = Tally::default();
                while let Some((name, count)) = map.next_entry::<String, C>()? {
                    tally.0.extend(R::all().find(|it| it.name() == name).map(|it| (it, count)));
                }
                Ok(tally)
            }
        }
        deserializer.deserialize_map(Names(PhantomData))
    }
}

/// Makes structs of figures, and their tables.
///
/// Each group of fields names its part, and in parentheses the metric that all its fields belong to, its label,
/// and what it is; with nothing there, each field is a metric, named after the prefix and the field. A metric's name
/// starts with `hearsay_` and that of a counter ends with `_total`. `Counter` and `Gauge` are `u64`, `Flag` is a `bool`
/// and `Maybe` an `Option<u64>`, both gauges; `Tally<R>` is a counter for each reason. Fields that are no figures
/// follow behind `+`.
///
/// The structs can be written as JSON and read back; a field that is missing then has its default.
#[macro_export]
macro_rules! counters {
    ($(
        $(#[$attribute:meta])*
        pub struct $name:ident, $prefix:literal {
            $(
                $part:ident $family:tt {
                    $(
                        $(#[doc = $help:literal])+
                        $field:ident: $kind:ident $(<$reason:ident>)?, $unit:ident $(, $value:literal)?;
                    )+
                }
            )+
            $(+ {
                $($(#[$extra_attribute:meta])* pub $extra:ident: $type:ty,)+
            })?
        }
    )+) => {$(
        $(#[$attribute])*
        #[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        #[serde(default)]
        pub struct $name {
            $($($(#[$extra_attribute])* pub $extra: $type,)+)?
            $($(
                $(#[doc = $help])+
                pub $field: $crate::counters!(@type $kind $($reason)?),
            )+)+
        }

        impl $crate::counters::Counters for $name {
            const ROWS: &'static [$crate::counters::Row] = &[$($(
                $crate::counters::Row {
                    field: stringify!($field),
                    part: $crate::counters::Part::$part,
                    kind: $crate::counters!(@kind $kind),
                    unit: $crate::counters::Unit::$unit,
                    metric: $crate::counters!(@metric $family $prefix $field $kind),
                    label: $crate::counters!(@label $family $($value)?),
                    about: $crate::counters!(@about $family),
                    reasons: <$crate::counters!(@type $kind $($reason)?) as $crate::counters::Figure>::reasons,
                    help: concat!($($help),+).trim_ascii(),
                },
            )+)+];

            fn figures(&self) -> Vec<&dyn $crate::counters::Figure> {
                vec![$($(&self.$field),+),+]
            }
        }
    )+};
    (@type Flag) => { bool };
    (@type Maybe) => { Option<u64> };
    (@type Tally $reason:ident) => { $crate::counters::Tally<$reason> };
    (@type $kind:ident) => { u64 };
    (@kind Counter) => { $crate::counters::Kind::Counter };
    (@kind Tally) => { $crate::counters::Kind::Counter };
    (@kind $kind:ident) => { $crate::counters::Kind::Gauge };
    (@metric () $prefix:literal $field:ident Counter) => {
        concat!("hearsay_", $prefix, stringify!($field), "_total")
    };
    (@metric () $prefix:literal $field:ident Tally) => {
        concat!("hearsay_", $prefix, stringify!($field), "_total")
    };
    (@metric () $prefix:literal $field:ident $kind:ident) => {
        concat!("hearsay_", $prefix, stringify!($field))
    };
    (@metric ($metric:literal $($rest:tt)*) $prefix:literal $field:ident $kind:ident) => { $metric };
    (@label ($metric:literal, $label:ident, $about:literal) $value:literal) => {
        Some((stringify!($label), $value))
    };
    (@label $family:tt) => { None };
    (@about ($metric:literal, $label:ident, $about:literal)) => { Some($about) };
    (@about $family:tt) => { None };
}

/// Makes an enum of reasons: each has a name and, as its comment, a help line.
#[macro_export]
macro_rules! reasons {
    (
        $(#[$attribute:meta])*
        pub enum $name:ident {
            $($(#[doc = $help:literal])+ $variant:ident = $text:literal,)+
        }
    ) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $($(#[doc = $help])+ $variant,)+
        }

        impl $name {
            /// Each of them, in order: `ALL[reason as usize] == reason`.
            pub const ALL: [Self; [$($text),+].len()] = [$(Self::$variant),+];

            /// A short name for labels, JSON and logs.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)+
                }
            }
        }

        impl $crate::counters::Reason for $name {
            fn all() -> impl Iterator<Item = Self> {
                Self::ALL.into_iter()
            }

            fn name(self) -> &'static str {
                self.name()
            }

            fn help(self) -> &'static str {
                match self {
                    $(Self::$variant => concat!($($help),+).trim_ascii(),)+
                }
            }
        }
    };
}
