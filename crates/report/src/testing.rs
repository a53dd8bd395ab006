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

/// The width in pixels that each table of a page needs, if its texts break where they may: at spaces, at `wbr` and
/// behind hyphens, in URLs anywhere, in cells of figures nowhere. On a screen of 1200 px a page has [`TABLE_MAX`].
pub fn table_widths(page: &str) -> Vec<f64> {
    let table = |table: &str| {
        let mut columns = Vec::<f64>::new();
        for row in elements(table, "tr") {
            let cells = cells(row);
            columns.resize(columns.len().max(cells.len()), 0.0);
            columns.iter_mut().zip(cells).for_each(|(column, cell)| *column = column.max(cell));
        }
        columns.iter().sum()
    };
    elements(page, "table").map(table).collect()
}

/// The width of a page's content on a screen of 1200 px.
pub const TABLE_MAX: f64 = 1080.0;

/// The padding of a cell, left and right.
const CELL_PADDING: f64 = 24.0;
/// The size of a table's text, and of code in it.
const SIZES: (f64, f64) = (14.0, 13.0);
/// The width of a letter of code, as a share of its size.
const CODE_EM: f64 = 0.6;
/// The least width of a URL.
const URL: f64 = 12.0 * SIZES.0;
/// The width of a scheme's colour with its margin.
const CHIP: f64 = 14.0;

/// What follows each start tag of this name, up to the end tag.
fn elements<'a>(markup: &'a str, name: &str) -> impl Iterator<Item = &'a str> {
    let (start, end) = (format!("<{name}"), format!("</{name}>"));
    let after = markup.match_indices(&start).map(|(at, _)| &markup[at..]).collect::<Vec<_>>();
    let is_it = move |it: &&str| matches!(it.as_bytes().get(start.len()), Some(b' ' | b'>'));
    after.into_iter().filter(is_it).map(move |it| &it[..it.find(&end).unwrap_or(it.len())])
}

/// The least width of each cell of a row.
fn cells(row: &str) -> Vec<f64> {
    let starts = row.match_indices('<').filter(|(at, _)| {
        let tag = &row[at + 1..];
        (tag.starts_with("th") || tag.starts_with("td"))
            && matches!(tag.as_bytes().get(2), Some(b' ' | b'>'))
    });
    let starts: Vec<_> = starts.map(|(at, _)| at).chain([row.len()]).collect();
    starts.windows(2).map(|it| cell_width(&row[it[0]..it[1]])).collect()
}

fn cell_width(cell: &str) -> f64 {
    let (tag, content) = cell.split_once('>').unwrap_or_default();
    let (is_code, has_chip) = (content.contains("<code"), content.contains("class=\"chip"));
    let is_figure = tag.starts_with("<td") && tag.contains("class=\"n\"");
    let mut text = content.replace("<wbr>", " ");
    while let Some(start) = text.find('<') {
        let end = text[start..].find('>').map_or(text.len(), |end| start + end + 1);
        text.replace_range(start..end, "");
    }
    let width = |text: &str| match is_code {
        true => text.chars().count() as f64 * SIZES.1 * CODE_EM,
        false => crate::picture::text_width(text, SIZES.0),
    };
    if tag.contains("class=\"url\"") {
        return URL + CELL_PADDING;
    }
    let widest = match is_figure || has_chip {
        true => width(&text),
        false => {
            let words = text.split([' ', '\n']).flat_map(|word| word.split_inclusive('-'));
            words.map(width).fold(0.0, f64::max)
        }
    };
    widest + CELL_PADDING + if has_chip { CHIP } else { 0.0 }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_width_of_a_table_is_that_of_what_cannot_break() {
        let page = "<table class=\"a\"><thead><tr><th><code>ab_<wbr>cde</code></th><th>x xx</th></tr></thead>\
            <tr><td class=\"n\">a a</td><td>b</td></tr></table><table><tr><td>a</td></tr></table>";
        let a = crate::picture::text_width("a a", 14.0).max(3.0 * 13.0 * 0.6);
        let x = crate::picture::text_width("xx", 14.0);
        let y = crate::picture::text_width("a", 14.0);
        let widths = super::table_widths(page);
        assert_eq!(widths.len(), 2);
        assert!(
            (widths[0] - (a + x + 48.0)).abs() < 1e-9 && (widths[1] - (y + 24.0)).abs() < 1e-9,
            "{widths:?}"
        );
    }
}
