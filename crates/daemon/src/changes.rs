//! Which settings a reload changes, and which need a restart.
//!
//! *What this is:* [`Key`], one setting; [`take_over`], which copies those that can change. *Who calls it:* `reload.rs`
//! with the daemon's settings, `far/reload.rs` with a far end's.

use crate::config::ConfigError;

/// How a reload treats a setting of `C`.
pub struct Key<C> {
    /// The setting's name in the file.
    pub name: &'static str,
    /// Compares it in two configurations.
    pub differs: fn(&C, &C) -> bool,
    /// Copies the value from the second configuration to the first; `None`: a change needs a restart.
    pub take: Option<fn(&mut C, &C)>,
}

/// A setting that can change while the process runs.
macro_rules! live {
    ($name:literal, $($field:ident).+) => {
        $crate::changes::Key {
            name: $name,
            differs: |a, b| a.$($field).+ != b.$($field).+,
            take: Some(|held, new| held.$($field).+.clone_from(&new.$($field).+)),
        }
    };
}

/// A setting that holds until the process ends.
macro_rules! fixed {
    ($name:literal, $($field:ident).+) => {
        $crate::changes::Key { name: $name, differs: |a, b| a.$($field).+ != b.$($field).+, take: None }
    };
}

pub(crate) use {fixed, live};

/// The names of the settings that a reload found changed.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Settings that apply now.
    pub taken: Vec<&'static str>,
    /// Settings that apply after a restart.
    pub left: Vec<&'static str>,
}

/// Copies to `held` the settings that can change at run time.
pub fn take_over<C>(keys: &[Key<C>], held: &mut C, new: &C) -> Changes {
    let mut changes = Changes::default();
    for key in keys {
        match key.take {
            _ if !(key.differs)(held, new) => {}
            Some(take) => {
                take(held, new);
                changes.taken.push(key.name);
            }
            None => changes.left.push(key.name),
        }
    }
    changes
}

/// Tells the operator that a configuration was read again in vain.
pub fn refuse(error: &ConfigError) {
    error.problems.iter().for_each(|problem| tracing::error!("{problem}"));
    tracing::error!("the configuration is wrong: the settings that hold were kept");
}

impl Changes {
    /// Tells the operator.
    pub fn say(&self) {
        let taken = if self.taken.is_empty() { "nothing".into() } else { self.taken.join(", ") };
        tracing::info!("the configuration was read again; changed: {taken}");
        if !self.left.is_empty() {
            tracing::warn!("these need a restart: {}", self.left.join(", "));
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::Key;

    /// That a reload knows what to do with each key of a file, listed by table. `alias` is the setting of a key that is a
    /// part of another.
    #[track_caller]
    pub(crate) fn every_key_is_known<C>(
        keys: &[Key<C>],
        in_file: &[(&str, &[&str])],
        alias: impl Fn(&str) -> &str,
    ) {
        let is_table = |key: &str| in_file.iter().any(|(table, _)| *table == key);
        for (table, names) in in_file {
            for key in names.iter().filter(|key| !table.is_empty() || !is_table(key)) {
                let key = alias(key);
                let name =
                    if table.is_empty() { key.to_owned() } else { format!("[{table}] {key}") };
                let is_known = keys.iter().any(|key| key.name == name);
                assert!(is_known, "{name}: say in KEYS whether it can change at run time");
            }
        }
    }
}
