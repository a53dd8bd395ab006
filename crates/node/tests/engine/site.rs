//! What `[access] private` permits to clients of the explicit proxy is for them alone.

use crate::net::{Call, Net, Page};
use http::Method;
use node::{Access, Caller, FetchError, Forbidden, Settings};

const INNER: &str = "http://inner.test/a";
const LITERAL: &str = "http://10.3.0.2/a";
const OUTER: &str = "http://outer.test/a";
/// Where the pages inside are, and the one outside.
const INSIDE: &str = "10.3.0.2:80";
const OUTSIDE: &str = "198.51.100.2:80";

fn net(access: Access) -> Net {
    let mut net = Net::new();
    for url in [INNER, LITERAL, OUTER] {
        net.origin.put(url, Page::of(5_000).fresh(60));
    }
    net.names.insert("inner.test".into(), vec![[10, 3, 0, 2].into(), [198, 51, 100, 9].into()]);
    net.names.insert("outer.test".into(), vec![[198, 51, 100, 2].into()]);
    net.set(Settings { access, ..settings() });
    net
}

fn settings() -> Settings {
    Settings { allow: vec!["192.0.2.0/24".parse().unwrap()], ..Settings::default() }
}

fn permitting() -> Access {
    Access { private: vec!["10.3.0.0/24".parse().unwrap()], ..Access::default() }
}

fn is_hit(net: &mut Net, call: Call) -> bool {
    let id = net.call(call);
    net.settle();
    net.client(id).is_ok() && net.client(id).cache().starts_with("hit")
}

#[test]
fn what_explicit_clients_alone_may_dial_is_shared_among_them_and_with_no_other() {
    for url in [INNER, LITERAL] {
        let mut net = net(permitting());
        assert!(!is_hit(&mut net, Call::get(url)));
        assert_eq!(net.origin.last().caller, Caller::Explicit);
        assert!(is_hit(&mut net, Call::get(url)), "{url}");
        assert!(is_hit(&mut net, Call::get(url).at_home()), "{url}");
        assert!(!is_hit(&mut net, Call::get(url).dialling(INSIDE)), "{url} was given to others");
        assert_eq!(net.origin.last().caller, Caller::Intercepted);
        net.done();
    }
}

#[test]
fn what_others_may_dial_too_is_shared_with_them() {
    let prefix = || vec!["10.3.0.0/24".parse().unwrap()];
    let direct = Access { direct: prefix(), private: prefix(), ..Access::default() };
    for (access, url, dialled) in
        [(permitting(), OUTER, OUTSIDE), (direct.clone(), INNER, INSIDE), (direct, LITERAL, INSIDE)]
    {
        let mut net = net(access);
        assert!(!is_hit(&mut net, Call::get(url)));
        assert!(is_hit(&mut net, Call::get(url).dialling(dialled)), "{url}");
        net.done();
    }
}

#[test]
fn once_it_is_no_longer_permitted_it_is_no_longer_given() {
    let mut net = net(permitting());
    assert!(!is_hit(&mut net, Call::get(INNER)));
    net.set(settings());
    net.origin.refuses = Some((Caller::Explicit, FetchError::Forbidden(Forbidden::Private)));
    let id = net.get(INNER);
    assert_eq!(net.client(id).status(), 403);
    net.done();
}

#[test]
fn what_is_changed_with_an_exemption_is_doubtful_for_everyone() {
    let mut net = net(permitting());
    for call in [Call::get(OUTER), Call::get(INNER)] {
        assert!(!is_hit(&mut net, call.clone()));
        assert!(is_hit(&mut net, call.clone()));
        let post = Call { has_body: true, ..Call::new(Method::POST, &call.url) };
        net.call(post.at_home());
        net.settle();
        assert!(!is_hit(&mut net, call), "the POST was passed over");
    }
    net.done();
}
