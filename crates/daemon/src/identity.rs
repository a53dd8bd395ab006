//! The node's identity to its peers: a secret of 32 bytes in the store's directory, created at the
//! first start.

use crate::config::Place;
use crate::{entropy, target};
use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::{MetadataExt as _, chown};
use std::path::Path;

/// The file's name in the store's directory.
const NAME: &str = "identity";
/// Only its owner may read it.
const MODE: u32 = 0o600;

/// The seed of an Ed25519 key.
pub struct Identity {
    /// The seed.
    pub seed: [u8; 32],
    /// Why the identity lasts only until the daemon ends; `None` if it is stored.
    pub is_temporary: Option<String>,
}

impl Identity {
    /// Reads the identity from the store's directory, or creates it if there is none. If it can be
    /// neither read nor created, returns a temporary identity.
    pub fn of(store: &Place) -> Self {
        let kept = match store {
            Place::Memory => Err("the store is in memory: give [store] a path to keep it".into()),
            Place::Dir(dir) => kept(dir),
        };
        match kept {
            Ok(seed) => Self { seed, is_temporary: None },
            Err(why) => {
                tracing::warn!(
                    "this node's identity is temporary, and changes at the next start: {why}"
                );
                Self { seed: entropy::bytes(), is_temporary: Some(why) }
            }
        }
    }
}

fn kept(dir: &Path) -> Result<[u8; 32], String> {
    let path = dir.join(NAME);
    let failed = |what, error: io::Error| format!("{}: cannot be {what}: {error}", path.display());
    match fs::read(&path) {
        Ok(bytes) => bytes.try_into().map_err(|bytes: Vec<u8>| {
            let (path, length) = (path.display(), bytes.len());
            format!(
                "{path}: {length} bytes instead of 32: put a copy back, or remove it for a new one"
            )
        }),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let seed = entropy::bytes();
            target::replace(&path, &seed, MODE).map_err(|error| failed("written", error))?;
            give(&path, dir).map_err(|error| failed("given to its user", error))?;
            Ok(seed)
        }
        Err(error) => Err(failed("read", error)),
    }
}

/// Gives a file that root has made (`hearsay uplink --key`) to the directory's user, who could not read it otherwise.
fn give(file: &Path, dir: &Path) -> io::Result<()> {
    let (made, owner) = (fs::metadata(file)?, fs::metadata(dir)?);
    match made.uid() == owner.uid() {
        true => Ok(()),
        false => chown(file, Some(owner.uid()), Some(owner.gid())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn it_is_made_once_for_its_owner_alone() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("identity.new"), "cut short").unwrap();
        let place = Place::Dir(dir.path().to_owned());
        let (first, second) = (Identity::of(&place), Identity::of(&place));
        assert_eq!((first.seed, first.is_temporary), (second.seed, None));
        let path = dir.path().join(NAME);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
        assert_ne!(first.seed, [0; 32]);
    }

    #[test]
    fn a_link_to_one_that_is_not_there_yet_stays() {
        let dir = tempfile::tempdir().unwrap();
        let link = dir.path().join(NAME);
        std::os::unix::fs::symlink("elsewhere", &link).unwrap();
        let made = Identity::of(&Place::Dir(dir.path().to_owned()));
        assert!(link.is_symlink() && made.is_temporary.is_none());
        assert_eq!(fs::read(dir.path().join("elsewhere")).unwrap(), made.seed);
    }

    #[test]
    fn one_that_root_makes_belongs_to_the_stores_user() {
        let dir = tempfile::tempdir().unwrap();
        // Only root may.
        if chown(dir.path(), Some(65534), Some(65534)).is_err() {
            return;
        }
        assert!(Identity::of(&Place::Dir(dir.path().to_owned())).is_temporary.is_none());
        let made = fs::metadata(dir.path().join(NAME)).unwrap();
        assert_eq!((made.uid(), made.gid()), (65534, 65534));
    }

    #[test]
    fn a_broken_one_is_named_and_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join(NAME), "short").unwrap();
        let place = Place::Dir(dir.path().to_owned());
        let (first, second) = (Identity::of(&place), Identity::of(&place));
        assert_ne!(first.seed, second.seed);
        let why = first.is_temporary.unwrap();
        assert!(why.contains("identity: 5 bytes instead of 32") && why.contains("remove it"));
        assert_eq!(fs::read(dir.path().join(NAME)).unwrap(), b"short");
    }

    #[test]
    fn without_a_place_it_is_temporary() {
        for place in [Place::Memory, Place::Dir("/nowhere/at/all".into())] {
            assert!(Identity::of(&place).is_temporary.is_some());
        }
    }
}
