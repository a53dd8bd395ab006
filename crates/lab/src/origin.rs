//! The provenance of this program's output: build, command line, date, machine.

use std::env;
use std::fs;
use std::num::NonZero;
use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};

use report::provenance::{Machine, Origin, Program, quoted};

const SECONDS_A_DAY: u64 = 86_400;

/// The origin of this process's output.
pub fn origin() -> Origin {
    Origin {
        program: program(),
        command: command(env::args_os().map(|it| it.to_string_lossy().into_owned())),
        date: date(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()),
        machine: machine(),
    }
}

/// This build of the program.
pub fn program() -> Program {
    Program {
        name: "hearsay-lab".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        commit: env!("HEARSAY_COMMIT").to_owned(),
    }
}

/// The command line as a user would type it.
fn command(words: impl Iterator<Item = String>) -> String {
    let as_typed = |(place, word): (usize, String)| match (place, word.as_str()) {
        (0, _) => "hearsay-lab".to_owned(),
        // `inside` is started by `run` only.
        (1, "inside") => "run".to_owned(),
        _ => quoted(&word),
    };
    words.enumerate().map(as_typed).collect::<Vec<_>>().join(" ")
}

fn machine() -> Machine {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let kernel = ["ostype", "osrelease"].map(|it| read(&format!("/proc/sys/kernel/{it}")));
    Machine {
        cpu: cpu(&read("/proc/cpuinfo")).unwrap_or(env::consts::ARCH).to_owned(),
        cores: thread::available_parallelism().map_or(1, NonZero::get),
        kernel: kernel.map(|it| it.trim().to_owned()).join(" ").trim().to_owned(),
    }
}

/// The processor's model in `/proc/cpuinfo`; some architectures have none.
fn cpu(info: &str) -> Option<&str> {
    let mut facts = info.lines().filter_map(|line| line.split_once(':'));
    let (_, model) = facts.find(|(name, _)| name.trim() == "model name")?;
    Some(model.trim()).filter(|it| !it.is_empty())
}

/// A time since 1970 in RFC 3339's format, by Howard Hinnant's algorithm for dates.
fn date(seconds: u64) -> String {
    let (days, second) = (seconds / SECONDS_A_DAY, seconds % SECONDS_A_DAY);
    // Years begin in March here, so that the leap day is their last day.
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = 400 * era + year + u64::from(month <= 2);
    let [hour, minute, second] = [second / 3600, second / 60 % 60, second % 60];
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (seconds, shown) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_735_689_599, "2024-12-31T23:59:59Z"),
            (1_795_462_871, "2026-11-23T19:41:11Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(date(seconds), shown);
        }
    }

    #[test]
    fn the_command_can_be_typed_again() {
        let words = ["/proc/self/exe", "inside", "chain", "--set", "receivers=1 2"];
        let typed = command(words.map(str::to_owned).into_iter());
        assert_eq!(typed, "hearsay-lab run chain --set 'receivers=1 2'");
    }

    #[test]
    fn a_processor_without_a_name_is_one_of_its_kind() {
        let info = "processor\t: 0\nmodel\t\t: 85\nmodel name\t: A  B @ 2GHz\n";
        assert_eq!(cpu(info), Some("A  B @ 2GHz"));
        assert_eq!(cpu("processor\t: 0\nBogoMIPS\t: 50\n"), None);
        let now = origin();
        assert!(!now.machine.cpu.is_empty() && now.machine.kernel.starts_with("Linux "));
        assert!(now.program.commit == "unknown" || now.program.commit.len() >= 12);
    }
}
