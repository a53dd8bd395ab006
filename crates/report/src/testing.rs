//! Helpers for tests of pages and pictures, here and in other crates.

use crate::{Ground, Line, Place};

/// HTML elements without an end tag.
const VOID: [&str; 3] = ["meta", "wbr", "!DOCTYPE"];

/// A chain of routers, 100 m apart, whose links reach over two hops.
pub fn chain(routers: usize) -> Ground {
    let place = |at: usize| Place { name: format!("r{at}"), x_m: 100.0 * at as f64, y_m: 0.0 };
    let line =
        |from: usize, hops: usize| Line { from, to: from + hops, loss: 0.3 * (hops - 1) as f64 };
    let lines = |hops| (0..routers.saturating_sub(hops)).map(move |from| line(from, hops));
    Ground {
        description: "Routers on a line.".to_owned(),
        routers: (0..routers).map(place).collect(),
        gateway: 0,
        links: lines(1).chain(lines(2)).collect(),
        routes: lines(1).collect(),
        range_m: 220.0,
        keys: vec![("loss".to_owned(), "0.1".to_owned(), "share of frames lost".to_owned())],
    }
}

/// Asserts that elements are nested properly, attributes are quoted, and no text has a bare `<` or `&`.
pub fn assert_well_formed(markup: &str) {
    let mut open = Vec::new();
    let mut rest = markup;
    while let Some(start) = rest.find('<') {
        assert_text(&rest[..start]);
        let end = start + rest[start..].find('>').expect("a tag ends");
        let tag = &rest[start + 1..end];
        rest = &rest[end + 1..];
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name), "before {:.60}", rest);
            continue;
        }
        assert_eq!(tag.matches('"').count() % 2, 0, "{tag}");
        let name = tag.split(' ').next().unwrap_or_default();
        if !VOID.contains(&name) {
            open.push(name);
        }
    }
    assert_text(rest);
    assert!(open.is_empty(), "{open:?} never end");
}

fn assert_text(text: &str) {
    assert!(!text.contains('>'), "{text}");
    let entities = ["amp;", "lt;", "gt;", "quot;"];
    let known = |rest: &str| entities.iter().any(|entity| rest.starts_with(entity));
    assert!(text.split('&').skip(1).all(known), "{text}");
}
