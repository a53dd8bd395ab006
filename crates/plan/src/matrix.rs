//! The link interference matrix (WINE, section 3.1).

use std::collections::BTreeSet;

use crate::Mesh;

/// For each two links, the probability that the first can transmit when it contends with the second: from 0 to 1,
/// and 1 for links that do not disturb each other.
#[derive(Clone, Debug, PartialEq)]
pub struct Matrix {
    links: usize,
    values: Vec<f64>,
}

impl Matrix {
    /// Links that do not disturb each other.
    pub fn new(links: usize) -> Self {
        Self { links, values: vec![1.0; links * links] }
    }

    /// The two-hop interference metric (section 3.3): this value for each two links that have a router in common or
    /// a link between them.
    pub fn two_hop(mesh: &Mesh, value: f64) -> Self {
        let mut matrix = Self::new(mesh.links().len());
        for link in 0..matrix.links {
            let near: BTreeSet<_> = mesh.adjacent(link).collect();
            for other in near.iter().flat_map(|it| mesh.adjacent(*it)).chain(near.iter().copied()) {
                if other != link {
                    matrix.set(link, other, value);
                }
            }
        }
        matrix
    }

    /// The number of links.
    pub fn links(&self) -> usize {
        self.links
    }

    /// The probability that `link` can transmit when it contends with `with`; 1 for a link and itself.
    pub fn get(&self, link: usize, with: usize) -> f64 {
        self.values[link * self.links + with]
    }

    /// Sets the probability that `link` can transmit when it contends with `with`.
    ///
    /// # Panics
    ///
    /// If it is not a number from 0 to 1, or if both are the same link.
    pub fn set(&mut self, link: usize, with: usize, value: f64) {
        assert!((0.0..=1.0).contains(&value), "a probability: {value}");
        assert!(link != with && with < self.links, "two links");
        self.values[link * self.links + with] = value;
    }

    /// The links within interference range of one: those that it disturbs, or that disturb it.
    pub fn local(&self, link: usize) -> Vec<usize> {
        let disturbs = |other: &usize| self.get(link, *other) < 1.0 || self.get(*other, link) < 1.0;
        (0..self.links).filter(disturbs).collect()
    }

    /// Most links within interference range of one, and that link; `None` without links.
    pub fn densest(&self) -> Option<(usize, usize)> {
        // Of equal ones, the first.
        let counts = (0..self.links).rev().map(|link| (self.local(link).len(), link));
        counts.max_by_key(|(count, _)| *count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{chain, grid};

    #[test]
    fn the_two_hop_metric_reaches_two_hops() {
        let matrix = Matrix::two_hop(&chain(6), 0.5);
        let row: Vec<_> = (0..6).map(|it| matrix.get(2, it)).collect();
        assert_eq!(row, [0.5, 0.5, 1.0, 0.5, 0.5, 1.0]);
        assert_eq!(matrix.local(0), [1, 2]);
        assert_eq!(Matrix::two_hop(&grid(6, 6), 0.5).densest().map(|it| it.0), Some(22));
    }

    /// A link is within range of those that it disturbs and of those that disturb it.
    #[test]
    fn of_links_with_equally_many_in_range_the_first_is_the_densest() {
        let mut matrix = Matrix::new(5);
        assert_eq!(matrix.densest(), Some((0, 0)));
        matrix.set(2, 4, 0.9);
        matrix.set(3, 2, 0.9);
        matrix.set(1, 3, 0.0);
        assert_eq!(
            [1, 2, 3, 4].map(|link| matrix.local(link)),
            [vec![3], vec![3, 4], vec![1, 2], vec![2]]
        );
        assert_eq!(matrix.densest(), Some((2, 2)));
        assert_eq!(Matrix::new(0).densest(), None);
    }
}
