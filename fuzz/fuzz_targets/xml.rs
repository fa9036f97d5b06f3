//! libFuzzer entry of `ns_fuzz::xml`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    ns_fuzz::xml(data);
});
