//! What must hold for any bytes at all; the fuzz targets and the tests over their corpus share it.

use crate::http::{Row, Screen, Verdict};

/// A screen gives the same verdict however the bytes are split, and always comes to an end.
///
/// # Panics
/// If it does not hold.
pub fn screen(bytes: &[u8]) {
    for make in [Screen::requests, Screen::responses] {
        let whole = pass(make(), bytes, usize::MAX);
        let split = pass(make(), bytes, 1);
        assert_eq!(whole, split, "a verdict depends on how the bytes were split");
    }
}

/// How many bytes pass, and whether the rest is refused.
fn pass(mut screen: Screen, bytes: &[u8], piece: usize) -> (usize, bool) {
    let (mut passed, mut shown) = (0, 0);
    while shown < bytes.len() {
        shown = bytes.len().min(shown.saturating_add(piece));
        loop {
            match screen.judge(&bytes[passed..shown]) {
                Verdict::Pass(count) => {
                    assert!((1..=shown - passed).contains(&count), "no progress, or too much");
                    passed += count;
                }
                Verdict::More => break,
                Verdict::Refuse(_) => return (passed, true),
            }
        }
    }
    (passed, false)
}

/// A row that can be read is written back to the same meaning.
///
/// # Panics
/// If it does not hold.
pub fn row(bytes: &[u8]) {
    if let Some(row) = Row::decode(bytes) {
        assert_eq!(Row::decode(&row.encode()), Some(row));
    }
}
