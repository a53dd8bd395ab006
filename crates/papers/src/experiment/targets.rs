//! The figures that the papers print, from `data/targets`.

/// The figure of the row that begins with these fields; it follows the unit.
pub(crate) fn find<const N: usize>(text: &str, row: [&str; N]) -> Option<f64> {
    let found = text.lines().find_map(|line| {
        let mut fields = line.split(',');
        let mut row = row.into_iter();
        let is_asked = row.all(|asked| fields.next().is_some_and(|field| field == asked));
        is_asked.then(|| fields.nth(1)).flatten()
    });
    found?.parse().ok()
}
