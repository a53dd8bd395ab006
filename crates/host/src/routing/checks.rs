//! What must hold for any bytes at all; the fuzz targets and the tests over their corpus share it.

use super::babeld::{Lines, Table, parse};
use super::kernel::{Fib, messages};

/// Whatever a kernel's routing socket says is understood or passed over.
pub fn netlink(bytes: &[u8]) {
    let mut fib = Fib::default();
    for message in messages(bytes) {
        message.link().into_iter().for_each(|link| fib.add_link(link));
        message.route().into_iter().for_each(|route| fib.add_route(route, None));
    }
    let _ = fib.way();
}

/// Whatever babeld's local socket says is understood or passed over, the same however it is split.
///
/// # Panics
/// If it does not hold.
pub fn babeld(bytes: &[u8]) {
    let (whole, split) = (listen(&[bytes]), listen(&bytes.chunks(7).collect::<Vec<_>>()));
    assert_eq!(whole, split, "what is known depends on how the bytes were split");
}

fn listen(pieces: &[&[u8]]) -> Table {
    let (mut lines, mut table) = (Lines::default(), Table::default());
    let take = |line: &str| parse(line).into_iter().for_each(|line| table.apply(line));
    let mut take = take;
    let _ = pieces.iter().try_for_each(|piece| lines.feed(piece, &mut take));
    let _ = (table.way(None, true), table.own_address());
    table
}
