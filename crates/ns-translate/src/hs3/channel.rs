//! Channels: distributions of type `histfactory_dist`, with samples and their modifiers.
//!
//! Names of parameters are those of the document; `parameters` collects what the modifiers say of
//! them.

use ns_core::spec::{ModifierData, ModifierKind, PerBinKind};

use super::Hs3Error;
use super::document::{Document, Read, require_length};
use super::interpolation::{self, Interpolated};
use super::kept::{Address, KeptKeys};
use super::modifier::{WrittenConstraint, constraint, names_of_bins};
use super::parameters::{Parameters, StatSums, Vector, VectorKind};
use super::terms::TermReader;
use crate::json::{JsonCursor, JsonObject};

/// A channel with the names of the document.
pub(super) struct ReadChannel {
    /// The name of its distribution.
    pub(super) name: String,
    pub(super) n_bins: usize,
    pub(super) samples: Vec<ReadSample>,
}

/// A sample with the names of the document.
pub(super) struct ReadSample {
    pub(super) name: String,
    pub(super) data: Vec<f64>,
    pub(super) modifiers: Vec<ReadModifier>,
}

/// A modifier with the parameters that it has in the document.
pub(super) struct ReadModifier {
    pub(super) parameters: Vec<String>,
    pub(super) modifier: ns_core::spec::Modifier,
}

/// What a channel says of its statistical uncertainties.
struct StatConfig {
    kind: Option<PerBinKind>,
    threshold: f64,
}

/// Reads the channels of a document.
pub(super) struct ChannelReader<'a, 'd> {
    pub(super) document: &'a Document<'d>,
    pub(super) parameters: &'a mut Parameters,
    pub(super) kept: &'a mut KeptKeys,
    pub(super) warnings: &'a mut Vec<String>,
}

impl ChannelReader<'_, '_> {
    /// Reads the channel of the distribution at `cursor`.
    pub(super) fn read(&mut self, cursor: &JsonCursor<'_>) -> Read<ReadChannel> {
        let name = cursor.open_object()?.need("name")?.text()?.to_owned();
        let list = Address::TOP.key("distributions");
        let address = list.entry(&name);
        let known = ["name", "type", "axes", "samples", "staterror", "barlow_beeston_method"];
        let object = self.kept.object(cursor, &known, address)?;
        let axes = object.get("axes");
        if let Some(method) = object.get("barlow_beeston_method").filter(|method| method.text_if_any() != Some("lite"))
        {
            return Err(super::unsupported("the treatment of statistical uncertainties", &method));
        }
        let stat = self.stat_config(&object, address)?;
        let listed = object.need("samples")?;
        let mut samples = Vec::new();
        for (index, sample) in listed.filled_list()?.enumerate() {
            let reading = SampleReading { channel: &name, index, stat: &stat, address: address.key("samples") };
            samples.push(self.sample(&sample, reading)?);
        }
        let n_bins = samples[0].data.len();
        for (sample, cursor) in samples.iter().zip(listed.list()?) {
            if sample.data.len() != n_bins {
                let (found, place) = (sample.data.len(), cursor.place());
                return Err(Hs3Error::Length { what: "the contents of a sample", expected: n_bins, found, place });
            }
        }
        check_axes(axes, n_bins)?;
        if !axes.is_none_or(|axes| is_plain(&axes)) {
            self.kept.keep(&object, "axes", address)?;
        }
        Ok(ReadChannel { name, n_bins, samples })
    }

    fn stat_config(&mut self, object: &JsonObject<'_>, address: Address<'_>) -> Read<StatConfig> {
        let Some(cursor) = object.get("staterror") else { return Ok(StatConfig { kind: None, threshold: 0.0 }) };
        let known = ["constraint", "constraint_type", "relThreshold"];
        let config = self.kept.object(&cursor, &known, address.key("staterror"))?;
        let kind = config.get("constraint_type").or_else(|| config.get("constraint"));
        let kind = kind.map(|kind| per_bin_kind(&kind)).transpose()?;
        let threshold = config.get("relThreshold").map(|cursor| cursor.number()).transpose()?.unwrap_or(0.0);
        Ok(StatConfig { kind, threshold })
    }

    fn sample(&mut self, cursor: &JsonCursor<'_>, reading: SampleReading<'_>) -> Read<ReadSample> {
        let name = match cursor.open_object()?.get("name") {
            Some(name) => name.text()?.to_owned(),
            None => format!("sample_{}", reading.index),
        };
        let address = reading.address.entry(&name);
        let object = self.kept.object(cursor, &["name", "data", "modifiers"], address)?;
        let data = object.need("data")?;
        let data = self.kept.object(&data, &["contents", "errors"], address.key("data"))?;
        let contents = data.need("contents")?.numbers()?;
        let errors = match data.get("errors") {
            Some(errors) => {
                require_length(&errors, "the errors of a sample", contents.len())?;
                Some(errors.numbers()?)
            }
            None => None,
        };
        let bins =
            Bins { contents: &contents, errors: errors.as_deref(), channel: reading.channel, stat: reading.stat };
        let mut modifiers = Vec::new();
        if let Some(list) = object.get("modifiers") {
            for modifier in list.list()? {
                modifiers.push(self.modifier(&modifier, &bins, address.key("modifiers"))?);
            }
        }
        Ok(ReadSample { name, data: contents, modifiers })
    }

    fn modifier(&mut self, cursor: &JsonCursor<'_>, bins: &Bins<'_>, list: Address<'_>) -> Read<ReadModifier> {
        let open = cursor.open_object()?;
        let kind = open.need("type")?;
        let name = open.get("name").or_else(|| open.get("parameter"));
        let name = name.map_or_else(|| kind.text(), |name| name.text())?;
        let known = [
            "name",
            "type",
            "parameter",
            "parameters",
            "data",
            "constraint",
            "constraint_type",
            "constraint_name",
            "interpolation",
        ];
        let object = self.kept.object(cursor, &known, list.entry_of(name, kind.text()?))?;
        let written = Written { cursor, object, name, bins };
        match kind.text()? {
            "normfactor" => self.factor(&written),
            "normsys" => self.normsys(&written),
            "histosys" => self.histosys(&written),
            "shapefactor" => self.vector(&written, ModifierData::ShapeFactor, VectorKind::Free),
            "shapesys" => self.shapesys(&written),
            "staterror" => self.staterror(&written),
            _ => Err(super::unsupported("a modifier of type", &kind)),
        }
    }

    fn factor(&mut self, written: &Written<'_>) -> Read<ReadModifier> {
        let parameter = written.parameter("")?;
        self.constrain(written, &parameter, ModifierKind::NormFactor)?;
        self.parameters.add_scalar(&parameter, written.name, false);
        Ok(written.scalar(parameter, ModifierData::NormFactor))
    }

    fn normsys(&mut self, written: &Written<'_>) -> Read<ReadModifier> {
        let parameter = written.parameter("alpha_")?;
        let data = written.object.need("data")?;
        let object = data.open_object()?;
        let (lo, hi) = (object.need("lo")?.number()?, object.need("hi")?.number()?);
        let rule = interpolation::read(&written.object, &object, Interpolated::NormSys)?;
        self.constrain(written, &parameter, ModifierKind::NormSys)?;
        self.parameters.add_scalar(&parameter, written.name, true);
        let mut read = written.scalar(parameter, ModifierData::NormSys { lo, hi });
        read.modifier.interpolation.rule = rule;
        Ok(read)
    }

    fn histosys(&mut self, written: &Written<'_>) -> Read<ReadModifier> {
        let parameter = written.parameter("alpha_")?;
        let data = written.object.need("data")?;
        let object = data.open_object()?;
        let template = |key| -> Read<Vec<f64>> {
            let side = object.need(key)?;
            let contents = side.open_object()?.need("contents")?;
            require_length(&contents, "the contents of a variation", written.bins.contents.len())?;
            Ok(contents.numbers()?)
        };
        let (lo_data, hi_data) = (template("lo")?, template("hi")?);
        let rule = interpolation::read(&written.object, &object, Interpolated::HistoSys)?;
        self.constrain(written, &parameter, ModifierKind::HistoSys)?;
        self.parameters.add_scalar(&parameter, written.name, true);
        let mut read = written.scalar(parameter, ModifierData::HistoSys { lo_data, hi_data });
        read.modifier.interpolation.rule = rule;
        Ok(read)
    }

    /// Notes the constraint term that the modifier names or implies.
    fn constrain(&mut self, written: &Written<'_>, parameter: &str, kind: ModifierKind) -> Read<()> {
        let term = match constraint(&written.object, kind)? {
            WrittenConstraint::None => return Ok(()),
            WrittenConstraint::Implied(term, datum) => super::terms::WrittenTerm::implied(parameter, term, datum),
            WrittenConstraint::Named(reference) => {
                let is_parameter = |name: &str| name == parameter;
                let wanted = Some(parameter);
                let reader = TermReader { document: self.document, is_parameter: &is_parameter, wanted };
                reader.read(self.document.distributions.named_at(&reference)?, None, self.kept)?
            }
        };
        self.parameters.add_term(term);
        Ok(())
    }

    fn shapesys(&mut self, written: &Written<'_>) -> Read<ReadModifier> {
        let data = written.object.need("data")?;
        let object = data.open_object()?;
        let vals = object.need("vals")?;
        let n_bins = written.bins.contents.len();
        require_length(&vals, "the values of a shapesys", n_bins)?;
        let kind = written.object.get("constraint_type");
        let is_relative = kind.is_some();
        let kind = kind.or_else(|| written.object.get("constraint"));
        let uncertainties = written.uncertainties(&vals.numbers()?, is_relative, object.get("uncertainties"))?;
        let is_empty = |values: &[f64]| values.iter().all(|value| value.abs().to_bits() == 0);
        let is_gaussian = kind.as_ref().is_some_and(|kind| kind.text_if_any() == Some("Gauss"));
        if is_gaussian && is_relative && object.get("uncertainties").is_none() && is_empty(&uncertainties) {
            // ROOT writes a `ShapeFactor` like this.
            return self.vector(written, ModifierData::ShapeFactor, VectorKind::Free);
        }
        let vector = match kind.as_ref().map(JsonCursor::text).transpose()? {
            // ROOT writes this where all factors are constant.
            Some("Const") => VectorKind::Constant,
            _ => {
                let kind = kind.map(|kind| per_bin_kind(&kind)).transpose()?.unwrap_or(PerBinKind::Poisson);
                let relative = written.bins.contents.iter().zip(&uncertainties);
                let relative = relative.map(|(n, u)| if *n > 0.0 && *u > 0.0 { u / n } else { 0.0 }).collect();
                VectorKind::Shape { kind, relative, is_shared: false }
            }
        };
        if kind_of_old_root(self.document, is_relative) {
            let text = "a shapesys of a version of ROOT that writes the auxiliary data of Poisson terms in `vals`:";
            return Err(super::unsupported(text, &written.object.need("type")?));
        }
        self.vector(written, ModifierData::ShapeSys(uncertainties), vector)
    }

    fn staterror(&mut self, written: &Written<'_>) -> Read<ReadModifier> {
        let Some(errors) = written.bins.errors else {
            let what = "the errors of a sample with a staterror";
            let (expected, place) = (written.bins.contents.len(), written.cursor.place());
            return Err(Hs3Error::Length { what, expected, found: 0, place });
        };
        let own = written.object.get("constraint_type").or_else(|| written.object.get("constraint"));
        let own = own.map(|kind| per_bin_kind(&kind)).transpose()?;
        let StatConfig { kind, threshold } = *written.bins.stat;
        let kind = own.or(kind).unwrap_or_else(|| {
            let pointer = written.cursor.pointer();
            self.warnings.push(format!("the staterror at `{pointer}` has no `constraint_type`: its terms are Poisson"));
            PerBinKind::Poisson
        });
        let data = ModifierData::StatError(errors.to_vec());
        let squares = errors.iter().map(|error| error * error).collect();
        let sums = StatSums { nominal: written.bins.contents.to_vec(), squares };
        self.vector(written, data, VectorKind::Stat { kind, threshold, sums })
    }

    fn vector(&mut self, written: &Written<'_>, data: ModifierData, kind: VectorKind) -> Read<ReadModifier> {
        let n_bins = written.bins.contents.len();
        let parameters = match written.object.get("parameters") {
            Some(list) => {
                require_length(&list, "the parameters of a modifier", n_bins)?;
                super::document::texts(&list)?
            }
            None if matches!(kind, VectorKind::Stat { .. }) => {
                let channel = written.bins.channel.strip_prefix("model_").unwrap_or(written.bins.channel);
                names_of_bins(&format!("gamma_stat_{channel}"), n_bins)
            }
            None => names_of_bins(&format!("gamma_{}", written.name), n_bins),
        };
        let vector = Vector { parameters: parameters.clone(), modifier: written.name.to_owned(), kind };
        self.parameters.add_vector(vector).map_err(|what| super::unsupported_at(what, written.name, written.cursor))?;
        let modifier = ns_core::spec::Modifier::new(written.name, data);
        Ok(ReadModifier { parameters, modifier })
    }
}

/// Where a sample is.
#[derive(Clone, Copy)]
struct SampleReading<'a> {
    channel: &'a str,
    index: usize,
    stat: &'a StatConfig,
    address: Address<'a>,
}

/// The bins of a sample, and the channel that they are in.
struct Bins<'a> {
    contents: &'a [f64],
    errors: Option<&'a [f64]>,
    channel: &'a str,
    stat: &'a StatConfig,
}

/// A modifier as written.
struct Written<'a> {
    cursor: &'a JsonCursor<'a>,
    object: JsonObject<'a>,
    name: &'a str,
    bins: &'a Bins<'a>,
}

impl Written<'_> {
    /// Returns the name of the parameter, by default that of the modifier after `prefix`.
    fn parameter(&self, prefix: &str) -> Read<String> {
        match self.object.get("parameter") {
            Some(name) => Ok(name.text()?.to_owned()),
            None => Ok(format!("{prefix}{}", self.name)),
        }
    }

    fn scalar(&self, parameter: String, data: ModifierData) -> ReadModifier {
        ReadModifier { parameters: vec![parameter], modifier: ns_core::spec::Modifier::new(self.name, data) }
    }

    /// Returns absolute uncertainties. `absolute` are those that nextstat writes beside relative
    /// ones, which rounding keeps from being the products; others are ignored.
    fn uncertainties(&self, vals: &[f64], is_relative: bool, absolute: Option<JsonCursor<'_>>) -> Read<Vec<f64>> {
        if !is_relative {
            return Ok(vals.to_vec());
        }
        let contents = self.bins.contents;
        let products: Vec<f64> = vals.iter().zip(contents).map(|(relative, n)| relative * n).collect();
        if let Some(product) = products.iter().find(|product| !product.is_finite()) {
            return Err(super::unsupported_at("the uncertainty", &product.to_string(), self.cursor));
        }
        let Some(absolute) = absolute else { return Ok(products) };
        let absolute = absolute.numbers()?;
        let is_product = |(product, (u, n)): (&f64, (&f64, &f64))| {
            (product - u).abs() <= 4.0 * f64::EPSILON * u.abs() || (*product == 0.0 && (*n <= 0.0 || *u <= 0.0))
        };
        let agree =
            absolute.len() == products.len() && products.iter().zip(absolute.iter().zip(contents)).all(is_product);
        Ok(if agree { absolute } else { products })
    }
}

/// Returns whether `vals` are those of a version of ROOT that wrote no `constraint_type`.
fn kind_of_old_root(document: &Document<'_>, is_relative: bool) -> bool {
    !is_relative && document.packages.iter().any(|package| package == "ROOT")
}

fn per_bin_kind(cursor: &JsonCursor<'_>) -> Read<PerBinKind> {
    match cursor.text()? {
        "Gauss" => Ok(PerBinKind::Gaussian),
        "Poisson" => Ok(PerBinKind::Poisson),
        _ => Err(super::unsupported("a constraint term of type", cursor)),
    }
}

/// Returns whether there is one axis, with bins of width 1 that begin at 0.
pub(super) fn is_plain(axes: &JsonCursor<'_>) -> bool {
    let is_plain = |axis: JsonCursor<'_>| {
        let number = |key| axis.open_object().ok()?.get(key)?.number_if_any();
        let [min, max, n_bins] = ["min", "max", "nbins"].map(number);
        min == Some(0.0) && max.is_some() && max == n_bins
    };
    axes.list().is_ok_and(|mut list| list.len() == 1 && list.all(is_plain))
}

/// Returns the number of bins at `cursor`.
fn whole(cursor: &JsonCursor<'_>) -> Read<usize> {
    let number = cursor.number()?;
    let is_whole = number >= 0.0 && number.fract().total_cmp(&0.0).is_eq();
    if is_whole { Ok(number as usize) } else { Err(super::unsupported("the number of bins", cursor)) }
}

/// Refuses axes of other numbers of bins than the contents.
pub(super) fn check_axes(axes: Option<JsonCursor<'_>>, n_bins: usize) -> Read<()> {
    let Some(axes) = axes else { return Ok(()) };
    let mut expected = 1_usize;
    for axis in axes.list()? {
        let object = axis.open_object()?;
        let edges = object.get("edges").or_else(|| object.get("bounds"));
        let n_bins = match (object.get("nbins"), edges) {
            (Some(n_bins), _) => whole(&n_bins)?,
            (None, Some(edges)) => edges.numbers()?.len() - 1,
            (None, None) => return Ok(()),
        };
        expected = expected.saturating_mul(n_bins);
    }
    if expected == n_bins {
        return Ok(());
    }
    Err(Hs3Error::Length { what: "the contents of these axes", expected, found: n_bins, place: axes.place() })
}
