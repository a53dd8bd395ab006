//! Counts the attempts to open the catalogue that never ended.
//!
//! redb panics at some damaged files. Where a panic ends the process, as in the program for small routers, it cannot be
//! caught, and the daemon would end at each start. So the count is kept in a file, and after some attempts the catalogue
//! counts as damaged. A loss of power in the midst of opening counts too, which is why one attempt is not enough.

use crate::files::Files;

/// The file whose length is the number of attempts that did not end.
pub(crate) const FILE: &str = "catalogue.opening";

/// After this many, another one is hopeless.
const ATTEMPTS_MAX: u64 = 3;

/// Notes that an attempt begins, and returns whether it is hopeless. Where nothing can be written, none is noted.
pub(super) fn begin(files: &dyn Files) -> bool {
    let Ok(file) = files.open(FILE).or_else(|_| files.create(FILE)) else { return false };
    let before = file.len().unwrap_or_default();
    let noted = file.set_len(before + 1).and_then(|()| file.sync());
    noted.is_ok() && before >= ATTEMPTS_MAX
}

/// Notes that the attempt has ended, well or not.
pub(super) fn end(files: &dyn Files) {
    // If it stays, it counts one attempt too many.
    let _ = files.remove(FILE);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::Memory;

    #[test]
    fn the_fourth_attempt_is_hopeless_if_none_has_ended() {
        let files = Memory::new();
        assert_eq!([(); 4].map(|()| begin(&files)), [false, false, false, true]);
        end(&files);
        assert!(!begin(&files));
    }
}
