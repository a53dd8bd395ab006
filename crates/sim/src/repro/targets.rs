//! The figures that the papers print, as they are kept in `data/targets`.

const MESHCACHE: &str = include_str!("../../data/targets/meshcache.csv");
const DITTO: &str = include_str!("../../data/targets/ditto.csv");

/// A figure of MeshCache; `None` if it prints none.
pub(super) fn meshcache(source: &str, scenario: &str, scheme: &str, metric: &str) -> Option<f64> {
    find(MESHCACHE, [source, scenario, scheme, metric])
}

/// A figure of Ditto; `None` if it prints none.
pub(super) fn ditto(testbed: &str, scheme: &str, metric: &str) -> Option<f64> {
    let sections = ["section6.2", "section6.2.2", "section6.3", "section6.4.2"];
    sections.into_iter().find_map(|section| find(DITTO, [section, testbed, scheme, metric]))
}

/// The figure of a row that begins so, behind its unit.
fn find(text: &str, row: [&str; 4]) -> Option<f64> {
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
    fn figures_are_found_by_what_they_are_of() {
        let aat = |scenario, scheme| meshcache("table2", scenario, scheme, "aat");
        assert_eq!(aat("S1", "default"), Some(1382.8));
        assert_eq!(aat("S2", "ph-thcp"), Some(853.3));
        assert_eq!(aat("S4", "default"), None);
        let observers = |testbed| ditto(testbed, "ditto", "observers_reconstructing_over_half");
        assert_eq!((observers("campus"), observers("emulab")), (Some(25.0), Some(50.0)));
        assert_eq!(meshcache("section6.2", "S1", "thcp", "hit_rate_local"), Some(14.4));
    }
}
