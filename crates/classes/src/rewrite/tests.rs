//! Links of each form, in pieces of any size, and within bounded memory.

use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::Classes;

const HEX: &str = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";
const BASE: &str = "http://192.0.2.1:3142";
/// Sixty-four bytes of value 1, in Base64.
const INTEGRITY: &str = "sha512-AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQ==";

fn rewriter(rewrite: Rewrite) -> Rewriter {
    let url = match rewrite {
        Rewrite::Pypi => "https://pypi.org/simple/x/",
        Rewrite::Npm => "https://registry.npmjs.org/x",
        Rewrite::Cargo => "https://index.crates.io/config.json",
    };
    let reach = Reach { classes: Arc::new(Classes::builtin()), ..Reach::default() };
    Rewriter::new(rewrite, BASE, url, reach)
}

fn rewritten(rewrite: Rewrite, pieces: &[&[u8]]) -> String {
    let mut rewriter = rewriter(rewrite);
    let mut out = Vec::new();
    pieces.iter().for_each(|it| rewriter.feed(it, &mut out));
    rewriter.finish(&mut out);
    String::from_utf8(out).unwrap()
}

fn whole(rewrite: Rewrite, text: &str) -> String {
    rewritten(rewrite, &[text.as_bytes()])
}

fn sha512() -> String {
    "01".repeat(64)
}

#[test]
fn html_links_get_the_digest_of_their_fragment() {
    let page = |link: &str| {
        format!(
            "<!DOCTYPE html><html><!-- it's --><a href=\"{link}#sha256={HEX}\" data-dist-info-metadata=\"sha256=00\" \
             data-requires-python=\"&gt;=3\">a.whl</a><br/></html>"
        )
    };
    let text = page("https://files.pythonhosted.org/packages/a.whl");
    let expected = page(&format!("{BASE}/pypi/-/{HEX}/files.pythonhosted.org/packages/a.whl"));
    assert_eq!(whole(Rewrite::Pypi, &text), expected);
}

#[test]
fn html_links_are_written_in_many_ways() {
    let to = |rest: &str| format!("{BASE}/files/files.pythonhosted.org{rest}");
    for (text, expected) in [
        (
            "<A\nclass=x HREF = 'https://files.pythonhosted.org/a'>".to_owned(),
            format!("<A\nclass=x HREF = '{}'>", to("/a")),
        ),
        ("<a href=https://files.pythonhosted.org/a>".into(), format!("<a href={}>", to("/a"))),
        (
            "<a title='>' href=\"//files.pythonhosted.org/a?b&amp;c\">".into(),
            format!("<a title='>' href=\"{}\">", to("/a?b&amp;c")),
        ),
        (
            "<a download / title=\"=x\"href = \"https://files.pythonhosted.org/a\" href=/b>".into(),
            format!("<a download / title=\"=x\"href = \"{}\" href=/b>", to("/a")),
        ),
        (
            "<a title=\"'\" href='//files.pythonhosted.org/a'><a href=//files.pythonhosted.org/b>"
                .into(),
            format!("<a title=\"'\" href='{}'><a href={}>", to("/a"), to("/b")),
        ),
        (
            format!("<a href=https://files.pythonhosted.org/a#sha256={HEX} class=x>"),
            format!("<a href={BASE}/pypi/-/{HEX}/files.pythonhosted.org/a#sha256={HEX} class=x>"),
        ),
        (
            format!("<a href=https://files.pythonhosted.org/a#sha512={}>", sha512()),
            format!("<a href={BASE}/pypi/-/{0}/files.pythonhosted.org/a#sha512={0}>", sha512()),
        ),
        (
            "<<a href=\"http://FILES.pythonhosted.org/a\"/>".into(),
            format!("<<a href=\"{}\"/>", to("/a")),
        ),
        (
            "<a href=\"/packages/a\">".into(),
            format!("<a href=\"{BASE}/files/pypi.org/packages/a\">"),
        ),
    ] {
        assert_eq!(whole(Rewrite::Pypi, &text), expected);
    }
    for same in [
        "<a href=\"/\">",
        "<a href=\"ftp://files.pythonhosted.org/a\">",
        "<a href=\"\" href=\"//files.pythonhosted.org/a\">",
        "<a href=\"https://evil.test/a\">",
        "<a href=\"http://files.pythonhosted.org:80/a\">",
        "<a href=\"a.whl\">",
        "<a href=\"https://files.pythonhosted.org\">",
        "<a href=\"https://files.pythonhosted.org/../a\">",
        "<a href=\"https://files.pythonhosted.org@evil.test/a\">",
        "<a data-href=\"/a\">",
        "<abbr href=\"/a\">",
        "<a =\"\" =x>",
        "<a href=\"https://files.pythonhosted.org/a",
        "<a href",
        "<a ",
        "<",
        "<a href=>",
    ] {
        assert_eq!(whole(Rewrite::Pypi, same), same);
    }
}

#[test]
fn json_files_get_their_digest() {
    let page = |url: &str| {
        format!(
            "{{\"meta\":{{\"url\":\"https://files.pythonhosted.org/a\"}},\"files\":[{{\"filename\":\"a\",\"url\":\"{url}\",\
             \"hashes\":{{\"sha256\":\"{HEX}\"}},\"core-metadata\":{{\"sha256\":\"00\"}}}},{{\"url\":\"https://evil.test/a\"}}],\
             \"versions\":[{{\"url\":\"https://files.pythonhosted.org/a\"}}]}}"
        )
    };
    let plain = page("https://files.pythonhosted.org/packages/a.whl");
    let expected = page(&format!("{BASE}/pypi/-/{HEX}/files.pythonhosted.org/packages/a.whl"));
    assert_eq!(whole(Rewrite::Pypi, &plain), expected);
    let escaped = page("https:\\/\\/files.pythonhosted.org\\/packages\\/a.whl");
    let expected = page(&format!("{BASE}/pypi/-/{HEX}/files.pythonhosted.org\\/packages\\/a.whl"));
    assert_eq!(whole(Rewrite::Pypi, &escaped), expected);
}

#[test]
fn tarballs_get_the_digest_that_precedes_or_follows() {
    let to = format!("{BASE}/npm/-/{}/registry.npmjs.org/x/-/x-1.0.0.tgz", sha512());
    for (before, after) in [
        (format!("\"integrity\":\"sha1-x= {INTEGRITY}\","), ""),
        (String::new(), &*format!(",\"integrity\" : \"{INTEGRITY}\"")),
    ] {
        let document = |tarball: &str| {
            format!(
                " {{\"name\":\"dist\",\"versions\":{{\"1.0.0\":{{\"dist\" : {{{before}\"signatures\":[{{\"sig\":\"}}\"}}],\
                 \"tarball\":\"{tarball}\"{after}}}}}}},\"readme\":\"\\\"dist\\\":{{\\\"tarball\\\"\"}}"
            )
        };
        let text = document("https://registry.npmjs.org/x/-/x-1.0.0.tgz");
        assert_eq!(whole(Rewrite::Npm, &text), document(&to));
    }
}

#[test]
fn only_links_at_their_place_are_rewritten() {
    let link = "https://registry.npmjs.org/a";
    for (rewrite, text) in [
        (Rewrite::Npm, format!("{{\"x\":[\"dist\",{{\"tarball\":\"{link}\"}}]}}")),
        (Rewrite::Npm, format!("{{\"distance\":{{\"tarball\":\"{link}\"}}}}")),
        (Rewrite::Npm, format!("{{\"dist\":{{\"dist\":{{\"tarball\":\"{link}\"}}}}}}")),
        (Rewrite::Npm, format!("{{\"dist\":{{\"url\":\"{link}\",\"tarball\":[\"{link}\"]}}}}")),
        (Rewrite::Pypi, "{\"x\":{\"files\":[{\"url\":\"https://pypi.org/a\"}]}}".to_owned()),
        (Rewrite::Pypi, "{\"filesystem\":[{\"url\":\"https://pypi.org/a\"}]}".to_owned()),
        (Rewrite::Pypi, "{\"files\":{\"url\":\"https://pypi.org/a\"}}".to_owned()),
        (Rewrite::Pypi, "{\"files\":[[{\"url\":\"https://pypi.org/a\"}]]}".to_owned()),
        (Rewrite::Cargo, format!("{{\"x\":{{\"dl\":\"{link}\"}}}}")),
    ] {
        assert_eq!(whole(rewrite, &text), text);
    }
    let page = |url: &str| {
        format!(
            "{{ \"x\":[[]],\"files\" : [{{\"url\":\"{url}\"}},{{\"a\":{{}}}}, {{\"url\":\"{url}\"}}]}}"
        )
    };
    let expected = page(&format!("{BASE}/files/pypi.org/a"));
    assert_eq!(whole(Rewrite::Pypi, &page("https://pypi.org/a")), expected);
}

#[test]
fn a_tag_of_64_kib_is_rewritten_and_no_longer_one() {
    let link = "https://files.pythonhosted.org/a";
    let tag = |size: usize, by: &str| {
        let rest = format!("<a title=\"\" href=\"{link}\">").len();
        format!("<a title=\"{}\" href=\"{by}\">", "x".repeat(size - rest))
    };
    let to = format!("{BASE}/files/files.pythonhosted.org/a");
    assert_eq!(whole(Rewrite::Pypi, &tag(65_536, link)), tag(65_536, &to));
    assert_eq!(whole(Rewrite::Pypi, &tag(65_537, link)), tag(65_537, link));
}

#[test]
fn of_an_object_64_kib_are_held() {
    let link = "https://files.pythonhosted.org/a";
    let page = |size: usize, by: &str| {
        let file = |url: &str, padding: &str| {
            format!("{{\"url\":\"{url}\",\"x\":\"{padding}\",\"hashes\":{{\"sha256\":\"{HEX}\"}}}}")
        };
        let padding = "x".repeat(size - file(link, "").len());
        format!("{{\"files\":[{}]}}", file(by, &padding))
    };
    let verified = format!("{BASE}/pypi/-/{HEX}/files.pythonhosted.org/a");
    // All members are there without the object's last brace, but not without the last two.
    for size in [65_536, 65_537] {
        assert_eq!(whole(Rewrite::Pypi, &page(size, link)), page(size, &verified));
    }
    let plain = format!("{BASE}/files/files.pythonhosted.org/a");
    assert_eq!(whole(Rewrite::Pypi, &page(65_538, link)), page(65_538, &plain));
}

#[test]
fn a_buffer_counts_with_what_it_holds() {
    for (rewrite, text) in
        [(Rewrite::Npm, "{\"dist\":{\"x\":\"abcdefgh"), (Rewrite::Pypi, "<a abcdefgh")]
    {
        let mut rewriter = rewriter(rewrite);
        assert_eq!(rewriter.capacity(), 0);
        rewriter.feed(text.as_bytes(), &mut Vec::new());
        assert!(rewriter.capacity() >= 10);
    }
}

#[test]
fn a_tarball_without_a_known_digest_is_a_file_of_its_host() {
    let document =
        |tarball: &str| format!("{{\"dist\":{{\"tarball\":\"{tarball}\",\"shasum\":\"00\"}}}}");
    let text = document("http://registry.npmjs.org/x/-/x-1.0.0.tgz");
    let to = format!("{BASE}/files/registry.npmjs.org/x/-/x-1.0.0.tgz");
    assert_eq!(whole(Rewrite::Npm, &text), document(&to));
}

#[test]
fn a_digest_beyond_what_is_held_is_not_waited_for() {
    let document = |tarball: &str| {
        let padding = "x".repeat(Rewriter::HELD_MAX);
        format!(
            "{{\"dist\":{{\"tarball\":\"{tarball}\",\"x\":\"{padding}\",\"integrity\":\"{INTEGRITY}\"}},\"a\":{{\"dist\":{{\"tarball\":\"{tarball}\"}}}}}}"
        )
    };
    let text = document("https://registry.npmjs.org/x/-/x-1.0.0.tgz");
    let expected = document(&format!("{BASE}/files/registry.npmjs.org/x/-/x-1.0.0.tgz"));
    assert_eq!(whole(Rewrite::Npm, &text), expected);
    let pieces: Vec<_> = text.as_bytes().chunks(1000).collect();
    assert_eq!(rewritten(Rewrite::Npm, &pieces), expected);
}

#[test]
fn the_rest_of_an_object_that_is_too_long_passes_as_it_is() {
    let link = "https://registry.npmjs.org/x/-/x-1.0.0.tgz";
    let document = |last: &str| {
        let (padding, dist) =
            ("x".repeat(Rewriter::HELD_MAX), format!("{{\"tarball\":\"{link}\"}}"));
        format!(
            "{{\"dist\":{{\"x\":\"{padding}\",\"dist\":{dist},\"a\":{{\"dist\":{dist}}}}},\"b\":{{\"dist\":{{\"tarball\":\"{last}\"}}}}}}"
        )
    };
    let expected = document(&format!("{BASE}/files/registry.npmjs.org/x/-/x-1.0.0.tgz"));
    let text = document(link);
    assert_eq!(whole(Rewrite::Npm, &text), expected);
    let pieces: Vec<_> = text.as_bytes().chunks(10).collect();
    assert_eq!(rewritten(Rewrite::Npm, &pieces), expected);
}

#[test]
fn a_string_ends_at_a_quotation_mark_that_is_not_escaped() {
    for string in ["\\\"", "\\\\", "\\\\\\\"", "\\/"] {
        let document =
            |to: &str| format!("{{\"x\":\"{string}\",\"dist\":{{\"tarball\":\"{to}/x\"}}}}");
        let (text, expected) = (
            document("https://registry.npmjs.org"),
            document(&format!("{BASE}/files/registry.npmjs.org")),
        );
        assert_eq!(whole(Rewrite::Npm, &text), expected);
        let bytes: Vec<_> = text.as_bytes().chunks(1).collect();
        assert_eq!(rewritten(Rewrite::Npm, &bytes), expected);
    }
}

#[test]
fn cargo_is_told_where_files_are() {
    let config =
        |dl: &str| format!("{{\n  \"dl\": \"{dl}\",\n  \"api\": \"https://crates.io\"\n}}\n");
    let to = format!("{BASE}/cargo/-/{{sha256-checksum}}/{{crate}}/{{version}}");
    assert_eq!(whole(Rewrite::Cargo, &config("https://static.crates.io/crates")), config(&to));
}

#[test]
fn other_forms_pass() {
    for text in [
        "",
        " \n",
        "no such package",
        "[1]",
        "{",
        "{\"dist\":",
        "{\"files\":[{\"url\":\"https://pypi.org/a\"",
        "]}]}{}",
    ] {
        for rewrite in [Rewrite::Pypi, Rewrite::Npm, Rewrite::Cargo] {
            assert_eq!(whole(rewrite, text), text);
        }
    }
    let html = "<a href=\"https://registry.npmjs.org/a\">";
    assert_eq!(whole(Rewrite::Npm, html), html);
}

#[test]
fn of_a_thousand_hosts_only_listed_ones_are_rewritten() {
    let file = |host: &str| format!("{{\"url\":\"https://{host}/packages/a\"}}");
    let hosts =
        (0..1000).map(|it| format!("h{it}.test")).chain(["files.pythonhosted.org".to_owned()]);
    let files: Vec<_> = hosts.map(|it| file(&it)).collect();
    let out = whole(Rewrite::Pypi, &format!("{{\"files\":[{}]}}", files.join(",")));
    assert_eq!(out.matches(BASE).count(), 1);
    assert_eq!(out.matches("https://h").count(), 1000);
}

#[test]
fn what_is_held_is_bounded() {
    let endless = [
        (Rewrite::Npm, "{\"dist\":{\"tarball\":\""),
        (Rewrite::Pypi, "{\"files\":[{\"url\":\""),
        (Rewrite::Pypi, "<a href=\""),
        (Rewrite::Cargo, "{\"dl\":["),
    ];
    for (rewrite, begin) in endless {
        let mut rewriter = rewriter(rewrite);
        let mut out = Vec::new();
        rewriter.feed(begin.as_bytes(), &mut out);
        for _ in 0..100 {
            rewriter.feed(&[b'x'; 8 << 10], &mut out);
            assert!(rewriter.capacity() <= 2 * Rewriter::HELD_MAX);
        }
        rewriter.finish(&mut out);
        assert_eq!(out.len(), begin.len() + 100 * (8 << 10));
    }
}

/// Texts that are like an index.
fn index() -> impl Strategy<Value = (Rewrite, String)> {
    let json = "([{}\\[\\],:]|\"(dist|files|url|tarball|hashes|integrity|dl|a\\\\\\\\|b\\\\\")\"|\"dist\":\\{|\"files\":\\[\\{|\
                \"(tarball|url)\":\"https:(//|\\\\/\\\\/)(registry\\.npmjs\\.org|pypi\\.org|evil\\.test)/a\"){0,24}";
    let html = "(<|>|a|\"|'| |<a href=\"?'?(https://pypi\\.org|//evil\\.test)?/x(#sha256=00)?\"?'?>?){0,24}";
    let rewrite = prop_oneof![Just(Rewrite::Pypi), Just(Rewrite::Npm), Just(Rewrite::Cargo)];
    (
        rewrite,
        prop_oneof![json.prop_map(|it| format!("{{{it}")), html.prop_map(|it| format!("<{it}"))],
    )
}

proptest! {
    #[test]
    fn pieces_change_nothing((rewrite, text) in index(), cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6)) {
        let mut cuts: Vec<_> = cuts.iter().map(|it| it.index(text.len() + 1)).collect();
        cuts.extend([0, text.len()]);
        cuts.sort_unstable();
        let pieces: Vec<_> = cuts.windows(2).map(|it| &text.as_bytes()[it[0]..it[1]]).collect();
        prop_assert_eq!(rewritten(rewrite, &pieces), whole(rewrite, &text));
    }

    #[test]
    fn rewriting_what_is_rewritten_changes_nothing((rewrite, text) in index()) {
        let once = whole(rewrite, &text);
        prop_assert_eq!(whole(rewrite, &once), once);
    }
}
