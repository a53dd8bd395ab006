//! scratch
use sim::scenario::Scenario;
use sim::world::{Setup, flows_of};
use std::env;
use std::time::Duration;
fn main() {
    let mut sets = Vec::new();
    let mut pace = None;
    let mut recover = None;
    let mut seeds = 5u64;
    let mut verbose = false;
    let mut interlay: Option<Vec<usize>> = None;
    let mut rat: Option<Vec<usize>> = None;
    let mut label = String::new();
    for arg in env::args().skip(1) {
        let (k, v) = arg.split_once('=').unwrap();
        label += &format!("{arg} ");
        if k == "seeds" {
            seeds = v.parse().unwrap();
            continue;
        }
        if k == "v" {
            verbose = true;
            continue;
        }
        if k == "at" {
            interlay = Some(v.split(',').map(|x| x.parse().unwrap()).collect());
            continue;
        }
        if k == "rat" {
            rat = Some(v.split(',').map(|x| x.parse().unwrap()).collect());
            continue;
        }
        if k == "pace" {
            pace = match v {
                "wine" => Some(link::pace::Config::wine()),
                "on" => Some(link::pace::Config::default()),
                _ => None,
            };
            continue;
        }
        if k == "rec" {
            recover = match v {
                "inpcm" => Some(link::recover::Config::inpcm()),
                "on" => Some(link::recover::Config::default()),
                _ => None,
            };
            continue;
        }
        if let Some(p) = k.strip_prefix("p.") {
            let c: &mut link::pace::Config = pace.as_mut().unwrap();
            match p {
                "quantum" => c.quantum_bytes = v.parse().unwrap(),
                "ov" => {
                    c.overhead = if v == "each" {
                        link::pace::Overhead::Each
                    } else {
                        link::pace::Overhead::Probe
                    }
                }
                "ovb" => c.overhead_bytes = v.parse().unwrap(),
                "int" => c.probe_interval = Duration::from_millis(v.parse().unwrap()),
                "bytes" => c.probe_bytes = v.parse().unwrap(),
                "gain" => c.gain = v.parse().unwrap(),
                "mac" => c.mac_frames_max = v.parse().unwrap(),
                "q" => c.queue_packets_max = v.parse().unwrap(),
                "thin" => c.thin_acks = v == "1",
                _ => panic!("{p}"),
            }
            continue;
        }
        if let Some(p) = k.strip_prefix("r.") {
            let c: &mut link::recover::Config = recover.as_mut().unwrap();
            use link::recover::*;
            match p {
                "timer" => {
                    c.timer = match v {
                        "off" => Timer::Off,
                        "tcp" => Timer::TcpLike,
                        "con" => Timer::Esrto { beta: Beta::Contention },
                        "snd" => Timer::Esrto { beta: Beta::SenderTimeout },
                        _ => Timer::Esrto { beta: Beta::Fixed(v.parse().unwrap()) },
                    }
                }
                "eldd" => c.eldd = v == "1",
                "sup" => c.suppress = v == "1",
                "not" => c.notify = v == "1",
                "red" => c.link_red = (v == "1").then(LinkRed::default),
                "mac" => c.mac_trigger = v == "1",
                "over" => c.overheard_loss = v == "1",
                "dbl" => c.on_notice = if v == "1" { OnNotice::Double } else { OnNotice::Evict },
                _ => panic!("{p}"),
            }
            continue;
        }
        sets.push((k.to_owned(), v.to_owned()));
    }
    let mut rows: Vec<Vec<(&'static str, f64)>> = Vec::new();
    for seed in 1..=seeds {
        let s = Scenario::load_seeded("chain", &sets, seed).unwrap();
        let mut setup = Setup::of(&s);
        if pace.is_some() || recover.is_some() {
            let n = setup.links.stations();
            setup.plane.pace = pace;
            setup.plane.recover = recover;
            setup.plane.interlay = interlay.clone().unwrap_or((0..n).collect());
            setup.plane.recover_at = rat.clone().unwrap_or((0..n).collect());
        }
        let o = setup.run_flows(&flows_of(&s), seed, None);
        if verbose {
            println!("{o:?}");
        }
        rows.push(o.figures());
    }
    print!("{label:<60}");
    for i in 0..rows[0].len() {
        let n = rows[0][i].0;
        let m = rows.iter().map(|r| r[i].1).sum::<f64>() / rows.len() as f64;
        if ["expired", "data_frames"].contains(&n) || (m == 0.0) {
            continue;
        }
        print!(" {n}={m:.3}");
    }
    println!();
}
