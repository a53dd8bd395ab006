//! Reads tables in CSV with a head line, the form in which references are stored.

/// One line of a table.
#[derive(Clone, Debug)]
pub struct Row<'a> {
    cells: Vec<(&'a str, &'a str)>,
}

/// The lines of a table after its head.
pub fn rows(table: &str) -> impl Iterator<Item = Row<'_>> {
    let mut lines = table.lines();
    let head: Vec<_> = lines.next().unwrap_or_default().split(',').collect();
    lines.map(move |line| Row { cells: head.iter().copied().zip(line.split(',')).collect() })
}

impl<'a> Row<'a> {
    /// The text of a column; `None` if there is no such column or the cell is empty.
    pub fn text(&self, column: &str) -> Option<&'a str> {
        let cell = self.cells.iter().find(|(name, _)| *name == column);
        cell.map(|(_, text)| *text).filter(|text| !text.is_empty())
    }

    /// The same, as a number.
    pub fn number(&self, column: &str) -> Option<f64> {
        self.text(column)?.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_found_by_the_name_of_their_column() {
        let rows: Vec<_> = rows("a,b,c\n1,,x\n2.5,7,y\n").collect();
        assert_eq!(rows.len(), 2);
        assert_eq!((rows[0].number("a"), rows[0].number("b")), (Some(1.0), None));
        assert_eq!((rows[1].text("c"), rows[1].text("d")), (Some("y"), None));
        assert_eq!(rows[1].number("c"), None);
    }
}
