//! The output and exit code of a command.

use std::process::ExitStatus;
use std::time::Duration;

use serde_json::Value;

use super::schema;

/// The beginning of a run's note that the machine was too busy for it.
pub const LATE: &str = "this run is NOT VALID";

#[derive(Debug)]
pub struct Ended {
    pub status: ExitStatus,
    pub out: String,
    pub err: String,
    pub took: Duration,
}

impl Ended {
    /// Whether the run says that it was late, so that its figures do not count.
    pub fn is_late(&self) -> bool {
        self.err.contains(LATE)
    }

    /// Checks the exit code, and that the command did not panic.
    #[track_caller]
    pub fn expect(self, code: i32) -> Self {
        assert_eq!(self.status.code(), Some(code), "{}{}", self.out, self.err);
        assert!(!self.err.contains("panicked"), "{}", self.err);
        self
    }

    /// Checks that it was refused in one line with these words.
    #[track_caller]
    pub fn expect_refusal(self, parts: &[&str]) -> Self {
        let this = self.expect(2);
        assert_eq!(this.out, "");
        assert!(
            this.err.starts_with("hearsay-lab: ")
                && this.err.ends_with('\n')
                && this.err.lines().count() == 1,
            "not one line: {:?}",
            this.err
        );
        for part in parts {
            assert!(this.err.contains(part), "no {part:?} in: {}", this.err);
        }
        this
    }

    /// Standard output as JSON, validated against the schema that it names.
    #[track_caller]
    pub fn json(&self) -> Value {
        let json: Value =
            serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {}", self.out));
        let each = json.as_array().map_or(std::slice::from_ref(&json), Vec::as_slice);
        each.iter().for_each(schema::assert_valid);
        json
    }
}
