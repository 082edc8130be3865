//! Any bytes as a file of this format.

#![no_main]

mod reading;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| reading::read("parquet", bytes));
