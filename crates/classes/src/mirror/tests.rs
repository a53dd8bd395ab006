//! What paths stand for, and what is refused.

use super::*;
use crate::host::split_port;
use crate::{Classes, Url, Verdict};

const HEX: &str = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";

fn reach() -> Reach {
    let test = "name = \"oci\"\nhosts = [\"127.0.0.1:5000\"]";
    let classes = Classes::builtin().with("test.toml", test).unwrap();
    let allow = ["files.example.org"].map(|it| it.parse().unwrap());
    Reach { classes: classes.into(), allow: allow.into() }
}

fn mapped(path: &str) -> Upstreamed {
    match map(&reach(), "GET", path) {
        Ok(Mapped::Upstream(it)) => it,
        other => panic!("{path}: {other:?}"),
    }
}

fn refused(method: &str, path: &str) -> Refusal {
    map(&reach(), method, path).expect_err(path)
}

/// What the tables say of a URL.
fn judged(url: &str) -> Verdict {
    let (scheme, rest) = url.split_once("://").unwrap();
    let (authority, path) = rest.split_at(rest.find('/').unwrap());
    let tls = scheme == "https";
    let (host, port) = split_port(authority).unwrap();
    let port = port.unwrap_or(if tls { 443 } else { 80 });
    reach().classes.judge(Url { tls, host, port, path })
}

fn class(url: &str) -> String {
    reach().classes.name(judged(url).class).to_owned()
}

#[test]
fn each_path_has_its_upstream_and_class() {
    let paths = [
        (
            "/apt/deb.debian.org/debian/dists/sid/InRelease",
            "https://deb.debian.org/debian/dists/sid/InRelease",
            "apt",
        ),
        (
            "/apt/archive.ubuntu.com/ubuntu/dists/noble/InRelease",
            "http://archive.ubuntu.com/ubuntu/dists/noble/InRelease",
            "apt",
        ),
        ("/pypi/simple/requests/", "https://pypi.org/simple/requests/", "pypi"),
        ("/npm/@types%2fnode", "https://registry.npmjs.org/@types%2fnode", "npm"),
        (
            "/npm/left-pad/-/left-pad-1.3.0.tgz",
            "https://registry.npmjs.org/left-pad/-/left-pad-1.3.0.tgz",
            "npm",
        ),
        ("/npm/-/v1/search?text=x", "https://registry.npmjs.org/-/v1/search?text=x", "npm"),
        ("/cargo/se/rd/serde", "https://index.crates.io/se/rd/serde", "cargo"),
        (
            "/go/golang.org/x/text/@v/list",
            "https://proxy.golang.org/golang.org/x/text/@v/list",
            "go",
        ),
        (
            "/go/sumdb/sum.golang.org/lookup/a.b/c@v1.0.0",
            "https://sum.golang.org/lookup/a.b/c@v1.0.0",
            "go",
        ),
        (
            "/maven/junit/junit/4.13.2/junit-4.13.2.pom",
            "https://repo.maven.apache.org/maven2/junit/junit/4.13.2/junit-4.13.2.pom",
            "maven",
        ),
        ("/maven/plugins.gradle.org/m2/a/b.pom", "https://plugins.gradle.org/m2/a/b.pom", "maven"),
        (
            "/openwrt/releases/23.05.3/a/Packages.gz",
            "https://downloads.openwrt.org/releases/23.05.3/a/Packages.gz",
            "openwrt",
        ),
        (
            "/alpine/v3.20/main/x86_64/APKINDEX.tar.gz",
            "https://dl-cdn.alpinelinux.org/alpine/v3.20/main/x86_64/APKINDEX.tar.gz",
            "alpine",
        ),
        ("/files/files.example.org/a?b=c", "https://files.example.org/a?b=c", "other"),
        ("/files/PyPI.org:443/simple/x/", "https://pypi.org/simple/x/", "pypi"),
    ];
    for (path, url, class) in paths {
        let mapped = mapped(path);
        assert_eq!((&*mapped.url, &*self::class(&mapped.url)), (url, class), "{path}");
    }
}

#[test]
fn registries_are_named_by_query_or_by_the_names_first_part() {
    for (path, url) in [
        (
            "/v2/alpine/manifests/latest",
            "https://registry-1.docker.io/v2/library/alpine/manifests/latest",
        ),
        (
            "/v2/library/alpine/manifests/latest?ns=docker.io",
            "https://registry-1.docker.io/v2/library/alpine/manifests/latest",
        ),
        ("/v2/docker.io/a/b/tags/list?n=5", "https://registry-1.docker.io/v2/a/b/tags/list?n=5"),
        (
            "/v2/alpine/tags/list?ns=&&n=5",
            "https://registry-1.docker.io/v2/library/alpine/tags/list?n=5",
        ),
        (
            "/v2/index.docker.io/alpine/blobs/x",
            "https://registry-1.docker.io/v2/library/alpine/blobs/x",
        ),
        ("/v2/me/tags/manifests/1", "https://registry-1.docker.io/v2/me/tags/manifests/1"),
        ("/v2/me/blobs/tags/list", "https://registry-1.docker.io/v2/me/blobs/tags/list"),
        // Docker's registry alone has a library.
        ("/v2/alpine/manifests/1?ns=ghcr.io", "https://ghcr.io/v2/alpine/manifests/1"),
        ("/v2/127.0.0.1:5000/alpine/manifests/1", "https://127.0.0.1:5000/v2/alpine/manifests/1"),
        ("/v2/a/b/manifests/1?ns=ghcr.io", "https://ghcr.io/v2/a/b/manifests/1"),
        ("/v2/quay.io/a/b/manifests/1", "https://quay.io/v2/a/b/manifests/1"),
        (
            "/v2/a/manifests/1?x=1&ns=127.0.0.1%3A5000&y=2",
            "https://127.0.0.1:5000/v2/a/manifests/1?x=1&y=2",
        ),
    ] {
        assert_eq!(mapped(path).url, url, "{path}");
    }
    let ping = map(&reach(), "GET", "/v2/").unwrap();
    assert_eq!(ping, Mapped::Own(Own { content_type: "application/json", body: "{}" }));
    assert_eq!(refused("GET", "/v2/a/manifests/1?ns=evil.test").status, 403);
    assert_eq!(refused("GET", "/v2/a/blobs/uploads/").status, 403);
}

#[test]
fn digests_in_paths_are_expected() {
    let digest = Some(Digest::from_hex(HEX).unwrap());
    for (path, url) in [
        (
            format!("/pypi/-/{HEX}/files.pythonhosted.org/packages/a/b.whl"),
            "https://files.pythonhosted.org/packages/a/b.whl".to_owned(),
        ),
        (
            format!("/npm/-/{HEX}/registry.npmjs.org/a/-/a-1.0.0.tgz"),
            "https://registry.npmjs.org/a/-/a-1.0.0.tgz".to_owned(),
        ),
        (
            format!("/cargo/-/{HEX}/serde/1.0.0"),
            "https://static.crates.io/crates/serde/serde-1.0.0.crate".to_owned(),
        ),
        (
            format!("/v2/a/b/blobs/sha256:{HEX}"),
            format!("https://registry-1.docker.io/v2/a/b/blobs/sha256:{HEX}"),
        ),
        (
            format!("/apt/deb.debian.org/debian/dists/sid/by-hash/SHA256/{HEX}"),
            format!("https://deb.debian.org/debian/dists/sid/by-hash/SHA256/{HEX}"),
        ),
    ] {
        let mapped = mapped(&path);
        let known = mapped.digest.or(judged(&mapped.url).digest());
        assert_eq!((mapped.url, known), (url, digest), "{path}");
    }
    for end in ["metadata", "asc"] {
        let beside = format!("/pypi/-/{HEX}/files.pythonhosted.org/packages/a/b.whl.{end}");
        assert_eq!(mapped(&beside).digest, None, "{end}");
    }
}

#[test]
fn only_indexes_are_rewritten() {
    let rewrite = |path| mapped(path).rewrite;
    assert_eq!(rewrite("/pypi/simple/"), Some(Rewrite::Pypi));
    assert_eq!(rewrite("/pypi/simple/requests/"), Some(Rewrite::Pypi));
    assert_eq!(rewrite("/pypi/simple/requests"), Some(Rewrite::Pypi));
    assert_eq!(rewrite("/pypi/simple/requests/?format=json"), Some(Rewrite::Pypi));
    assert_eq!(rewrite("/pypi/simple/requests/a.whl"), None);
    assert_eq!(rewrite("/pypi/pypi/requests/json"), None);
    assert_eq!(rewrite("/npm/left-pad"), Some(Rewrite::Npm));
    assert_eq!(rewrite("/npm/@types%2fnode"), Some(Rewrite::Npm));
    assert_eq!(rewrite("/npm/left-pad/1.3.0"), Some(Rewrite::Npm));
    assert_eq!(rewrite("/npm/left-pad/-/left-pad-1.3.0.tgz"), None);
    assert_eq!(rewrite("/npm/-/v1/search"), None);
    assert_eq!(rewrite("/cargo/config.json"), Some(Rewrite::Cargo));
    assert_eq!(rewrite("/cargo/se/rd/serde"), None);
}

#[test]
fn a_database_of_sums_is_said_to_be_supported() {
    let supported = map(&reach(), "GET", "/go/sumdb/sum.golang.org/supported").unwrap();
    assert_eq!(supported, Mapped::Own(Own { content_type: "text/plain", body: "" }));
    assert_eq!(refused("GET", "/go/sumdb/evil.test/supported").status, 403);
}

#[test]
fn unknown_hosts_are_told_the_line_to_add() {
    for path in ["/apt/evil.test/debian/x", "/files/10.0.0.1/x", "/maven/evil.test/x"] {
        assert_eq!(refused("GET", path).status, 403, "{path}");
    }
    let text = refused("GET", "/files/evil.test:8443/x").text;
    assert!(text.contains("`[mirror] allow = [\"evil.test:8443\"]`"), "{text}");
}

#[test]
fn unclear_paths_are_refused() {
    for path in [
        "/pypi/../etc/passwd",
        "/pypi/simple/%2e%2e/x",
        "/apt/deb.debian.org//x",
        "/apt//x",
        "/files/a%2f..%2fb/x",
        "/npm/a b",
        "",
    ] {
        assert_eq!(refused("GET", path).status, 400, "{path}");
    }
    for path in ["/", "/x", "/x/y", "/apt/deb.debian.org", "/cargo/-/x/y/z", "/pypi/-/x"] {
        assert_eq!(refused("GET", path).status, 404, "{path}");
    }
}

#[test]
fn uploads_and_logins_are_refused() {
    for method in ["PUT", "POST", "PATCH", "DELETE", "CONNECT", "get"] {
        assert_eq!(refused(method, "/npm/left-pad").status, 405, "{method}");
    }
    for path in [
        "/npm/-/user/org.couchdb.user:x",
        "/npm/-/whoami",
        "/pypi/legacy/",
        "/cargo/api/v1/crates/new",
        "/cargo/me",
    ] {
        assert_eq!(refused("GET", path).status, 403, "{path}");
    }
    assert_eq!(map(&reach(), "HEAD", "/npm/left-pad"), map(&reach(), "GET", "/npm/left-pad"));
    assert!(map(&reach(), "HEAD", "/npm/left-pad").is_ok());
}

#[test]
fn an_upstream_can_be_another_one() {
    let text = "name = \"pypi\"\n[mirror]\nupstream = \"https://127.0.0.1:8443/root\"";
    let classes = Classes::builtin().with("test.toml", text).unwrap();
    let reach = Reach { classes: classes.into(), ..Reach::default() };
    let Ok(Mapped::Upstream(mapped)) = map(&reach, "GET", "/pypi/simple/x/") else { panic!() };
    assert_eq!(mapped.url, "https://127.0.0.1:8443/root/simple/x/");
    let file = Url { tls: true, host: "127.0.0.1", port: 8443, path: "/packages/x.whl" };
    assert_eq!(reach.classes.name(reach.classes.judge(file).class), "pypi");
}

#[test]
fn each_class_has_its_own_path() {
    for (class, path) in [
        ("apt", "/apt/HOST/"),
        ("pypi", "/pypi/simple/"),
        ("npm", "/npm/"),
        ("cargo", "/cargo/"),
        ("go", "/go/"),
        ("maven", "/maven/"),
        ("oci", "/v2/"),
        ("openwrt", "/openwrt/"),
        ("alpine", "/alpine/"),
        ("updates", "/files/HOST/"),
    ] {
        assert_eq!(entry(class), path);
    }
}

#[test]
fn every_class_has_a_path() {
    let classes = reach().classes;
    for class in classes.names().skip(1) {
        let path = entry(class).replace("HOST", "pypi.org") + "x/y";
        assert!(map(&reach(), "GET", &path).is_ok(), "{path}");
    }
}

#[test]
fn references_of_each_kind_lead_back() {
    for (path, reference, expected) in [
        (
            "/v2/a/b/tags/list?ns=quay.io",
            "/v2/a/b/tags/list?last=x",
            Some("/v2/a/b/tags/list?last=x&ns=quay.io"),
        ),
        (
            "/v2/alpine/tags/list",
            "/v2/library/alpine/tags/list?last=x",
            Some("/v2/library/alpine/tags/list?last=x"),
        ),
        (
            "/apt/deb.debian.org/debian/x",
            "https://deb.debian.org/debian/y",
            Some("/apt/deb.debian.org/debian/y"),
        ),
        ("/maven/maven.google.com/a", "/b", Some("/maven/maven.google.com/b")),
        ("/maven/org/a", "/maven2/org/b", Some("/maven/org/b")),
        ("/maven/org/a", "/elsewhere", None),
        ("/go/sumdb/sum.golang.org/latest", "/tile/x", Some("/go/sumdb/sum.golang.org/tile/x")),
    ] {
        assert_eq!(mapped(path).back.lead(reference).as_deref(), expected, "{path}");
        // What it leads to is what was meant.
        if let Some(expected) = expected {
            let origin = mapped(path).url.split('/').take(3).collect::<Vec<_>>().join("/");
            let meant =
                if reference.starts_with('/') { origin + reference } else { reference.into() };
            assert_eq!(mapped(expected).url, meant, "{path}");
        }
    }
}
