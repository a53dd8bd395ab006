//! The flows that a scenario lists: from where to where, of which kind, from when to when.

use std::fmt;
use std::time::Duration;

use super::problem::quote;

/// Allowed rates, in Mbit/s.
const MBPS: std::ops::RangeInclusive<f64> = 0.001..=1_000.0;
/// Latest time of a start or an end: one day.
const SECONDS_MAX: f64 = 86_400.0;

/// A flow between two routers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListedFlow {
    /// The router that sends.
    pub from: usize,
    /// The router that receives.
    pub to: usize,
    /// What it sends.
    pub kind: FlowKind,
    /// When it begins.
    pub starts: Duration,
    /// When it ends; `None`: with the run.
    pub ends: Option<Duration>,
}

/// What a listed flow sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowKind {
    /// As much as TCP allows.
    Tcp,
    /// UDP packets at a constant rate of payload.
    Cbr {
        /// The rate, in bits per second.
        bits_per_second: u64,
    },
    /// A coded video over UDP.
    Vbr {
        /// The mean rate of payload, in bits per second.
        bits_per_second: u64,
    },
    /// Key strokes and their echoes over TCP.
    Ssh,
}

/// A flow as written.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct FlowWish {
    from: String,
    to: String,
    kind: FlowKind,
    start_s: f64,
    end_s: Option<f64>,
}

/// How a flow is written.
pub(super) const FORM: &str = "FROM:TO, FROM:TO:KIND, FROM:TO:KIND:START or FROM:TO:KIND:START:END";
/// An example for error messages.
pub(super) const EXAMPLE: &str = "[\"0:8\", \"0:8:cbr@2.66:20:120\"]";

impl FlowWish {
    /// Parses [`FORM`]. The error names what is wrong, and what would be right.
    pub fn read(text: &str) -> Result<Self, String> {
        let parts: Vec<_> = text.split(':').collect();
        let wrong = |what: String| Err(format!("\"{}\": {what}", quote(text)));
        let [from, to] = match parts[..] {
            [from, to, ..] if !from.is_empty() && !to.is_empty() && parts.len() <= 5 => [from, to],
            _ => return wrong(format!("a flow is {FORM}, like {EXAMPLE}")),
        };
        let kind = match kind(parts.get(2).copied().unwrap_or("tcp")) {
            Ok(kind) => kind,
            Err(what) => return wrong(what),
        };
        let mut times = [0.0, 0.0];
        for (time, part) in times.iter_mut().zip(parts.iter().skip(3)) {
            match part.parse().ok().filter(|it| (0.0..=SECONDS_MAX).contains(it)) {
                Some(seconds) => *time = seconds,
                None => {
                    let part = quote(part);
                    return wrong(format!(
                        "START and END are seconds from 0 to {SECONDS_MAX}, like 20:120, not `{part}`"
                    ));
                }
            }
        }
        let [start_s, end_s] = times;
        let end_s = (parts.len() == 5).then_some(end_s);
        if end_s.is_some_and(|it| it <= start_s) {
            return wrong("it ends before it begins: END must be after START, like 20:120".into());
        }
        Ok(Self { from: from.to_owned(), to: to.to_owned(), kind, start_s, end_s })
    }

    /// The flow between the routers that `find` gives for names.
    pub fn flow(&self, find: impl Fn(&str) -> Result<usize, String>) -> Result<ListedFlow, String> {
        let named = |name: &str| find(name).map_err(|text| format!("`between` names an {text}"));
        let (from, to) = (named(&self.from)?, named(&self.to)?);
        if from == to {
            return Err(format!(
                "`between` has {self}, from a router to itself: a flow is between two, like \"0:8\""
            ));
        }
        let starts = Duration::from_secs_f64(self.start_s);
        let ends = self.end_s.map(Duration::from_secs_f64);
        Ok(ListedFlow { from, to, kind: self.kind, starts, ends })
    }
}

fn kind(text: &str) -> Result<FlowKind, String> {
    let rate = |rate: &str| {
        let mbps = rate.parse().ok().filter(|it| MBPS.contains(it));
        mbps.map(|it: f64| (it * 1e6).round() as u64)
    };
    match text.split_once('@') {
        None if text == "tcp" => Ok(FlowKind::Tcp),
        None if text == "ssh" => Ok(FlowKind::Ssh),
        Some((word @ ("cbr" | "vbr"), mbps)) => match (word, rate(mbps)) {
            ("cbr", Some(bits_per_second)) => Ok(FlowKind::Cbr { bits_per_second }),
            (_, Some(bits_per_second)) => Ok(FlowKind::Vbr { bits_per_second }),
            (_, None) => Err(format!(
                "the rate of {word} must be from {} to {} Mbit/s, like {word}@2.66, not `{}`",
                MBPS.start(),
                MBPS.end(),
                quote(mbps)
            )),
        },
        None if text == "cbr" || text == "vbr" => {
            Err(format!("{text} needs a rate in Mbit/s, like {text}@2.66"))
        }
        _ => Err(format!(
            "KIND must be tcp, cbr@MBITS, vbr@MBITS or ssh, like cbr@2.66, not `{}`",
            quote(text)
        )),
    }
}

impl fmt::Display for FlowWish {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { from, to, kind, start_s, end_s } = self;
        write!(f, "{from}:{to}:{kind}:{start_s}")?;
        end_s.map_or(Ok(()), |end_s| write!(f, ":{end_s}"))
    }
}

impl fmt::Display for FlowKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mbps = |bits_per_second: &u64| *bits_per_second as f64 / 1e6;
        match self {
            Self::Tcp => f.write_str("tcp"),
            Self::Ssh => f.write_str("ssh"),
            Self::Cbr { bits_per_second } => write!(f, "cbr@{}", mbps(bits_per_second)),
            Self::Vbr { bits_per_second } => write!(f, "vbr@{}", mbps(bits_per_second)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_are_read_as_people_write_them() {
        for (text, shown) in [
            ("0:8", "0:8:tcp:0"),
            ("0:8:tcp:20:120", "0:8:tcp:20:120"),
            ("roof:a-1:cbr@2.66", "roof:a-1:cbr@2.66:0"),
            ("3:5:vbr@0.4:1e1", "3:5:vbr@0.4:10"),
            ("8:0:ssh:0.5:9", "8:0:ssh:0.5:9"),
        ] {
            let read = FlowWish::read(text).map(|it| it.to_string());
            assert_eq!(read.as_deref(), Ok(shown), "{text}");
            assert_eq!(FlowWish::read(shown).map(|it| it.to_string()).as_deref(), Ok(shown));
        }
        let wish = FlowWish::read("a:b:cbr@2.66:20:120").unwrap();
        let flow = wish.flow(|name| Ok(if name == "a" { 7 } else { 9 }));
        let expected = ListedFlow {
            from: 7,
            to: 9,
            kind: FlowKind::Cbr { bits_per_second: 2_660_000 },
            starts: Duration::from_secs(20),
            ends: Some(Duration::from_secs(120)),
        };
        assert_eq!(flow, Ok(expected));
    }

    #[test]
    fn what_is_wrong_in_a_flow_is_named_with_an_example() {
        let form = format!("a flow is {FORM}, like {EXAMPLE}");
        for (text, expected) in [
            ("0", form.as_str()),
            (":8", &form),
            ("0:", &form),
            ("0:8:tcp:1:2:3", &form),
            ("0:8:cbr", "cbr needs a rate in Mbit/s, like cbr@2.66"),
            (
                "0:8:vbr@0",
                "the rate of vbr must be from 0.001 to 1000 Mbit/s, like vbr@2.66, not `0`",
            ),
            (
                "0:8:cbr@nan",
                "the rate of cbr must be from 0.001 to 1000 Mbit/s, like cbr@2.66, not `nan`",
            ),
            ("0:8:udp", "KIND must be tcp, cbr@MBITS, vbr@MBITS or ssh, like cbr@2.66, not `udp`"),
            (
                "0:8:tcp@1",
                "KIND must be tcp, cbr@MBITS, vbr@MBITS or ssh, like cbr@2.66, not `tcp@1`",
            ),
            ("0:8:tcp:soon", "START and END are seconds from 0 to 86400, like 20:120, not `soon`"),
            ("0:8:tcp:0:-1", "START and END are seconds from 0 to 86400, like 20:120, not `-1`"),
            ("0:8:tcp:5:5", "it ends before it begins: END must be after START, like 20:120"),
        ] {
            assert_eq!(FlowWish::read(text), Err(format!("\"{text}\": {expected}")));
        }
    }
}
