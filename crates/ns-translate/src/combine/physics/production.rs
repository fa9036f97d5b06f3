//! The model `floatingXSHiggs`: one signal strength for each way to produce a Higgs boson.
//!
//! The name of a signal is its production, and perhaps its decay: `ggH`, `ggH_hgg`. Which strength
//! scales which production was taken from Combine's `PhysicsModel.py`.

use super::{ModelParameter, Physics, YieldScale};
use crate::combine::card::{Card, ColumnName};
use crate::combine::numbers::ordered;
use crate::combine::option_error::CardOptionError;

const MODEL: &str = "floatingXSHiggs";

/// The productions that have a strength, with the range of it.
const STRENGTHS: [(&str, [f64; 2]); 6] = [
    ("ggH", [0.0, 4.0]),
    ("qqH", [0.0, 10.0]),
    ("VH", [0.0, 20.0]),
    ("WH", [0.0, 20.0]),
    ("ZH", [0.0, 20.0]),
    ("ttH", [0.0, 20.0]),
];

/// Which strength a production has.
const PRODUCTIONS: [(&str, &str); 12] = [
    ("ggH", "ggH"),
    ("bbH", "ggH"),
    ("qqH", "qqH"),
    ("ttH", "ttH"),
    ("tHq", "ttH"),
    ("tHW", "ttH"),
    ("VH", "VH"),
    ("WH", "VH"),
    ("ZH", "VH"),
    ("ggZH", "VH"),
    ("WPlusH", "VH"),
    ("WMinusH", "VH"),
];

const DECAYS: [&str; 10] = ["hww", "hzz", "hgg", "htt", "hbb", "hzg", "hmm", "hcc", "hgluglu", "hinv"];

pub(super) struct FloatingProduction {
    /// The productions whose strength is a parameter, in their order.
    modes: Vec<String>,
    ranges: Vec<(&'static str, [f64; 2])>,
    /// Whether `ttH` has the strength of `ggH`.
    is_top_as_gluon: bool,
}

fn unreadable(option: &str) -> CardOptionError {
    const WANTED: &str = "`modes=ggH,qqH`, `ggHRange=0:4` or that of another strength, or `ttH=ggH`";
    CardOptionError::ModelOption { model: MODEL, option: option.to_owned(), wanted: WANTED }
}

impl FloatingProduction {
    pub(super) fn read(options: &[String]) -> Result<Self, CardOptionError> {
        let modes = PRODUCTIONS.iter().map(|(production, _)| (*production).to_owned()).collect();
        let mut model = Self { modes, ranges: STRENGTHS.to_vec(), is_top_as_gluon: false };
        for option in options {
            model.option(option).ok_or_else(|| unreadable(option))?;
        }
        if model.is_top_as_gluon {
            model.modes.retain(|mode| mode != "ttH");
        }
        Ok(model)
    }

    fn option(&mut self, option: &str) -> Option<()> {
        if option == "ttH=ggH" {
            self.is_top_as_gluon = true;
            return Some(());
        }
        let (key, value) = option.split_once('=')?;
        if key == "modes" {
            self.modes = value.split(',').map(str::to_owned).collect();
            let is_known = |mode: &String| STRENGTHS.iter().any(|(strength, _)| strength == mode);
            return self.modes.iter().all(is_known).then_some(());
        }
        let strength = key.strip_suffix("Range")?;
        let (low, high) = value.split_once(':')?;
        let (_, ends) = self.ranges.iter_mut().find(|(name, _)| *name == strength)?;
        *ends = ordered(low, high)?;
        Some(())
    }

    pub(super) fn apply(self, card: &Card) -> Result<Physics, CardOptionError> {
        let scales = (0..card.columns.len()).map(|column| self.scale(card, column)).collect::<Result<_, _>>()?;
        let parameter = |mode: &String| {
            let (_, ends) = self.ranges.iter().find(|(name, _)| name == mode)?;
            Some(ModelParameter { name: format!("r_{mode}"), start: 1.0, range: Some(*ends) })
        };
        // The first mode is the first parameter of interest.
        let parameters = self.modes.iter().filter_map(parameter).collect();
        Ok(Physics { parameters, formulas: Vec::new(), scales })
    }

    fn scale(&self, card: &Card, column: usize) -> Result<YieldScale, CardOptionError> {
        if !card.is_signal(column) {
            return Ok(YieldScale::One);
        }
        let ColumnName { channel, process } = card.column_name(column);
        let refused = |reason| {
            let (process, channel) = (process.to_owned(), channel.to_owned());
            CardOptionError::Process { model: MODEL, process, channel, reason }
        };
        let (production, decay) = match process.split_once('_') {
            Some((production, rest)) => (production, rest.rsplit('_').next().unwrap_or(rest)),
            None => (process, channel),
        };
        if !DECAYS.iter().any(|known| decay.contains(known)) {
            return Err(refused("its name should end in a decay such as `_hgg`, or the channel's name contain one"));
        }
        let strength = PRODUCTIONS.iter().find(|(known, _)| *known == production).map(|(_, strength)| *strength);
        let strength = strength.ok_or_else(|| refused("its name should begin with a production such as `ggH`"))?;
        let strength = if strength == "ttH" && self.is_top_as_gluon { "ggH" } else { strength };
        let is_floating = self.modes.iter().any(|mode| mode == strength);
        Ok(if is_floating { YieldScale::Named(format!("r_{strength}")) } else { YieldScale::One })
    }
}
