//! The mirror with real package managers: what a second client's packages cost, and what goes wrong upstream.
//!
//! The registries have their real names and a CA that the daemons trust. Tests of clients that few machines have are
//! ignored; `scripts/test --long` runs them.

use std::process::Stdio;
use std::time::Instant;

use sha2::{Digest as _, Sha256};

use crate::registries::{Fork, MIRROR, PROXY, Single, missing, run};
use crate::world::network::{self, CLIENT, ORIGIN};
use crate::world::{Curl, Reply, assert_same, sh, skipped, wait_until};

/// Runs a test in a private network, if this machine has the registries' programs and this one.
fn with(program: &'static str, test: &str, body: fn()) {
    match missing(&[program]) {
        Some(program) => skipped(test, &format!("{program} is not installed: run scripts/setup")),
        None => network::inside(test, body),
    }
}

/// As [`with`], without another program.
fn single(test: &str, body: fn()) {
    with("curl", test, body);
}

/// A client behind one access router gets packages, then another behind another router: what the second's cost.
fn compare(client: &str) {
    let fork = Fork::start();
    let [first, second] = [0, 1].map(|at| fork.cost_of(client, at));
    assert!(first.files > 3_000_000 && first.uplink > first.all, "{first:?}");
    assert_eq!(second.files, 0, "files crossed the uplink again: {second:?}");
    assert!(second.all * 50 <= first.all, "{second:?} beside {first:?}");
    assert!(second.uplink * 50 <= first.uplink, "{second:?} beside {first:?}");
}

#[test]
fn apt_files_cross_the_uplink_once() {
    with("apt-get", "apt_files_cross_the_uplink_once", || compare("apt"));
}

#[test]
fn pip_files_cross_the_uplink_once() {
    with("pip3", "pip_files_cross_the_uplink_once", || compare("pip"));
}

#[test]
fn npm_files_cross_the_uplink_once() {
    with("npm", "npm_files_cross_the_uplink_once", || compare("npm"));
}

#[test]
fn images_cross_the_uplink_once() {
    with("skopeo", "images_cross_the_uplink_once", || compare("oci"));
}

#[test]
#[ignore = "needs cargo's own network code; scripts/test --long runs it"]
fn crates_cross_the_uplink_once() {
    with("cargo", "crates_cross_the_uplink_once", || compare("cargo"));
}

#[test]
#[ignore = "needs go; scripts/test --long runs it"]
fn go_modules_cross_the_uplink_once() {
    with("go", "go_modules_cross_the_uplink_once", || compare("go"));
}

#[test]
#[ignore = "needs Maven; scripts/test --long runs it"]
fn maven_artifacts_cross_the_uplink_once() {
    with("mvn", "maven_artifacts_cross_the_uplink_once", || compare("maven"));
}

/// What a client has installed, it installs again when the uplink swallows everything and all indexes are stale.
fn installs_offline(client: &str) {
    let router = Single::start_stale();
    let install = || {
        let begun = Instant::now();
        let got = run(client, CLIENT, &[("MIRROR", MIRROR)]);
        let got = got.unwrap_or_else(|said| panic!("{said}\n{}", router.hearsay.log()));
        assert_eq!(got, router.registries.wanted(client));
        begun.elapsed()
    };
    let age = || {
        router.hearsay.wait_until_durable();
        router.hearsay.wait_until_stale("");
    };
    let first = install();
    age();
    let again = install();
    age();
    let sent = router.registries.sent().len();
    sh("ip netns exec origin nft 'add table inet t; \
        add chain inet t c { type filter hook input priority 0; policy drop; }'");
    let offline = install();
    assert_eq!(router.registries.sent().len(), sent, "the uplink is down");
    eprintln!("{client}: first {first:.1?}, again {again:.1?}, without the uplink {offline:.1?}");
}

#[test]
fn pip_installs_what_is_stored_without_the_uplink() {
    with("pip3", "pip_installs_what_is_stored_without_the_uplink", || installs_offline("pip"));
}

#[test]
#[ignore = "the one of pip stands for it; scripts/test --long runs it"]
fn npm_installs_what_is_stored_without_the_uplink() {
    with("npm", "npm_installs_what_is_stored_without_the_uplink", || installs_offline("npm"));
}

#[test]
#[ignore = "needs cargo's own network code; scripts/test --long runs it"]
fn cargo_installs_what_is_stored_without_the_uplink() {
    with("cargo", "cargo_installs_what_is_stored_without_the_uplink", || installs_offline("cargo"));
}

/// That a reply is an error of ours that says why in a sentence.
#[track_caller]
fn refused(reply: &Reply, status: u16, sentence: &str) {
    assert!(reply.exit == 0 && reply.status == status, "not {status}: {reply:?}");
    assert!(reply.text().contains(sentence), "{sentence:?} is not in {reply:?}");
}

#[test]
fn what_a_mirror_does_not_do_is_refused_with_a_sentence() {
    single("what_a_mirror_does_not_do_is_refused_with_a_sentence", || {
        let router = Single::start();
        refused(&router.get("/apt/unknown.test/debian/dists/sid/Release"), 403, "[mirror] allow");
        refused(&router.get("/files/10.2.0.2/file"), 403, "[mirror] allow");
        refused(&router.get("/files/faulty.test:22/file"), 403, "[mirror] allow");
        let upload = |method, path| router.curl(path).args(&["-X", method, "-d", "content"]).run();
        refused(&upload("PUT", "/npm/hearsay-alpha"), 405, "only reads");
        refused(&upload("POST", "/pypi/legacy/"), 405, "only reads");
        refused(&upload("POST", "/v2/library/hearsay/blobs/uploads/"), 405, "only reads");
        refused(&router.get("/npm/-/whoami"), 403, "log in to the registry itself");
        refused(&router.get("/apt/deb.debian.org/debian/../../etc/passwd"), 400, "unclear");
        refused(&router.get("/apt/deb.debian.org/debian/%2e%2e/x"), 400, "unclear");
        refused(&router.get("/files/faulty.test/..%2ffile"), 400, "unclear");
        assert_eq!(router.get("/nothing/at/all").status, 404);
        let outside = Curl::new(ORIGIN, "http://10.2.0.1:3142/pypi/simple/hearsay-alpha/").run();
        refused(&outside, 403, "local clients only");
        assert!(router.registries.sent().is_empty(), "{:?}", router.registries.sent());
    });
}

#[test]
fn only_hosts_with_a_good_certificate_are_believed() {
    single("only_hosts_with_a_good_certificate_are_believed", || {
        let router = Single::start();
        router.get("/files/faulty.test/file").expect(200);
        for host in ["expired.test", "other-name.test", "untrusted.test"] {
            for _ in 0..2 {
                let reply = router.get(&format!("/files/{host}/file"));
                assert!(reply.status == 502 && !reply.body.is_empty(), "{host}: {reply:?}");
            }
            assert!(router.registries.sent().iter().all(|sent| sent.host != host), "{host}");
        }
    });
}

#[test]
fn redirects_that_lead_astray_are_not_followed() {
    single("redirects_that_lead_astray_are_not_followed", || {
        let router = Single::start();
        for path in ["to-private", "to-inner", "to-http", "circle/0"] {
            let reply = router.get(&format!("/files/faulty.test/{path}"));
            assert!(matches!(reply.status, 403 | 502), "{path}: {reply:?}");
            assert!(!reply.body.is_empty(), "{path}: {reply:?}");
        }
        let sent = router.registries.sent();
        assert!(sent.iter().all(|it| it.path != "/file"), "followed: {sent:?}");
        let circle = sent.iter().filter(|it| it.path.starts_with("/circle/")).count();
        assert!((2..20).contains(&circle), "{circle} requests in the circle");
    });
}

/// That no client gets a file whole, and that each request for it goes upstream.
#[track_caller]
fn never_whole(router: &Single, path: &str, host: &str) {
    let upstream = path.rsplit_once(&format!("{host}/")).expect("the host").1;
    let count = || router.registries.count(host, &format!("/{upstream}"));
    for turn in 0..2 {
        let before = count();
        let reply = router.get(path);
        let is_broken = reply.exit != 0 || reply.status >= 500;
        assert!(is_broken, "ended well, turn {turn}: {reply:?}");
        wait_until("the registry to be asked", || count() > before);
    }
}

#[test]
fn a_body_that_ends_early_is_broken_off_and_not_kept() {
    single("a_body_that_ends_early_is_broken_off_and_not_kept", || {
        let router = Single::start();
        never_whole(&router, "/files/faulty.test/cut", "faulty.test");
        never_whole(&router, &router.link("cut-short"), "files.pythonhosted.org");
    });
}

#[test]
fn a_body_that_is_not_its_digest_is_broken_off_and_not_kept() {
    single("a_body_that_is_not_its_digest_is_broken_off_and_not_kept", || {
        let router = Single::start();
        never_whole(&router, &router.link("wrong-digest"), "files.pythonhosted.org");
        let digest = router.get("/files/faulty.test/blob").expect(200).text();
        for _ in 0..2 {
            let reply = router.get(&format!("/v2/library/hearsay/blobs/{digest}"));
            assert!(reply.exit != 0 || reply.status >= 500, "ended well: {reply:?}");
        }
        // The same without an index's promise: nothing says that the content is wrong.
        let path = "/files/files.pythonhosted.org/packages/wrong_digest-1.0-py3-none-any.whl";
        assert_eq!(router.get(path).expect(200).body.len(), 300_000);
    });
}

#[test]
fn pip_installs_nothing_that_is_broken() {
    with("pip3", "pip_installs_nothing_that_is_broken", || {
        let router = Single::start();
        assert!(router.pip_gets("hearsay-beta"));
        assert!(!router.pip_gets("cut-short") && !router.pip_gets("wrong-digest"));
    });
}

#[test]
fn an_archive_without_validators_is_fetched_once() {
    with("apt-get", "an_archive_without_validators_is_fetched_once", || {
        let router = Single::start_with(&["deb.debian.org"], &["--intercept", "lan0"]);
        let explicit = [("PROXY", PROXY), ("PLAIN", "1")];
        assert!(router.cost_of_apt(&explicit) > 3_000_000);
        assert_eq!(router.cost_of_apt(&explicit), 0, "by the explicit proxy");
        assert_eq!(router.cost_of_apt(&[("PLAIN", "1")]), 0, "intercepted");
    });
}

#[test]
fn a_package_that_is_not_what_its_list_promises_is_not_kept() {
    with("apt-get", "a_package_that_is_not_what_its_list_promises_is_not_kept", || {
        let router = Single::start();
        let path = "/apt/deb.debian.org/debian/pool/main/w/wrong-digest/wrong-digest_1.0_all.deb";
        // apt-get fetches the list of packages by its digest.
        router.cost_of_apt(&[("MIRROR", MIRROR)]);
        never_whole(&router, path, "deb.debian.org");
    });
}

#[test]
fn packages_for_routers_come_by_the_mirror() {
    single("packages_for_routers_come_by_the_mirror", || {
        let router = Single::start();
        let opkg = "/openwrt/releases/23.05.5/packages/x86_64/base";
        let apk = "/alpine/v3.20/main/x86_64";
        router.get(&format!("{opkg}/Packages.gz")).expect(200);
        router.get(&format!("{apk}/APKINDEX.tar.gz")).expect(200);
        for (client, folder) in [("opkg", opkg), ("apk", apk)] {
            for (name, digest) in router.registries.wanted(client) {
                let path = format!("{folder}/{name}");
                let got = router.get(&path).expect(200).body;
                let sum = Sha256::digest(&got)
                    .iter()
                    .fold(String::new(), |sum, byte| format!("{sum}{byte:02x}"));
                assert_eq!(sum, digest, "{name}");
                router.hearsay.wait_until_durable();
                let begin = router.registries.sent().len();
                router.curl(&path).field("Cache-Control: max-age=0").run().expect_hit();
                assert_eq!(router.registries.sent().len(), begin, "{name}");
            }
        }
    });
}

#[test]
fn clients_at_the_same_time_cost_one_transfer() {
    single("clients_at_the_same_time_cost_one_transfer", || {
        let router = Single::start();
        let first = router.curl("/files/faulty.test/slow").start();
        wait_until("a part of it", || first.received() > 10_000);
        let second = router.get("/files/faulty.test/slow").expect(200);
        assert_same(&first.wait().expect(200).body, &second.body);
        assert_eq!(second.body.len(), 150_000);
        wait_until("the log", || router.registries.count("faulty.test", "/slow") > 0);
        assert_eq!(router.registries.count("faulty.test", "/slow"), 1);
    });
}

#[test]
fn an_index_without_end_takes_little_memory() {
    single("an_index_without_end_takes_little_memory", || {
        let router = Single::start();
        router.get("/pypi/simple/hearsay-alpha/").expect(200);
        for project in ["huge", "bomb"] {
            // Unoptimised programs rewrite slowly: the client leaves after some seconds.
            let url = format!("http://10.1.0.1:3142/pypi/simple/{project}/");
            let mut curl = CLIENT.command("curl");
            curl.args(["-qs", "--compressed", "--max-time", "6", "-o", "/dev/null", &url]);
            let ended = curl.stdin(Stdio::null()).status().expect("curl starts");
            // Whole, or cut by the time, or broken off.
            assert!(matches!(ended.code(), Some(0 | 18 | 28 | 56 | 61)), "{project}: {ended}");
            assert!(router.peak_kib() < 80 << 10, "{project}: {} KiB", router.peak_kib());
            router.get("/pypi/simple/hearsay-beta/").expect(200);
        }
    });
}

#[test]
fn without_an_uplink_the_last_index_and_files_by_digest_are_served() {
    single("without_an_uplink_the_last_index_and_files_by_digest_are_served", || {
        let mut router = Single::start();
        let link = router.link("hearsay-alpha");
        let wheel = router.get(&link).expect(200).body;
        let index = "/apt/deb.debian.org/debian/dists/stable/Release";
        let release = router.get(index).expect(200).body;
        router.hearsay.wait_until_durable();
        let asked = router.registries.sent().len();
        let anew =
            |router: &Single, path: &str| router.curl(path).field("Cache-Control: max-age=0").run();
        assert_eq!(anew(&router, &link).expect_hit().body, wheel);
        assert_eq!(router.registries.sent().len(), asked, "a file by its digest was asked for");
        assert_eq!(anew(&router, index).expect(200).body, release);
        let last = router.registries.sent().pop().expect("the index is revalidated");
        assert_eq!((last.status, last.path.as_str()), (304, "/debian/dists/stable/Release"));

        router.registries.kill();
        sh("ip -n origin link set eth0 down");
        let reply = anew(&router, index).expect(200);
        assert_eq!(reply.body, release);
        assert!(reply.cache_status().contains("stale"), "not marked: {reply:?}");
        assert_eq!(anew(&router, &link).expect_hit().body, wheel);
        refused(&router.get("/pypi/simple/unknown/"), 502, "");
    });
}

#[test]
fn a_path_like_an_archives_promises_nothing_on_another_host() {
    single("a_path_like_an_archives_promises_nothing_on_another_host", || {
        let router = Single::start();
        let path = "/apt/faulty.test/pool/main/x.deb";
        router.get(path).expect(200);
        router.hearsay.wait_until_durable();
        router.curl(path).field("Cache-Control: max-age=0").run().expect(200);
        assert_eq!(router.registries.count("faulty.test", "/pool/main/x.deb"), 2);
    });
}

#[test]
fn what_credentials_bring_is_for_their_owner() {
    single("what_credentials_bring_is_for_their_owner", || {
        let router = Single::start();
        let (path, host) = ("/files/faulty.test/changing", "faulty.test");
        router.curl(path).field("Authorization: Basic c2VjcmV0OnNlY3JldA==").run().expect(200);
        router.hearsay.wait_until_durable();
        let reply = router.get(path).expect(200);
        assert!(!reply.is_hit(), "{reply:?}");
        assert_eq!(router.registries.count(host, "/changing"), 2);
    });
}

#[test]
fn the_host_that_one_client_writes_is_in_no_others_index() {
    single("the_host_that_one_client_writes_is_in_no_others_index", || {
        let router = Single::start();
        let path = "/pypi/simple/hearsay-alpha/";
        for _ in 0..2 {
            let lied_to = router.curl(path).field("Host: evil.test:99").run().expect(200);
            assert!(lied_to.text().contains("\"http://evil.test:99/pypi/"), "{lied_to:?}");
            router.hearsay.wait_until_durable();
            let other = router.get(path).expect(200);
            assert!(other.is_hit(), "{other:?}");
            let links = format!("\"{MIRROR}/pypi/");
            assert!(other.text().contains(&links) && !other.text().contains("evil"), "{other:?}");
        }
    });
}

#[test]
#[ignore = "rewrites 200 MB; scripts/test --long runs it"]
fn an_index_of_200_mb_comes_whole() {
    single("an_index_of_200_mb_comes_whole", || {
        let router = Single::start();
        let mut curl = CLIENT.command("curl");
        curl.args(["-qsS", "-o", "/dev/null", "-w", "%{size_download}"]);
        curl.arg("http://10.1.0.1:3142/pypi/simple/huge/").stdin(Stdio::null());
        let output = curl.output().expect("curl starts");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}{}", router.hearsay.log());
        let bytes: u64 = String::from_utf8_lossy(&output.stdout).parse().expect("a number");
        assert!(bytes > 200 << 20, "{bytes}");
        assert!(router.peak_kib() < 80 << 10, "{} KiB", router.peak_kib());
    });
}
