//! The value that is interpolated over the plane, and what a reader must know about its contours.

use super::mesh::{ExclusionCurve, Mesh};
use super::{ExclusionPoint, Quantity};
use ns_inference::normal::significance;

/// The smallest CLs and limit, and the smallest distance of CLs from 1: less is lost where CLs is
/// computed as 1 - p in double precision.
const SMALLEST: f64 = f64::EPSILON / 2.0;

impl Quantity {
    /// Returns the interpolated value of `value` kept within its limits: Φ⁻¹(1 - CLs) or -ln μ_up.
    fn interpolated(self, value: f64) -> f64 {
        match self {
            Self::Cls => significance(self.limited(value)),
            Self::Limit => -self.limited(value).ln(),
        }
    }

    /// Returns the nearest value that has a finite interpolated value.
    fn limited(self, value: f64) -> f64 {
        match self {
            Self::Cls => value.clamp(SMALLEST, 1.0 - SMALLEST),
            Self::Limit => value.max(SMALLEST),
        }
    }
}

/// How values over the plane are interpolated and compared.
pub(super) struct Surface {
    pub(super) quantity: Quantity,
    pub(super) cl: f64,
    pub(super) mass_splitting: bool,
}

impl Surface {
    /// Returns the distance of the interpolated value from that of the contour: positive where the
    /// signal is excluded.
    fn excess(&self, value: f64) -> f64 {
        let threshold = match self.quantity {
            Quantity::Cls => significance(1.0 - self.cl),
            Quantity::Limit => 0.0,
        };
        self.quantity.interpolated(value) - threshold
    }

    /// Says of every point whether it is excluded.
    pub(super) fn classify(&self, points: &mut [ExclusionPoint]) {
        for point in points {
            point.excluded = point.observed.map(|value| self.excess(value) > 0.0);
            point.excluded_expected = point.expected[2].map(|value| self.excess(value) > 0.0);
        }
    }

    /// Returns the contours of what `value` takes from the points, and adds to `notes` what is to
    /// be said of the curve `name`.
    pub(super) fn curve(
        &self,
        name: &'static str,
        points: &[ExclusionPoint],
        value: impl Fn(&ExclusionPoint) -> Option<f64>,
        notes: &mut Notes,
    ) -> ExclusionCurve {
        let known: Vec<&ExclusionPoint> = points.iter().filter(|point| value(point).is_some()).collect();
        let values: Vec<f64> = known.iter().filter_map(|point| value(point)).collect();
        let excess: Vec<f64> = values.iter().map(|&value| self.excess(value)).collect();
        if known.len() < points.len() {
            let n_missing = points.len() - known.len();
            notes.add(name, format!("{n_missing} of {} signals without a value left out", points.len()));
        }
        let Ok(mesh) = Mesh::new(&places(known), self.mass_splitting) else {
            notes.add(name, "the signals with values do not span a plane, so that there is no contour".to_owned());
            return ExclusionCurve::default();
        };
        let n_excluded = excess.iter().filter(|excess| **excess > 0.0).count();
        if n_excluded == 0 || n_excluded == excess.len() {
            let how_many = if n_excluded == 0 { "no" } else { "every" };
            notes.add(name, format!("{how_many} signal is excluded, so that there is no contour"));
        }
        let is_limited = |point: usize| self.quantity.limited(values[point]) != values[point];
        let n_limited = mesh.beside_contours(&excess).into_iter().filter(|&point| is_limited(point)).count();
        if n_limited > 0 {
            notes.add(name, self.limited_note(n_limited));
        }
        mesh.curve(&excess)
    }

    fn limited_note(&self, n_limited: usize) -> String {
        let what = match self.quantity {
            Quantity::Cls => "CLs of 0 or 1, which have no normal quantile",
            Quantity::Limit => "limits of 0 or less, which have no logarithm",
        };
        let signals = if n_limited == 1 { "signal" } else { "signals" };
        format!("the contour passes {n_limited} {signals} with {what}: its place beside them is not determined")
    }
}

/// Returns the places of points (N × 2).
pub(super) fn places<'a>(points: impl IntoIterator<Item = &'a ExclusionPoint>) -> Vec<[f64; 2]> {
    points.into_iter().map(|point| [point.x, point.y]).collect()
}

/// What is to be said of curves, each line once with the curves that it is about.
#[derive(Default)]
pub(super) struct Notes(Vec<(String, Vec<&'static str>)>);

impl Notes {
    fn add(&mut self, curve: &'static str, line: String) {
        match self.0.iter_mut().find(|(known, _)| *known == line) {
            Some((_, curves)) => curves.push(curve),
            None => self.0.push((line, vec![curve])),
        }
    }

    /// Returns the lines in the order in which they were added first.
    pub(super) fn lines(self) -> impl Iterator<Item = String> {
        self.0.into_iter().map(|(line, curves)| format!("{}: {line}", curves.join(", ")))
    }
}
