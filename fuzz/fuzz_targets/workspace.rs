//! libFuzzer entry of `ns_fuzz::workspace`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    ns_fuzz::workspace(data);
});
