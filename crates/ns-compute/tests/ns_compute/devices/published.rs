//! Published likelihoods on the emulated device: values and gradients at the points of their reference files, and fits.

use crate::fits::{Tally, hold as hold_fits};
use crate::values::{Off, hold as hold_values};
use crate::{Held, devices, templates};
use ns_compute::accel::{AccelError, DeviceSession};
use ns_inference::FitOptions;
use ns_inference::options::domain_and_start;
use ns_testkit::published::{self, Case};
use ns_testkit::random::Random;
use std::time::Instant;

/// Whether `held` takes the model at all; in single precision some have constraints that it cannot resolve.
fn takes(held: &Held, case: &Case) -> bool {
    match DeviceSession::new(&held.device, &case.model) {
        Ok(_) => true,
        Err(error @ AccelError::TooPrecise { .. }) => {
            println!("{}: not in single precision: {error}", case.name);
            false
        }
        Err(error) => panic!("{}: {error}", case.name),
    }
}

#[test]
fn values_and_gradients_of_published_likelihoods_are_the_cpus() {
    for case in published::cases() {
        for held in devices() {
            if !takes(&held, &case) {
                continue;
            }
            let (start, mut off) = (Instant::now(), Off::default());
            for (_, point) in &case.points {
                hold_values(&held, &case.model, std::slice::from_ref(&case.model.observed), point, &mut off);
            }
            println!("{} {}: {off:?} in {:.1?}", case.name, held.device.precision(), start.elapsed());
        }
    }
}

#[test]
fn gradients_by_templates_of_published_likelihoods_are_the_cpus() {
    for case in published::cases() {
        for held in devices() {
            if !takes(&held, &case) {
                continue;
            }
            let (start, mut off) = (Instant::now(), templates::Off::default());
            let inputs = templates::inputs_of(&case.model, 1);
            let rows = templates::rows_of(&held, &case.model, &inputs, &mut Random::new(1), case.points.len());
            let points: Vec<f64> = case.points.iter().flat_map(|(_, point)| point.clone()).collect();
            templates::hold(&held, &case.model, &inputs, (&rows, &points), &mut off);
            println!("{} {}: {off:?} in {:.1?}", case.name, held.device.precision(), start.elapsed());
        }
    }
}

#[test]
fn fits_of_published_likelihoods_end_where_the_cpus_do() {
    for case in published::cases() {
        for held in devices() {
            if !takes(&held, &case) {
                continue;
            }
            let (start, mut tally) = (Instant::now(), Tally::default());
            let (domain, init) = domain_and_start(&case.model, &FitOptions::default());
            hold_fits(&held, &case.model, std::slice::from_ref(&case.model.observed), (&domain, &init), &mut tally);
            println!("{} {}: {tally:?} in {:.1?}", case.name, held.device.precision(), start.elapsed());
        }
    }
}
