//! Processes from `/proc`.

use std::fs;
use std::path::Path;

/// A process, distinguished from a later one with the same id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    pub id: i32,
    pub name: String,
    parent: i32,
    started: u64,
}

impl Process {
    fn read(id: i32) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
        // The name is in parentheses and may contain any character.
        let (before, after) = stat.rsplit_once(") ")?;
        let fields: Vec<_> = after.split(' ').collect();
        let is_dead = matches!(*fields.first()?, "Z" | "X");
        (!is_dead).then_some(Self {
            id,
            name: before.split_once('(')?.1.to_owned(),
            parent: fields.get(1)?.parse().ok()?,
            started: fields.get(19)?.parse().ok()?,
        })
    }

    pub fn is_alive(&self) -> bool {
        Self::read(self.id).is_some_and(|it| it.started == self.started)
    }
}

fn all() -> Vec<Process> {
    let entries = fs::read_dir("/proc").expect("Linux").flatten();
    let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    ids.filter_map(Process::read).collect()
}

/// A process and all its descendants, parents before their children.
pub fn family(root: i32) -> Vec<Process> {
    let all = all();
    let mut family: Vec<_> = all.iter().filter(|it| it.id == root).cloned().collect();
    let mut next = 0;
    while next < family.len() {
        let parent = family[next].id;
        family.extend(all.iter().filter(|it| it.parent == parent).cloned());
        next += 1;
    }
    family
}

/// Processes with this environment variable; some programs overwrite theirs.
pub fn with_variable(name: &str, value: &Path) -> Vec<Process> {
    let wanted = format!("{name}={}", value.display());
    let has = |process: &Process| {
        let environ = fs::read(format!("/proc/{}/environ", process.id)).unwrap_or_default();
        environ.split(|byte| *byte == 0).any(|it| it == wanted.as_bytes())
    };
    all().into_iter().filter(has).collect()
}
