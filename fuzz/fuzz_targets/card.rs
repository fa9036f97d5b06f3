//! libFuzzer entry of `ns_fuzz::card`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    ns_fuzz::card(data);
});
