//! Published likelihoods on the emulated device: values and gradients at the points of their
//! reference files, and fits.

use crate::devices::fits::{Tally, compare as compare_fits};
use crate::devices::values::{Off, compare as compare_values};
use crate::devices::{TestDevice, devices, templates};
use ns_compute::accel::{AccelError, DeviceSession};
use ns_inference::FitOptions;
use ns_inference::options::domain_and_start;
use ns_testkit::published::{self, PublishedCase};
use ns_testkit::random::Random;
use std::time::Instant;

/// Returns `false` for models with constraints that single precision cannot resolve.
fn takes(tested: &TestDevice, case: &PublishedCase) -> bool {
    match DeviceSession::new(&tested.device, &case.model) {
        Ok(_) => true,
        Err(error @ AccelError::TooPrecise { .. }) => {
            println!("{}: not in single precision: {error}", case.name);
            false
        }
        Err(error) => panic!("{}: {error}", case.name),
    }
}

/// Returns all published cases.
///
/// # Panics
/// If there are none: the tests that need them are ignored where they are absent.
pub(crate) fn cases() -> Vec<PublishedCase> {
    let cases = published::cases();
    assert!(!cases.is_empty(), "no published likelihoods");
    cases
}

#[test]
#[ignore = "needs published likelihoods"]
fn values_and_gradients_of_published_likelihoods_are_the_cpus() {
    for case in cases() {
        for tested in devices() {
            if !takes(&tested, &case) {
                continue;
            }
            let (start, mut off) = (Instant::now(), Off::default());
            for (_, point) in &case.points {
                compare_values(&tested, &case.model, std::slice::from_ref(&case.model.observed), point, &mut off);
            }
            println!("{} {}: {off:?} in {:.1?}", case.name, tested.device.precision(), start.elapsed());
        }
    }
}

#[test]
#[ignore = "needs published likelihoods"]
fn gradients_by_templates_of_published_likelihoods_are_the_cpus() {
    for case in cases() {
        for tested in devices() {
            if !takes(&tested, &case) {
                continue;
            }
            let (start, mut off) = (Instant::now(), templates::Off::default());
            let inputs = templates::inputs_of(&case.model, 1);
            let rows = templates::rows_of(&tested, &case.model, &inputs, &mut Random::new(1), case.points.len());
            let points: Vec<f64> = case.points.iter().flat_map(|(_, point)| point.clone()).collect();
            templates::compare(&tested, &case.model, &inputs, (&rows, &points), &mut off);
            println!("{} {}: {off:?} in {:.1?}", case.name, tested.device.precision(), start.elapsed());
        }
    }
}

#[test]
#[ignore = "needs published likelihoods"]
fn fits_of_published_likelihoods_end_where_the_cpus_do() {
    for case in cases() {
        for tested in devices() {
            if !takes(&tested, &case) {
                continue;
            }
            let (start, mut tally) = (Instant::now(), Tally::default());
            let (domain, init) = domain_and_start(&case.model, &FitOptions::default());
            compare_fits(
                &tested,
                &case.model,
                std::slice::from_ref(&case.model.observed),
                (&domain, &init),
                &mut tally,
            );
            println!("{} {}: {tally:?} in {:.1?}", case.name, tested.device.precision(), start.elapsed());
        }
    }
}
