//! libFuzzer entry of `ns_fuzz::hs3`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    ns_fuzz::hs3(data);
});
