//! libFuzzer entry of `ns_fuzz::root_file`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    ns_fuzz::root_file(data);
});
