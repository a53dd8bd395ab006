//! The transmission capacity of links: equation 3.1 of WINE.
//!
//! The equation averages the product of interferences over all choices of one active link in each area. The
//! choices are independent, so the mean of the product is the product of the areas' means: the work grows with the
//! number of links, and not with the number of choices.

use crate::Matrix;

/// The capacity of each link, from 0 to 1: one divided by the number of links in its area, times, for each other
/// area, the mean of its interference with the links there. `areas` contain each link once.
pub fn capacities(matrix: &Matrix, areas: &[Vec<usize>]) -> Vec<f64> {
    let mut capacities = vec![0.0; matrix.links()];
    for (own, area) in areas.iter().enumerate() {
        for &link in area {
            let others = areas.iter().enumerate().filter(|(at, _)| *at != own);
            let means = others.map(|(_, it)| mean(matrix, link, it));
            capacities[link] = means.product::<f64>() / area.len() as f64;
        }
    }
    capacities
}

/// The least capacity; 1 without links.
pub fn least(capacities: &[f64]) -> f64 {
    capacities.iter().copied().fold(1.0, f64::min)
}

fn mean(matrix: &Matrix, link: usize, area: &[usize]) -> f64 {
    area.iter().map(|with| matrix.get(link, *with)).sum::<f64>() / area.len() as f64
}

/// Whether links should share an area (lemma 1, equation 3.2): the product of the first one's interference with
/// all others is less than one divided by their number. `others` are those besides `link`.
pub fn gains(matrix: &Matrix, link: usize, others: impl Iterator<Item = usize>) -> bool {
    let (mut count, mut product) = (1.0, 1.0);
    for other in others {
        count += 1.0;
        product *= matrix.get(link, other);
    }
    product < 1.0 / count
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::{grid, partition, values};

    /// Equation 3.1 as it is printed: a sum over all choices of one link from each other area.
    fn literal(matrix: &Matrix, areas: &[Vec<usize>], link: usize) -> f64 {
        let own = areas.iter().position(|it| it.contains(&link)).unwrap();
        let others: Vec<_> = areas.iter().enumerate().filter(|it| it.0 != own).collect();
        let choices: usize = others.iter().map(|(_, area)| area.len()).product();
        let mut sum = 0.0;
        for mut choice in 0..choices {
            let mut product = 1.0;
            for (_, area) in &others {
                product *= matrix.get(link, area[choice % area.len()]);
                choice /= area.len();
            }
            sum += product;
        }
        sum / (choices * areas[own].len()) as f64
    }

    proptest! {
        #[test]
        fn the_product_of_means_is_the_literal_sum(
            (matrix, areas) in (1_usize..8).prop_flat_map(|links| (values(links), partition(links))),
        ) {
            for (link, capacity) in capacities(&matrix, &areas).into_iter().enumerate() {
                let literal = literal(&matrix, &areas, link);
                prop_assert!((capacity - literal).abs() < 1e-12, "{link}: {capacity} {literal}");
            }
        }
    }

    /// Equation 3.2 on the paper's grid: x = y = 1/2 for 22 neighbours. Their product is 2⁻²² (the paper's text shows
    /// 1/2), which is less than 1/23, so that the 23 links belong together.
    #[test]
    fn the_papers_grid_should_be_one_area() {
        let mesh = grid(6, 6);
        let matrix = Matrix::two_hop(&mesh, 0.5);
        let middle = mesh.link(14, 15).unwrap();
        let near = matrix.local(middle);
        assert_eq!(near.len(), 22);
        assert!(gains(&matrix, middle, near.iter().copied()));
        let alone: Vec<_> = (0..matrix.links()).map(|it| vec![it]).collect();
        assert_eq!(capacities(&matrix, &alone)[middle], libm::exp2(-22.0));
        let mut together = vec![near.iter().copied().chain([middle]).collect::<Vec<_>>()];
        together.extend(alone.into_iter().filter(|it| it[0] != middle && !near.contains(&it[0])));
        assert!((capacities(&matrix, &together)[middle] - 1.0 / 23.0).abs() < 1e-15);
        // Not with a slight interference: 0.9 to the 22nd is 0.098.
        let slight = Matrix::two_hop(&mesh, 0.9);
        assert!(!gains(&slight, middle, slight.local(middle).into_iter()));
    }
}
