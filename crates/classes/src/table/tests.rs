//! What the tables say, and how errors in them are told.

use super::*;

const HEX: &str = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";

fn url(text: &str) -> Url<'_> {
    let (tls, rest) = match text.strip_prefix("https://") {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix("http://").unwrap()),
    };
    let at = rest.find('/').unwrap();
    Url { tls, host: &rest[..at], port: if tls { 443 } else { 80 }, path: &rest[at..] }
}

fn verdict(text: &str) -> (String, Verdict) {
    let classes = Classes::builtin();
    let verdict = classes.judge(url(text));
    (classes.name(verdict.class).to_owned(), verdict)
}

/// The class of a URL whose content never changes.
fn immutable(text: &str) -> Option<String> {
    let (name, verdict) = verdict(text);
    matches!(verdict.kind, Kind::Immutable { .. }).then_some(name)
}

/// The class of a URL whose content changes.
fn changing(text: &str) -> Option<String> {
    let (name, verdict) = verdict(text);
    matches!(verdict.kind, Kind::Changing { .. }).then_some(name)
}

fn problem(text: &str) -> String {
    Classes::default().with("x.toml", text).unwrap_err().to_string()
}

#[test]
fn every_table_of_the_program_is_read() {
    let mut classes = Classes::default();
    for (name, text) in builtin::TABLES {
        classes = classes.with(name, text).unwrap();
        assert!(classes.find(name.strip_suffix(".toml").unwrap()).is_some(), "{name}");
    }
    assert_eq!(classes.names().count(), 1 + builtin::TABLES.len());
}

#[test]
fn files_of_each_ecosystem_never_change() {
    for (class, url) in [
        ("apt", "http://deb.debian.org/debian/pool/main/h/hello/hello_2.10-3_amd64.deb"),
        ("apt", "http://archive.ubuntu.com/ubuntu/pool/main/h/hello/hello_2.10.orig.tar.gz"),
        (
            "apt",
            "https://download.docker.com/linux/debian/dists/trixie/pool/stable/amd64/x_1_amd64.deb",
        ),
        (
            "pypi",
            "https://files.pythonhosted.org/packages/aa/bb/cc/six-1.16.0-py2.py3-none-any.whl",
        ),
        ("npm", "https://registry.npmjs.org/left-pad/-/left-pad-1.3.0.tgz"),
        ("npm", "https://registry.npmjs.org/@types/node/-/node-20.0.0.tgz"),
        ("cargo", "https://static.crates.io/crates/serde/serde-1.0.0.crate"),
        ("go", "https://proxy.golang.org/golang.org/x/text/@v/v0.3.0.zip"),
        (
            "go",
            "https://proxy.golang.org/github.com/!burnt!sushi/toml/@v/v1.0.0-20210101000000-abcdefabcdef.mod",
        ),
        ("go", "https://sum.golang.org/tile/8/0/x001/234"),
        ("maven", "https://repo.maven.apache.org/maven2/junit/junit/4.13.2/junit-4.13.2.jar"),
        (
            "openwrt",
            "http://downloads.openwrt.org/releases/23.05.3/packages/x86_64/base/a_1_x86_64.ipk",
        ),
        ("alpine", "https://dl-cdn.alpinelinux.org/alpine/v3.20/main/x86_64/curl-8.9.0-r0.apk"),
        ("updates", "http://cdn.kernel.org/pub/linux/kernel/v6.x/linux-6.1.tar.xz"),
        ("updates", "http://releases.ubuntu.com/24.04/ubuntu-24.04.1-desktop-amd64.iso"),
    ] {
        assert_eq!(immutable(url).as_deref(), Some(class), "{url}");
    }
}

#[test]
fn indexes_change() {
    for (class, url) in [
        ("apt", "http://deb.debian.org/debian/dists/bookworm/InRelease"),
        (
            "apt",
            "http://security.debian.org/debian-security/dists/bookworm-security/main/i18n/Translation-en.xz",
        ),
        ("pypi", "https://pypi.org/simple/requests/"),
        ("npm", "https://registry.npmjs.org/left-pad"),
        ("npm", "https://registry.npmjs.org/@types%2fnode"),
        ("cargo", "https://index.crates.io/se/rd/serde"),
        ("cargo", "https://index.crates.io/3/s/syn"),
        ("cargo", "https://index.crates.io/config.json"),
        ("go", "https://proxy.golang.org/golang.org/x/text/@v/list"),
        ("go", "https://proxy.golang.org/golang.org/x/text/@v/master.info"),
        ("maven", "https://repo.maven.apache.org/maven2/junit/junit/maven-metadata.xml"),
        ("maven", "https://repo1.maven.org/maven2/a/b/1-SNAPSHOT/b-1-20240101.000000-1.jar"),
        ("oci", "https://ghcr.io/v2/a/b/manifests/latest"),
        ("openwrt", "https://downloads.openwrt.org/snapshots/packages/x86_64/base/a_1_x86_64.ipk"),
        ("alpine", "https://dl-cdn.alpinelinux.org/alpine/v3.20/main/x86_64/APKINDEX.tar.gz"),
    ] {
        assert_eq!(changing(url).as_deref(), Some(class), "{url}");
    }
}

#[test]
fn what_no_rule_has_is_undecided() {
    for url in [
        "http://example.org/debian/pool/main/h/hello/hello_2.10-3_amd64.deb",
        "http://deb.debian.org/debian/pool/main/h/hello/",
        "http://deb.debian.org/debian/pool/main/../x/hello_2.10-3_amd64.deb",
        "http://deb.debian.org/debian/pool%2fmain/hello_2.10-3_amd64.deb",
        "http://deb.debian.org/debian/pool/main//hello_2.10-3_amd64.deb",
        "http://deb.debian.org/debian/pool/main/hello_2.10-3_amd64.deb?x=1",
        "http://ctldl.windowsupdate.com/msdownload/update/v3/static/trustedr/en/authrootstl.cab",
        "https://registry-1.docker.io/token",
    ] {
        assert_eq!(verdict(url).1.kind, Kind::Undecided, "{url}");
    }
    let classes = Classes::builtin();
    let odd = Url { port: 8080, ..url("http://deb.debian.org/debian/pool/main/a_1.deb") };
    assert_eq!(classes.judge(odd), Verdict::default());
}

#[test]
fn a_host_of_a_class_counts_as_it_whatever_the_path() {
    assert_eq!(verdict("http://deb.debian.org/robots.txt").0, "apt");
    assert_eq!(verdict("http://example.org/robots.txt").0, "other");
}

#[test]
fn a_digest_in_a_path_is_read() {
    let expected = Some(Digest::from_hex(HEX).unwrap());
    for url in [
        format!("https://registry-1.docker.io/v2/library/alpine/blobs/sha256:{HEX}"),
        format!("https://quay.io/v2/a/b/c/manifests/sha256:{HEX}"),
        format!("http://deb.debian.org/debian/dists/sid/main/binary-amd64/by-hash/SHA256/{HEX}"),
    ] {
        assert_eq!(verdict(&url).1.kind, Kind::Immutable { digest: expected }, "{url}");
    }
    // Only where the table says so.
    let text = "name = \"a\"\nhosts = [\"a.test\"]\n[[immutable]]\npaths = [\"/*\"]";
    let classes = Classes::default().with("x.toml", text).unwrap();
    let named = format!("http://a.test/{HEX}");
    assert_eq!(classes.judge(url(&named)).kind, Kind::Immutable { digest: None });
    let md5 = "http://deb.debian.org/debian/dists/sid/main/by-hash/MD5Sum/d41d8cd98f00b204e9800998ecf8427e";
    assert_eq!(verdict(md5).1.kind, Kind::Immutable { digest: None });
}

#[test]
fn indexes_say_their_form_and_updates_are_always_kept() {
    let index = |url: &str| verdict(url).1.index;
    let apt = "http://deb.debian.org/debian/dists/sid";
    assert_eq!(index(&format!("{apt}/InRelease")), Some(IndexFormat::AptRelease));
    let packages = format!("{apt}/main/binary-amd64/Packages.xz");
    assert_eq!(index(&packages), Some(IndexFormat::AptPackages));
    let by_hash = format!("{apt}/main/binary-amd64/by-hash/SHA256/{HEX}");
    assert_eq!(index(&by_hash), Some(IndexFormat::AptPackages));
    assert_eq!(index(&by_hash.replace("binary-amd64", "i18n")), None);
    let opkg = "http://downloads.openwrt.org/releases/23.05.3/packages/x86_64/base/Packages.gz";
    assert_eq!(index(opkg), Some(IndexFormat::OpenwrtPackages));
    let steam = "http://cache1.steamcontent.com/depot/228981/chunk/0a";
    assert_eq!(verdict(steam).1.keep, Keep::Always);
}

#[test]
fn a_class_tells_its_hosts_and_paths() {
    let classes = Classes::builtin();
    let cargo = classes.find("cargo").unwrap();
    let hosts: Vec<_> = classes.hosts(cargo).map(ToString::to_string).collect();
    assert!(hosts.contains(&"static.crates.io".to_owned()), "{hosts:?}");
    assert!(classes.paths(cargo, false).any(|it| it == "/crates/*/*.crate"));
    assert!(classes.paths(cargo, true).any(|it| it == "/config.json"));
    assert!(classes.paths(cargo, true).all(|it| !it.ends_with(".crate")));
}

#[test]
fn an_index_proves_an_archive_below_its_root_alone() {
    let classes = Classes::builtin();
    let mut proven = Proven::default();
    let package = url("http://mirror.test/a/debian/pool/main/h/hello_1_all.deb");
    assert_eq!(classes.judge_proven(&proven, package), Verdict::default());
    proven.learn(classes.proves(url("http://mirror.test/a/debian/dists/sid/InRelease")).unwrap());
    let verdict = classes.judge_proven(&proven, package);
    assert_eq!(classes.name(verdict.class), "apt");
    assert_eq!(verdict.kind, Kind::Immutable { digest: None });
    for other in [
        "http://mirror.test/b/pool/main/h/hello_1_all.deb",
        "https://mirror.test/a/debian/pool/main/h/hello_1_all.deb",
        "http://mirror.test/a/debian2/pool/main/h/hello_1_all.deb",
    ] {
        assert_eq!(classes.judge_proven(&proven, url(other)), Verdict::default(), "{other}");
    }
}

#[test]
fn other_paths_prove_nothing() {
    let classes = Classes::builtin();
    for other in [
        "http://mirror.test/debian/pool/InRelease",
        "http://mirror.test/dists/../dists/sid/InRelease",
        "http://mirror.test/dists/sid/InRelease?x",
        "http://mirror.test/Packages.gz",
    ] {
        assert_eq!(classes.proves(url(other)), None, "{other}");
    }
    // A root has 256 bytes at most.
    let proves = |length: usize| {
        let root = "a".repeat(length - "/".len());
        classes.proves(url(&format!("http://mirror.test/{root}/dists/sid/InRelease"))).is_some()
    };
    assert!(proves(256) && !proves(257));
}

#[test]
fn only_listed_hosts_may_be_reached() {
    let classes = Classes::builtin();
    assert!(classes.may_reach(true, "files.pythonhosted.org", 443));
    assert!(classes.may_reach(true, "pkg-containers.githubusercontent.com", 443));
    assert!(!classes.may_reach(true, "files.pythonhosted.org", 8443));
    assert!(!classes.may_reach(false, "files.pythonhosted.org", 80));
    assert!(!classes.may_reach(true, "169.254.169.254", 443));
    assert!(classes.may_reach(false, "archive.ubuntu.com", 80));
}

#[test]
fn a_table_of_the_same_name_extends() {
    let text = "name = \"npm\"\nhosts = [\"npm.example:8443\"]\n[mirror]\nupstream = \"https://npm.example:8443/r/\"\n\
                [[changing]]\npaths = [\"/*\"]\nlifetime = \"1h\"\nstale = \"2d\"\nkeep = \"4KiB\"";
    let classes = Classes::builtin().with("mine.toml", text).unwrap();
    assert_eq!(classes.names().count(), Classes::builtin().names().count());
    let url = Url { port: 8443, ..url("https://npm.example/left-pad") };
    let verdict = classes.judge(url);
    assert_eq!(classes.name(verdict.class), "npm");
    assert_eq!(verdict.kind, Kind::Changing { lifetime: 3600, stale: 172_800 });
    assert_eq!(verdict.keep, Keep::UpTo(4096));
    let upstream = classes.upstream("npm").unwrap();
    assert_eq!((&*upstream.host, upstream.port, &*upstream.root), ("npm.example", 8443, "/r"));
}

#[test]
fn a_table_says_which_responses_depend_on_accept() {
    let negotiated = |url: &str| Classes::builtin().judge(self::url(url)).negotiated;
    assert!(negotiated("https://registry-1.docker.io/v2/library/alpine/manifests/3"));
    assert!(negotiated("https://registry.npmjs.org/left-pad"));
    assert!(negotiated("https://pypi.org/simple/six/"));
    assert!(!negotiated("https://registry.npmjs.org/left-pad/-/left-pad-1.0.0.tgz"));
    assert!(!negotiated("http://deb.debian.org/debian/dists/sid/InRelease"));
}

#[test]
fn a_table_says_which_files_belong_together() {
    let companions = |class, path| {
        let classes = Classes::builtin();
        classes.companions(classes.find(class).unwrap(), path)
    };
    assert_eq!(companions("openwrt", "/a/b/Packages.gz"), ["/a/b/Packages", "/a/b/Packages.sig"]);
    assert_eq!(companions("apt", "/debian/dists/sid/Release.gpg"), ["/debian/dists/sid/Release"]);
    assert_eq!(companions("maven", "/maven2/a/maven-metadata.xml.sha1").len(), 4);
    for path in ["/a/b/other", "/a/b/Packages.gz?x", "/Packages.gz/", "/a/../Packages.gz"] {
        assert!(companions("openwrt", path).is_empty(), "{path}");
    }
    let text = "name = \"a\"\ncompanions = [[\"x\", \"a/b\"]]";
    assert_eq!(problem(text), "x.toml:2: `a/b`: expected the name of a file, such as Packages.sig");
}

#[test]
fn a_table_says_which_wishes_count() {
    let heeds = |url: &str| Classes::builtin().judge(self::url(url)).heeds;
    assert_eq!(heeds("https://repo.maven.apache.org/maven2/a/b/1/b-1.jar"), Heeds::Nothing);
    assert_eq!(heeds("https://repo.maven.apache.org/maven2/a/b/maven-metadata.xml"), Heeds::All);
    assert_eq!(heeds("https://pypi.org/simple/requests/"), Heeds::NoCache);
    assert_eq!(
        heeds("http://deb.debian.org/debian/pool/main/h/hello/hello_1_amd64.deb"),
        Heeds::All
    );
    assert_eq!(
        heeds("http://downloads.openwrt.org/releases/23.05/packages/x86_64/base/a_1.ipk"),
        Heeds::All
    );
    assert_eq!(
        heeds("http://downloads.openwrt.org/releases/23.05/targets/x/64/openwrt.img.gz"),
        Heeds::Nothing
    );
    let text = "name = \"a\"\n[[immutable]]\npaths = []\nheeds = \"no-store\"";
    assert_eq!(
        problem(text),
        "x.toml:4: `no-store`: expected \"all\", \"no-cache\" or \"nothing\""
    );
}

#[test]
fn problems_name_file_line_and_what_to_do() {
    let rule = "name = \"a\"\n[[changing]]\npaths = []\nlifetime = \"1d\"\nstale = ";
    for (text, expected) in [
        ("name = \"a\"\nhost = []".into(), "x.toml:2: unknown key `host`: did you mean `hosts`?"),
        (
            "name = \"a\"\n[[immutable]]\npaths = []\nlifetime = \"1d\"".into(),
            "x.toml:4: unknown key `lifetime` in [immutable]: known here: paths, except, query, digest, index, keep, heeds",
        ),
        (
            "name = \"a\"\n[mirror]\nupsteam = \"\"".into(),
            "x.toml:3: unknown key `upsteam` in [mirror]: did you mean `upstream`?",
        ),
        (format!("{rule}\"1w\""), "x.toml:5: `1w`: expected a time such as 30s, 5m, 12h or 30d"),
        (
            "name = \"a\"\nhosts = [\n\"*.com\"]".into(),
            "x.toml:3: `*.com`: expected a host in lower case, such as pypi.org, *.ubuntu.com or 192.0.2.1:8443",
        ),
        (
            "name = \"a\"\nproof = [\"/x\"]".into(),
            "x.toml:2: `/x`: expected a path such as **/dists/**/InRelease, with a name after **/",
        ),
        (
            "name = \"other\"".into(),
            "x.toml:1: `other`: expected a name of lower-case letters, digits and hyphens, not `other`",
        ),
        (
            "name = \"a\"\n[mirror]\nupstream = \"http://a.b\"".into(),
            "x.toml:3: `http://a.b`: expected an address such as https://pypi.example:8443",
        ),
    ] {
        assert_eq!(problem(&text), expected);
    }
    assert!(problem("name = 1").starts_with("x.toml:1: invalid type"));
    assert!(problem("\n\nname = [").starts_with("x.toml:3: "));
    assert!(problem("hosts = []").contains("missing field `name`"));
}

#[test]
fn a_misspelt_key_is_near_if_a_third_of_its_letters_is_wrong() {
    let told = |key: &str| problem(&format!("name = \"a\"\n{key} = 1"));
    assert!(told("mixxor").ends_with("did you mean `mirror`?"));
    assert!(told("hxxts").contains(": known here: name, hosts, proof"));
}

#[test]
fn names_of_classes_are_short_tokens() {
    let is_read =
        |name: &str| Classes::default().with("x.toml", &format!("name = \"{name}\"")).is_ok();
    assert!(is_read("a") && is_read("7-zip") && is_read(&"a".repeat(32)));
    for name in ["", "A", "a_b", "a b", "ä", &"a".repeat(33)] {
        assert!(!is_read(name), "{name}");
    }
}

#[test]
fn times_and_sizes_have_units() {
    let rule = |line: &str| {
        let text = format!(
            "name = \"a\"\nhosts = [\"a.test\"]\n[[changing]]\npaths = [\"/*\"]\nlifetime = {line}"
        );
        Classes::default().with("x.toml", &text).map(|it| it.judge(url("https://a.test/b")))
    };
    for (text, seconds) in [
        ("0s", 0),
        ("5s", 5),
        ("2m", 120),
        ("3h", 10_800),
        ("2d", 172_800),
        ("49710d", 4_294_944_000),
    ] {
        let kind = rule(&format!("\"{text}\"\nstale = \"{text}\"")).unwrap().kind;
        assert_eq!(kind, Kind::Changing { lifetime: seconds, stale: seconds });
    }
    for text in ["", "5", "s", "1w", "-1s", "1.5h", "49711d", "99999999999999999999s"] {
        assert!(rule(&format!("\"{text}\"\nstale = \"1s\"")).is_err(), "{text}");
    }
    for (text, keep) in [
        ("never", Keep::Never),
        ("always", Keep::Always),
        ("7", Keep::UpTo(7)),
        ("3KiB", Keep::UpTo(3072)),
        ("16MiB", Keep::UpTo(16_777_216)),
        ("2GiB", Keep::UpTo(2_147_483_648)),
    ] {
        let text = format!("\"1s\"\nstale = \"1s\"\nkeep = \"{text}\"");
        assert_eq!(rule(&text).unwrap().keep, keep);
    }
    for text in ["", "KiB", "1KB", "1 KiB", "17179869184GiB"] {
        let text = format!("\"1s\"\nstale = \"1s\"\nkeep = \"{text}\"");
        assert!(rule(&text).is_err(), "{text}");
    }
}

#[test]
fn an_upstream_is_a_host_by_tls_with_a_clean_root() {
    let upstream = |address: &str| {
        let text = format!("name = \"a\"\n[mirror]\nupstream = \"{address}\"");
        let classes = Classes::default().with("x.toml", &text).ok()?;
        let Upstream { host, port, root } = classes.upstream("a").unwrap();
        Some((host.to_string(), *port, root.to_string()))
    };
    let of = |host: &str, port, root: &str| Some((host.to_owned(), port, root.to_owned()));
    assert_eq!(upstream("https://a.test"), of("a.test", 443, ""));
    assert_eq!(upstream("https://a.test:8443/"), of("a.test", 8443, ""));
    assert_eq!(upstream("https://a.test/b/c/"), of("a.test", 443, "/b/c"));
    for address in [
        "http://a.test",
        "https://",
        "https://*.a.test",
        "https://A.test",
        "https://a.test:0",
        "https://a.test/b?c",
        "https://a.test/../b",
        "https://a.test//b",
    ] {
        assert_eq!(upstream(address), None, "{address}");
    }
}

#[test]
fn a_class_has_256_hosts_and_256_patterns_in_all_its_lists() {
    let list = |count: usize, item: &str| {
        let items: Vec<_> =
            (0..count).map(|it| format!("\"{}\"", item.replace('#', &it.to_string()))).collect();
        format!("[{}]", items.join(","))
    };
    let hosts = |count| {
        let (hosts, one) = (list(count, "h#.test"), list(1, "x#.test"));
        format!("name = \"a\"\nhosts = {hosts}\nredirects = {one}\n[mirror]\nplain = {one}")
    };
    let paths = |count| {
        let (paths, except, proof) = (list(count, "/#"), list(1, "/x#"), list(1, "**/y#"));
        format!("name = \"a\"\nproof = {proof}\n[[immutable]]\npaths = {paths}\nexcept = {except}")
    };
    for text in [hosts(254), paths(254)] {
        assert!(Classes::default().with("x.toml", &text).is_ok());
    }
    for text in [hosts(255), paths(255)] {
        assert_eq!(problem(&text), "x.toml:1: class `a` has more than 256 hosts, or patterns");
    }
    // One more by another table of this name.
    let classes = Classes::default().with("x.toml", &hosts(254)).unwrap();
    let more = classes.with("y.toml", "name = \"a\"\nhosts = [\"y.test\"]").unwrap_err();
    assert_eq!(more.to_string(), "y.toml: class `a` has more than 256 hosts, or patterns");
}

#[test]
fn tables_have_limits() {
    let hosts: Vec<_> = (0..257).map(|it| format!("\"h{it}.test\"")).collect();
    let many = problem(&format!("name = \"a\"\nhosts = [{}]", hosts.join(",")));
    assert_eq!(many, "x.toml:1: class `a` has more than 256 hosts, or patterns");
    assert_eq!(problem(&" ".repeat(65_537)), "x.toml: longer than 64 KiB");
    assert!(problem(&" ".repeat(65_536)).contains("missing field `name`"));
    let mut classes = Classes::default();
    for number in 0..Classes::MAX {
        classes = classes.with("x.toml", &format!("name = \"c{number}\"")).unwrap();
    }
    let problem = classes.with("x.toml", "name = \"more\"").unwrap_err();
    assert_eq!(problem.to_string(), "x.toml: more than 64 classes");
}
