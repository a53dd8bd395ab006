//! Whole pages.

use report::testing::{TABLE_MAX, assert_well_formed, chain, table_widths};

use super::*;
use crate::result::fixtures::{run, transfer};
use crate::result::{Gateway, Radio, RunResult, Transfer};

fn page_of(results: &[RunResult], ground: &Ground) -> String {
    let page = compare(results, ground);
    assert_well_formed(&page);
    let svgs = ["NaN", " inf", "=\"inf"];
    assert!(!svgs.iter().any(|odd| page.contains(odd)));
    page
}

#[test]
fn a_run_has_its_figures() {
    let transfers = vec![transfer("r1", 1000.0), transfer("r2", 500.0)];
    let page = page_of(&[run("ditto", 7, transfers)], &chain(3));
    let texts = [
        "<b>ditto</b>",
        "<b>7</b>",
        "✓ valid",
        ">750\u{a0}kbit/s<",
        ">250\u{a0}ms<",
        "2.00\u{a0}MB delivered, ratio 0.50",
        ">1\u{202f}234<",
        "share of frames lost",
    ];
    for text in texts {
        assert!(page.contains(text), "{text}");
    }
    assert!(!page.contains("class=\"warning\""));
}

#[test]
fn a_page_opens_with_what_was_saved() {
    let runs = [run("end-to-end", 1, vec![]), run("ditto", 1, vec![transfer("r1", 10.0)])];
    let page = page_of(&runs[1..], &chain(2));
    let after_title = page.split_once("</h1>").unwrap().1;
    assert!(
        after_title.starts_with("<p class=\"lead\">With Hearsay (ditto), "),
        "{after_title:.80}"
    );
    assert!(page_of(&runs[..1], &chain(2)).contains("Clients received nothing."));
    assert!(!page_of(&[], &Ground::default()).contains("class=\"lead\""));
}

#[test]
fn a_page_refers_to_nothing_outside() {
    let page = page_of(&[run("ditto", 7, vec![transfer("r1", 1000.0)])], &chain(3));
    let outside = ["<script", "<link", "href=", "src=", "url(", "@import"];
    assert!(!outside.iter().any(|text| page.contains(text)));
}

#[test]
fn a_late_medium_is_a_warning() {
    let mut late = run("ditto", 7, vec![]);
    (late.valid, late.radio.late_ms_p99) = (false, 12.34);
    let page = page_of(&[late.clone()], &chain(2));
    assert!(page.contains("Not valid: the medium was late."));
    assert!(page.contains("<b>p99 12.3\u{a0}ms</b>"));
    let page = page_of(&[run("ditto", 8, vec![]), late], &chain(2));
    assert!(page.contains("1 of 2\u{a0}runs not valid"));
}

#[test]
fn wrong_bytes_are_a_warning() {
    let wrong = Transfer { sha256_ok: false, ..transfer("r1", 10.0) };
    let page = page_of(&[run("ditto", 7, vec![transfer("r1", 10.0), wrong])], &chain(2));
    assert!(page.contains("<b>1 of 2\u{a0}transfers</b>"));
    assert_eq!(page.matches("✗ WRONG").count(), 1);
}

#[test]
fn failures_are_told_with_their_reasons_and_are_no_wrong_bytes() {
    let error = Some("curl: (28) <too slow>".to_owned());
    let failed = Transfer { sha256_ok: false, error, ..transfer("r1", 10.0) };
    let page = page_of(&[run("ditto", 7, vec![transfer("r1", 10.0), failed])], &chain(2));
    assert!(page.contains("Transfers failed.") && !page.contains("Wrong bytes"));
    assert!(page.contains("✗ failed: curl: (28) &lt;too slow&gt;"));
}

#[test]
fn schemes_are_compared_by_pooled_medians() {
    let runs = [
        run("default", 1, vec![transfer("r1", 100.0)]),
        run("ditto", 1, vec![transfer("r1", 150.0)]),
        run("ditto", 2, vec![transfer("r1", 350.0)]),
    ];
    let page = page_of(&runs, &chain(2));
    for text in ["× 2.50", ">250<", ">1–2<", "coloured by ditto", "ditto, seed 2: 1\u{a0}transfer<"]
    {
        assert!(page.contains(text), "{text}");
    }
    assert!(!page.contains("class=\"tiles\""));
}

#[test]
fn any_text_is_escaped() {
    let odd = "<&\"'>\u{1}\u{0}]]>--";
    let mut odd_run = run(odd, 1, vec![Transfer { url: odd.to_owned(), ..transfer(odd, 1.0) }]);
    (odd_run.scenario, odd_run.mode) = (odd.to_owned(), odd.to_owned());
    odd_run.transfers[0].bytes_by_source = [(odd.to_owned(), 1), ("b".to_owned(), 2)].into();
    let mut ground = chain(2);
    ground.description = odd.to_owned();
    ground.routers[1].name = odd.to_owned();
    ground.keys = vec![(odd.to_owned(), odd.to_owned(), odd.to_owned())];
    let page = page_of(&[odd_run.clone(), run("other", 2, vec![])], &ground);
    assert!(!page.contains("<&") && !page.contains('\u{1}') && !page.contains('\u{0}'));
    page_of(&[odd_run.clone()], &ground);
    let odd_runs = [odd_run];
    let schemes = stats::by_scheme(&odd_runs);
    assert_well_formed(&map::svg(&ground, &receivers(&schemes[0])));
    assert_well_formed(&cdf::svg(&throughputs(&schemes)));
}

#[test]
fn degenerate_runs_have_a_page() {
    assert!(page_of(&[], &Ground::default()).contains("There are no runs"));
    assert!(page_of(&[run("a", 1, vec![])], &Ground::default()).contains("No transfers."));
    let stopped = Transfer { bytes: 0, seconds: 0.0, ttfb_s: 0.0, ..transfer("r1", f64::NAN) };
    let page = page_of(&[run("a", 1, vec![stopped])], &chain(2));
    assert!(page.contains("nothing was delivered"));
    page_of(&[run("a", 1, vec![transfer("r1", 5.0); 4])], &chain(2));
    page_of(&[run("a", 1, vec![transfer("r1", 0.0)]), run("b", 1, vec![])], &chain(1));
}

#[test]
fn the_same_results_give_the_same_bytes() {
    let runs = [run("a", 1, vec![transfer("r1", 5.0)]), run("b", 1, vec![transfer("r2", 9.0)])];
    assert_eq!(compare(&runs, &chain(4)), compare(&runs, &chain(4)));
    assert_eq!(html(&runs[0], &chain(4)), compare(&runs[..1], &chain(4)));
}

#[test]
fn tables_fit_a_screen_of_1200_pixels() {
    let client = "a-client-with-a-name";
    let mut slow = Transfer {
        hops: 12,
        bytes: 1_234_567_890,
        ttfb_s: 12.345,
        seconds: 1234.5,
        bytes_by_source: ["local", "ph-local", "remote", "gateway", "overheard", "repaired"]
            .map(|it| (it.to_owned(), 123_456_789))
            .into(),
        ..transfer(client, 12_345.6)
    };
    slow.url = "http://origin/a/rather/long/path/to/a/file-12345.bin".to_owned();
    let transfers = |rate: f64| vec![Transfer { kbps: rate, ..slow.clone() }; 250];
    let results: Vec<_> = ["end-to-end", "default", "ph-thcp", "ditto-paper"]
        .into_iter()
        .flat_map(|scheme| [1, 2, 9, 10].map(|seed| (scheme, seed)))
        .map(|(scheme, seed)| RunResult {
            valid: false,
            gateway: Gateway {
                bytes_from_origin: 123_456_789_000,
                bytes_to_origin: Some(123_456_789_000),
                bytes_over_air: 123_456_789_000,
                units_cut: 1 << 30,
                pair: None,
            },
            radio: Radio {
                packets_per_file: 123_456.0,
                airtime_seconds: 12_345.6,
                ..Radio::default()
            },
            ..run(scheme, seed, transfers(12_345.6))
        })
        .collect();
    for page in [page_of(&results, &chain(8)), page_of(&results[..1], &chain(8))] {
        let widths = table_widths(&page);
        assert!(!widths.is_empty());
        assert!(widths.iter().all(|width| *width <= TABLE_MAX), "{widths:?}");
    }
}
