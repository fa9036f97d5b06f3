//! Plants what a device need not survive; each mistake has to be found.

use super::launch;

fn fault(body: &str, lanes: u32, output: usize, input: &[u8]) -> String {
    let fault = launch(body, lanes, output, input).expect_err("a fault");
    format!("line {} lane {}: {}", fault.line, fault.lane, fault.what)
}

#[test]
fn accesses_stay_inside_their_buffer() {
    let found = fault("st.global.u32 [%rd1+8], 1;", 1, 8, &[]);
    assert_eq!(found, "line 20 lane 0: byte 8 is outside of argument 0, which has 8");
    let found = fault("ld.global.nc.u32 %r1, [%rd2+4];", 1, 8, &[0; 4]);
    assert_eq!(found, "line 20 lane 0: byte 4 is outside of argument 1, which has 4");
    // Before the first byte of a buffer is no other buffer.
    launch("ld.global.nc.u32 %r1, [%rd2+-4];", 1, 8, &[0; 4]).expect_err("a fault");
    assert!(fault("st.shared.u32 [shared_bytes_+64], 1;", 1, 8, &[]).contains("outside of shared memory"));
}

#[test]
fn accesses_are_aligned() {
    assert!(fault("st.global.f64 [%rd1+4], 0d0000000000000000;", 1, 16, &[]).contains("is not aligned to 8 bytes"));
    assert!(fault("ld.global.v2.f64 {%fd1, %fd2}, [%rd1+8];", 1, 32, &[]).contains("is not aligned to 16 bytes"));
}

#[test]
fn inputs_are_not_written() {
    let found = fault("st.global.u32 [%rd2], 1;", 1, 8, &[0; 8]);
    assert_eq!(found, "line 20 lane 0: writes argument 1, which is an input");
}

#[test]
fn outputs_are_not_read_through_the_read_only_cache() {
    assert!(fault("ld.global.nc.u32 %r1, [%rd1];", 1, 8, &[]).contains("read-only cache"));
    launch("ld.global.u32 %r1, [%rd1];", 1, 8, &[]).expect("an ordinary load");
}

#[test]
fn shared_memory_is_written_before_it_is_read() {
    let found = fault("ld.shared.u32 %r1, [shared_bytes_+4];", 1, 8, &[]);
    assert_eq!(found, "line 20 lane 0: reads byte 4 of shared memory, which was not written");
    launch("st.shared.u32 [shared_bytes_+4], 1;\nld.shared.u32 %r1, [shared_bytes_+4];", 1, 8, &[]).expect("written");
}

#[test]
fn spaces_are_what_the_instruction_names() {
    assert!(fault("ld.shared.u32 %r1, [%rd2];", 1, 8, &[0; 8]).contains("not in the space"));
    assert!(fault("ld.global.u32 %r1, [shared_bytes_];", 1, 8, &[]).contains("is not a buffer"));
}

#[test]
fn all_lanes_reach_the_same_barrier() {
    let body = "setp.eq.s32 %p1, %r0, 3;
	@%p1 bra $L__BB0_1;
	bar.sync 0;
$L__BB0_1:
	bar.sync 0;";
    assert_eq!(fault(body, 8, 8, &[]), "line 24 lane 3: waits at line 24, and lane 0 at line 22");
    let body = "setp.eq.s32 %p1, %r0, 3;
	@%p1 bra $L__BB0_1;
	bar.sync 0;
$L__BB0_1:";
    assert!(fault(body, 8, 8, &[]).starts_with("line 0 lane 3: waits"));
}

#[test]
fn whole_warps_shuffle() {
    let body = "shfl.sync.bfly.b32 %r1|%p1, %r0, 1, 31, -1;";
    assert!(fault(body, 16, 8, &[]).contains("shuffles 16 lanes"));
    let body = "setp.eq.s32 %p1, %r0, 3;
	@%p1 bra $L__BB0_1;
	shfl.sync.bfly.b32 %r1|%p1, %r0, 1, 31, -1;
$L__BB0_1:";
    assert!(fault(body, 32, 8, &[]).contains("does not take part in the shuffle"));
}
