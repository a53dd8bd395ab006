//! Overhearing any bytes: no wrong chunk, no panic, memory within the budget.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| node::testing::overheard(bytes));
