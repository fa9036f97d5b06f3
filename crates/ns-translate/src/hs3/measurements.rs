//! Measurements: the settings of the parameters in each analysis.

use ns_core::spec::Measurement;

use super::analysis::{Setup, SetupReader, WrittenAnalysis};
use super::document::Read;
use super::kept::KeptKeys;
use super::limits::Limits;
use super::names::NameTable;
use super::origin;
use super::parameters::Parameters;
use super::settings::SettingsReader;
use crate::json::JsonCursor;

/// Reads the measurements of a document.
pub(super) struct MeasurementReader<'a, 'd> {
    pub(super) setups: SetupReader<'d>,
    pub(super) parameters: &'a Parameters,
    pub(super) names: &'a NameTable,
    pub(super) kept: &'a mut KeptKeys,
    pub(super) warnings: &'a mut Vec<String>,
}

impl MeasurementReader<'_, '_> {
    /// Returns the measurements of `analyses`, which are those of the document at `root`.
    pub(super) fn all(&mut self, root: &JsonCursor<'_>, analyses: &[WrittenAnalysis]) -> Read<Vec<Measurement>> {
        let written = origin::read(root)?;
        let mut limits = Limits::default();
        let mut measurements = Vec::new();
        for (a, analysis) in analyses.iter().enumerate() {
            let setup = self.setups.read(analysis, self.kept)?;
            if let (1.., Some(cursor)) = (a, self.setups.place(analysis)) {
                limits.settings(self.parameters.n_elements() + setup.ranges.n_axes, cursor)?;
            }
            measurements.push(self.measurement(analysis, &setup, written.get(&analysis.name))?);
        }
        Ok(measurements)
    }

    fn measurement(
        &mut self,
        analysis: &WrittenAnalysis,
        setup: &Setup,
        written: Option<&origin::WrittenSettings>,
    ) -> Read<Measurement> {
        let (parameters, names) = (self.parameters, self.names);
        let luminosity = parameters.luminosity();
        let reader = SettingsReader { parameters, names, luminosity, points: &setup.points, ranges: &setup.ranges };
        let listed: Vec<String> = analysis.pois.iter().map(|poi| names.parameter(poi)).collect();
        // Another program may have changed the list of the analysis and left what is kept of ours.
        let agrees = written.is_some_and(|written| written.has_pois(&listed));
        if let ([first, _, ..], false) = (&analysis.pois[..], agrees) {
            let pois = crate::hint::in_backticks(&analysis.pois);
            self.warnings.push(format!(
                "the analysis `{}` has the parameters of interest {pois}: the first, `{first}`, is taken, `--poi` or \
                 `poi=` selects others",
                analysis.name
            ));
        }
        let mut parameters = origin::restore(reader.all(), written)?;
        if !agrees {
            parameters.iter_mut().for_each(|config| config.is_poi = false);
        }
        let poi = analysis.pois.first().map(|poi| names.parameter(poi));
        Ok(Measurement {
            name: analysis.name.clone(),
            poi: poi.or_else(|| written?.poi.clone()),
            parameters,
            clip: written.map(|written| written.clip).unwrap_or_default(),
        })
    }
}
