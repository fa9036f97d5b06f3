//! Counts launches and copies, which prove that a device, and not the host, computed.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The work of a device since it was opened, or since the counters were reset.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DeviceCounters {
    /// Kernels launched.
    pub launches: u64,
    /// Blocks of those kernels.
    pub blocks: u64,
    /// Copies to the device.
    pub uploads: u64,
    /// Bytes of them.
    pub upload_bytes: u64,
    /// Copies from the device.
    pub downloads: u64,
    /// Bytes of them.
    pub download_bytes: u64,
    /// Waits of the host for the device, without those of downloads.
    pub synchronizations: u64,
    /// Nanoseconds that the device spent in kernels which the host has waited for, by the device's
    /// clock; 0 on backends that do not measure it (all but OpenCL).
    pub kernel_nanoseconds: u64,
}

/// The counters of an open device.
#[derive(Debug, Default)]
pub(crate) struct AtomicCounters {
    launches: AtomicU64,
    blocks: AtomicU64,
    uploads: AtomicU64,
    upload_bytes: AtomicU64,
    downloads: AtomicU64,
    download_bytes: AtomicU64,
    synchronizations: AtomicU64,
    kernel_nanoseconds: AtomicU64,
}

impl AtomicCounters {
    pub(crate) fn launch(&self, blocks: u32) {
        self.launches.fetch_add(1, Ordering::Relaxed);
        self.blocks.fetch_add(u64::from(blocks), Ordering::Relaxed);
    }

    pub(crate) fn upload(&self, bytes: usize) {
        self.uploads.fetch_add(1, Ordering::Relaxed);
        self.upload_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(crate) fn download(&self, bytes: usize) {
        self.downloads.fetch_add(1, Ordering::Relaxed);
        self.download_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(crate) fn synchronization(&self) {
        self.synchronizations.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn kernel_time(&self, time: Duration) {
        self.kernel_nanoseconds.fetch_add(time.as_nanos() as u64, Ordering::Relaxed);
    }

    pub(crate) fn read(&self) -> DeviceCounters {
        self.each(|counter| counter.load(Ordering::Relaxed))
    }

    /// Sets all counters to zero and returns their values before.
    pub(crate) fn reset(&self) -> DeviceCounters {
        self.each(|counter| counter.swap(0, Ordering::Relaxed))
    }

    fn each(&self, get: impl Fn(&AtomicU64) -> u64) -> DeviceCounters {
        DeviceCounters {
            launches: get(&self.launches),
            blocks: get(&self.blocks),
            uploads: get(&self.uploads),
            upload_bytes: get(&self.upload_bytes),
            downloads: get(&self.downloads),
            download_bytes: get(&self.download_bytes),
            synchronizations: get(&self.synchronizations),
            kernel_nanoseconds: get(&self.kernel_nanoseconds),
        }
    }
}
