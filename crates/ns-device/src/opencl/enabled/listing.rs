//! Which devices the OpenCL drivers of this machine have, in which order, and their properties.

use super::errors;
use crate::{Backend, DeviceError, DeviceLimits, DeviceProperties, Precision};
use cl3::device::{
    self, CL_DEVICE_AVAILABLE, CL_DEVICE_COMPILER_AVAILABLE, CL_DEVICE_DOUBLE_FP_CONFIG, CL_DEVICE_ENDIAN_LITTLE,
    CL_DEVICE_EXTENSIONS, CL_DEVICE_GLOBAL_MEM_SIZE, CL_DEVICE_LOCAL_MEM_SIZE, CL_DEVICE_MAX_MEM_ALLOC_SIZE,
    CL_DEVICE_MAX_WORK_GROUP_SIZE, CL_DEVICE_NAME, CL_DEVICE_SINGLE_FP_CONFIG, CL_DEVICE_TYPE, CL_DEVICE_TYPE_ALL,
    CL_DEVICE_TYPE_CPU, CL_DEVICE_VENDOR, CL_DEVICE_VENDOR_ID, CL_DEVICE_VERSION, CL_DRIVER_VERSION,
    CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT,
};
use cl3::error_codes::{CL_DEVICE_NOT_FOUND, CL_PLATFORM_NOT_FOUND_KHR};
use cl3::platform::{self, CL_PLATFORM_NAME};
use cl3::types::{cl_device_id, cl_int, cl_platform_id};
use std::env;
use std::sync::{Mutex, PoisonError};

/// The widest block that kernels are compiled for: the dialect's `MAX_LANES`.
const MAX_LANES: u32 = 128;
/// NVIDIA's number, whose GPUs are the CUDA backend's.
const NVIDIA: u32 = 0x10de;
/// The variable of the environment that lists NVIDIA's GPUs here, too: for tests of this backend.
const LIST_NVIDIA: &str = "NEXTSTAT_OPENCL_NVIDIA";
/// The platform of Apple, whose GPUs are the Metal backend's.
const APPLE: &str = "Apple";

/// Platforms whose compilers need `-cl-opt-disable`: POCL (the processor of this machine) and
/// Oclgrind (an interpreter that looks for data races).
const UNOPTIMISED: [&str; 2] = ["Portable Computing Language", "Oclgrind"];

/// Held while drivers are asked for their devices: the first call initialises them, and POCL 3.1
/// shows no device to another thread meanwhile.
static LISTING: Mutex<()> = Mutex::new(());

/// A device that can run the kernels.
#[derive(Debug, Clone)]
pub(super) struct ListedDevice {
    pub(super) id: cl_device_id,
    pub(super) properties: DeviceProperties,
    /// What decides whether a compiled program can be used again: device and driver.
    pub(super) identity: String,
    /// Bytes of the largest block of memory.
    pub(super) largest_block: u64,
    /// Whether divisions and roots in single precision can be rounded correctly.
    pub(super) rounds_correctly: bool,
    /// Whether the compiler's first optimisations are to be left out. In POCL they undo the form of
    /// branches that its loops over lanes need, and a whole fit then takes minutes to compile
    /// instead of seconds (seen with 3.1); Oclgrind 21.10 does not know what comes out of them.
    pub(super) is_unoptimised: bool,
}

/// Returns the devices of all platforms, GPUs before processors. Fails without a driver, and where
/// no device of any driver can be used, with the reason of each.
pub(super) fn devices() -> Result<Vec<ListedDevice>, DeviceError> {
    let _listing = LISTING.lock().unwrap_or_else(PoisonError::into_inner);
    let no_driver = |detail: String| DeviceError::NoDriver { backend: Backend::OpenCl, detail: Some(detail) };
    if let Err(error) = cl3::load_library() {
        return Err(no_driver(format!("libOpenCL cannot be loaded: {error}")));
    }
    let platforms = match platform::get_platform_ids() {
        Ok(platforms) if platforms.is_empty() => return Err(no_driver("libOpenCL knows no platform".to_owned())),
        Err(CL_PLATFORM_NOT_FOUND_KHR) => return Err(no_driver("libOpenCL knows no platform".to_owned())),
        Err(status) => return Err(no_driver(errors::name(status))),
        Ok(platforms) => platforms,
    };
    let (mut devices, mut processors, mut reasons) = (Vec::new(), Vec::new(), Vec::new());
    for found in platforms.into_iter().flat_map(of_platform) {
        match found {
            Ok(device) if device.properties.is_processor => processors.push(device),
            Ok(device) => devices.push(device),
            Err(reason) => reasons.push(reason),
        }
    }
    devices.extend(processors);
    if devices.is_empty() && !reasons.is_empty() {
        return Err(DeviceError::NoUsableDevice { backend: Backend::OpenCl, reasons: reasons.join("; ") });
    }
    Ok(devices)
}

/// Returns the devices of a platform, or why they cannot be used.
fn of_platform(platform: cl_platform_id) -> Vec<Result<ListedDevice, String>> {
    let name = platform::get_platform_data(platform, CL_PLATFORM_NAME).map(text).unwrap_or_default();
    if name == APPLE {
        return vec![Err("the backend of Apple's GPUs is `metal`".to_owned())];
    }
    let ids = match device::get_device_ids(platform, CL_DEVICE_TYPE_ALL) {
        Ok(ids) => ids,
        Err(CL_DEVICE_NOT_FOUND) => Vec::new(),
        Err(status) => return vec![Err(format!("{name}: {}", errors::name(status)))],
    };
    ids.into_iter().map(|id| usable(id, &name)).collect()
}

/// Returns a device, or why it cannot run the kernels.
fn usable(id: cl_device_id, platform: &str) -> Result<ListedDevice, String> {
    let reason = match refusal(id) {
        Ok(None) => match listed(id, platform) {
            Ok(device) => return Ok(device),
            Err(status) => errors::name(status),
        },
        Ok(Some(reason)) => reason,
        Err(status) => errors::name(status),
    };
    let name = string(id, CL_DEVICE_NAME).unwrap_or_default();
    Err(format!("{name} ({platform}): {reason}"))
}

/// Returns why a device cannot run the kernels or is left to another backend, or `None`.
fn refusal(id: cl_device_id) -> Result<Option<String>, cl_int> {
    let version = string(id, CL_DEVICE_VERSION)?;
    let lanes = word(id, CL_DEVICE_MAX_WORK_GROUP_SIZE)?;
    let is_nvidia = word(id, CL_DEVICE_VENDOR_ID)? == u64::from(NVIDIA);
    Ok(if is_nvidia && env::var_os(LIST_NVIDIA).is_none() {
        Some("the backend of NVIDIA's GPUs is `cuda`".to_owned())
    } else if !flag(id, CL_DEVICE_AVAILABLE)? {
        Some("it is not available".to_owned())
    } else if !is_recent(&version) {
        Some(format!("its version is {version}, 1.2 is needed"))
    } else if !flag(id, CL_DEVICE_COMPILER_AVAILABLE)? {
        Some("its driver has no compiler".to_owned())
    } else if !flag(id, CL_DEVICE_ENDIAN_LITTLE)? {
        Some("it is not little-endian".to_owned())
    } else if lanes < u64::from(MAX_LANES) {
        Some(format!("its work groups have {lanes} work items, {MAX_LANES} are needed"))
    } else {
        None
    })
}

/// Returns a device that can run the kernels, with its properties.
fn listed(id: cl_device_id, platform: &str) -> Result<ListedDevice, cl_int> {
    let has_double = string(id, CL_DEVICE_EXTENSIONS)?.split_whitespace().any(|name| name == "cl_khr_fp64")
        && word(id, CL_DEVICE_DOUBLE_FP_CONFIG)? != 0;
    let name = string(id, CL_DEVICE_NAME)?;
    let vendor = string(id, CL_DEVICE_VENDOR)?;
    let (version, driver) = (string(id, CL_DEVICE_VERSION)?, string(id, CL_DRIVER_VERSION)?);
    let precisions = if has_double { vec![Precision::Double, Precision::Single] } else { vec![Precision::Single] };
    let lanes = u32::try_from(word(id, CL_DEVICE_MAX_WORK_GROUP_SIZE)?).unwrap_or(MAX_LANES).min(MAX_LANES);
    // The rest is for the numbers that lanes exchange.
    let exchange = u64::from(lanes) * 8;
    let properties = DeviceProperties {
        name: format!("{name} ({platform})"),
        precisions,
        memory_bytes: word(id, CL_DEVICE_GLOBAL_MEM_SIZE)?,
        compute_capability: None,
        double_flops: None,
        is_processor: word(id, CL_DEVICE_TYPE)? & CL_DEVICE_TYPE_CPU != 0,
        limits: DeviceLimits {
            lanes,
            shared_bytes: word(id, CL_DEVICE_LOCAL_MEM_SIZE)?.saturating_sub(exchange) as usize,
            constants_bytes: 3840,
        },
    };
    Ok(ListedDevice {
        id,
        properties,
        identity: [platform, &vendor, &name, &version, &driver].join("\n"),
        largest_block: word(id, CL_DEVICE_MAX_MEM_ALLOC_SIZE)?,
        rounds_correctly: word(id, CL_DEVICE_SINGLE_FP_CONFIG)? & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT != 0,
        is_unoptimised: UNOPTIMISED.contains(&platform),
    })
}

/// Returns `true` for "OpenCL 1.2 …" and later versions.
fn is_recent(version: &str) -> bool {
    let numbers = version.strip_prefix("OpenCL ").and_then(|rest| rest.split_whitespace().next());
    let mut parts = numbers.unwrap_or_default().split('.').map(|part| part.parse::<u32>().unwrap_or(0));
    (parts.next().unwrap_or(0), parts.next().unwrap_or(0)) >= (1, 2)
}

/// Returns a property that is a number of 4 or of 8 bytes.
fn word(id: cl_device_id, property: u32) -> Result<u64, cl_int> {
    let bytes = device::get_device_data(id, property)?;
    let mut word = [0; 8];
    let n = bytes.len().min(8);
    word[..n].copy_from_slice(&bytes[..n]);
    Ok(u64::from_le_bytes(word))
}

fn flag(id: cl_device_id, property: u32) -> Result<bool, cl_int> {
    Ok(word(id, property)? != 0)
}

fn string(id: cl_device_id, property: u32) -> Result<String, cl_int> {
    device::get_device_data(id, property).map(text)
}

/// Returns a driver's string, which ends at its first zero.
pub(super) fn text(bytes: impl AsRef<[u8]>) -> String {
    let bytes = bytes.as_ref();
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::is_recent;

    #[test]
    fn versions_are_compared_by_number() {
        let recent = ["OpenCL 1.2 pocl", "OpenCL 3.0 (Build 0)", "OpenCL 10.0", "OpenCL 2.0"];
        assert!(recent.into_iter().all(is_recent));
        assert!(!["OpenCL 1.1 x", "OpenCL 1.0", "OpenCL", "", "3.0"].into_iter().any(is_recent));
    }
}
