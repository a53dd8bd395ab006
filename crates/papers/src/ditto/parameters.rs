//! Parameters that the paper does not give for its testbeds, and our values.

use super::TESTBEDS;
use super::fetch::PUBLISHED;
use crate::experiment::parameters::keys;
use crate::experiment::{Chosen, Parameter};
use sim::scenario::Scenario;

/// Keys whose values the paper gives.
const STATED: [&str; 4] = ["gateway", "bytes", "phy", "stagger_s"];
/// Keys that have an entry of their own below.
const OWN_ENTRY: [&str; 12] = [
    "receivers",
    "order",
    "routing",
    "units",
    "halves",
    "range_m",
    "carrier_sense_m",
    "loss",
    "loss_exponent",
    "overhear_m",
    "overhear_exponent",
    "overhear_spell_ms",
];

/// All parameters, for both testbeds.
pub(super) fn parameters() -> Vec<Parameter> {
    let testbeds: Vec<_> =
        TESTBEDS.iter().filter_map(|it| Scenario::load(it.scenario, &[]).ok()).collect();
    let both = |name: &str| {
        let each = testbeds.iter().map(|it| format!("{} in {}", it.key(name), it.name));
        each.collect::<Vec<_>>().join(", ")
    };
    let mut all = of_medium(&both);
    all.extend(of_what_is_looked_at());
    all.extend(keys(&testbeds, &STATED, &OWN_ENTRY));
    all
}

fn parameter(name: &'static str, value: &str, chosen: Chosen, why: &'static str) -> Parameter {
    Parameter { name, value: value.to_owned(), chosen, why }
}

fn of_medium(both: &dyn Fn(&str) -> String) -> Vec<Parameter> {
    vec![
        parameter(
            "places",
            "in map21 those of draw 93 of ditto-places; in emulab8 on one plane of 80 by 70 m",
            Chosen::Fitted,
            "the paper draws them; map21's were chosen by what observers reconstruct (decision 0019), emulab8's by what the text says of routes",
        ),
        parameter(
            "loss",
            &both("loss"),
            Chosen::Fitted,
            "of a link as long as range_m; one figure a testbed: the leaves' median from end to end, one by one (decision 0007)",
        ),
        parameter(
            "range_m",
            &both("range_m"),
            Chosen::Fitted,
            "together with loss; short for the walls",
        ),
        parameter(
            "loss_exponent",
            &both("loss_exponent"),
            Chosen::Once,
            "the plainest that rises towards the edge (decision 0007)",
        ),
        parameter(
            "carrier_sense_m",
            &both("carrier_sense_m"),
            Chosen::Once,
            "indoors everybody senses everybody; on the campus a building and its neighbour",
        ),
        parameter(
            "overhear_m",
            &both("overhear_m"),
            Chosen::Fitted,
            "how far observers hear, in metres: by the shares that reconstruct anything, and more than half (ditto-calibration, decision 0015)",
        ),
        parameter(
            "overhear_exponent",
            &both("overhear_exponent"),
            Chosen::Fitted,
            "at distance d an observer loses (d / overhear_m) to this power; the same for both, by both testbeds' shares (decision 0015)",
        ),
        parameter(
            "overhear_spell_ms",
            &both("overhear_spell_ms"),
            Chosen::AfterLooking,
            "0: each frame is lost by itself. Spells of 40 ms with a steeper edge fit more of section 6.2 and gain much less (decision 0017)",
        ),
        parameter(
            "rate control",
            "none: 11 Mbit/s",
            Chosen::Once,
            "the paper does not say whether the cards chose rates",
        ),
        parameter(
            "TCP",
            "in the simulator NewReno without SACK; with real daemons the kernel's Reno with SACK, and 50 ms at least until a packet is sent again between peers",
            Chosen::AfterLooking,
            "the paper says Linux's of its time; decisions 0020 and 0022",
        ),
    ]
}

fn of_what_is_looked_at() -> Vec<Parameter> {
    vec![
        parameter(
            PUBLISHED,
            "the key paper = ditto: heads needed, halves dropped, nothing taken back",
            Chosen::Paper,
            "the paper's system, which its figures are held against; \"ditto\" is ours (docs/papers.md)",
        ),
        parameter(
            "routing",
            "figure 10's routes in map21, ours in emulab8; both stay",
            Chosen::Paper,
            "the paper froze OLSR's; emulab8's are in a drawing",
        ),
        parameter(
            "observers",
            "all routers but gateway and receiver, relays too, with all that a capture shows there",
            Chosen::Paper,
            "of the campus's 28 routers its figure 10 names 22",
        ),
        parameter(
            "leaves",
            "1 2 3 5 7 in emulab8, 2 3 5 7 14 15 18 19 25 27 38 in map21",
            Chosen::Paper,
            "as far as its text names them; that 1 is behind 6 is ours",
        ),
        parameter(
            "orders",
            "one by one and every 5 s: as listed in emulab8, shuffle 1 in map21; ten orders: shuffles 1 to 10",
            Chosen::Once,
            "the paper's were random, and it does not give them",
        ),
        parameter(
            "half-heard units",
            "ditto asks for the rest; without repair they are dropped",
            Chosen::Ours,
            "the paper's Ditto drops them, so it is to be held against \"ditto without repair\"",
        ),
        parameter(
            "memory, stores, timeouts",
            "the program's own: 16 MiB of memory and 8 MiB for what is half heard, all else as packaging/hearsay.toml has it",
            Chosen::AsItIs,
            "the paper names no sizes and no times",
        ),
        parameter(
            "boundaries of chunks",
            "a rolling hash by gear, 4 to 16 KiB, 8 on average",
            Chosen::Ours,
            "the paper's are Rabin's, of 8 KB",
        ),
        parameter(
            "32 KiB",
            "chunks of 24 to 32 KiB, 30 on average",
            Chosen::Ours,
            "our frames carry no longer ones",
        ),
        parameter(
            "end-to-end, for reconstruction",
            "chunks in one connection from gateway to receiver",
            Chosen::Paper,
            "relays forward packets",
        ),
        parameter(
            "memory overhead",
            "bytes that were kept and made no chunk, over all TCP payload heard; copies of what is there are not kept",
            Chosen::Paper,
            "as we read it",
        ),
    ]
}
