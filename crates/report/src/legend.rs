//! Legends: entries beside each other, in as many rows as they need.

use maud::{Markup, html};

use crate::picture::{self, px};

const TEXT_SIZE: f64 = 12.0;
/// From one entry to the next.
const GAP: f64 = 12.0;
/// From the mark to its text.
const MARK_GAP: f64 = 6.0;

/// The height of a row.
pub(crate) const ROW: f64 = 20.0;

/// A mark and its meaning.
pub(crate) struct Entry {
    /// Drawn from x = 0 to the right, with its middle at y = 0.
    pub(crate) mark: Markup,
    /// The width of the mark.
    pub(crate) width: f64,
    pub(crate) meaning: String,
}

/// The entry of a curve, by its place among all.
pub(crate) fn curve(at: usize, name: &str) -> Entry {
    let mark = html! {
        path class={ "curve " (picture::stroke(at)) } stroke-dasharray=[picture::dashes(at)] d="M0 0h34" {}
        (picture::marker(at, 17.0, 0.0))
    };
    Entry { mark, width: 34.0, meaning: name.to_owned() }
}

/// Where a legend stands.
#[derive(Clone, Copy)]
pub(crate) struct Room {
    pub(crate) left: f64,
    /// The top of the first row.
    pub(crate) top: f64,
    pub(crate) width: f64,
}

/// The legend and its height; 0 without entries. A meaning that is wider than the room is cut.
pub(crate) fn legend(entries: &[Entry], room: Room) -> (Markup, f64) {
    let text_room = |it: &Entry| room.width - it.width - MARK_GAP;
    let texts: Vec<_> =
        entries.iter().map(|it| picture::fit(&it.meaning, TEXT_SIZE, text_room(it))).collect();
    let text_width = |text: &String| picture::text_width(text, TEXT_SIZE);
    let widths: Vec<_> = entries
        .iter()
        .zip(&texts)
        .map(|(it, text)| it.width + MARK_GAP + text_width(text))
        .collect();
    let places = places(&widths, room.width);
    let rows = places.last().map_or(0, |(_, row)| row + 1);
    let markup = html! {
        @for ((entry, text), (x, row)) in entries.iter().zip(&texts).zip(&places) {
            @let y = room.top + ROW * (*row as f64 + 0.5);
            g transform=(format!("translate({} {})", px(room.left + x), px(y))) {
                (entry.mark)
                text x=(px(entry.width + MARK_GAP)) y="4" { (text) }
            }
        }
    };
    (markup, ROW * rows as f64)
}

/// The left end of each entry, and its row.
fn places(widths: &[f64], room: f64) -> Vec<(f64, usize)> {
    let (mut x, mut row) = (0.0, 0);
    let mut place = |width: &f64| {
        if x > 0.0 && x + width > room {
            (x, row) = (0.0, row + 1);
        }
        let at = (x, row);
        x += width + GAP;
        at
    };
    widths.iter().map(&mut place).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_never_touch_and_stay_in_the_room() {
        let widths = [50.0, 120.0, 30.0, 200.0, 10.0, 10.0, 90.0];
        let places = places(&widths, 200.0);
        for (at, (x, row)) in places.iter().enumerate() {
            assert!(x + widths[at] <= 200.0, "{places:?}");
            let next = places.get(at + 1).filter(|next| next.1 == *row);
            assert!(next.is_none_or(|next| x + widths[at] + GAP <= next.0), "{places:?}");
        }
        assert_eq!(places.last().unwrap().1, 3);
    }

    #[test]
    fn a_long_meaning_is_cut() {
        let entry = Entry { mark: html! {}, width: 10.0, meaning: "m".repeat(99) };
        let room = Room { left: 0.0, top: 0.0, width: 100.0 };
        let (markup, height) = legend(&[entry], room);
        assert_eq!(height, ROW);
        assert!(markup.into_string().contains("mmm…"));
        assert_eq!(legend(&[], room).1, 0.0);
    }
}
