//! The files of a reproduction: each says where it comes from, and a manifest lists them.

use std::fs;
use std::path::{Path, PathBuf};

use papers::experiment::Summary;
use report::provenance::Provenance;
use serde::Serialize;

use crate::failure::Failure;

/// The schema of [`Manifest`], with where it comes from beside it.
const SCHEMA: &str = "hearsay/manifest/1";

/// What a reproduction consists of.
#[derive(Serialize)]
struct Manifest {
    files: Vec<Entry>,
}

/// A file.
#[derive(Serialize)]
struct Entry {
    /// From the manifest's folder.
    path: String,
    bytes: usize,
    /// In hexadecimal digits.
    blake3: String,
}

/// The files of one reproduction.
pub struct Files<'a> {
    name: &'a str,
    folder: &'a Path,
    provenance: Provenance,
    written: Vec<Entry>,
}

impl<'a> Files<'a> {
    /// None yet; their names all begin with this one.
    pub fn new(name: &'a str, folder: &'a Path, provenance: Provenance) -> Self {
        Self { name, folder, provenance, written: Vec::new() }
    }

    /// Writes them all, the manifest last, which lists the outcomes of runs that were kept too. Gives where the
    /// page is.
    pub fn write(
        mut self,
        summary: &Summary,
        json: &str,
        kept: &[PathBuf],
    ) -> Result<String, Failure> {
        let origin = self.provenance.clone();
        self.add("-runs.csv", &origin.on_csv(&summary.runs_csv))?;
        self.add(".csv", &origin.on_csv(&summary.rows_csv))?;
        for picture in &summary.findings.pictures {
            self.add(&format!("-{}.svg", picture.name), &origin.on_svg(&picture.svg))?;
        }
        self.add(".json", json)?;
        let page = self.add(".html", &origin.on_html(&summary.html))?;
        for path in kept {
            let bytes = fs::read(path).map_err(|error| failed("read", path, &error))?;
            self.list(format!("{}/{}", self.name, file_name(path)), &bytes);
        }
        let manifest = origin.on(SCHEMA, Manifest { files: std::mem::take(&mut self.written) });
        let manifest = serde_json::to_string_pretty(&manifest).map_err(Failure::failed)? + "\n";
        self.add("-manifest.json", &manifest)?;
        Ok(page)
    }

    /// Gives where it is.
    fn add(&mut self, ending: &str, text: &str) -> Result<String, Failure> {
        let path = self.folder.join(format!("{}{ending}", self.name));
        fs::write(&path, text).map_err(|error| failed("write", &path, &error))?;
        self.list(file_name(&path), text.as_bytes());
        Ok(path.display().to_string())
    }

    fn list(&mut self, path: String, content: &[u8]) {
        let blake3 = blake3::hash(content).to_hex().to_string();
        self.written.push(Entry { path, bytes: content.len(), blake3 });
    }
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn failed(what: &str, path: &Path, error: &std::io::Error) -> Failure {
    Failure::failed(format!("cannot {what} {}: {error}", path.display()))
}
