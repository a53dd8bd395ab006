//! The names of ticks below a horizontal axis: inside the picture, and apart from each other.

use maud::{Markup, html};

use crate::picture::{px, text_width};

const TEXT_SIZE: f64 = 12.0;
/// The least distance between two names.
const GAP: f64 = 4.0;

/// Names at their places, each in the middle of its tick where there is room. A name that would touch another is
/// left out; the first and the last are kept before others.
pub(crate) fn below(ticks: &[(f64, String)], y: f64, width: f64) -> Markup {
    let kept = kept(ticks, width);
    html! {
        @for ((_, name), middle) in ticks.iter().zip(kept) {
            @if let Some(middle) = middle { text class="mid" x=(px(middle)) y=(px(y)) { (name) } }
        }
    }
}

/// The middle of each name that is kept.
fn kept(ticks: &[(f64, String)], width: f64) -> Vec<Option<f64>> {
    let last = ticks.len().saturating_sub(1);
    let mut order: Vec<_> = (0..ticks.len()).collect();
    order.sort_by_key(|&at| at != 0 && at != last);
    let mut taken = Vec::<(f64, f64)>::new();
    let mut kept = vec![None; ticks.len()];
    for at in order {
        let (x, name) = &ticks[at];
        let half = text_width(name, TEXT_SIZE) / 2.0;
        let middle = x.min(width - half).max(half);
        let (left, right) = (middle - half, middle + half);
        if taken.iter().all(|other| right + GAP <= other.0 || other.1 + GAP <= left) {
            taken.push((left, right));
            kept[at] = Some(middle);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spans(ticks: &[(f64, String)], width: f64) -> Vec<(f64, f64)> {
        let half = |at: usize| text_width(&ticks[at].1, TEXT_SIZE) / 2.0;
        let middles = kept(ticks, width).into_iter().enumerate();
        middles.filter_map(|(at, it)| it.map(|it| (it - half(at), it + half(at)))).collect()
    }

    #[test]
    fn names_never_touch_and_never_leave_the_picture() {
        let ticks: Vec<_> =
            (0..40).map(|at| (10.0 * f64::from(at), format!("{}", 1000 * at))).collect();
        let spans = spans(&ticks, 390.0);
        assert!(spans.len() > 3 && spans[0].0 >= 0.0 && spans.last().unwrap().1 <= 390.0);
        assert!(spans.windows(2).all(|two| two[0].1 + GAP <= two[1].0), "{spans:?}");
        // The ends are there.
        let kept = kept(&ticks, 390.0);
        assert!(kept[0].is_some() && kept[39].is_some());
    }

    #[test]
    fn a_name_at_the_edge_moves_inside() {
        let ticks = [(100.0, "1 000 000".to_owned())];
        assert!(kept(&ticks, 100.0)[0].unwrap() < 75.0);
        assert!(kept(&[], 100.0).is_empty());
    }
}
