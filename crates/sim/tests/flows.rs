//! Flows that a scenario lists: each kind, from start to end, with and without losses.

use sim::scenario::Scenario;
use sim::world::{self, FlowOutcome, Outcome};

/// A chain of three routers, with nothing but what a test adds.
const CHAIN: &[(&str, &str)] = &[("traffic", "flows"), ("hops", "2")];

fn run(settings: &[(&str, &str)]) -> Outcome {
    let settings = [CHAIN, settings].concat();
    let settings: Vec<_> =
        settings.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
    let scenario = Scenario::load("chain", &settings).unwrap_or_else(|error| panic!("{error}"));
    world::run(&scenario, 1, None).expect("it has flows")
}

/// The only flow of a run.
fn only(outcome: &Outcome) -> &FlowOutcome {
    let [flow] = &outcome.flows[..] else { panic!("{outcome:?}") };
    flow
}

#[test]
fn a_constant_rate_that_fits_arrives_whole_and_evenly() {
    // 250 packets of 1000 bytes each second.
    let settings = [("between", "0:2:cbr@2:1:9"), ("datagram_bytes", "1000"), ("seconds", "10")];
    let outcome = run(&settings);
    let flow = only(&outcome);
    assert_eq!((flow.packets_sent, flow.packets_received), (Some(2_000), Some(2_000)));
    assert_eq!((flow.bytes, flow.starts_s, flow.ends_s), (2_000_000, 1.0, 9.0));
    // The last packet may arrive after the end.
    assert!((flow.kbps - 2_000.0).abs() <= 1.0, "{flow:?}");
    // The flow is spread over the run's time in the figures of old.
    assert!((outcome.goodput_kbps - 1_600.0).abs() < 1e-9, "{outcome:?}");
    let (delay, variation) = (flow.delay_ms.unwrap(), flow.delay_variation_ms.unwrap());
    // Two hops of 1028 bytes at 11 Mbit/s, each at least 0.75 ms without its overhead.
    assert!(delay.p50 > 1.5 && delay.p99 < 20.0, "{flow:?}");
    assert!(variation.p50 < variation.p95 && variation.p95 <= variation.p99, "{flow:?}");
    assert!((variation.mean - outcome.delay_variation_ms.unwrap()).abs() < 1e-9);
    assert_eq!((outcome.failed.len(), outcome.above_mac_drops), (0, None));
}

#[test]
fn losses_above_the_mac_are_those_of_the_hops() {
    let settings = [("between", "0:2:cbr@1"), ("loss_above_mac", "0.1"), ("seconds", "60")];
    let outcome = run(&settings);
    let flow = only(&outcome);
    let (sent, got) = (flow.packets_sent.unwrap(), flow.packets_received.unwrap());
    let (lost, share) = (sent - got, 1.0 - 0.9_f64 * 0.9);
    // No packet is lost otherwise; one may be on its way at the end.
    assert!((0..=1).contains(&(lost - outcome.above_mac_drops.unwrap())), "{outcome:?}");
    let deviation = (sent as f64 * share * (1.0 - share)).sqrt();
    assert!((lost as f64 - sent as f64 * share).abs() < 3.0 * deviation, "{lost} of {sent}");
    assert_eq!(outcome.retry_drops, 0);
}

#[test]
fn flows_of_tcp_begin_and_end_at_their_times() {
    let outcome = run(&[("between", "0:2:tcp:0:20 2:0:tcp:5:15 1:0:tcp:25"), ("seconds", "30")]);
    let times: Vec<_> = outcome.flows.iter().map(|it| (it.starts_s, it.ends_s)).collect();
    assert_eq!(times, [(0.0, 20.0), (5.0, 15.0), (25.0, 30.0)]);
    assert!(outcome.flows.iter().all(|it| it.kbps > 100.0), "{outcome:?}");
    assert_eq!(outcome.failed, Vec::<String>::new());
    // Little follows after an end: what was unsent, and in flight.
    let first = &outcome.flows[0];
    let after = first.bytes as f64 - first.kbps * 20.0 * 125.0;
    assert!((0.0..150_000.0).contains(&after), "{after}");
    // Alone on one hop, the last is fastest.
    assert!(outcome.flows[2].kbps > first.kbps, "{outcome:?}");
    // What has not begun, or gets nothing, is named.
    let cut = [("loss", "1"), ("loss_exponent", "0")];
    let failed = run(&[&[("between", "0:2:tcp:1:20 2:1:ssh:40")], &cut[..]].concat()).failed;
    let [first, second] = &failed[..] else { panic!("{failed:?}") };
    assert!(first.starts_with("flow 1 from 0 to 2: "), "{first}");
    assert_eq!(second, "flow 2 from 2 to 1: it never began, as the run was over");
}

#[test]
fn senders_of_tcp_say_what_was_acknowledged_and_how_long_each_phase_lasted() {
    let between = ("between", "0:2:tcp:0:20 2:0:tcp:5 0:1:cbr@0.1 1:2:ssh:0:20");
    let outcome = run(&[between, ("seconds", "30"), ("loss_above_mac", "0.02")]);
    let [ended, lasting, udp, ssh] = &outcome.flows[..] else { panic!("{outcome:?}") };
    // A connection that is over keeps its figures: all that arrived was acknowledged.
    let tcp = ended.tcp.expect("the flow is TCP");
    assert_eq!(tcp.acked_bytes, ended.bytes);
    let lasted = |flow: &FlowOutcome| {
        let tcp = flow.tcp.expect("the flow is TCP");
        tcp.slow_start_s + tcp.congestion_avoidance_s
    };
    // It stays open until the rest of its data, at most 32 KiB and a window, is through.
    assert!((19.5..25.0).contains(&lasted(ended)), "{ended:?}");
    assert!(tcp.slow_start_s > 0.0 && tcp.congestion_avoidance_s > tcp.slow_start_s, "{tcp:?}");
    assert!(tcp.recoveries > 0, "losses start recoveries: {tcp:?}");
    // One that still sends has data on the way.
    let tcp = lasting.tcp.expect("the flow is TCP");
    assert!(tcp.acked_bytes > 0 && tcp.acked_bytes <= lasting.bytes, "{lasting:?}");
    assert!(lasting.bytes - tcp.acked_bytes < 150_000, "{lasting:?}");
    assert!((24.5..=25.0).contains(&lasted(lasting)), "{lasting:?}");
    // Key strokes are what the sender of `ssh` sends.
    let typed = ssh.ssh.as_ref().expect("the flow is ssh");
    assert_eq!(ssh.tcp.map(|it| it.acked_bytes), Some(48 * typed.keys));
    assert_eq!(udp.tcp, None);
}

#[test]
fn a_video_has_its_mean_rate_and_is_uneven() {
    let outcome = run(&[("between", "0:2:vbr@0.4:0:120 2:0:cbr@0.4:0:120"), ("seconds", "121")]);
    let [video, even] = &outcome.flows[..] else { panic!("{outcome:?}") };
    // 3000 frames deviate by about 70 % each, so their mean by 1.3 %.
    assert!((video.kbps / 400.0 - 1.0).abs() < 0.04, "{video:?}");
    // What did not arrive was dropped somewhere, and hardly anything was: half of the air is free.
    let lost = |flow: &FlowOutcome| flow.packets_sent.unwrap() - flow.packets_received.unwrap();
    let lost = lost(video) + lost(even);
    assert!(lost <= outcome.retry_drops + outcome.queue_drops && lost < 50, "{outcome:?}");
    let variation = |flow: &FlowOutcome| flow.delay_variation_ms.unwrap().mean;
    assert!(variation(video) > 3.0 * variation(even), "{outcome:?}");
}

#[test]
fn key_strokes_are_echoed_and_losses_delay_echoes() {
    let of = |loss| {
        let settings = [("between", "0:2:ssh:1:119"), ("seconds", "120"), ("loss_above_mac", loss)];
        let outcome = run(&settings);
        assert_eq!(outcome.failed, Vec::<String>::new(), "loss {loss}");
        only(&outcome).clone()
    };
    let (smooth, lossy) = (of("0"), of("0.1"));
    let typed = smooth.ssh.as_ref().unwrap();
    // Five a second; three standard deviations of a Poisson distribution are 73.
    assert!((517..=663).contains(&typed.keys), "{smooth:?}");
    assert_eq!(typed.echoes, typed.keys);
    // Each key stroke and echo has 48 bytes, and output comes on top.
    assert!(smooth.bytes > 2 * 48 * typed.keys, "{smooth:?}");
    assert_eq!((smooth.delay_variation_ms, smooth.packets_sent), (None, None));
    let echo = |flow: &FlowOutcome| flow.ssh.as_ref().unwrap().echo_ms.unwrap();
    assert!(echo(&smooth).p95 < 40.0, "{smooth:?}");
    // A lost segment costs at least the smallest retransmission timeout, 0.2 s.
    assert!(echo(&lossy).p95 > 200.0, "{lossy:?}");
    assert!(lossy.ssh.as_ref().unwrap().echoes > 100, "{lossy:?}");
}

#[test]
fn figures_of_unlisted_flows_stay_as_they_were() {
    let settings = [("seconds".to_owned(), "2".to_owned())];
    let bulk = Scenario::load("bulk", &settings).unwrap_or_else(|error| panic!("{error}"));
    let outcome = world::run(&bulk, 1, None).expect("it has flows");
    assert!(outcome.flows.is_empty() && outcome.flow_kbps[0] > 100.0, "{outcome:?}");
}
