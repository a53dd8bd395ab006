//! `hearsay uplink`: shows the pair of the running daemon, or this node's key.

use std::path::PathBuf;

use node::uplink::PairKeys;

use crate::ask;
use crate::cli::ShowUplink;
use crate::config::{Given, Place};
use crate::entropy;
use crate::exit::Failure;
use crate::identity::Identity;
use crate::ledger::total;
use crate::out;
use crate::term::Style;

/// Shows the pair of the running daemon, or this node's key.
pub async fn run(args: &ShowUplink, paths: &[PathBuf]) -> Result<(), Failure> {
    if args.key {
        return print_key(args);
    }
    let status = ask::status(paths).await?;
    let line = status.uplink.ok_or_else(|| {
        Failure::failed("this node's uplink has no far end: set `far` and `far-key` in [uplink]")
    })?;
    match args.json {
        true => out::json(&line),
        false => {
            let referred = total(&status.classes).fetched_far_reference_bytes;
            out::print(line.page(referred, Style::of_stdout()))
        }
    }
}

fn print_key(args: &ShowUplink) -> Result<(), Failure> {
    let place = match &args.store {
        Some(place) => place.clone(),
        None => Given::default().load().map_err(Failure::usage)?.store.place,
    };
    if let Place::Dir(dir) = &place {
        std::fs::create_dir_all(dir).map_err(|error| {
            Failure::failed(format!("{}: cannot be made: {error}", dir.display()))
        })?;
    }
    let identity = Identity::of(&place);
    if let Some(why) = identity.is_temporary {
        return Err(Failure::failed(format!("this node has no lasting key: {why}")));
    }
    out::line(PairKeys::new(&identity.seed, &entropy::bytes()).key())
}
