//! Content classes: what the tables say of a URL decides what is stored, served and verified.

use crate::net::{Call, Net, Options, Page};
use classes::{Classes, Reach};
use node::FetchError;
use sha2::{Digest as _, Sha256};
use std::sync::Arc;
use std::time::Duration;
use wire::Digest;

const TABLE: &str = r#"
name = "apt"
hosts = ["a.test", "b.test"]
proof = ["**/dists/**/InRelease"]

[[immutable]]
paths = ["**/binary-*/by-hash/*/*"]
digest = "last-segment"
index = "apt-packages"

[[immutable]]
paths = ["**/by-hash/*/*"]
digest = "last-segment"

[[immutable]]
paths = ["**/pool/**/*.deb"]

[[immutable]]
paths = ["/small/**"]
keep = "10KiB"

[[immutable]]
paths = ["/never/**"]
keep = "never"

[[immutable]]
paths = ["/always/**"]
keep = "always"

[[changing]]
paths = ["**/dists/**/InRelease"]
lifetime = "5m"
stale = "1d"
index = "apt-release"

[[changing]]
paths = ["**/dists/**/Packages"]
lifetime = "5m"
stale = "1d"
index = "apt-packages"

[[changing]]
paths = ["**/dists/**"]
lifetime = "5m"
stale = "1d"
"#;

const DEB: &str = "http://a.test/debian/pool/x.deb";
const INDEX: &str = "http://a.test/debian/dists/stable/InRelease";

pub fn options(table: &str) -> Options {
    let classes = Classes::default().with("test.toml", table).expect("a table");
    let reach = Reach { classes: Arc::new(classes), ..Reach::default() };
    Options { reach, ..Options::default() }
}

fn net() -> Net {
    Net::with(options(TABLE))
}

fn digest(page: &Page) -> Digest {
    Digest::Sha256(Sha256::digest(&page.body).into())
}

/// A URL that names the digest of its content.
fn by_hash(host: &str, digest: Digest) -> String {
    let text = digest.to_string().replace("sha256:", "");
    format!("http://{host}/dists/s/by-hash/SHA256/{text}")
}

fn cache(net: &mut Net, call: Call) -> String {
    let id = net.call(call);
    net.settle();
    assert!(net.client(id).is_ok(), "{:?}", net.client(id));
    net.client(id).cache().to_owned()
}

#[test]
fn what_never_changes_is_stored_bare_and_served_whatever_the_client_wants() {
    let mut net = net();
    net.origin.put(DEB, Page::of(100_000));
    assert!(cache(&mut net, Call::get(DEB)).starts_with("fwd=uri-miss; fwd-status=200; stored"));
    net.pass_seconds(400 * 86_400);
    for wish in ["max-age=0", "no-cache", "no-cache, no-store"] {
        let cache = cache(&mut net, Call::get(DEB).with("cache-control", wish));
        assert!(cache.starts_with("hit"), "{cache}");
    }
    assert_eq!(net.origin.asked(DEB), 1);
    net.done();
}

#[test]
fn what_is_published_again_under_its_name_comes_to_who_insists_and_is_then_for_all() {
    let mut net =
        Net::with(options(&TABLE.replace("[[immutable]]", "[[immutable]]\nheeds = \"all\"")));
    net.origin.put(DEB, Page::of(1000).with("etag", "\"1\""));
    assert!(cache(&mut net, Call::get(DEB)).contains("stored"));
    net.pass_seconds(86_400);
    assert!(cache(&mut net, Call::get(DEB)).starts_with("hit"));
    net.origin.put(DEB, Page::of(2000).with("etag", "\"2\""));
    for wish in ["no-store", "max-age=0"] {
        let cache = cache(&mut net, Call::get(DEB).with("cache-control", wish));
        assert!(cache.starts_with("fwd=stale") || cache.starts_with("fwd=request"), "{cache}");
    }
    let id = net.call(Call::get(DEB));
    net.settle();
    assert!(net.client(id).cache().starts_with("hit"));
    assert_eq!(net.client(id).content.len(), 2000);
    net.done();
}

#[test]
fn an_intercepted_client_is_served_by_the_same_rules() {
    let mut net = net();
    net.names.insert("a.test".into(), vec![[192, 0, 2, 1].into()]);
    net.origin.put(DEB, Page::of(10_000));
    for begin in ["fwd=uri-miss", "hit"] {
        let call = Call::get(DEB).dialling("192.0.2.1:80").with("cache-control", "max-age=0");
        let cache = cache(&mut net, call);
        assert!(cache.starts_with(begin), "{cache}");
    }
    net.done();
}

#[test]
fn what_is_forbidden_stays_forbidden() {
    let mut net = net();
    for (control, reason) in [("no-store", "no-store"), ("private", "private")] {
        net.origin.put(DEB, Page::of(100).with("cache-control", control));
        for _ in 0..2 {
            let cache = cache(&mut net, Call::get(DEB));
            assert!(cache.ends_with(&format!("detail={reason}")), "{cache}");
        }
    }
    net.origin.put(DEB, Page::of(100));
    let call = || Call::get(DEB).with("authorization", "Basic eDp5");
    assert!(cache(&mut net, call()).ends_with("detail=authorization"));
    assert!(cache(&mut net, Call::get(DEB)).contains("fwd=uri-miss"));
    net.done();
}

#[test]
fn what_changes_has_the_lifetime_of_its_class_and_is_revalidated() {
    let mut net = net();
    net.origin.put(INDEX, Page::of(10_000));
    assert!(cache(&mut net, Call::get(INDEX)).contains("stored"));
    net.pass_seconds(290);
    assert_eq!(cache(&mut net, Call::get(INDEX)), "hit; ttl=10");
    assert!(
        cache(&mut net, Call::get(INDEX).with("cache-control", "max-age=0")).starts_with("fwd=")
    );
    net.pass_seconds(301);
    assert!(cache(&mut net, Call::get(INDEX)).starts_with("fwd=stale"));
    net.done();
}

#[test]
fn a_stale_index_is_served_while_its_origin_is_out_of_reach() {
    let mut net = net();
    net.origin.put(INDEX, Page::of(10_000));
    cache(&mut net, Call::get(INDEX));
    net.origin.down = Some(FetchError::Unreachable);
    net.pass_seconds(86_000);
    let call = || Call::get(INDEX).with("cache-control", "max-age=0");
    assert_eq!(cache(&mut net, call()), "fwd=stale; detail=unreachable");
    net.pass_seconds(2_000);
    let id = net.call(call());
    net.settle();
    assert_eq!(net.client(id).status(), 502, "a day and five minutes are over");
    net.done();
}

#[test]
fn classes_say_how_much_is_kept() {
    let mut net = Net::with(Options { undecided_bytes_max: 50_000, ..options(TABLE) });
    for (url, length, stored) in [
        ("http://a.test/small/1", 10_000, true),
        ("http://a.test/small/2", 11_000, false),
        ("http://a.test/never/1", 100, false),
        ("http://a.test/always/1", 60_000, true),
        ("http://a.test/other", 60_000, false),
        ("http://a.test/others", 40_000, true),
    ] {
        for page in [Page::of(length), Page::of(length).chunked()] {
            net.origin.put(url, page.fresh(600));
            cache(&mut net, Call::get(url));
            let cache = cache(&mut net, Call::get(url));
            assert_eq!(cache.starts_with("hit"), stored, "{url}: {cache}");
            net.pass_seconds(601);
        }
    }
    net.done();
}

#[test]
fn a_host_is_an_archive_once_it_has_given_an_index() {
    let (mut net, host) = (net(), "http://c.test");
    let (deb, index) = (format!("{host}/pool/x.deb"), format!("{host}/dists/stable/InRelease"));
    net.origin.put(&deb, Page::of(1_000));
    let unstored = |net: &mut Net| cache(net, Call::get(&deb)).ends_with("detail=unusable");
    assert!(unstored(&mut net), "it may be anything");
    net.origin.put(&index, Page::of(10).with("content-type", "text/html; charset=utf-8"));
    cache(&mut net, Call::get(&index));
    net.origin.put(&index, Page::of(10).status(404));
    net.get(&index);
    assert!(unstored(&mut net), "neither a page for people nor an error is an index");
    net.origin.put(&index, Page::of(10));
    assert!(cache(&mut net, Call::get(&index)).contains("stored"));
    assert!(cache(&mut net, Call::get(&deb)).contains("stored"));
    assert!(cache(&mut net, Call::get(&deb)).starts_with("hit"));
    net.done();
}

#[test]
fn the_same_file_of_two_hosts_is_fetched_once() {
    let mut net = net();
    let page = Page::of(300_000);
    let digest = digest(&page);
    let (one, other) = (by_hash("a.test", digest), by_hash("b.test", digest));
    net.origin.put(&one, page.clone());
    net.origin.put(&other, page);
    assert!(cache(&mut net, Call::get(&one)).contains("stored"));
    assert!(cache(&mut net, Call::get(&other)).starts_with("hit"));
    let part = net.call(Call::get(&other).with("range", "bytes=1000-1999"));
    net.settle();
    assert_eq!(net.client(part).status(), 206);
    let mirrored = Call::get("https://a.test/elsewhere").by_mirror(Some(digest));
    assert!(cache(&mut net, mirrored).starts_with("hit"));
    assert_eq!((net.origin.seen.len(), net.report().aliases), (1, 3));
    net.restart(&options(TABLE));
    assert!(cache(&mut net, Call::get(&other)).starts_with("hit"));
    net.done();
}

#[test]
fn an_alias_of_what_was_evicted_or_replaced_is_a_miss() {
    let mut net = net();
    let (url, page) = ("https://a.test/x", Page::of(300_000).fresh(60));
    let digest = digest(&page);
    net.origin.put(url, page.clone());
    cache(&mut net, Call::get(url).by_mirror(Some(digest)));
    net.origin.put(url, Page::of(1_000).fresh(60));
    net.pass_seconds(61);
    cache(&mut net, Call::get(url).by_mirror(None));
    let other = by_hash("b.test", digest);
    net.origin.put(&other, page);
    assert!(cache(&mut net, Call::get(&other)).starts_with("fwd=uri-miss"));
    net.done();
}

#[test]
fn a_body_with_another_digest_is_broken_off_and_not_stored() {
    for chunked in [false, true] {
        let (mut net, right) = (net(), Page::of(100_000));
        let url = by_hash("a.test", digest(&right));
        let wrong = Page::of(100_000);
        net.origin.put(&url, if chunked { wrong.chunked() } else { wrong });
        for _ in 0..2 {
            let id = net.get(&url);
            assert!(net.client(id).is_broken(), "{:?}", net.client(id).end);
            assert!(chunked || net.client(id).content.len() < 100_000, "it looked complete");
        }
        assert_eq!((net.origin.asked(&url), net.report().digests_false), (2, 2));
        net.origin.put(&url, right);
        assert!(cache(&mut net, Call::get(&url)).contains("stored"));
        assert!(cache(&mut net, Call::get(&url)).starts_with("hit"));
        net.done();
    }
}

#[test]
fn an_empty_body_has_a_digest_too() {
    let mut net = net();
    let url = by_hash("a.test", digest(&Page::of(0)));
    net.origin.put(&url, Page::of(0));
    assert!(cache(&mut net, Call::get(&url)).contains("stored"));
    let url = by_hash("a.test", digest(&Page::of(1)));
    net.origin.put(&url, Page::of(0));
    let id = net.get(&url);
    assert!(net.client(id).is_broken());
    net.done();
}

#[test]
fn a_file_that_was_never_held_against_its_digest_is_no_hit_for_it() {
    for (by_mirror, fresh) in [(true, true), (false, true), (true, false)] {
        let (mut net, right) = (net(), Page::of(100_000));
        let (url, expected) = ("https://a.test/x", digest(&right));
        let lifetime =
            |page: Page| if fresh { page.fresh(600) } else { page.with("etag", "\"1\"") };
        // Without a digest nobody can tell that it is false.
        net.origin.put(url, lifetime(Page::of(100_000)));
        let plain = Call::get(url);
        cache(&mut net, if by_mirror { plain.by_mirror(None) } else { plain });
        net.origin.put(url, lifetime(right.clone()));
        let asked = || Call::get(url).by_mirror(Some(expected));
        assert!(cache(&mut net, asked()).contains("stored"));
        net.restart(&options(TABLE));
        if fresh {
            let id = net.call(asked());
            net.settle();
            assert!(net.client(id).cache().starts_with("hit"));
            assert_eq!(net.client(id).content, right.body);
            assert!(
                cache(&mut net, Call::get(url)).starts_with("hit"),
                "it has replaced the other"
            );
        }
        let other = Call::get(url).by_mirror(Some(digest(&Page::of(100_000))));
        let id = net.call(other);
        net.settle();
        assert!(net.client(id).is_broken(), "neither is it a hit for another digest");
        net.done();
    }
}

#[test]
fn a_file_under_way_without_a_digest_is_not_joined_for_one() {
    let time = Duration::from_secs(3);
    // Its head is not there yet, or a part of it is.
    for under_way in [Page::of(300_000).waiting(time), Page::of(300_000).resting(100_000, time)] {
        let (mut net, right) = (net(), Page::of(300_000).fresh(600));
        let (url, expected) = ("https://a.test/x", digest(&right));
        net.origin.put(url, under_way.fresh(600));
        let first = net.call(Call::get(url).by_mirror(None));
        net.pass_seconds(1);
        assert!(!net.client(first).is_ok());
        net.origin.put(url, right.clone());
        let second = net.call(Call::get(url).by_mirror(Some(expected)));
        net.settle();
        assert!(net.client(first).is_ok() && net.client(second).is_ok());
        assert_eq!(net.client(second).content, right.body);
        net.done();
    }
}

#[test]
fn a_coded_form_that_nobody_can_hold_against_the_digest_is_not_kept() {
    let (mut net, right) = (net(), Page::of(100_000).fresh(600));
    let (url, expected) = ("https://a.test/x", digest(&right));
    let asked = || Call::get(url).by_mirror(Some(expected));
    let coded = || Page::of(100_000).fresh(600).with("content-encoding", "gzip");
    net.origin.put(url, coded());
    assert!(cache(&mut net, Call::get(url)).contains("stored"), "nobody has asked for the file");
    net.origin.put(url, coded());
    assert!(cache(&mut net, asked()).contains("detail=coded"));
    net.origin.put(url, right);
    assert!(cache(&mut net, asked()).contains("stored"));
    assert!(cache(&mut net, asked()).starts_with("hit"));
    net.done();
}

#[test]
fn a_package_that_was_published_again_under_its_name_is_fetched_again() {
    let mut net = net();
    const INDEX: &str = "http://a.test/debian/dists/s/Packages";
    let publish = |net: &mut Net, deb: &Page| {
        let hex = digest(deb).to_string().replace("sha256:", "");
        let index = format!("Package: x\nFilename: pool/x.deb\nSHA256: {hex}\n\n");
        net.origin.put(INDEX, Page::new(index.into()));
        net.origin.put(DEB, deb.clone());
        cache(net, Call::get(INDEX).with("cache-control", "no-cache"));
    };
    let versions = [Page::of(100_000), Page::of(100_000)];
    for deb in &versions {
        publish(&mut net, deb);
        for begins in ["fwd=", "hit"] {
            let id = net.get(DEB);
            assert!(net.client(id).cache().starts_with(begins), "{}", net.client(id).cache());
            assert_eq!(net.client(id).content, deb.body);
        }
    }
    assert_eq!(net.origin.asked(DEB), 2);
    net.done();
}

#[test]
fn what_an_index_promises_is_verified_and_found_on_other_hosts() {
    let (mut net, deb) = (net(), Page::of(100_000));
    let hex = digest(&deb).to_string().replace("sha256:", "");
    let index = format!("Package: x\nFilename: pool/x.deb\nSHA256: {hex}\n\n");
    for host in ["a.test", "b.test"] {
        let url = format!("http://{host}/debian/dists/s/Packages");
        net.origin.put(&url, Page::new(index.clone().into()));
        cache(&mut net, Call::get(&url));
    }
    net.origin.put(DEB, Page::of(100_000));
    let id = net.get(DEB);
    assert!(net.client(id).is_broken(), "another file than was promised");
    net.origin.put(DEB, deb);
    assert!(cache(&mut net, Call::get(DEB)).contains("stored"));
    assert!(cache(&mut net, Call::get("http://b.test/debian/pool/x.deb")).starts_with("hit"));
    net.done();
}

#[test]
fn what_one_mirrors_index_promises_is_found_on_a_mirror_with_the_same_index() {
    for by_release in [true, false] {
        let (mut net, deb) = (net(), Page::of(100_000));
        let hex = |page: &Page| digest(page).to_string().replace("sha256:", "");
        let list = format!("Package: x\nFilename: pool/x.deb\nSHA256: {}\n\n", hex(&deb));
        let list = Page::new(list.into());
        let listed = hex(&list);
        let of = |host, path: &str| format!("http://{host}/debian/{path}");
        let by_hash = format!("dists/s/main/binary-amd64/by-hash/SHA256/{listed}");
        let release = format!("SHA256:\n {listed} 9 main/binary-amd64/Packages\n");
        net.origin.put(&of("a.test", &by_hash), list);
        net.origin.put(&of("a.test", "pool/x.deb"), deb);
        net.origin.put(&of("b.test", "dists/s/InRelease"), Page::new(release.into()));
        cache(&mut net, Call::get(&of("a.test", &by_hash)));
        let file = cache(&mut net, Call::get(&of("a.test", "pool/x.deb")));
        assert!(file.contains("stored"), "{file}");
        let second = of("b.test", if by_release { "dists/s/InRelease" } else { &by_hash });
        cache(&mut net, Call::get(&second));
        let file = cache(&mut net, Call::get(&of("b.test", "pool/x.deb")));
        assert!(file.starts_with("hit"), "{by_release}: {file}");
        net.done();
    }
}

#[test]
fn an_index_that_is_not_its_digest_promises_nothing_to_other_hosts() {
    let (mut net, deb) = (net(), Page::of(100_000));
    let hex = |page: &Page| digest(page).to_string().replace("sha256:", "");
    let entry =
        |page: &Page| Page::new(format!("Filename: pool/x.deb\nSHA256: {}\n\n", hex(page)).into());
    let (right, wrong) = (entry(&deb), entry(&Page::of(100_000)));
    let path = format!("debian/dists/s/main/binary-amd64/by-hash/SHA256/{}", hex(&right));
    let (evil, good) = (format!("http://a.test/{path}"), format!("http://b.test/{path}"));
    net.origin.put(&evil, wrong);
    assert!(broken(&mut net, &evil));
    net.origin.put(&good, right);
    cache(&mut net, Call::get(&good));
    net.origin.put("http://b.test/debian/pool/x.deb", deb);
    let file = cache(&mut net, Call::get("http://b.test/debian/pool/x.deb"));
    assert!(file.contains("stored"), "{file}");
    net.done();
}

fn broken(net: &mut Net, url: &str) -> bool {
    let id = net.get(url);
    net.client(id).is_broken()
}

const SUM: &str = "http://a.test/debian/dists/stable/InRelease.sum";

#[test]
fn when_an_index_has_changed_its_sum_is_not_the_old_one() {
    let table =
        TABLE.replace("proof =", "companions = [[\"InRelease\", \"InRelease.sum\"]]\nproof =");
    for first in [INDEX, SUM] {
        let mut net = Net::with(options(&table));
        let other = if first == INDEX { SUM } else { INDEX };
        let publish = |net: &mut Net, version: usize| {
            for url in [INDEX, SUM] {
                let tag = format!("\"{version}\"");
                net.origin.put(url, Page::of(1000 + version).with("etag", &tag));
            }
        };
        publish(&mut net, 1);
        for url in [first, other] {
            assert!(cache(&mut net, Call::get(url)).contains("stored"));
        }
        net.pass_seconds(200);
        let asked = cache(&mut net, Call::get(other).with("cache-control", "no-cache"));
        assert!(asked.contains("fwd-status=304"), "{asked}");
        net.pass_seconds(200);
        let before = (net.origin.asked(first), net.origin.asked(other));
        publish(&mut net, 2);
        // The first is stale, and changes; the other one would be fresh.
        for (url, begin) in [(first, "fwd=stale"), (other, "hit"), (first, "hit")] {
            let id = net.call(Call::get(url));
            net.settle();
            assert!(net.client(id).cache().starts_with(begin), "{url}: {}", net.client(id).cache());
            assert_eq!(net.client(id).content.len(), 1002, "{url}");
        }
        let after = (net.origin.asked(first), net.origin.asked(other));
        assert_eq!(after, (before.0 + 1, before.1 + 1), "each once");
        net.done();
    }
}

#[test]
fn companions_without_validators_do_not_ask_for_each_other_for_ever() {
    let table =
        TABLE.replace("proof =", "companions = [[\"InRelease\", \"InRelease.sum\"]]\nproof =");
    let mut net = Net::with(options(&table));
    net.origin.put(INDEX, Page::of(1000));
    net.origin.put(SUM, Page::of(10));
    for _ in 0..3 {
        for url in [INDEX, SUM] {
            cache(&mut net, Call::get(url));
        }
        net.pass_seconds(301);
    }
    assert!(net.origin.asked(INDEX) <= 4 && net.origin.asked(SUM) <= 4);
    net.done();
}

#[test]
fn while_an_archive_is_out_of_reach_one_request_tries_and_nobody_waits() {
    let mut net = net();
    net.origin.put(INDEX, Page::of(1000).with("etag", "\"1\""));
    let other = "http://a.test/debian/dists/stable/Release";
    net.origin.put(other, Page::of(2000));
    for url in [INDEX, other] {
        assert!(cache(&mut net, Call::get(url)).contains("stored"));
    }
    net.pass_seconds(400);
    net.origin.down = Some(FetchError::Unreachable);
    assert_eq!(cache(&mut net, Call::get(INDEX)), "fwd=stale; detail=unreachable");
    let asked = |net: &Net| net.origin.seen.len();
    let before = asked(&net);
    for url in [INDEX, other] {
        assert_eq!(cache(&mut net, Call::get(url)), "hit; detail=unreachable");
    }
    assert_eq!(asked(&net), before, "it was tried a moment ago");
    net.pass_seconds(5);
    for url in [INDEX, other] {
        assert_eq!(cache(&mut net, Call::get(url)), "hit; detail=unreachable");
    }
    assert_eq!(asked(&net), before + 1, "one of them tried");
    net.origin.down = None;
    net.pass_seconds(6);
    let told = cache(&mut net, Call::get(INDEX));
    assert!(told.starts_with("fwd=stale; fwd-status=304"), "it is back: {told}");
    let told = cache(&mut net, Call::get(other));
    assert!(told.starts_with("fwd=stale; fwd-status=200"), "{told}");
    // Who insists has it tried, and what is not stored has, too.
    net.origin.down = Some(FetchError::Unreachable);
    net.pass_seconds(400);
    let id = net.call(Call::get("http://a.test/debian/dists/stable/none"));
    net.settle();
    assert_eq!(net.client(id).status(), 502);
    net.done();
}
