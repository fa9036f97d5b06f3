//! Compares instructions with what Rust computes.

use super::launch;
use ns_ptx::{Argument, Coverage, FusedModule, LaneOrder, Module, Recording, fuse_at_random};

/// Executes `body`, which leaves its result in `%rd0`, and returns the bits.
fn bits(body: &str) -> u64 {
    let outcome = launch(&format!("{body}\nst.global.u64 [%rd1], %rd0;"), 1, 8, &[]).expect("no fault");
    u64::from_le_bytes(outcome.buffers[0][..].try_into().expect("8 bytes"))
}

fn double(body: &str) -> f64 {
    f64::from_bits(bits(&format!("{body}\nmov.b64 %rd0, %fd0;")))
}

fn single(body: &str) -> f32 {
    f32::from_bits(bits(&format!("{body}\nmov.b32 %r1, %f0;\ncvt.u64.u32 %rd0, %r1;")) as u32)
}

fn word(body: &str) -> u32 {
    bits(&format!("{body}\ncvt.u64.u32 %rd0, %r1;")) as u32
}

fn f64_constant(value: f64) -> String {
    format!("0d{:016X}", value.to_bits())
}

fn f32_constant(value: f32) -> String {
    format!("0f{:08X}", value.to_bits())
}

#[test]
fn floats_follow_ieee_754() {
    let (a, b, c) = (1.1, -3.7, 0.3);
    let [x, y, z] = [a, b, c].map(f64_constant);
    assert_eq!(double(&format!("add.f64 %fd0, {x}, {y};")), a + b);
    assert_eq!(double(&format!("sub.f64 %fd0, {x}, {y};")), a - b);
    assert_eq!(double(&format!("mul.f64 %fd0, {x}, {y};")), a * b);
    assert_eq!(double(&format!("div.rn.f64 %fd0, {x}, {y};")), a / b);
    assert_eq!(double(&format!("sqrt.rn.f64 %fd0, {x};")), a.sqrt());
    assert_eq!(double(&format!("fma.rn.f64 %fd0, {x}, {y}, {z};")), f64::mul_add(a, b, c));
    assert_eq!(double(&format!("max.f64 %fd0, {x}, {};", f64_constant(f64::NAN))), a);
    assert_eq!(single(&format!("neg.f32 %f0, {};", f32_constant(2.5))), -2.5);
}

#[test]
fn the_approximate_reciprocal_has_no_low_bits() {
    for value in [3.0, -7.25e80, 1.0 / 3.0] {
        let found = double(&format!("rcp.approx.ftz.f64 %fd0, {};", f64_constant(value)));
        assert_eq!(found.to_bits() & 0xffff_ffff, 0);
        assert!((found * value - 1.0).abs() < 2e-6, "1/{value} is {found}");
    }
    assert_eq!(double(&format!("rcp.approx.ftz.f64 %fd0, {};", f64_constant(0.0))), f64::INFINITY);
    assert_eq!(double(&format!("rcp.approx.ftz.f64 %fd0, {};", f64_constant(5e-324))), f64::INFINITY);
}

#[test]
fn sums_round_downwards_where_they_say_so() {
    // 1 + 2⁻³⁰ is between 1 and the next number; 1 - 2⁻³⁰ between the one before and 1.
    let fma = |c: f32| single(&format!("fma.rm.f32 %f0, {0}, {0}, {1};", f32_constant(1.0), f32_constant(c)));
    assert_eq!(fma(2.0_f32.powi(-30)), 1.0);
    assert_eq!(fma(-(2.0_f32.powi(-30))), 1.0_f32.next_down());
    assert_eq!(fma(-(2.0_f32.powi(-80))), 1.0_f32.next_down());
    assert_eq!(fma(1.5), 2.5);
}

#[test]
fn integers_wrap_shift_and_extend() {
    assert_eq!(word("sub.s32 %r1, 3, 5;"), 3_u32.wrapping_sub(5));
    assert_eq!(word("mul.lo.s32 %r1, -7, 9;"), (-63_i32) as u32);
    assert_eq!(bits("mul.wide.s32 %rd0, -7, 9;"), (-63_i64) as u64);
    assert_eq!(bits("mul.wide.u32 %rd0, -7, 9;"), u64::from((-7_i32) as u32) * 9);
    assert_eq!(bits("mad.wide.u32 %rd0, 3, 5, -8;"), 7);
    assert_eq!(word("shr.s32 %r1, -8, 40;"), u32::MAX);
    assert_eq!(word("shr.u32 %r1, -8, 40;"), 0);
    assert_eq!(word("shl.b32 %r1, 1, 31;"), 1 << 31);
    assert_eq!(word("div.u32 %r1, 17, 5;"), 3);
    assert_eq!(word("rem.u32 %r1, 17, 5;"), 2);
    assert_eq!(word("clz.b64 %r1, 4096;"), 51);
    assert_eq!(word("bfi.b32 %r1, 255, 0, 4, 3;"), 0b111_0000);
    assert_eq!(word("mov.u32 %r2, -1;\ncvt.u16.u32 %rs1, %r2;\ncvt.u32.u16 %r1, %rs1;"), 0xffff);
    assert_eq!(word("setp.gt.s16 %p1, -1, -2;\nselp.b32 %r1, 5, 6, %p1;"), 5);
}

#[test]
fn conversions_round_and_saturate() {
    let to_integer = |name: &str, value: f64| word(&format!("cvt.{name}.f64 %r1, {};", f64_constant(value)));
    assert_eq!(to_integer("rni.s32", 2.5), 2);
    assert_eq!(to_integer("rni.s32", -3.5), (-4_i32) as u32);
    assert_eq!(to_integer("rzi.u32", 3.9), 3);
    assert_eq!(to_integer("rzi.u32", -1.0), 0);
    assert_eq!(to_integer("rzi.u32", f64::NAN), 1 << 31);
    assert_eq!(word(&format!("cvt.rni.s32.f32 %r1, {};", f32_constant(f32::NAN))), 0);
    assert_eq!(double(&format!("cvt.rmi.f64.f64 %fd0, {};", f64_constant(-1.5))), -2.0);
    assert_eq!(double("cvt.rn.f64.s32 %fd0, -3;"), -3.0);
    assert_eq!(single(&format!("cvt.sat.f32.f32 %f0, {};", f32_constant(1.5))), 1.0);
    assert_eq!(single(&format!("cvt.sat.f32.f32 %f0, {};", f32_constant(f32::NAN))), 0.0);
}

#[test]
fn comparisons_know_what_a_nan_is() {
    let nan = f64_constant(f64::NAN);
    for (name, expected) in [("eq", 0), ("neu", 1), ("lt", 0), ("ltu", 1), ("geu", 1), ("num", 0), ("nan", 1)] {
        let body = format!("setp.{name}.f64 %p1, {nan}, {};\nselp.b32 %r1, 1, 0, %p1;", f64_constant(1.0));
        assert_eq!(word(&body), expected, "{name}");
    }
}

#[test]
fn carries_reach_the_next_word() {
    // (2³² - 1) + 1 with a carry into the upper word, which is 7.
    assert_eq!(word("add.cc.u32 %r2, -1, 1;\naddc.u32 %r1, 7, 0;"), 8);
    assert_eq!(word("sub.cc.u32 %r2, 0, 1;\nsubc.u32 %r1, 7, 0;"), 6);
    assert_eq!(word("mad.lo.cc.u32 %r2, -1, -1, -1;\nmadc.hi.u32 %r1, -1, -1, 0;"), u32::MAX);
}

#[test]
fn inner_registers_hide_outer_ones() {
    assert_eq!(word("mov.u32 %r1, 3;\n{\n.reg .b32 %r1;\nmov.u32 %r1, 4;\n}"), 3);
}

#[test]
fn lanes_of_a_warp_exchange_values() {
    let body = "shfl.sync.bfly.b32 %r1|%p1, %r0, 5, 31, -1;
	mul.wide.u32 %rd3, %r0, 4;
	add.s64 %rd4, %rd1, %rd3;
	st.global.u32 [%rd4], %r1;";
    let outcome = launch(body, 64, 256, &[]).expect("no fault");
    for (lane, bytes) in (0..).zip(outcome.buffers[0].chunks(4)) {
        assert_eq!(u32::from_le_bytes(bytes.try_into().expect("4 bytes")), lane ^ 5, "lane {lane}");
    }
}

#[test]
fn a_fused_product_has_one_rounding() {
    // (1 + ε)(1 - ε) - 1 is 0 with a rounded product, -ε² with a fused one.
    let [x, y, one] = [1.0 + f64::EPSILON, 1.0 - f64::EPSILON, 1.0].map(f64_constant);
    let body = format!(
        "mov.f64 %fd1, {x};
	mul.f64 %fd2, %fd1, {y};
	sub.f64 %fd3, %fd2, {one};
	st.global.f64 [%rd1], %fd3;"
    );
    let module = Module::parse(&super::text(&body)).expect("PTX");
    let recording = Recording {
        kernel: "test".to_owned(),
        blocks: 1,
        lanes: 1,
        shared_reals: 0,
        real_bytes: 8,
        arguments: vec![Argument::Written { before: vec![0; 8], after: vec![0; 8] }, Argument::Read(Vec::new())],
    };
    let mut found = [false; 2];
    for seed in 0..20 {
        let FusedModule { module: fused, n_fused } = fuse_at_random(&module, seed);
        let outcome = ns_ptx::run(&fused, &recording, LaneOrder::Ascending, &mut Coverage::new(&fused));
        let bytes = outcome.expect("no fault").buffers.swap_remove(0);
        let expected = -(n_fused as f64) * f64::EPSILON * f64::EPSILON;
        assert_eq!(f64::from_le_bytes(bytes.try_into().expect("8 bytes")), expected);
        found[n_fused] = true;
    }
    assert_eq!(found, [true, true], "some seeds fuse it, and some do not");
}

#[test]
fn what_is_unknown_is_an_error_with_its_line() {
    let error = Module::parse(&super::text("vote.sync.any.pred %p1, %p2, -1;")).expect_err("unknown");
    assert_eq!(error.to_string(), "line 20: `vote.sync.any.pred` is not an instruction that is known here");
    for instruction in [
        "add.rz.f64 %fd1, %fd2, %fd3",
        "add.sat.f32 %f1, %f2, %f3",
        "mul.ftz.f32 %f1, %f2, %f3",
        "fma.rn.ftz.f32 %f1, %f2, %f3, %f4",
        "min.NaN.f64 %fd1, %fd2, %fd3",
        "setp.lt.and.f64 %p1, %fd1, %fd2, %p2",
        "add.f64 %fd1, %fd2, %fd3, %fd4",
        "ld.global.volatile.u32 %r1, [%rd1]",
        "ld.global.s16 %rs1, [%rd1]",
    ] {
        assert!(Module::parse(&super::text(&format!("{instruction};"))).is_err(), "{instruction}");
    }
    let error = Module::parse(&super::text("mov.u32 %r99, 1;")).expect_err("unknown");
    assert_eq!(error.to_string(), "line 20: `%r99` is not a register");
    assert!(Module::parse(&super::text("bra $L__nowhere;")).is_err());
}
