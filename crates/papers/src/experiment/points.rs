//! What the points of an experiment are played in, for those who want to play one again.

use report::provenance::Setting;

use super::{Key, Plan, Point, Run, Trial};

/// A seed's setting.
pub(super) type MakeSetting = Box<dyn Fn(u64) -> Result<Setting, String> + Send + Sync>;

/// A point, and what it is played in.
#[derive(Clone, Debug)]
pub struct Played {
    /// Which one.
    pub key: Key,
    /// Its keys that are the same for all seeds; `None` if nobody knows.
    pub setting: Option<Setting>,
}

impl Point {
    /// The same point, which says what it is played in.
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
    /// How many runs there are of each point, with seeds from 1 on.
    pub fn seeds(&self) -> u64 {
        self.seeds
    }

    /// What each point is played in.
    ///
    /// # Errors
    /// A sentence on what is wrong with a scenario.
    pub fn played(&self) -> Result<Vec<Played>, String> {
        let played = |point: &Point| {
            // What seeds decide is different in any two of them.
            let first = point.setting(1).transpose()?;
            let last = point.setting(self.seeds).transpose()?;
            let setting = first.zip(last).map(|(first, last)| first.common(&last));
            Ok(Played { key: point.key.clone(), setting })
        };
        self.points.iter().map(played).collect()
    }
}
