//! The sample of a background that signals take the place of.

use crate::error::ScannerError;
use crate::pois::poi_named;
use ns_core::CompileOptions;
use ns_core::compile::{PoiChoice, choose_measurement};
use ns_core::spec::{Modifier, ModifierData, ModifierInterpolation, Sample, Workspace};

/// The sample that signals take the place of.
#[derive(Debug, Clone, PartialEq)]
pub struct SignalSlot {
    /// Its name.
    pub sample: String,
    /// The parameter that scales it; the parameter of interest of the measurement if not given.
    pub strength: Option<String>,
    /// The luminosity that scales it, too, if one does.
    pub lumi: Option<String>,
    /// Normalisation uncertainties of all signals: parameters of the background or new ones, with
    /// the factors at -1 and +1 standard deviation.
    pub normsys: Vec<(String, [f64; 2])>,
}

impl Default for SignalSlot {
    fn default() -> Self {
        Self { sample: "signal".to_owned(), strength: None, lumi: None, normsys: Vec::new() }
    }
}

impl SignalSlot {
    /// Adds the sample, without events, to every channel of `workspace`, and returns `options` with
    /// its strength as the parameter of interest.
    ///
    /// # Errors
    /// A name that is in use, no strength, or no measurement.
    pub(super) fn add_to(
        &self,
        workspace: &mut Workspace,
        options: &CompileOptions,
        has_uncertainties: bool,
    ) -> Result<CompileOptions, crate::Error> {
        let strength = self.strength(workspace, options)?;
        self.check(workspace, &strength)?;
        for channel in &mut workspace.channels {
            let n_bins = channel.samples.first().map_or(0, |sample| sample.data.len());
            let mut modifiers = vec![modifier(&strength, ModifierData::NormFactor)];
            modifiers.extend(self.lumi.iter().map(|name| modifier(name, ModifierData::Lumi)));
            let normsys =
                |(name, [lo, hi]): &(String, [f64; 2])| modifier(name, ModifierData::NormSys { lo: *lo, hi: *hi });
            modifiers.extend(self.normsys.iter().map(normsys));
            if has_uncertainties {
                modifiers.push(modifier(&self.staterror(&channel.name), ModifierData::StatError(vec![0.0; n_bins])));
            }
            let (name, data) = (self.sample.clone(), vec![0.0; n_bins]);
            channel.samples.push(Sample { name, data, modifiers, ..Sample::default() });
        }
        Ok(CompileOptions { poi: PoiChoice::Named(vec![strength]), ..options.clone() })
    }

    /// Returns the name of the parameter that scales the sample.
    fn strength(&self, workspace: &Workspace, options: &CompileOptions) -> Result<String, crate::Error> {
        if let Some(strength) = &self.strength {
            return Ok(strength.clone());
        }
        if let Some(name) = poi_named(workspace, options) {
            return Ok(name);
        }
        // Compiling says what is wrong where there is no measurement.
        let chosen = choose_measurement(workspace, options.measurement.as_deref());
        let Ok((_, measurement)) = chosen else { return Ok(String::new()) };
        Err(ScannerError::NoStrength { measurement: measurement.name.clone() }.into())
    }

    /// Returns the name of the statistical uncertainties in `channel`.
    fn staterror(&self, channel: &str) -> String {
        format!("staterror_{}_{channel}", self.sample)
    }

    fn check(&self, workspace: &Workspace, strength: &str) -> Result<(), ScannerError> {
        for channel in &workspace.channels {
            for sample in &channel.samples {
                if sample.name == self.sample {
                    return Err(ScannerError::SampleInUse { name: self.sample.clone() });
                }
                let own = self.staterror(&channel.name);
                if sample.modifiers.iter().any(|modifier| modifier.name == own) {
                    return Err(ScannerError::UncertaintyInUse { name: own, sample: sample.name.clone() });
                }
                if sample.modifiers.iter().any(|modifier| modifier.name == strength) {
                    let (name, sample) = (strength.to_owned(), sample.name.clone());
                    return Err(ScannerError::StrengthInUse { name, sample });
                }
            }
        }
        Ok(())
    }
}

fn modifier(name: &str, data: ModifierData) -> Modifier {
    Modifier { name: name.to_owned(), data, interpolation: ModifierInterpolation::default() }
}
