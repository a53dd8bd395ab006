//! A ledger's file of any bytes is read as far as it makes sense, and what was read can be written and read again.
#![no_main]

use store::ledger::{FILE_BYTES_MAX, read};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let mut ledger = read(bytes).ledger;
    let file = ledger.snapshot();
    assert!(file.len() <= FILE_BYTES_MAX);
    assert_eq!(read(&file).ledger, ledger);
});
