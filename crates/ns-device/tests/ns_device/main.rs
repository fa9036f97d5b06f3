//! The tests of ns-device through its public interface, in one binary.
//!
//! Tests of the CUDA and OpenCL backends, and one of the emulation, run this binary again as a
//! child process: with a stand-in for the driver's library, which must be found when a process
//! starts, and for an abort.

#[cfg(all(feature = "cuda", target_os = "linux"))]
mod cuda;
mod emulation;
mod hardware;
#[cfg(all(feature = "opencl", target_os = "linux"))]
mod opencl;
mod ptx;
#[cfg(all(any(feature = "cuda", feature = "opencl"), target_os = "linux"))]
mod stand_in;
