//! `hearsay-lab validate`: whether the simulator is near enough to ns-3 and to closed forms; its output, and its exit
//! code.

use std::fs;

use crate::lab::World;
use crate::lab::provenance::assert_origin;
use crate::lab::schema::assert_valid;

/// Settings under which receivers differ from those of ns-3's chains.
const OTHER: [&str; 8] =
    ["validate", "--quick", "--seeds", "1", "--jobs", "2", "--set", "receiver=lock"];

/// Runs every case, and expects each figure to be near enough.
fn all_are_near_enough(more: &[&str]) {
    let world = World::new();
    let words = ["validate", "--quick", "--quiet", "--json", "-"];
    let figures = world.run(&[&words[..], more].concat()).expect(0).json();
    let judged = figures["figures"].as_array().expect("a list");
    assert!(judged.len() > 50 && figures["failed"] == 0, "{figures:#}");
}

/// By ns-3's rules; this includes the fresh cases under the papers' rules.
#[test]
fn every_case_is_near_enough() {
    all_are_near_enough(&[]);
}

#[test]
fn ns3s_chains_losses_and_cells_are_near_enough_by_the_rules_of_the_papers_experiments() {
    all_are_near_enough(&["--set", "reception=capture", "--set", "dcf=standard"]);
}

#[test]
fn figures_stand_beside_references_and_what_is_off_fails_by_name() {
    let world = World::new();
    let more = ["--html", "page.html", "--json", "figures.json"];
    let ended = world.run(&[&OTHER[..], &more].concat()).expect(1);
    for part in ["chain_nolock", "8 hops, TCP, RTS", "Bianchi", "receiver lock", "FAILED"] {
        assert!(ended.out.contains(part), "no {part} in: {}", ended.out);
    }
    let off = "chain_nolock, 8 hops, TCP: goodput_kbps is off by -";
    assert!(ended.err.contains(off), "{}", ended.err);
    assert!(ended.out.contains("1 seed: "), "{}", ended.out);
    let json = fs::read_to_string(world.path("figures.json")).expect("the figures");
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_valid(&json);
    assert_origin(&json["provenance"], "hearsay-lab validate --quick --seeds 1 --jobs 2 --set");
    assert_eq!(json["provenance"]["keys"]["receiver"], "lock");
    let figures = json["figures"].as_array().expect("a list");
    let failed = figures.iter().filter(|it| it["verdict"] == "FAILED").count();
    assert!(figures.len() > 100 && failed > 0 && json["failed"] == failed);
    let first = &figures[0];
    assert_eq!((&first["group"], &first["case"]), (&"chain".into(), &"1 hop, TCP".into()));
    assert_eq!((&first["reference"], &first["allowed"]), (&4961.01.into(), &0.15.into()));
    let page = fs::read_to_string(world.path("page.html")).expect("the page");
    for part in
        ["<svg", "reception bit-error", "dcf standard", "8 hops, UDP", "too far off", "<footer>"]
    {
        assert!(page.contains(part), "no {part}");
    }
}

#[test]
fn a_key_that_is_no_rule_of_the_medium_is_refused() {
    for setting in ["dta_mbps=2", "hops=3", "seconds=1"] {
        let parts = [setting, "`receiver`, `reception`, `dcf`"];
        World::new().run(&["validate", "--set", setting]).expect_refusal(&parts);
    }
}

#[test]
fn where_no_program_of_ns3_can_be_built_it_says_what_to_install() {
    let world = World::new();
    let ended = world.lab(&["validate", "--ns3=made"]).env("PATH", "").output().expect("it runs");
    let said = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(2), "{said}");
    assert!(said.contains("c++") && said.contains("scripts/setup --long"), "{said}");
    let cases = fs::read_to_string(world.path("made/cases.h")).expect("the cases");
    assert!(cases.contains("\"8 hops of 240 m UDP\", 9, 30, \"DsssRate11Mbps\""), "{cases}");
}
