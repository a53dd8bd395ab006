//! What each parser must do with any bytes: for fuzz targets and tests of the corpus.

use wire::Digest;

use crate::{Classes, IndexFormat, IndexReader, Mapped, Promises, Reach, Rewrite, Rewriter, Url};

/// The place in the program's own address where the mirror is said to be.
const BASE: &str = "http://192.0.2.1:3142";

/// A table: it is read, or the first line that is wrong is named. Says whether it was read.
///
/// # Panics
///
/// If a table that was read cannot be read again, as an extension of itself.
pub fn table(bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else { return false };
    let Ok(classes) = Classes::default().with("table.toml", text) else { return false };
    let url = Url { tls: true, host: "a.example.org", port: 443, path: "/a/dists/b/InRelease" };
    let _ = (classes.judge(url), classes.proves(url), classes.may_reach(true, url.host, url.port));
    match classes.with("table.toml", text) {
        Ok(twice) => assert_eq!(twice.names().count(), 2, "an extension is no class of its own"),
        Err(problem) => assert!(problem.text.contains("has more than"), "{problem}"),
    }
    true
}

/// A path of the mirror. Says whether it stands for something.
///
/// # Panics
///
/// If it leads to a host that is not within reach, or anywhere but where the path says.
pub fn mirror(bytes: &[u8]) -> bool {
    let Ok(path) = std::str::from_utf8(bytes) else { return false };
    let reach = reach();
    match crate::map(&reach, "GET", path) {
        Ok(Mapped::Upstream(it)) => {
            let rest = it.url.split_once("://").map(|it| it.1).unwrap_or_default();
            let (host, rest) = rest.split_at(rest.find('/').expect("a URL has a path"));
            assert!(reach.authority(host).is_some(), "{host} is within reach");
            assert!(!rest.contains("//") && !rest.split('/').any(|it| it == ".."), "{rest}");
            true
        }
        Ok(Mapped::Own(_)) => true,
        Err(refusal) => {
            assert!((400..500).contains(&refusal.status) && !refusal.text.is_empty());
            false
        }
    }
}

/// An index whose links are rewritten. The first byte says its form, and where it is divided. Says whether it was
/// changed.
///
/// # Panics
///
/// If the division changes the result, or more is held back than may be.
pub fn rewrite(bytes: &[u8]) -> bool {
    let Some((control, content)) = bytes.split_first() else { return false };
    let (rewrite, url) = match control % 3 {
        0 => (Rewrite::Pypi, "https://pypi.org/simple/x/"),
        1 => (Rewrite::Npm, "https://registry.npmjs.org/x"),
        _ => (Rewrite::Cargo, "https://index.crates.io/config.json"),
    };
    let all = |length: usize| {
        let mut rewriter = Rewriter::new(rewrite, BASE, url, reach());
        let mut out = Vec::new();
        for piece in content.chunks(length.max(1)) {
            rewriter.feed(piece, &mut out);
            assert!(rewriter.capacity() <= 2 * Rewriter::HELD_MAX, "what is held is bounded");
        }
        rewriter.finish(&mut out);
        out
    };
    let out = all(content.len());
    assert!(out == all(usize::from(control / 3)), "pieces change the result");
    out != content
}

/// An index that promises digests, or a `Release` that names an index which does: the one whose digest is
/// `RELEASED`. The first byte says its form, and where it is divided. Says whether anything is promised.
///
/// # Panics
///
/// If the division changes what a plain index promises.
pub fn index(bytes: &[u8]) -> bool {
    let Some((control, content)) = bytes.split_first() else { return false };
    let (format, name) = match control % 5 {
        0 => (IndexFormat::AptRelease, "InRelease"),
        1 => (IndexFormat::AptPackages, "Packages"),
        2 => (IndexFormat::AptPackages, "Packages.gz"),
        3 => (IndexFormat::AptPackages, "Packages.xz"),
        _ => (IndexFormat::OpenwrtPackages, "Packages"),
    };
    let path = format!("/debian/dists/sid/{name}");
    let url = Url { tls: false, host: "deb.debian.org", port: 80, path: &path };
    let count = |length: usize| {
        let mut promises = Promises::default();
        let mut reader = IndexReader::new(format, url).expect("its path has a root");
        if format == IndexFormat::AptRelease {
            promises = released();
        }
        content.chunks(length.max(1)).for_each(|it| reader.feed(it, &mut promises));
        match format {
            IndexFormat::AptRelease => {
                usize::from(promises.get(Url { path: "/debian/a", ..url }).is_some())
            }
            _ => promises.count(),
        }
    };
    let whole = count(content.len());
    let is_plain = !name.contains('.');
    assert!(!is_plain || count(usize::from(control / 5)) == whole, "pieces change the promises");
    whole > 0
}

/// The digest of the index that a `Release` may name.
const RELEASED: &str = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";

/// What is promised by the index [`RELEASED`] of another host: a file `a`.
fn released() -> Promises {
    let mut promises = Promises::default();
    let url = Url { tls: true, host: "deb.test", port: 443, path: "/dists/sid/main/Packages" };
    let reader = IndexReader::new(IndexFormat::AptPackages, url);
    if let (Some(mut reader), Ok(digest)) = (reader, Digest::from_hex(RELEASED)) {
        let entry = format!("Filename: a\nSHA256: {RELEASED}\n\n");
        reader.feed(entry.as_bytes(), &mut promises);
        reader.verified(digest, &mut promises);
    }
    promises
}

fn reach() -> Reach {
    let allow = ["127.0.0.1:8443", "*.example.org"].into_iter().filter_map(|it| it.parse().ok());
    Reach { classes: Classes::builtin().into(), allow: allow.collect() }
}
