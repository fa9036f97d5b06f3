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
use cl3::error_codes::CL_PLATFORM_NOT_FOUND_KHR;
use cl3::platform::{self, CL_PLATFORM_NAME};
use cl3::types::{cl_device_id, cl_int, cl_platform_id};
use std::sync::{Mutex, PoisonError};

/// The widest block that kernels are compiled for: the dialect's `MAX_LANES`.
const MAX_LANES: u32 = 128;
/// NVIDIA's number, whose GPUs are the CUDA backend's.
const NVIDIA: u32 = 0x10de;
/// The platform of Apple, whose GPUs are the Metal backend's.
const APPLE: &str = "Apple";

/// POCL's platform, the processor of the machine, and Oclgrind's, an interpreter that looks for
/// data races.
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
    is_processor: bool,
}

/// Returns the devices of all platforms, GPUs before processors, or the error of a missing driver.
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
    let found = platforms.into_iter().flat_map(of_platform);
    let (processors, mut devices): (Vec<ListedDevice>, Vec<ListedDevice>) =
        found.partition(|device| device.is_processor);
    devices.extend(processors);
    Ok(devices)
}

/// Returns the usable devices of a platform; one that does not answer has none.
fn of_platform(platform: cl_platform_id) -> Vec<ListedDevice> {
    let name = platform::get_platform_data(platform, CL_PLATFORM_NAME).map(text).unwrap_or_default();
    if name == APPLE {
        return Vec::new();
    }
    let devices = device::get_device_ids(platform, CL_DEVICE_TYPE_ALL).unwrap_or_default();
    devices.into_iter().filter_map(|id| listed(id, &name).ok().flatten()).collect()
}

/// Returns a device, or `None` if it cannot run the kernels or is another backend's.
fn listed(id: cl_device_id, platform: &str) -> Result<Option<ListedDevice>, cl_int> {
    let version = string(id, CL_DEVICE_VERSION)?;
    let is_usable = flag(id, CL_DEVICE_AVAILABLE)?
        && flag(id, CL_DEVICE_COMPILER_AVAILABLE)?
        && flag(id, CL_DEVICE_ENDIAN_LITTLE)?
        && is_recent(&version);
    if !is_usable || word(id, CL_DEVICE_VENDOR_ID)? == u64::from(NVIDIA) {
        return Ok(None);
    }
    let has_double = string(id, CL_DEVICE_EXTENSIONS)?.split_whitespace().any(|name| name == "cl_khr_fp64")
        && word(id, CL_DEVICE_DOUBLE_FP_CONFIG)? != 0;
    let name = string(id, CL_DEVICE_NAME)?;
    let vendor = string(id, CL_DEVICE_VENDOR)?;
    let driver = string(id, CL_DRIVER_VERSION)?;
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
        limits: DeviceLimits {
            lanes,
            shared_bytes: word(id, CL_DEVICE_LOCAL_MEM_SIZE)?.saturating_sub(exchange) as usize,
            constants_bytes: 3840,
        },
    };
    Ok(Some(ListedDevice {
        id,
        properties,
        identity: [platform, &vendor, &name, &version, &driver].join("\n"),
        largest_block: word(id, CL_DEVICE_MAX_MEM_ALLOC_SIZE)?,
        rounds_correctly: word(id, CL_DEVICE_SINGLE_FP_CONFIG)? & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT != 0,
        is_unoptimised: UNOPTIMISED.contains(&platform),
        is_processor: word(id, CL_DEVICE_TYPE)? & CL_DEVICE_TYPE_CPU != 0,
    }))
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
