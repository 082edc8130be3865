//! Any bytes as a model.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = argwhy_io::decode_model(bytes);
});
