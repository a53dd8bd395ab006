//! Sequence numbers are taken modulo 2^32. One is before another if the distance forward is the shorter one
//! (RFC 9293, section 3.4).

pub use link::before;

/// The distance from `from` forward to `to`; 0 if `to` is before it.
pub fn ahead(from: u32, to: u32) -> u32 {
    if before(to, from) { 0 } else { to.wrapping_sub(from) }
}

/// The later of two.
pub fn later(a: u32, b: u32) -> u32 {
    if before(a, b) { b } else { a }
}

/// The earlier of two.
pub fn earlier(a: u32, b: u32) -> u32 {
    if before(b, a) { b } else { a }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_circle_has_no_end() {
        let top = u32::MAX;
        assert!(before(top, 0) && before(top - 5, 3) && before(1, 2));
        assert!(!before(0, top) && !before(7, 7));
        assert_eq!((ahead(top, 1), ahead(1, top), ahead(4, 4)), (2, 0, 0));
        assert_eq!((later(top, 1), later(1, top), later(3, 2)), (1, 1, 3));
        assert_eq!((earlier(top, 1), earlier(1, top), earlier(3, 2)), (top, top, 2));
    }
}
