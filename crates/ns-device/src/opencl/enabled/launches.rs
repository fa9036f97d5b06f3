//! Launches that are not known to be done: their failures, and the time that they took.

use cl3::event::{self, CL_EVENT_COMMAND_EXECUTION_STATUS, CL_PROFILING_COMMAND_END, CL_PROFILING_COMMAND_START};
use cl3::types::{cl_event, cl_int};
use std::collections::VecDeque;
use std::time::Duration;

/// The status of a command that is done; failed ones have a negative status.
const COMPLETE: cl_int = 0;
/// Launches that are kept before the first of them are looked at.
const MANY: usize = 256;

/// The launches of a queue, in order.
#[derive(Default)]
pub(super) struct Launches {
    pending: VecDeque<cl_event>,
    /// The first failure that no wait has returned yet.
    failed: Option<cl_int>,
    /// The time that those which are done spent in kernels.
    pub(super) kernel_time: Duration,
}

impl Launches {
    pub(super) fn add(&mut self, launch: cl_event) {
        self.pending.push_back(launch);
        if self.pending.len() > MANY {
            self.note_ended();
        }
    }

    /// Takes note of the launches that are done, up to the first that is not. Returns the first
    /// failure, once: whether the device can go on is for the caller to decide.
    pub(super) fn settle(&mut self) -> Result<(), cl_int> {
        self.note_ended();
        self.failed.take().map_or(Ok(()), Err)
    }

    fn note_ended(&mut self) {
        while let Some(&launch) = self.pending.front() {
            match status(launch) {
                Ok(status) if status > COMPLETE => break,
                Ok(COMPLETE) => self.kernel_time += time_of(launch),
                Ok(failure) | Err(failure) => self.failed = self.failed.or(Some(failure)),
            }
            self.pending.pop_front();
            release(launch);
        }
    }
}

fn status(launch: cl_event) -> Result<cl_int, cl_int> {
    let bytes = event::get_event_data(launch, CL_EVENT_COMMAND_EXECUTION_STATUS)?;
    Ok(bytes.first_chunk().map_or(COMPLETE, |bytes| cl_int::from_le_bytes(*bytes)))
}

/// Returns the time between start and end; zero from a driver that does not know it.
fn time_of(launch: cl_event) -> Duration {
    let at = |what| profiled(launch, what).unwrap_or(0);
    Duration::from_nanos(at(CL_PROFILING_COMMAND_END).saturating_sub(at(CL_PROFILING_COMMAND_START)))
}

/// Returns a time of an event's profile, in nanoseconds.
pub(super) fn profiled(event: cl_event, what: u32) -> Result<u64, cl_int> {
    let bytes = event::get_event_profiling_data(event, what)?;
    Ok(bytes.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes)))
}

/// Gives up an event, which is not used again.
#[expect(unsafe_code, reason = "the interface is C")]
pub(super) fn release(event: cl_event) {
    // SAFETY: the driver gave it to this backend, which releases it once.
    let _ = unsafe { event::release_event(event) };
}
