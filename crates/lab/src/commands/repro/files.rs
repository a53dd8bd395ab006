//! The files of a reproduction: each carries its provenance, and a manifest lists them.

use std::fs;
use std::path::{Path, PathBuf};

use papers::experiment::Summary;
use report::provenance::Provenance;
use serde::Serialize;

use crate::console;
use crate::failure::Failure;

/// Name of the schema of [`Manifest`] with its provenance.
const SCHEMA: &str = "hearsay/manifest/1";

/// The list of a reproduction's files.
#[derive(Serialize)]
struct Manifest {
    files: Vec<Entry>,
}

/// A file.
#[derive(Serialize)]
struct Entry {
    /// The path relative to the manifest.
    path: String,
    bytes: usize,
    /// The BLAKE3 digest in hexadecimal.
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
    /// No files yet; all names will begin with `name`.
    pub fn new(name: &'a str, folder: &'a Path, provenance: Provenance) -> Self {
        Self { name, folder, provenance, written: Vec::new() }
    }

    /// Writes all files, the manifest last. The manifest lists kept outcomes too. Returns the path of the
    /// page.
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
            let failed =
                |error| Failure::failed(format!("cannot read {}: {error}", path.display()));
            let bytes = fs::read(path).map_err(failed)?;
            self.list(format!("{}/{}", self.name, file_name(path)), &bytes);
        }
        let manifest = origin.on(SCHEMA, Manifest { files: std::mem::take(&mut self.written) });
        let manifest = serde_json::to_string_pretty(&manifest).map_err(Failure::failed)? + "\n";
        self.add("-manifest.json", &manifest)?;
        Ok(page)
    }

    /// Writes one file, and returns its path.
    fn add(&mut self, ending: &str, text: &str) -> Result<String, Failure> {
        let path = self.folder.join(format!("{}{ending}", self.name));
        console::write(&path, text)?;
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
