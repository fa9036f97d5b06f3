//! libFuzzer entry of `ns_fuzz::map`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    ns_fuzz::map(data);
});
