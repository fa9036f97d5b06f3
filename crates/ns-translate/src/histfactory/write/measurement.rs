//! Writes measurements: parameters of interest, settings of parameters and constraint terms.

use ns_core::spec::Measurement;

use super::XmlDialect;
use super::element::NewElement;
use super::roles::{Replacement, Role, RoleKind, Roles};
use super::settings::luminosity;
use crate::not_representable::Lacking;

/// Writes the measurements of a workspace.
pub(super) struct MeasurementWriter<'a> {
    pub(super) roles: &'a Roles<'a>,
    pub(super) dialect: XmlDialect,
    pub(super) lacking: &'a mut Lacking,
}

impl MeasurementWriter<'_> {
    /// Returns the element of the measurement with the index `m`.
    pub(super) fn write(&mut self, m: usize, measurement: &Measurement) -> NewElement {
        let lumi = self.roles.lumi().and_then(|role| luminosity(role, m));
        let (nominal, error) = lumi.map_or((1.0, 0.0), |lumi| (lumi.nominal, lumi.relative_error));
        let mut element = NewElement::new("Measurement")
            .attribute("Name", measurement.name.as_str())
            .number("Lumi", nominal)
            .number("LumiRelErr", error)
            .attribute("ExportOnly", "True");
        element.push(NewElement::with_text("POI", self.pois(m, measurement)));
        // As measurements list them, the others in the order of the model.
        let mut listed: Vec<&Role<'_>> =
            measurement.parameters.iter().filter_map(|config| self.roles.get(&config.name)).collect();
        listed.extend(self.roles.roles.iter().filter(|role| role.configs[m].is_none()));
        let is_fixed = |role: &&&Role<'_>| role.configs[m].is_some_and(|config| config.fixed == Some(true));
        let fixed: Vec<&Role<'_>> = listed.iter().filter(is_fixed).copied().collect();
        if !fixed.is_empty() {
            let names: Vec<String> = fixed.iter().flat_map(|role| self.listed(role, m, "fixed")).collect();
            element.push(NewElement::with_text("ParamSetting", names.join(" ")).attribute("Const", "True"));
        }
        for role in &listed {
            self.values(role, m, nominal).into_iter().for_each(|setting| element.push(setting));
        }
        for role in &listed {
            if let Some(term) = self.term(role, m) {
                element.push(term);
            }
        }
        element
    }

    /// Returns the names of the parameters of interest.
    fn pois(&mut self, m: usize, measurement: &Measurement) -> String {
        let mut names = Vec::new();
        // pyhf reads the text as one name.
        let limit = if self.dialect == XmlDialect::Pyhf { usize::from(measurement.poi.is_some()) } else { usize::MAX };
        for poi in measurement.pois().take(limit) {
            let name = match self.dialect {
                XmlDialect::Root => self.roles.root_name(poi, m).unwrap_or_else(|| poi.to_owned()),
                XmlDialect::Pyhf => poi.to_owned(),
            };
            self.require_word(&name, poi, format!("/measurements/{m}/config/poi"));
            names.push(name);
        }
        names.join(" ")
    }

    /// Notes a name that does not stand in a list.
    fn require_word(&mut self, written: &str, name: &str, pointer: String) {
        if written.is_empty() || written.contains(char::is_whitespace) {
            self.lacking.add("a name with blanks in a list of names,", name, pointer);
        }
    }

    /// Returns the names of the parameters of a role, for a list of names.
    fn listed(&mut self, role: &Role<'_>, m: usize, key: &str) -> Vec<String> {
        let names = role.root_names(m);
        if let Some(first) = names.first() {
            self.require_word(first, role.name, format!("/measurements/{m}/config/parameters/{}/{key}", role.name));
        }
        names
    }

    /// Returns the values at the start that are not the usual ones.
    fn values(&mut self, role: &Role<'_>, m: usize, lumi: f64) -> Vec<NewElement> {
        let usual = |element: usize| match role.kind {
            RoleKind::Lumi => lumi,
            RoleKind::Norm => role.factor().0,
            RoleKind::Free if self.dialect == XmlDialect::Root => {
                role.initial_shape().map_or(1.0, |initial| initial[element])
            }
            _ => role.default_init(),
        };
        let is_given = role.kind != RoleKind::Lumi || role.configs[m].is_some_and(|config| config.inits.is_some());
        let is_unusual = |element: &usize| role.init(m, *element).total_cmp(&usual(*element)).is_ne();
        if !is_given || !(0..role.n_elements).any(|element| is_unusual(&element)) {
            return Vec::new();
        }
        let names = self.listed(role, m, "inits");
        let values: Vec<f64> = (0..role.n_elements).map(|element| in_root(role, m, role.init(m, element))).collect();
        let setting = |names: &str, value: f64| NewElement::with_text("ParamSetting", names).number("Val", value);
        if values.iter().all(|value| value.total_cmp(&values[0]).is_eq()) {
            return vec![setting(&names.join(" "), values[0])];
        }
        names.iter().zip(values).map(|(name, value)| setting(name, value)).collect()
    }

    /// Returns the constraint term in place of the normal distribution of a systematic.
    fn term(&mut self, role: &Role<'_>, m: usize) -> Option<NewElement> {
        let (kind, relative) = match role.replacement(m)? {
            Replacement::Gamma(relative) => ("Gamma", relative),
            Replacement::LogNormal(relative) => ("LogNormal", relative),
            // ROOT's parser needs some number.
            Replacement::Uniform => ("Uniform", 1.0),
        };
        let pointer = format!("/measurements/{m}/config/parameters/{}/constraints", role.name);
        self.require_word(role.name, role.name, pointer);
        let term = NewElement::with_text("ConstraintTerm", role.name).attribute("Type", kind);
        Some(term.number("RelativeUncertainty", relative))
    }
}

/// Returns the value in ROOT of a parameter whose value here is `value`: with a log-normal term it
/// is x, of which α = (κ^x - 1)/r, and with a gamma term β = 1 + rα.
fn in_root(role: &Role<'_>, m: usize, value: f64) -> f64 {
    match role.replacement(m) {
        Some(Replacement::Gamma(relative)) => 1.0 + relative * value,
        Some(Replacement::LogNormal(relative)) => (relative * value).ln_1p() / relative.ln_1p(),
        _ => value,
    }
}
