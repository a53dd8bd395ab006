//! Properties that hold for any input, shared by the fuzz targets and the tests of their corpus.

use super::babeld::{Lines, Table, parse};
use super::kernel::{Fib, Wanted, messages};

/// Any bytes from a routing socket are either parsed or ignored.
pub fn netlink(bytes: &[u8]) {
    let mut fib = Fib::new(Wanted { target: None, mesh: vec!["wl0".into()] });
    for message in messages(bytes) {
        message.link().into_iter().for_each(|link| fib.add_link(link));
        message.route().into_iter().for_each(|route| fib.add_route(route));
        let _ = message.generic().count();
    }
    let _ = (fib.best_route(), fib.hosts());
}

/// Any bytes from babeld's local socket are either parsed or ignored, with the same result however
/// they are divided.
///
/// # Panics
/// If this does not hold.
pub fn babeld(bytes: &[u8]) {
    let (whole, split) = (listen(&[bytes]), listen(&bytes.chunks(7).collect::<Vec<_>>()));
    assert_eq!(whole, split, "the result depends on how the bytes were divided");
}

fn listen(pieces: &[&[u8]]) -> Table {
    let (mut lines, mut table) = (Lines::default(), Table::default());
    let take = |line: &str| parse(line).into_iter().for_each(|line| table.apply(line));
    let mut take = take;
    let _ = pieces.iter().try_for_each(|piece| lines.feed(piece, &mut take));
    let _ = (table.route_to(None, true), table.hosts().len(), table.own_address(|_| true));
    table
}
