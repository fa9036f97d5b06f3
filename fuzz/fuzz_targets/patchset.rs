//! libFuzzer entry of `ns_fuzz::patchset`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    ns_fuzz::patchset(data);
});
