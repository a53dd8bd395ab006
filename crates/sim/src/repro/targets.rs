//! The figures that the papers print, as they are kept in `data/targets`.

const MESHCACHE: &str = include_str!("../../data/targets/meshcache.csv");

/// A figure of MeshCache; `None` if it prints none.
pub(super) fn meshcache(source: &str, scenario: &str, scheme: &str, metric: &str) -> Option<f64> {
    let found = MESHCACHE.lines().find_map(|line| {
        let mut fields = line.split(',');
        let is_asked = [source, scenario, scheme, metric]
            .into_iter()
            .all(|asked| fields.next().is_some_and(|field| field == asked));
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
        assert_eq!(meshcache("section6.2", "S1", "thcp", "hit_rate_local"), Some(14.4));
    }
}
