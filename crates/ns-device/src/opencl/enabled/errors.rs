//! The errors of OpenCL's calls, by their names.

use crate::driver::DriverError;
use cl3::error_codes::{
    self, CL_CONTEXT_TERMINATED_KHR, CL_DEVICE_NOT_AVAILABLE, CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST,
    CL_INVALID_COMMAND_QUEUE, CL_INVALID_CONTEXT, CL_INVALID_EVENT, CL_MEM_OBJECT_ALLOCATION_FAILURE,
    CL_OUT_OF_HOST_MEMORY, CL_OUT_OF_RESOURCES,
};
use cl3::types::cl_int;

/// Returns the name of a status, such as `CL_OUT_OF_RESOURCES`, or its number if it has none.
pub(super) fn name(status: cl_int) -> String {
    match error_codes::error_text(status) {
        name if name.starts_with("CL_") => format!("{name} ({status})"),
        _ => format!("error {status}"),
    }
}

/// Returns the conversion of a status to the error of `operation`.
pub(super) fn failed(operation: &'static str) -> impl Fn(cl_int) -> DriverError {
    move |status| DriverError { operation, detail: name(status), fatal: is_of_a_lost_device(status) }
}

/// Returns the conversion of the status of work that was waited for. A driver has no better word
/// for a kernel that crashed than the lack of resources, and the queue is of no use afterwards. Too
/// little memory for a buffer, which some drivers allocate when it is first used, is no crash.
pub(super) fn failed_work(operation: &'static str) -> impl Fn(cl_int) -> DriverError {
    move |status| {
        let fatal = status != CL_MEM_OBJECT_ALLOCATION_FAILURE;
        DriverError { operation, detail: name(status), fatal }
    }
}

fn is_of_a_lost_device(status: cl_int) -> bool {
    matches!(
        status,
        CL_DEVICE_NOT_AVAILABLE
            | CL_CONTEXT_TERMINATED_KHR
            | CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST
            | CL_INVALID_COMMAND_QUEUE
            | CL_INVALID_CONTEXT
            | CL_INVALID_EVENT
    )
}

/// Returns `true` for a status that says that there is too little memory.
pub(super) fn is_of_memory(status: cl_int) -> bool {
    matches!(status, CL_MEM_OBJECT_ALLOCATION_FAILURE | CL_OUT_OF_RESOURCES | CL_OUT_OF_HOST_MEMORY)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_little_memory_stops_a_call_and_a_crash_the_device() {
        let memory = failed_work("upload")(CL_MEM_OBJECT_ALLOCATION_FAILURE);
        assert_eq!((memory.detail.as_str(), memory.fatal), ("CL_MEM_OBJECT_ALLOCATION_FAILURE (-4)", false));
        assert!(failed_work("download")(CL_OUT_OF_RESOURCES).fatal);
    }
}
