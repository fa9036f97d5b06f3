//! Tests that launches compute what they should, and that what a device need not survive is found.

mod arithmetic;
mod faults;
mod self_test;

use ns_ptx::{Argument, Coverage, LaneOrder, Module, Outcome, Recording, Violation};

/// Returns the text of a kernel `test` with a buffer that it writes, one that it reads, and `body`.
/// `%rd1` is the address of the first, `%rd2` that of the second, `%r0` the lane.
fn text(body: &str) -> String {
    format!(
        ".version 8.0
.target sm_70
.address_size 64
.extern .shared .align 16 .b8 shared_bytes_[];
.visible .entry test(
	.param .u64 test_param_0,
	.param .u64 test_param_1
)
.maxntid 128, 1, 1
{{
	.reg .pred 	%p<9>;
	.reg .b16 	%rs<9>;
	.reg .b32 	%r<20>;
	.reg .f32 	%f<20>;
	.reg .b64 	%rd<20>;
	.reg .f64 	%fd<20>;
	ld.param.u64 	%rd1, [test_param_0];
	ld.param.u64 	%rd2, [test_param_1];
	mov.u32 	%r0, %tid.x;
	{body}
	ret;
}}
"
    )
}

/// Launches a kernel of `lanes` lanes with `body`, an output of `output` bytes and `input`.
fn launch(body: &str, lanes: u32, output: usize, input: &[u8]) -> Result<Outcome, Violation> {
    let module = Module::parse(&text(body)).expect("PTX");
    let recording = Recording {
        kernel: "test".to_owned(),
        blocks: 1,
        lanes,
        shared_reals: 8,
        real_bytes: 8,
        arguments: vec![
            Argument::Written { before: vec![0; output], after: vec![0; output] },
            Argument::Read(input.to_vec()),
        ],
    };
    ns_ptx::run(&module, &recording, LaneOrder::Ascending, &mut Coverage::new(&module))
}
