use super::*;

fn download(hops: usize, loss: f64, transport: Transport, bytes: u64) -> Downloaded {
    let download = Download {
        radio: radio::Config::default(),
        links: chain(200.0, radio::Ranges::default(), &vec![loss; hops]),
        transport,
        bytes,
        seed: 7,
        tcp: small_buffers(),
        timeout: Duration::from_secs(300),
    };
    let result = download.run();
    assert_eq!(result, download.run(), "the same seed gives the same run");
    result
}

#[test]
fn all_bytes_arrive_either_way() {
    for transport in [Transport::Direct, Transport::PerHop] {
        for (hops, bytes) in [(1, 1), (3, 100_000)] {
            let result = download(hops, 0.1, transport, bytes);
            assert!(result.is_whole, "{transport:?} over {hops} hops: {result:?}");
        }
    }
}

/// Without losses both ways send about as many packets: MeshCache calls figure 4's curves "almost identical".
#[test]
fn hop_by_hop_is_about_as_fast_and_as_much_load() {
    let direct = download(4, 0.0, Transport::Direct, 500_000);
    let per_hop = download(4, 0.0, Transport::PerHop, 500_000);
    let ratio = per_hop.kbps / direct.kbps;
    assert!((0.8..1.25).contains(&ratio), "{direct:?} {per_hop:?}");
    let ratio = per_hop.packets as f64 / direct.packets as f64;
    assert!((0.9..1.15).contains(&ratio), "{direct:?} {per_hop:?}");
}

/// MeshCache, figure 5: a loss is repaired on the hop where it happens. With half of all frames lost in both
/// directions, one packet in 130 is lost on each hop after seven attempts, and TCP has to repair it.
#[test]
fn hop_by_hop_stands_losses_better() {
    let direct = download(6, 0.5, Transport::Direct, 300_000);
    let per_hop = download(6, 0.5, Transport::PerHop, 300_000);
    assert!(per_hop.is_whole && per_hop.kbps > 1.2 * direct.kbps, "{direct:?} {per_hop:?}");
}

#[test]
fn nobody_there_is_not_waited_for_without_end() {
    let result = download(2, 1.0, Transport::PerHop, 1000);
    assert!(!result.is_whole && result.seconds <= 300.5, "{result:?}");
}
