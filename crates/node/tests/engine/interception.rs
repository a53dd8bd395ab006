//! Intercepted clients: what `Host` says is believed only if it is what they dialled.

use crate::net::{Call, End, Net, Page};
use http::Method;
use node::{Dial, FetchError};

const URL: &str = "http://o.test/a";

fn net() -> Net {
    let mut net = Net::new();
    net.origin.put(URL, Page::of(5_000).fresh(60));
    net.names.insert("o.test".into(), vec![[192, 0, 2, 1].into(), [192, 0, 2, 2].into()]);
    net
}

fn ask(net: &mut Net, address: &str) -> usize {
    let id = net.call(Call::get(URL).dialling(address));
    net.settle();
    id
}

#[test]
fn a_host_that_is_the_dialled_address_is_cached_for_all_who_mean_it() {
    let mut net = net();
    for address in ["192.0.2.1:80", "192.0.2.2:80", "[::ffff:192.0.2.2]:80"] {
        let id = ask(&mut net, address);
        assert!(net.client(id).is_ok());
    }
    assert_eq!(net.origin.asked(URL), 1);
    assert_eq!(net.origin.last().dial, Dial::Address("192.0.2.1:80".parse().unwrap()));
    net.done();
}

#[test]
fn a_host_that_is_not_the_dialled_address_is_relayed_there_and_never_cached() {
    for address in ["192.0.2.9:80", "192.0.2.1:8080", "127.0.0.1:80"] {
        let mut net = net();
        for asked in 1..3 {
            let id = ask(&mut net, address);
            assert_eq!(net.client(id).cache(), "fwd=bypass; fwd-status=200; detail=host-mismatch");
            assert_eq!(net.origin.asked(URL), asked);
            assert_eq!(net.origin.last().dial, Dial::Address(address.parse().unwrap()));
        }
        let honest = ask(&mut net, "192.0.2.1:80");
        assert_eq!(net.client(honest).cache(), "fwd=uri-miss; fwd-status=200; stored");
        let lies = ask(&mut net, address);
        assert!(
            net.client(lies).cache().contains("host-mismatch"),
            "nor is it served from the store"
        );
        net.done();
    }
}

#[test]
fn a_host_without_addresses_is_relayed() {
    let mut net = net();
    net.names.clear();
    let id = ask(&mut net, "192.0.2.1:80");
    assert!(net.client(id).cache().contains("host-mismatch"));
    net.done();
}

#[test]
fn a_literal_address_is_its_own() {
    let mut net = Net::new();
    net.origin.put("http://192.0.2.1/a", Page::of(9).fresh(60));
    for address in ["192.0.2.1:80", "192.0.2.9:80"] {
        net.call(Call::get("http://192.0.2.1/a").dialling(address));
        net.settle();
    }
    assert!(net.client(0).cache().ends_with("stored"));
    assert!(net.client(1).cache().contains("host-mismatch"));
}

#[test]
fn a_client_behind_nat64_dials_the_host_that_it_means() {
    let mut net = net();
    let id = ask(&mut net, "[64:ff9b::192.0.2.1]:80");
    assert!(net.client(id).cache().ends_with("stored"), "{}", net.client(id).cache());
    // Another host's address, in the same form, and the host's own at another prefix, which only that network knows.
    for other in ["[64:ff9b::192.0.2.9]:80", "[64:ff9b:1::192.0.2.1]:80", "[2002:c000:201::1]:80"] {
        let id = ask(&mut net, other);
        assert!(net.client(id).cache().contains("host-mismatch"), "{other}");
    }
}

#[test]
fn addresses_are_looked_up_again_after_a_minute() {
    let mut net = net();
    ask(&mut net, "192.0.2.1:80");
    net.names.insert("o.test".into(), vec![[192, 0, 2, 7].into()]);
    net.pass_seconds(59);
    let old = ask(&mut net, "192.0.2.7:80");
    net.pass_seconds(2);
    let new = ask(&mut net, "192.0.2.7:80");
    assert!(net.client(old).cache().contains("host-mismatch"));
    assert!(net.client(new).cache().ends_with("stored"));
}

#[test]
fn explicit_and_intercepted_clients_share_what_is_cached() {
    let mut net = net();
    net.get(URL);
    let id = ask(&mut net, "192.0.2.1:80");
    assert!(net.client(id).cache().starts_with("hit"));
}

#[test]
fn a_broken_host_is_refused() {
    let mut net = net();
    let mut call = Call::get(URL).dialling("192.0.2.1:80");
    call.headers.insert("host", "a b".parse().unwrap());
    let id = net.call(call);
    net.settle();
    assert_eq!(net.client(id).status(), 400);
    net.done();
}

#[test]
fn an_answer_that_cannot_be_read_is_left_to_the_origin_for_who_does_not_know_of_us() {
    let mut net = net();
    net.origin.down = Some(FetchError::Malformed);
    let dialling = |method| Call { method, ..Call::get(URL).dialling("192.0.2.1:80") };
    let get = net.call(dialling(Method::GET).with("range", "bytes=0-9"));
    let post = net.call(dialling(Method::POST));
    let explicit = net.call(Call::get(URL));
    net.settle();
    assert_eq!(net.client(get).end, Some(End::Tunnelled));
    assert_eq!((net.client(post).status(), net.client(explicit).status()), (502, 502));
    let [relay] = &net.relays[..] else { panic!("{:?}", net.relays) };
    assert_eq!(relay.dial, Dial::Address("192.0.2.1:80".parse().unwrap()));
    assert_eq!((&relay.method, relay.path.as_str()), (&Method::GET, "/a"));
    for (name, value) in [("host", "o.test"), ("range", "bytes=0-9"), ("connection", "close")] {
        assert_eq!(relay.headers[name], value);
    }
    net.done();
}
