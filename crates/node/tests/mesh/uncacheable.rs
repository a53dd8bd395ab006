//! What may not be kept is given on and not kept; what cannot be shared goes directly.

use crate::net::{Call, Heard, Mesh, Page, Plan, ask};
use http::Method;
use node::{Dial, NotStored};
use std::time::Duration;
use wire::peer::Message;

const URL: &str = "http://o.test/a";

fn nothing_is_kept(mesh: &Mesh) {
    for node in 0..mesh.count() {
        let report = mesh.report(node);
        assert_eq!(report.index.bytes_on_disk, 0, "something was kept at {node}");
        assert_eq!((report.hot_bytes, report.pinned_bytes), (0, 0), "at {node}");
    }
}

#[test]
fn a_response_that_may_not_be_stored_is_given_on_along_the_way() {
    for plan in [Plan::default(), Plan::thcp()] {
        let mut mesh = Mesh::chain_of(&plan, 4);
        mesh.origin.put(URL, Page::of(300_000).with("cache-control", "no-store"));
        for asked in 1..3 {
            let id = mesh.get(3, URL);
            assert!(mesh.client(id).is_ok());
            assert_eq!(mesh.origin.askers(URL), vec![0; asked]);
            assert_eq!(mesh.report(0).relayed_opaque_bytes, 300_000 * asked as u64);
        }
        nothing_is_kept(&mesh);
        assert_eq!(mesh.data_out(0), 0);
        mesh.done();
    }
}

#[test]
fn cookies_are_no_part_of_a_record() {
    let mut mesh = Mesh::chain(3);
    mesh.origin.put(URL, Page::of(5_000).fresh(600).with("set-cookie", "a=b"));
    let first = mesh.get(0, URL);
    assert_eq!(mesh.client(first).cookies(), ["a=b"]);
    let heard = Heard::default();
    mesh.start_liar(2, heard.play());
    mesh.liar_says(2, 1, vec![Message::Get(Box::new(ask(1, URL)))]);
    mesh.pass_seconds(1);
    let fields = match &heard.of(1)[0] {
        Message::Head(_, head) => head.fields.clone(),
        other => panic!("{other:?} is no head"),
    };
    assert!(fields.iter().any(|(name, _)| name == "cache-control"), "{fields:?}");
    assert!(fields.iter().all(|(name, _)| name != "set-cookie"), "{fields:?}");
    for node in [0, 1] {
        let id = mesh.get(node, URL);
        assert!(mesh.client(id).is_ok() && mesh.client(id).cookies().is_empty());
    }
    mesh.kill(2);
    mesh.done();
}

#[test]
fn a_cookie_reaches_the_client_behind_other_routers_and_nobody_else() {
    for plan in [Plan::default(), Plan::thcp()] {
        // 2 and 3 behind 1.
        let mut mesh = Mesh::tree_of(&plan, &[0, 1, 1]);
        let page = Page::of(50_000).fresh(600).with("set-cookie", "a=b");
        mesh.origin.put(URL, page.waiting(Duration::from_millis(50)));
        for asked in 1..3 {
            let id = mesh.get(2, URL);
            assert!(mesh.client(id).is_ok());
            assert_eq!(mesh.client(id).cookies(), ["a=b"], "{}", mesh.cache(id));
            assert_eq!(mesh.origin.askers(URL), vec![0; asked]);
            assert_eq!(mesh.report(0).not_stored.get(NotStored::Cookie).responses, asked as u64);
            nothing_is_kept(&mesh);
        }
        // Each of several gets what the origin says to itself.
        let both = [2, 3].map(|node| mesh.call(node, Call::get(URL)));
        mesh.finish();
        assert!(both.iter().all(|id| mesh.client(*id).cookies() == ["a=b"]));
        assert_eq!(mesh.origin.asked(URL), 4);
        // What the gateway's own client has asked for is shared, without the cookie.
        let own = mesh.get(0, URL);
        assert_eq!(mesh.client(own).cookies(), ["a=b"]);
        let other = mesh.get(3, URL);
        assert!(mesh.client(other).is_ok() && mesh.client(other).cookies().is_empty());
        assert_eq!(mesh.origin.asked(URL), 5);
        mesh.done();
    }
}

#[test]
fn what_was_asked_with_a_cookie_is_kept_nowhere_for_a_guessed_while() {
    let mut mesh = Mesh::chain(4);
    let page = Page::of(5_000).with("last-modified", "Wed, 18 May 2022 03:16:40 GMT");
    mesh.origin.put(URL, page);
    for asked in 1..3 {
        let id = mesh.call(3, Call::get(URL).with("cookie", "a=b"));
        mesh.finish();
        assert!(mesh.client(id).is_ok());
        assert_eq!(mesh.origin.askers(URL), vec![0; asked]);
    }
    nothing_is_kept(&mesh);
    mesh.done();
}

#[test]
fn it_is_read_as_slowly_as_the_client_reads() {
    let mut mesh = Mesh::chain(4);
    mesh.origin.put(URL, Page::of(5_000_000).with("cache-control", "no-store"));
    let id = mesh.call(3, Call::get(URL).pace(crate::net::Pace::Slow(100)));
    mesh.pass_seconds(5);
    let got = mesh.client(id).content.len();
    assert!(got >= 400_000, "{got} bytes");
    assert!(mesh.origin.sent < 2_000_000, "{} bytes", mesh.origin.sent);
    mesh.hurry(id);
    mesh.finish();
    assert!(mesh.client(id).is_ok());
    mesh.done();
}

#[test]
fn what_cannot_be_shared_is_asked_for_by_each() {
    // 2 and 3 behind 1.
    let mut mesh = Mesh::tree_of(&Plan::default(), &[0, 1, 1]);
    let page = Page::of(100_000).with("cache-control", "private");
    mesh.origin.put(URL, page.waiting(Duration::from_millis(50)));
    let ids = [2, 2, 3, 3, 1].map(|node| mesh.call(node, Call::get(URL)));
    mesh.finish();
    assert!(ids.iter().all(|id| mesh.client(*id).is_ok()));
    assert_eq!(mesh.origin.asked(URL), ids.len());
    nothing_is_kept(&mesh);
    mesh.done();
}

#[test]
fn variants_are_told_apart() {
    for plan in [Plan::default(), Plan::thcp()] {
        let mut mesh = Mesh::tree_of(&plan, &[0, 1, 1]);
        for language in ["de", "fr"] {
            let page = Page::of(60_000).fresh(600).with("vary", "accept-language");
            let page =
                page.with("content-language", language).only_for("accept-language", language);
            mesh.origin.add(URL, page.waiting(Duration::from_millis(20)));
        }
        let ask = |language| Call::get(URL).with("accept-language", language);
        for round in 0..2 {
            let mut ids = Vec::new();
            for (node, language) in [(2, "de"), (2, "fr"), (3, "fr"), (3, "de"), (1, "fr")] {
                ids.push((mesh.call(node, ask(language)), language));
                if round == 1 {
                    mesh.finish();
                }
            }
            mesh.finish();
            for (id, language) in ids {
                assert!(mesh.client(id).is_ok());
                assert_eq!(mesh.client(id).header("content-language"), language);
                assert!(round == 0 || mesh.is_hit(id) || plan.selection == wire::Selection::Thcp);
            }
        }
        mesh.done();
    }
}

#[test]
fn what_can_be_told_from_the_request_goes_directly() {
    let calls: [fn() -> Call; 5] = [
        || Call { has_body: true, ..Call::new(Method::POST, URL) },
        || Call::get(URL).with("range", "bytes=5-9"),
        || Call::get(URL).with("authorization", "Basic x"),
        || Call::get(URL).with("cache-control", "no-store"),
        || Call::head(URL),
    ];
    for plan in [Plan::default(), Plan::thcp()] {
        for call in calls {
            let mut mesh = Mesh::chain_of(&plan, 4);
            mesh.origin.put(URL, Page::of(50_000).fresh(600));
            let id = mesh.call(3, call());
            mesh.finish();
            assert!(mesh.client(id).is_whole(), "{:?}", mesh.client(id));
            assert_eq!(mesh.origin.askers(URL), [3], "{:?}", call());
            mesh.done();
        }
    }
}

#[test]
fn credentials_go_to_the_origin_alone_and_what_is_for_all_is_stored() {
    for plan in [Plan::default(), Plan::thcp()] {
        let mut mesh = Mesh::chain_of(&plan, 4);
        let page = Page::of(50_000).etag("a").with("cache-control", "public, max-age=600");
        mesh.origin.put(URL, page.breaking_at(30_000));
        let id = mesh.call(3, Call::get(URL).with("authorization", "Basic x"));
        mesh.finish();
        assert!(mesh.client(id).is_ok());
        // The second request is for the other 20,000 bytes.
        assert_eq!(mesh.origin.askers(URL), [3, 3]);
        let id = mesh.get(3, URL);
        assert_eq!(mesh.client(id).cache(), "n3; hit; ttl=600");
        mesh.done();
    }
}

#[test]
fn where_gateways_are_named_answers_to_credentials_are_not_stored_elsewhere() {
    let plan = Plan { configured: true, ..Plan::default() };
    let mut mesh = Mesh::chain_of(&plan, 3);
    mesh.origin.put(URL, Page::of(5_000).with("cache-control", "public, max-age=600"));
    let id = mesh.call(2, Call::get(URL).with("authorization", "Basic x"));
    mesh.finish();
    assert!(mesh.client(id).is_ok());
    assert!(mesh.client(id).cache().ends_with("detail=authorization"));
    // A router on the way could have changed that answer: this one comes from the gateway.
    let id = mesh.get(2, URL);
    assert!(mesh.client(id).is_ok());
    assert_eq!(mesh.origin.askers(URL), [2, 0]);
    mesh.done();
}

#[test]
fn parts_and_heads_of_what_is_held_are_served_here() {
    let mut mesh = Mesh::chain(4);
    mesh.origin.put(URL, Page::of(50_000).fresh(600));
    mesh.get(3, URL);
    let part = mesh.call(3, Call::get(URL).with("range", "bytes=30000-39999"));
    let head = mesh.call(3, Call::head(URL));
    mesh.finish();
    assert_eq!((mesh.client(part).status(), mesh.client(head).status()), (206, 200));
    assert!(mesh.client(part).is_whole() && mesh.client(part).content.len() == 10_000);
    assert_eq!(mesh.origin.askers(URL), [0]);
    mesh.done();
}

#[test]
fn tunnels_begin_at_the_access_router() {
    let mut mesh = Mesh::chain(4);
    let id = mesh.call(3, Call::new(Method::CONNECT, "o.test:443"));
    mesh.finish();
    assert!(mesh.client(id).head.is_none());
    assert_eq!(mesh.tunnels, [(3, Dial::Name("o.test".into(), 443))]);
    mesh.done();
}

#[test]
fn an_intercepted_request_comes_through_the_mesh_if_its_host_is_what_was_dialled() {
    for (dialled, asker) in [("192.0.2.1:80", 0), ("192.0.2.9:80", 3)] {
        let mut mesh = Mesh::chain(4);
        mesh.names.insert("o.test".into(), vec![[192, 0, 2, 1].into()]);
        mesh.origin.put(URL, Page::of(50_000).fresh(600));
        let id = mesh.call(3, Call::get(URL).dialling(dialled));
        mesh.finish();
        assert!(mesh.client(id).is_ok());
        assert_eq!(mesh.origin.askers(URL), [asker]);
        mesh.done();
    }
}

#[test]
fn origins_within_the_mesh_are_dialled_directly() {
    let plan = Plan { direct: vec!["192.0.2.0/24"], ..Plan::default() };
    let mut mesh = Mesh::chain_of(&plan, 4);
    mesh.names.insert("o.test".into(), vec![[192, 0, 2, 1].into()]);
    mesh.origin.put(URL, Page::of(50_000).fresh(600));
    mesh.origin.put("http://192.0.2.7/", Page::of(50_000).fresh(600));
    let intercepted = mesh.call(3, Call::get(URL).dialling("192.0.2.1:80"));
    let literal = mesh.call(3, Call::get("http://192.0.2.7/"));
    mesh.finish();
    assert!(mesh.client(intercepted).is_ok() && mesh.client(literal).is_ok());
    assert!(mesh.origin.seen.iter().all(|seen| seen.by == 3), "{:?}", mesh.origin.seen);
    mesh.done();
}

#[test]
fn a_stream_that_pauses_is_not_held_back_until_a_unit_is_full() {
    let mut mesh = Mesh::chain(4);
    let mut page = Page::of(20_000).fresh(600).chunked();
    (page.piece, page.pause) = (1_000, Duration::from_millis(500));
    mesh.origin.put(URL, page);
    let id = mesh.call(3, Call::get(URL));
    mesh.pass_seconds(4);
    let got = mesh.client(id).content.len();
    assert!(got >= 5_000, "after four seconds there were {got} bytes");
    mesh.finish();
    assert!(mesh.client(id).is_ok());
    mesh.done();
}

#[test]
fn errors_of_the_origin_come_through_as_they_are() {
    let mut mesh = Mesh::chain(4);
    for status in [404, 410, 500, 503] {
        let url = format!("http://o.test/{status}");
        mesh.origin.put(&url, Page::of(2_000).status(status));
        let id = mesh.get(3, &url);
        assert!(mesh.client(id).is_whole());
        assert_eq!(mesh.client(id).status(), status);
    }
    mesh.done();
}
