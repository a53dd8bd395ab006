//! What tests of this crate and its fuzz target share.

use crate::{Mesh, text};

#[cfg(test)]
pub use strategies::{meshes, partition, values};

/// A chain of this many hops; traffic enters and leaves at both ends.
pub fn chain(hops: usize) -> Mesh {
    let names = (0..=hops).map(|it| it.to_string()).collect();
    Mesh::new(names, (0..hops).map(|at| (at, at + 1)), [0, hops])
}

/// A grid of routers, numbered row by row, each with a link to its neighbours in row and column.
pub fn grid(columns: usize, rows: usize) -> Mesh {
    let names = (0..columns * rows).map(|it| it.to_string()).collect();
    let at = move |column: usize, row: usize| row * columns + column;
    let cells = (0..rows).flat_map(|row| (0..columns).map(move |column| (column, row)));
    let links = cells.flat_map(|(column, row)| {
        let east = (column + 1 < columns).then(|| (at(column, row), at(column + 1, row)));
        let south = (row + 1 < rows).then(|| (at(column, row), at(column, row + 1)));
        [east, south].into_iter().flatten()
    });
    Mesh::new(names, links, [])
}

/// What a text that may be a matrix must do: it is refused with a line, or what was read can be written and read
/// again. Says whether it was read.
///
/// # Panics
///
/// If a matrix that was read has impossible values, or is another one after it was written.
pub fn matrix_text(bytes: &[u8]) -> bool {
    let Ok(given) = std::str::from_utf8(bytes) else { return false };
    let Ok((mesh, matrix)) = text::read(given) else { return false };
    assert!(!mesh.links().is_empty(), "an empty matrix was read");
    let (again, same) = text::read(&text::written(&mesh, &matrix)).expect("it was written here");
    assert_eq!(again.links().len(), mesh.links().len());
    for link in 0..matrix.links() {
        for with in 0..matrix.links() {
            assert!((0.0..=1.0).contains(&matrix.get(link, with)));
            assert!((matrix.get(link, with) - same.get(link, with)).abs() < 1e-9);
        }
    }
    true
}

#[cfg(test)]
mod strategies {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use crate::{Matrix, Mesh};

    /// Matrices of this many links.
    pub fn values(links: usize) -> impl Strategy<Value = Matrix> {
        let value = prop_oneof![3 => Just(1.0), 3 => 0.0..1.0, 1 => Just(0.0), 2 => Just(0.5)];
        vec(value, links * links).prop_map(move |values| {
            let mut matrix = Matrix::new(links);
            let pairs = (0..links).flat_map(|a| (0..links).map(move |b| (a, b)));
            for ((a, b), value) in pairs.zip(values).filter(|((a, b), _)| a != b) {
                matrix.set(a, b, value);
            }
            matrix
        })
    }

    /// Areas that contain each of this many links once.
    pub fn partition(links: usize) -> impl Strategy<Value = Vec<Vec<usize>>> {
        vec(0..links, links).prop_map(move |of| {
            let area = |at| (0..links).filter(|it| of[*it] == at).collect::<Vec<_>>();
            (0..links).map(area).filter(|it| !it.is_empty()).collect()
        })
    }

    /// Meshes of two to six routers with at least one link.
    pub fn meshes() -> impl Strategy<Value = Mesh> {
        (2_usize..7).prop_flat_map(|routers| {
            let pair = (0..routers, 1..routers).prop_map(move |(a, by)| (a, (a + by) % routers));
            let names: Vec<_> = (0..routers).map(|it| it.to_string()).collect();
            vec(pair, 1..9).prop_map(move |links| Mesh::new(names.clone(), links, [0]))
        })
    }
}
