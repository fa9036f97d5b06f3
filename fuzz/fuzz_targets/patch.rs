//! libFuzzer entry of `ns_fuzz::patch`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    ns_fuzz::patch(data);
});
