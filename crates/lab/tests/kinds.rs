//! Kinds of captures that `hearsay-lab analyze` reads: link types, files packed by gzip; and what it says of the others.

use std::fs::{self, File};
use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::Value;

use crate::lab::{self, World};

const IPV4: u16 = 0x0800;
const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nhost: a\r\n\r\n";
const BODY_BYTES: usize = 100_000;

/// The TCP segments of a download, as IPv4 packets: both SYNs, the request, the body, and its FIN.
fn download() -> Vec<Vec<u8>> {
    let body: Vec<u8> = (0..BODY_BYTES as u32).map(|at| (at.wrapping_mul(at) >> 7) as u8).collect();
    let ports = [80_u16, 40_000];
    let packet = |from: usize, seq: u32, flags: u8, payload: &[u8]| {
        let mut tcp = [ports[from].to_be_bytes(), ports[1 - from].to_be_bytes()].concat();
        tcp.extend(seq.to_be_bytes());
        tcp.extend([0, 0, 0, 1, 0x50, flags, 0xff, 0xff, 0, 0, 0, 0]);
        tcp.extend(payload);
        ipv4(6, from as u8 + 1, &tcp)
    };
    let mut packets =
        vec![packet(1, 77, 0x02, b""), packet(0, 1000, 0x12, b""), packet(1, 78, 0x18, REQUEST)];
    for (at, piece) in body.chunks(1400).enumerate() {
        packets.push(packet(0, 1001 + 1400 * at as u32, 0x18, piece));
    }
    packets.push(packet(0, 1001 + BODY_BYTES as u32, 0x11, b""));
    packets
}

/// A packet from 10.0.0.`from` to the other one of 1 and 2.
fn ipv4(protocol: u8, from: u8, payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x45, 0];
    packet.extend((20 + payload.len() as u16).to_be_bytes());
    packet.extend([0, 1, 0x40, 0, 64, protocol, 0, 0, 10, 0, 0, from, 10, 0, 0, 3 - from]);
    packet.extend(payload);
    packet
}

fn ethernet(kind: u16, packet: &[u8]) -> Vec<u8> {
    [&[2; 12][..], &kind.to_be_bytes(), packet].concat()
}

/// A capture of whole frames.
fn pcap(link_type: u32, frames: &[Vec<u8>]) -> Vec<u8> {
    let mut file = [0xa1b2_c3d4_u32.to_le_bytes(), [2, 0, 4, 0], [0; 4], [0; 4]].concat();
    file.extend(262_144_u32.to_le_bytes());
    file.extend(link_type.to_le_bytes());
    for frame in frames {
        let length = frame.len() as u32;
        file.extend([1_700_000_000, 0, length, length].map(u32::to_le_bytes).concat());
        file.extend(frame);
    }
    file
}

/// The same as pcapng, of one interface.
fn pcapng(link_type: u16, frames: &[Vec<u8>]) -> Vec<u8> {
    let block = |kind: u32, mut body: Vec<u8>| {
        body.resize(body.len().next_multiple_of(4), 0);
        let length = (body.len() as u32 + 12).to_le_bytes();
        [&kind.to_le_bytes()[..], &length, &body, &length].concat()
    };
    let section = [&[0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0][..], &[0xff; 8]].concat();
    let mut file = block(0x0a0d_0d0a, section);
    file.extend(block(1, [&link_type.to_le_bytes()[..], &[0; 6]].concat()));
    for frame in frames {
        let length = frame.len() as u32;
        let fields = [0, 0, 0, length, length].map(u32::to_le_bytes).concat();
        file.extend(block(6, [&fields, &frame[..]].concat()));
    }
    file
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).expect("memory");
    encoder.finish().expect("memory")
}

/// Each packet behind these bytes.
fn behind(header: &[u8], packets: &[Vec<u8>]) -> Vec<Vec<u8>> {
    packets.iter().map(|it| [header, it].concat()).collect()
}

/// What `analyze redundancy` writes of a file with these bytes, as JSON of its schema; and how it ended.
fn analyzed(world: &World, bytes: &[u8], code: i32) -> (Value, lab::Ended) {
    fs::write(world.path("it"), bytes).expect("written");
    let _ = fs::remove_file(world.path("it.json"));
    let args = ["analyze", "redundancy", "--smallest", "8192", "--json", "it.json", "it"];
    let ended = world.run(&args).expect(code);
    let json = fs::read(world.path("it.json")).expect("the JSON");
    let json = serde_json::from_slice(&json).expect("JSON");
    lab::schema::assert_valid(&json);
    (json["counted"][0].clone(), ended)
}

#[test]
fn each_link_type_gives_the_same_streams() {
    let world = World::new();
    let packets = download();
    let cooked = [0, 0, 0, 1, 0, 6, 2, 2, 2, 2, 2, 2, 0, 0, 8, 0];
    let newer = [8, 0, 0, 0, 0, 0, 0, 2, 0, 1, 0, 6, 2, 2, 2, 2, 2, 2, 0, 0];
    let session = [&[2; 12][..], &[0x88, 0x64, 0x11, 0, 0, 7, 0, 0, 0, 0x21]].concat();
    let on_ethernet = behind(&[&[2; 12][..], &IPV4.to_be_bytes()].concat(), &packets);
    let kinds = [
        ("Ethernet", pcap(1, &on_ethernet)),
        ("SLL", pcap(113, &behind(&cooked, &packets))),
        ("SLL2", pcap(276, &behind(&newer, &packets))),
        ("raw", pcap(101, &packets)),
        ("raw IPv4", pcap(228, &packets)),
        ("raw, as BSD writes it", pcap(12, &packets)),
        ("NULL", pcap(0, &behind(&[2, 0, 0, 0], &packets))),
        ("LOOP", pcap(108, &behind(&[0, 0, 0, 2], &packets))),
        ("PPPoE", pcap(1, &behind(&session, &packets))),
        ("Ethernet, gzip", gzip(&pcap(1, &on_ethernet))),
        ("SLL2, pcapng, gzip", gzip(&pcapng(276, &behind(&newer, &packets)))),
        ("raw, gzip of two members", {
            let file = pcap(101, &packets);
            let (one, other) = file.split_at(file.len() / 3);
            [gzip(one), gzip(other)].concat()
        }),
    ];
    for (kind, bytes) in kinds {
        let (counted, ended) = analyzed(&world, &bytes, 0);
        let expected = serde_json::json!({
            "file": "it",
            "bytes": BODY_BYTES + REQUEST.len(),
            "frames": packets.len(),
            "refused": {},
            "segments": packets.len(),
            "streams": 2,
            "missing_bytes": 0,
        });
        assert_eq!(counted, expected, "{kind}");
        assert!(!ended.out.contains("left out"), "{kind}: {}", ended.out);
    }
}

#[test]
fn overhearing_reads_them_too_and_from_standard_input() {
    let world = World::new();
    let newer = [8, 0, 0, 0, 0, 0, 0, 2, 0, 1, 0, 6, 2, 2, 2, 2, 2, 2, 0, 0];
    let packed = gzip(&pcapng(276, &behind(&newer, &download())));
    fs::write(world.path("it.pcapng.gz"), packed).expect("written");
    let mut command = world.lab(&["analyze", "overhear", "-", "--json", "-"]);
    let file = File::open(world.path("it.pcapng.gz")).expect("it is there");
    let output = command.stdin(file).output().expect("it runs");
    let json: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let payload = &json["observers"][0]["payload_bytes"];
    assert_eq!(*payload, BODY_BYTES + REQUEST.len(), "{json}");
}

#[test]
fn what_is_left_out_is_counted_by_reason() {
    let world = World::new();
    let mut frames = behind(&[&[2; 12][..], &IPV4.to_be_bytes()].concat(), &download());
    frames.insert(5, ethernet(0x0806, &[0; 28]));
    frames.insert(9, ethernet(0x0806, &[0; 28]));
    frames.push(ethernet(IPV4, &ipv4(17, 1, &[0; 20])));
    let (counted, ended) = analyzed(&world, &pcap(1, &frames), 0);
    assert_eq!(counted["refused"], serde_json::json!({"not_ip": 2, "not_tcp": 1}));
    assert_eq!(counted["frames"], frames.len());
    assert_eq!(counted["bytes"], BODY_BYTES + REQUEST.len());
    let words = format!("it: 3 packets of {} frames left out: 2 not IP, 1 not TCP\n", frames.len());
    assert!(ended.out.contains(&words), "{}", ended.out);
}

#[test]
fn a_capture_without_content_is_an_error_with_its_cause_and_the_next_step() {
    let world = World::new();
    let packets = download();
    let on_ethernet = behind(&[&[2; 12][..], &IPV4.to_be_bytes()].concat(), &packets);
    let cut: Vec<Vec<u8>> = on_ethernet.iter().map(|it| it[..30].to_vec()).collect();
    let cases = [
        (pcap(1, &[]), &["it: it holds no frames", "capture while content crosses"][..]),
        (pcap(195, &packets), &["76 of a link type that is not read (195)", "tcpdump -i any"]),
        (
            pcap(1, &vec![ethernet(0x0806, &[0; 28]); 7]),
            &["none of its 7 frames", "7 not IP", "inside the tunnel"],
        ),
        (pcap(1, &cut), &["76 cut before their headers end", "tcpdump -s 0"]),
        (pcap(101, &packets[..2]), &["its 2 TCP segments carry no captured bytes"]),
        (gzip(&pcap(195, &packets)), &["link type that is not read (195)"]),
    ];
    for (bytes, parts) in cases {
        let (counted, ended) = analyzed(&world, &bytes, 2);
        let error = counted["error"].as_str().expect("an error");
        for part in parts {
            assert!(ended.err.contains(part) && error.contains(part), "{part}: {}", ended.err);
        }
        assert_eq!(ended.err.lines().count(), 1, "{}", ended.err);
        assert_eq!(counted["bytes"], 0);
        assert!(!ended.out.contains("mrc"), "tables of nothing: {}", ended.out);
    }
}

#[test]
fn a_packed_capture_that_is_torn_or_false_is_analysed_up_to_there() {
    let world = World::new();
    let packed = gzip(&pcap(101, &download()));
    let torn = &packed[..packed.len() / 2];
    let mut spoilt = packed.clone();
    let at = packed.len() * 2 / 3;
    spoilt[at..at + 8].fill(0xff);
    for bytes in [torn, &spoilt] {
        let (counted, ended) = analyzed(&world, bytes, 2);
        assert!(counted["bytes"].as_u64() > Some(10_000), "{counted}");
        assert!(ended.err.contains("it: at byte "), "{}", ended.err);
        assert!(ended.out.contains("mrc degree 2"), "{}", ended.out);
    }
}

#[test]
fn other_packed_files_are_content_as_they_are() {
    let world = World::new();
    let page = gzip(&b"<p>no capture of anything</p>".repeat(1000));
    for bytes in [&page[..], &page[..page.len() / 2], &[0x1f, 0x8b], &[0x1f, 0x8b, 1, 2, 3, 4]] {
        let (counted, _) = analyzed(&world, bytes, 0);
        assert_eq!(counted, serde_json::json!({"file": "it", "bytes": bytes.len()}));
    }
}
