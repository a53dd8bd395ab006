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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_follows_its_row_and_its_unit() {
        let text = "source,scheme,unit,value\nt1,thcp,kbit/s,2.5\nt1,default,kbit/s,7\nt2,thcp,comparison,more\nt3,thcp";
        assert_eq!(find(text, ["t1", "default"]), Some(7.0));
        assert_eq!(find(text, ["t1", "thcp"]), Some(2.5));
        // A statement is no figure; a row without value has none.
        for row in [["t2", "thcp"], ["t3", "thcp"], ["t1", "th"], ["thcp", "t1"], ["t2", "default"]]
        {
            assert_eq!(find(text, row), None, "{row:?}");
        }
    }
}
