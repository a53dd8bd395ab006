//! The cases that have closed forms.
//!
//! They describe the standard's DCF, so the runs use it, with 10 dB capture. Whether stations wait for an
//! EIFS after a collision depends on what they receive, which `radio::theory` takes into account. The last
//! cases are pairs of senders that have no reference and are only shown.

use radio::theory;

use super::verdict::{Reference, SHARE};
use super::{Case, Effort, Figure, Group, Play, Settings, medium, setting};
use crate::Standing;
use sim::scenario::ScenarioError;
use sim::world::flows::DATAGRAM_BYTES;

/// Largest relative error with one sender and one receiver.
const SINGLE_HOP_OFF_MAX: f64 = 0.02;
/// Largest relative error of saturated cells.
const BIANCHI_OFF_MAX: f64 = 0.05;

const FULL_S: f64 = 20.0;
const QUICK_S: f64 = 4.0;

const PAYLOAD_BYTES: u32 = DATAGRAM_BYTES as u32;
/// Length with the headers of IP and UDP.
const PACKET_BYTES: u32 = PAYLOAD_BYTES + 20 + 8;
/// Length with the headers of LLC and SNAP too.
const MSDU_BYTES: u32 = PACKET_BYTES + 8;

/// One sender only shows that the medium keeps its times.
const SAME_SUMS: Standing = Standing::Given("one sender adds up the same times as the formula");

const ONE_HOP: Group = Group {
    name: "one hop",
    about: "One saturated sender of UDP, nothing lost: DIFS, mean backoff, frames.",
    standing: SAME_SUMS,
};
const JUN: Group = Group {
    name: "Jun",
    about: "Theoretical maximum of one sender: throughput of MSDUs (Jun, Peddabachagari, Sichitiu).",
    standing: SAME_SUMS,
};
const BIANCHI: Group = Group {
    name: "Bianchi",
    about: "Saturation throughput of a cell, with the retry limit and EIFS that his model leaves open.",
    standing: Standing::Predicted,
};
const PAIRS: Group = Group {
    name: "pairs",
    about: "Two senders without a reference. Exposed: they sense each other and send away from each other, \
        and take turns though they need not. Asymmetric: one receiver is 250 or 300 m from the other sender, \
        which its own does not sense, so that much depends on what decides on a frame.",
    standing: Standing::Predicted,
};

/// Physical layer, data rate, basic rate in Mbit/s, as the scenario takes them.
type Rates = (&'static str, &'static str, &'static str);
const ONE_HOP_RATES: [Rates; 6] = [
    ("b", "11", "1"),
    ("b", "11", "2"),
    ("b", "1", "1"),
    ("b-short", "11", "2"),
    ("g", "54", "6"),
    ("a", "54", "24"),
];
const JUN_RATES: [Rates; 2] = [("b", "11", "1"), ("b", "2", "1")];
const CELL_RATES: Rates = ("b", "11", "1");
const CELL_RATES_OFDM: Rates = ("a", "54", "6");
const SENDERS: [usize; 14] = [1, 2, 3, 4, 5, 6, 8, 10, 15, 20, 25, 30, 40, 50];
const SENDERS_QUICK: [usize; 5] = [1, 2, 5, 10, 50];
/// Enough senders to fill even the fastest channel.
const SENDERS_OFDM: [usize; 3] = [5, 10, 20];

/// The definition of a case.
struct Recipe {
    group: Group,
    name: String,
    play: Play,
    keys: Settings,
    /// Computes the figures and their references from the radio.
    expect: fn(&radio::Config, Play) -> Vec<Figure>,
}

/// All cases.
pub fn cases(effort: Effort, more: &[(String, String)]) -> Result<Vec<Case>, ScenarioError> {
    let is_quick = effort == Effort::Quick;
    let lasts = if is_quick { QUICK_S } else { FULL_S };
    let senders = if is_quick { &SENDERS_QUICK[..] } else { &SENDERS[..] };
    let recipes = one_hop().chain(jun()).chain(cells(senders)).chain(pairs(more));
    recipes.map(|recipe| recipe.case(lasts, more)).collect()
}

impl Recipe {
    fn case(self, lasts: f64, more: &[(String, String)]) -> Result<Case, ScenarioError> {
        let Self { group, name, play, keys, expect } = self;
        let standard = [("dcf", "standard"), ("reception", "capture"), ("traffic", "udp")];
        let mut settings: Settings =
            standard.into_iter().map(|(key, value)| setting(key, value)).collect();
        settings.extend(keys);
        settings.push(setting("seconds", lasts));
        settings.extend(more.iter().cloned());
        let scenario = play.scenario(&settings, 1)?;
        let figures = expect(&scenario.radio, play);
        Ok(Case { group, name, medium: medium(&scenario), figures, play, settings })
    }
}

fn one_hop() -> impl Iterator<Item = Recipe> {
    ONE_HOP_RATES.into_iter().flat_map(|rates| {
        let (phy, data, basic) = rates;
        with_and_without_rts(move |rts, more| Recipe {
            group: ONE_HOP,
            name: format!("{phy}, {data} Mbit/s, basic {basic}{more}"),
            play: Play::Chain,
            keys: [one_hop_keys(rates), vec![setting("rts", rts)]].concat(),
            expect: |radio, _| {
                let packets = theory::single_sender(radio, PACKET_BYTES);
                vec![figure("goodput_kbps", kbps(packets, PAYLOAD_BYTES), SINGLE_HOP_OFF_MAX)]
            },
        })
    })
}

fn jun() -> impl Iterator<Item = Recipe> {
    // An MSDU is everything after the MAC header.
    JUN_RATES.into_iter().map(|rates| Recipe {
        group: JUN,
        name: format!("b, {} Mbit/s, basic {}", rates.1, rates.2),
        play: Play::Chain,
        keys: one_hop_keys(rates),
        expect: |radio, _| {
            let bits = theory::maximum_of_jun(radio.data_rate, radio.basic_rate, MSDU_BYTES);
            // The payload is this share of each MSDU.
            let share = f64::from(PAYLOAD_BYTES) / f64::from(MSDU_BYTES);
            vec![figure("goodput_kbps", bits / 1e3 * share, SINGLE_HOP_OFF_MAX)]
        },
    })
}

fn cells(senders: &[usize]) -> impl Iterator<Item = Recipe> {
    let b = senders.iter().map(|senders| (*senders, CELL_RATES));
    let ofdm = SENDERS_OFDM.into_iter().map(|senders| (senders, CELL_RATES_OFDM));
    b.chain(ofdm).flat_map(|(senders, rates)| {
        let (phy, data, _) = rates;
        with_and_without_rts(move |rts, more| Recipe {
            group: BIANCHI,
            name: format!("{senders} of {phy}, {data} Mbit/s{more}"),
            play: Play::Cell(senders),
            keys: [one_hop_keys(rates), vec![setting("rts", rts)]].concat(),
            expect: |radio, play| {
                let Play::Cell(senders) = play else { return Vec::new() };
                let cell = theory::saturation(radio, senders as u32, PACKET_BYTES);
                let goodput = kbps(cell.packets_per_second, PAYLOAD_BYTES);
                let mut figures = vec![figure("goodput_kbps", goodput, BIANCHI_OFF_MAX)];
                // With RTS, only RTS frames collide, and those are not counted among data frames.
                if radio.rts_threshold.is_none() {
                    let reference = Some(Reference { mean: cell.collision, spread: None });
                    let name = "data_fail_share";
                    figures.push(Figure { name, reference, allowed: None, known: None });
                }
                figures
            },
        })
    })
}

/// With both rules of reception, or with the one that `more` sets.
fn pairs(more: &[(String, String)]) -> impl Iterator<Item = Recipe> {
    let plays = [Play::ExposedPair, Play::AsymmetricPair(250), Play::AsymmetricPair(300)];
    let asked = more.iter().rfind(|(key, _)| key == "reception").map(|(_, value)| value.clone());
    let both = [("capture", "standard"), ("bit-error", "ns3")];
    let receptions: Vec<_> = both
        .into_iter()
        .filter(|(it, _)| asked.as_deref().is_none_or(|asked| asked == *it))
        .collect();
    plays.into_iter().flat_map(move |play| {
        receptions.clone().into_iter().flat_map(move |(reception, dcf)| {
            with_and_without_rts(move |rts, more| Recipe {
                group: PAIRS,
                name: match play {
                    Play::AsymmetricPair(apart_m) => {
                        format!("asymmetric, {apart_m} m, {reception}{more}")
                    }
                    _ => format!("exposed, {reception}{more}"),
                },
                play,
                keys: vec![
                    setting("reception", reception),
                    setting("dcf", dcf),
                    setting("rts", rts),
                ],
                expect: |_, _| {
                    let shown = |name| Figure { name, reference: None, allowed: None, known: None };
                    ["goodput_kbps", SHARE, "data_fail_share"].map(shown).to_vec()
                },
            })
        })
    })
}

/// Calls `make` without and with RTS, giving it what to add to the name.
fn with_and_without_rts(make: impl Fn(bool, &str) -> Recipe) -> [Recipe; 2] {
    [make(false, ""), make(true, ", RTS")]
}

fn one_hop_keys((phy, data, basic): Rates) -> Settings {
    let keys = [("hops", "1"), ("phy", phy), ("data_mbps", data), ("basic_mbps", basic)];
    keys.into_iter().map(|(key, value)| setting(key, value)).collect()
}

fn figure(name: &'static str, mean: f64, allowed: f64) -> Figure {
    let reference = Some(Reference { mean, spread: None });
    Figure { name, reference, allowed: Some(allowed), known: None }
}

fn kbps(packets_per_second: f64, bytes: u32) -> f64 {
    packets_per_second * f64::from(bytes) * 8.0 / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_hop_is_what_was_worked_out_by_hand() {
        let cases = cases(Effort::Quick, &[]).unwrap();
        let reference = |name: &str| {
            let case = cases.iter().find(|case| case.name == name).unwrap();
            case.figures[0].reference.unwrap().mean
        };
        // 50 DIFS, 310 back-off, 192 + 1109 data, 10 SIFS, 192 + 112 ACK: 1975 µs for 11680 bits.
        assert!((reference("b, 11 Mbit/s, basic 1") - 11_680.0 / 1.975).abs() < 1.0);
        assert_eq!(cases.iter().filter(|case| case.group == BIANCHI).count(), 2 * (5 + 3));
        let medium = "receiver lock, reception capture, dcf standard";
        let mut judged = cases.iter().filter(|case| case.group != PAIRS);
        assert!(judged.all(|case| case.medium == medium));
    }

    #[test]
    fn another_medium_can_be_asked_for() {
        let cases = cases(Effort::Quick, &[setting("receiver", "nolock")]).unwrap();
        assert!(cases[0].medium.starts_with("receiver nolock"));
        for (key, value) in [("receivr", "nolock"), ("hops", "3"), ("receiver", "both")] {
            let error = super::super::cases(Effort::Quick, &[setting(key, value)]).unwrap_err();
            assert!(error.to_string().starts_with(&format!("{key}={value}: ")), "{error}");
        }
    }

    #[test]
    fn pairs_are_called_by_their_rule_of_reception() {
        let cases = cases(Effort::Quick, &[setting("reception", "bit-error")]).unwrap();
        let pairs: Vec<_> = cases.iter().filter(|case| case.group == PAIRS).collect();
        assert_eq!(pairs.len(), 6);
        let is_shown =
            |case: &Case| case.name.contains("bit-error") && case.medium.contains("bit-error");
        assert!(pairs.into_iter().all(is_shown));
    }
}
