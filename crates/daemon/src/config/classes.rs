//! The content classes: the program's own tables, and those of `classes.d` beside the configuration file.

use super::problem::ConfigError;
use classes::Classes;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The files of `classes.d`: the name and the text of each, in the order in which they count.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tables(Vec<(String, String)>);

impl Tables {
    /// Reads the folder beside a configuration file, if there is one. Each error is added to `wrong`.
    pub fn beside(file: &Path, wrong: &mut ConfigError) -> Self {
        let folder = file.parent().unwrap_or(Path::new("")).join("classes.d");
        let paths = match list(&folder) {
            Ok(paths) => paths,
            Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
            Err(error) => {
                wrong.add(folder.display().to_string(), format!("cannot be read: {error}"));
                Vec::new()
            }
        };
        let mut tables = Vec::new();
        for path in paths {
            let name = path.display().to_string();
            match std::fs::read_to_string(&path) {
                Ok(text) => tables.push((name, text)),
                Err(error) => wrong.add(name, format!("cannot be read: {error}")),
            }
        }
        let tables = Self(tables);
        // The program's own tables need no check: most commands never use them.
        if !tables.0.is_empty() {
            tables.add_to(Classes::builtin(), wrong);
        }
        tables
    }

    /// All classes: the program's, extended by these.
    pub fn classes(&self) -> Classes {
        // Errors were reported when the files were read.
        self.add_to(Classes::builtin(), &mut ConfigError::default())
    }

    fn add_to(&self, mut classes: Classes, wrong: &mut ConfigError) -> Classes {
        for (name, text) in &self.0 {
            match classes.clone().with(name, text) {
                Ok(more) => classes = more,
                Err(problem) => wrong.add(problem.place, problem.text),
            }
        }
        classes
    }
}

/// The tables in a folder, by name.
fn list(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(folder)?;
    let mut paths: Vec<PathBuf> =
        entries.map(|entry| entry.map(|it| it.path())).collect::<Result<_, _>>()?;
    paths.retain(|path| path.extension().is_some_and(|it| it == "toml"));
    paths.sort();
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str =
        "name = \"ours\"\nhosts = [\"a.test\"]\n[[immutable]]\npaths = [\"/x/**\"]\n";

    fn read(files: &[(&str, &str)]) -> (Tables, ConfigError) {
        let dir = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(dir.path().join("classes.d")).expect("a folder in it");
        for (name, text) in files {
            std::fs::write(dir.path().join("classes.d").join(name), text).expect("a file");
        }
        let mut wrong = ConfigError::default();
        let tables = Tables::beside(&dir.path().join("hearsay.toml"), &mut wrong);
        (tables, wrong)
    }

    #[test]
    fn tables_extend_the_programs_own() {
        let (tables, wrong) = read(&[("a.toml", TABLE), ("notes.txt", "no table")]);
        assert_eq!(wrong, ConfigError::default());
        let classes = tables.classes();
        assert!(classes.find("ours").is_some() && classes.find("apt").is_some());
    }

    #[test]
    fn a_wrong_table_names_its_file_and_line_and_leaves_the_others() {
        let (tables, wrong) = read(&[("a.toml", "name = \"bad\"\nhots = []\n"), ("b.toml", TABLE)]);
        let text = wrong.to_string();
        assert!(
            text.contains("classes.d/a.toml:2: ") && text.contains("did you mean `hosts`?"),
            "{text}"
        );
        assert!(tables.classes().find("ours").is_some());
    }

    #[test]
    fn without_a_folder_there_are_only_the_programs_own() {
        let mut wrong = ConfigError::default();
        let tables = Tables::beside(Path::new("/nowhere/hearsay.toml"), &mut wrong);
        assert_eq!((tables, wrong), (Tables::default(), ConfigError::default()));
    }
}
