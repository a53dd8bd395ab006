//! The overhearing engine's findings in captures. `captures/README.md` says how the captures were made.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::lab::capture::read;
use crate::lab::{Ended, World};

/// Size of the file that the run's client downloaded.
const BYTES: u64 = 60_000;

/// Captured by the gateway's monitor interface, which overhears the next router.
const GATEWAY: &str = "0.pcap";
/// Captured by the next router, to which all frames were sent.
const ROUTER: &str = "1.pcap";
/// Captured by a router on neither hop of another download; it overhears both hops.
const OBSERVER: &str = "6.pcap";
const OBSERVED_BYTES: u64 = 24_000;

fn capture(name: &str) -> String {
    let path: PathBuf = [env!("CARGO_MANIFEST_DIR"), "tests", "captures", name].iter().collect();
    path.into_os_string().into_string().expect("a path of plain letters")
}

fn analyze(args: &[&str]) -> Ended {
    World::new().run(&[&["analyze", "overhear"], args].concat())
}

/// The observers in the JSON.
#[track_caller]
fn observers(args: &[&str]) -> Vec<Value> {
    let json = analyze(&[args, &["--json", "-"]].concat()).expect(0).json();
    json["observers"].as_array().expect("a list").clone()
}

fn number(observer: &Value, field: &str) -> u64 {
    observer[field].as_u64().unwrap_or_else(|| panic!("no {field} in {observer}"))
}

/// Counts that do not depend on how the file is read.
fn without_times(mut observer: Value) -> Value {
    for field in ["file", "capture_bytes", "processing_seconds"] {
        observer.as_object_mut().expect("an object").remove(field);
    }
    observer
}

#[track_caller]
fn check_sums(observer: &Value) {
    let sum = |fields: &[&str]| fields.iter().map(|it| number(observer, it)).sum::<u64>();
    let parts =
        ["duplicate_bytes", "unclaimed_bytes", "half_heard_bytes", "evicted_bytes", "false_bytes"];
    assert_eq!(sum(&parts), number(observer, "unused_bytes"));
    let half_heard = observer["half_heard"].as_array().expect("a list");
    let chunks = number(observer, "chunks_reconstructed") + half_heard.len() as u64;
    assert_eq!(chunks, number(observer, "chunks_named"));
    let of_half = |field| half_heard.iter().map(|it| number(it, field)).sum::<u64>();
    let bytes = number(observer, "chunks_reconstructed_bytes") + of_half("bytes");
    assert_eq!(bytes, number(observer, "chunks_named_bytes"));
    let there = of_half("bytes") - of_half("missing_bytes");
    assert_eq!(there, number(observer, "half_heard_bytes"));
}

#[test]
fn a_receiver_of_everything_reconstructs_everything() {
    let [observer] = &observers(&[&capture(ROUTER)])[..] else { panic!("not one") };
    assert_eq!(number(observer, "chunks_reconstructed_bytes"), BYTES);
    assert_eq!(observer["reconstructed_share"], 1.0);
    assert_eq!(observer["half_heard"], Value::Array(vec![]));
    check_sums(observer);
}

#[test]
fn an_observer_has_some_chunks_and_knows_what_others_lack() {
    let [observer] = &observers(&[&capture(GATEWAY)])[..] else { panic!("not one") };
    let (named, whole) =
        (number(observer, "chunks_named"), number(observer, "chunks_reconstructed"));
    assert!(0 < whole && whole < named, "{observer}");
    assert!(number(observer, "chunks_named_bytes") <= BYTES);
    assert_eq!(number(observer, "chunks_false"), 0);
    for it in observer["half_heard"].as_array().expect("a list") {
        assert!(number(it, "missing_bytes") > 0, "{it}");
        assert_eq!(it["name"].as_str().map(str::len), Some(64));
    }
    check_sums(observer);
}

#[test]
fn two_hops_together_tell_what_neither_tells_alone() {
    let run = |more: &[&str]| {
        let observer = observers(&[&[&*capture(OBSERVER)], more].concat()).remove(0);
        check_sums(&observer);
        number(&observer, "chunks_reconstructed_bytes")
    };
    assert_eq!(run(&[]), OBSERVED_BYTES);
    assert!(run(&["--need-heads"]) < OBSERVED_BYTES && run(&["--streams-alone"]) < OBSERVED_BYTES);
}

#[test]
fn every_frame_is_counted() {
    let records = read(Path::new(&capture(GATEWAY)));
    let [observer] = &observers(&[&capture(GATEWAY)])[..] else { panic!("not one") };
    assert_eq!(number(observer, "frames"), records.len() as u64);
    let acks = records.iter().filter(|it| it.is_ack()).count() as u64;
    assert_eq!(number(&observer["refused"], "control"), acks);
    let seconds = (records[records.len() - 1].nanoseconds - records[0].nanoseconds) as f64 / 1e9;
    let told = observer["seconds"].as_f64().expect("a number");
    assert!((told - seconds).abs() < 1e-6, "{told} {seconds}");
}

#[test]
fn several_files_are_several_observers() {
    let both = observers(&[&capture(GATEWAY), &capture(ROUTER)]);
    assert_eq!(both.len(), 2);
    for (observer, name) in both.into_iter().zip([GATEWAY, ROUTER]) {
        let alone = observers(&[&capture(name)]).remove(0);
        assert_eq!(without_times(observer), without_times(alone));
    }
    let text = analyze(&[&capture(GATEWAY), &capture(ROUTER)]).expect(0).out;
    for part in [GATEWAY, ROUTER, "reconstructed", "unused", "half heard", "lacks", "cannot show"] {
        assert!(text.contains(part), "no {part} in: {text}");
    }
}

#[test]
fn the_least_memory_is_kept_to() {
    let [observer] = &observers(&[&capture(GATEWAY), "--memory", "1048576"])[..] else {
        panic!("not one")
    };
    assert!(number(observer, "memory_peak_bytes") <= 1 << 20, "{observer}");
    analyze(&[&capture(GATEWAY), "--memory", "1000"]).expect(2);
}

#[test]
fn what_the_engine_does_can_be_turned_off_and_is_told() {
    let run = |more: &[&str]| {
        let file = capture(GATEWAY);
        analyze(&[&[&file, "--json", "-"], more].concat()).expect(0).json()
    };
    let (all, needy, alone) = (run(&[]), run(&["--need-heads"]), run(&["--streams-alone"]));
    let flags = |it: &Value| [it["need_heads"].clone(), it["streams_alone"].clone()];
    assert_eq!(flags(&all), [false, false]);
    assert_eq!(
        (flags(&needy), flags(&alone)),
        ([true, false].map(Value::from), [false, true].map(Value::from))
    );
    let count = |it: &Value| number(&it["observers"][0], "chunks_reconstructed");
    assert!(
        count(&all) >= count(&needy) && count(&needy) >= count(&alone),
        "{all} {needy} {alone}"
    );
    assert!(count(&alone) > 0);
    for it in [needy, alone] {
        assert_eq!(number(&it["observers"][0], "heads_guessed"), 0);
        check_sums(&it["observers"][0]);
    }
}

#[test]
fn the_newer_kind_of_file_is_read_too_and_from_standard_input() {
    let older = observers(&[&capture(GATEWAY)]).remove(0);
    let world = World::new();
    let path = world.path("it.pcapng");
    fs::write(&path, pcapng(&fs::read(capture(GATEWAY)).expect("it is there"))).expect("written");
    let mut command = world.lab(&["analyze", "overhear", "-", "--json", "-"]);
    let output = command.stdin(File::open(&path).expect("it is there")).output().expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let json: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(without_times(json["observers"][0].clone()), without_times(older));
}

/// The same frames as pcapng: little endian, nanoseconds, one interface of link type 127.
fn pcapng(pcap: &[u8]) -> Vec<u8> {
    let mut file = block(0x0a0d_0d0a, &{
        let mut body = 0x1a2b_3c4d_u32.to_le_bytes().to_vec();
        body.extend([1, 0, 0, 0]);
        body.extend([0xff; 8]);
        body
    });
    // No snapshot length; option 9 (if_tsresol), one byte: 10^-9 s.
    file.extend(block(1, &[127, 0, 0, 0, 0, 0, 0, 0, 9, 0, 1, 0, 9, 0, 0, 0, 0, 0, 0, 0]));
    let mut rest = &pcap[24..];
    while let Some((header, frames)) = rest.split_first_chunk::<16>() {
        let field = |i: usize| u32::from_le_bytes(header[4 * i..][..4].try_into().expect("four"));
        let time = u64::from(field(0)) * 1_000_000_000 + u64::from(field(1));
        let (frame, after) = frames.split_at(field(2) as usize);
        let fields = [0, (time >> 32) as u32, time as u32, field(2), field(3)];
        let mut body: Vec<u8> = fields.iter().flat_map(|it| it.to_le_bytes()).collect();
        body.extend(frame);
        body.resize(body.len().next_multiple_of(4), 0);
        file.extend(block(6, &body));
        rest = after;
    }
    file
}

fn block(kind: u32, body: &[u8]) -> Vec<u8> {
    let length = (body.len() as u32 + 12).to_le_bytes();
    [&kind.to_le_bytes()[..], &length, body, &length].concat()
}

#[test]
fn what_cannot_be_read_is_named_with_place_and_cause() {
    let world = World::new();
    fs::write(world.path("empty"), "").expect("written");
    fs::write(world.path("text"), "This is no capture of anything.\n").expect("written");
    let run = |name| world.run(&["analyze", "overhear", name]);
    run("nowhere").expect_refusal(&["nowhere", "No such file"]);
    run("empty").expect_refusal(&["empty: is empty"]);
    run("text").expect_refusal(&["text", "at byte 0", "neither pcap nor pcapng"]);
    run(".").expect_refusal(&["directory"]);
    run("--json").expect(2);
}

#[test]
fn what_is_before_a_cut_is_told_and_so_are_other_files() {
    let world = World::new();
    let whole = fs::read(capture(GATEWAY)).expect("it is there");
    // The cut is inside the second frame, which begins after the file's header and the first frame.
    let first = u32::from_le_bytes(whole[24 + 8..][..4].try_into().expect("four"));
    let second = 24 + 16 + first as usize;
    fs::write(world.path("cut"), &whole[..second + 20]).expect("written");
    let files = ["analyze", "overhear", "cut", "nowhere", &capture(ROUTER)];
    let ended = world.run(&[&files[..], &["--json", "-"]].concat()).expect(2);
    let observers = &ended.json()["observers"];
    assert_eq!(observers[0]["frames"], 1);
    assert!(observers[0]["error"].as_str().is_some_and(|it| it.contains(&format!("{second}"))));
    assert_eq!(observers[1]["frames"], 0);
    assert_eq!(observers[2]["chunks_reconstructed_bytes"], BYTES);
    assert_eq!(ended.err.lines().count(), 2, "{}", ended.err);
    let cause = format!("cut: at byte {second} of the capture: the file ends within a record");
    assert!(ended.err.contains(&cause), "{}", ended.err);
    let text = world.run(&files).expect(2).out;
    assert!(text.contains("cut, not read to its end") && text.contains(ROUTER), "{text}");
}

#[test]
fn quiet_says_nothing_and_json_goes_where_it_is_told() {
    let world = World::new();
    let file = capture(ROUTER);
    let ended = world.run(&["analyze", "overhear", &file, "-q", "--json", "it.json"]).expect(0);
    assert_eq!((ended.out.as_str(), ended.err.as_str()), ("", ""));
    let json = fs::read_to_string(world.path("it.json")).expect("it is there");
    let json: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json["observers"][0]["file"], Value::from(file));
}
