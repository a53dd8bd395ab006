//! The settings of an experiment's points, for readers who want to run one again.

use report::provenance::Setting;

use super::{Key, Plan, Point, Run, Trial};

/// Gives the setting of a seed's run.
pub(super) type MakeSetting = Box<dyn Fn(u64) -> Result<Setting, String> + Send + Sync>;

/// A point and its setting.
#[derive(Clone, Debug)]
pub struct Played {
    /// The point.
    pub key: Key,
    /// The keys that are the same for all seeds; `None` if the point has no setting.
    pub setting: Option<Setting>,
}

impl Point {
    /// The same point with a setting.
    pub(crate) fn within(
        self,
        setting: impl Fn(u64) -> Result<Setting, String> + Send + Sync + 'static,
    ) -> Self {
        Self { setting: Some(Box::new(setting)), ..self }
    }

    fn setting(&self, seed: u64) -> Option<Result<Setting, String>> {
        match (&self.run, &self.setting) {
            (_, Some(setting)) => Some(setting(seed)),
            (Run::Tried(trial, _), None) => Some(trial(seed).and_then(|it| it.setting())),
            (Run::Simulated(_), None) => None,
        }
    }
}

impl Trial {
    fn setting(&self) -> Result<Setting, String> {
        Ok(self.scenario()?.setting(Some(self.scheme)))
    }
}

impl Plan {
    /// Number of runs of each point, with seeds from 1 on.
    pub fn seeds(&self) -> u64 {
        self.seeds
    }

    /// The setting of each point.
    ///
    /// # Errors
    ///
    /// A sentence on what is wrong with a scenario.
    pub fn played(&self) -> Result<Vec<Played>, String> {
        let played = |point: &Point| {
            // Keys that depend on the seed differ between the first and the last.
            let first = point.setting(1).transpose()?;
            let last = point.setting(self.seeds).transpose()?;
            let setting = first.zip(last).map(|(first, last)| first.common(&last));
            Ok(Played { key: point.key.clone(), setting })
        };
        self.points.iter().map(played).collect()
    }
}
