//! Writes workspaces as HS3, so that ROOT and pyhs3 read them.
//!
//! `channels` writes distributions and data, `settings` finds what measurements set for parameters,
//! `terms` writes constraint terms, and `points` parameter points and domains. What HS3 cannot
//! hold is collected, and nothing is written then.

mod channels;
mod points;
mod settings;
mod terms;

use ns_core::spec::Workspace;
use serde_json::{Map, Value, json};

use self::channels::ChannelWriter;
use self::settings::{ParameterRole, Roles};
use super::kept::KeptKeys;
use super::origin;
use crate::not_representable::{Lacking, NotRepresentable, TemplateLimits};

/// The likelihood of all channels with the observed data.
const LIKELIHOOD: &str = "simPdf_obsData";

/// A document that was written.
pub(crate) struct WrittenHs3 {
    pub(crate) document: Value,
    /// JSON pointers of keys of the document that was read for which there is no place.
    pub(crate) lost: Vec<String>,
}

/// Returns the HS3 document that describes `workspace`, with what was kept of the one that it was
/// read from.
pub(crate) fn write(workspace: &Workspace, kept: &KeptKeys) -> Result<WrittenHs3, Vec<NotRepresentable>> {
    let mut lacking = Lacking::default();
    lacking.add_yield_rules(workspace, TemplateLimits::OfRoot);
    let roles = Roles::collect(workspace, &mut lacking);
    let writer = ChannelWriter { workspace, roles: &roles };
    let channels = writer.distributions(&mut lacking);
    let terms = terms::write(&roles, &mut lacking);
    lacking.into_result()?;
    let mut document = json!({
        "analyses": analyses(workspace, &roles),
        "data": channels::data(workspace),
        "distributions": channels.into_iter().chain(terms.distributions).collect::<Vec<_>>(),
        "domains": points::domains(workspace, &roles),
        "likelihoods": [likelihood(workspace, terms.auxiliary)],
        "metadata": {
            "hs3_version": "0.2",
            "packages": [{"name": "nextstat", "version": env!("CARGO_PKG_VERSION")}],
        },
        "misc": {
            "ROOT_internal": root_internal(workspace),
            origin::KEY: origin::write(workspace, |name| roles.has_element(name)),
        },
        "parameter_points": points::points(workspace, &roles),
    });
    if let (false, Some(object)) = (terms.functions.is_empty(), document.as_object_mut()) {
        object.insert("functions".to_owned(), terms.functions.into());
    }
    let lost = kept.write_into(&mut document).into_iter().map(str::to_owned).collect();
    share_axes(&mut document, workspace.channels.len());
    Ok(WrittenHs3 { document, lost })
}

/// Gives data the axes of their distributions, which may be those of the document that was read.
fn share_axes(document: &mut Value, n_channels: usize) {
    for channel in 0..n_channels {
        let axes = document["distributions"][channel]["axes"].clone();
        document["data"][channel]["axes"] = axes;
    }
}

/// Returns the name of the distribution of a channel.
fn distribution_of(channel: &str) -> String {
    format!("model_{channel}")
}

/// Returns the name of the data of a channel.
fn data_of(channel: &str) -> String {
    format!("obsData_{channel}")
}

/// Returns the names of the channels.
fn observed_channels(workspace: &Workspace) -> impl Iterator<Item = &str> {
    workspace.channels.iter().map(|channel| channel.name.as_str())
}

fn likelihood(workspace: &Workspace, auxiliary: Vec<String>) -> Value {
    let mut likelihood = Map::new();
    let names = |name: fn(&str) -> String| observed_channels(workspace).map(name).collect::<Vec<_>>();
    likelihood.insert("name".to_owned(), LIKELIHOOD.into());
    likelihood.insert("distributions".to_owned(), names(distribution_of).into());
    likelihood.insert("data".to_owned(), names(data_of).into());
    if !auxiliary.is_empty() {
        likelihood.insert("aux_distributions".to_owned(), auxiliary.into());
    }
    likelihood.into()
}

fn analyses(workspace: &Workspace, roles: &Roles<'_>) -> Vec<Value> {
    let analysis = |(m, measurement): (usize, &ns_core::spec::Measurement)| {
        // ROOT breaks off if the model does not have the parameter; `misc` has it then.
        let pois = measurement.pois().filter(|poi| roles.has_element(poi));
        let pois: Vec<String> = pois.map(|poi| roles.element_name(poi)).collect();
        json!({
            "name": measurement.name,
            "likelihood": LIKELIHOOD,
            "parameters_of_interest": pois,
            "domains": [points::domain_name(workspace, m)],
            "init": points::point_name(workspace, m),
        })
    };
    workspace.measurements.iter().enumerate().map(analysis).collect()
}

/// Returns what ROOT needs to make one `RooSimultaneous` and one data set of all channels.
fn root_internal(workspace: &Workspace) -> Value {
    let labels: Vec<&str> = observed_channels(workspace).collect();
    let indices: Vec<usize> = (0..labels.len()).collect();
    let distributions: Vec<String> = labels.iter().map(|label| distribution_of(label)).collect();
    let data = json!({"index_cat": "channelCat", "indices": indices, "labels": labels});
    let mut pdf = data.clone();
    pdf["distributions"] = distributions.into();
    let config = |(m, measurement): (usize, &ns_core::spec::Measurement)| {
        let name = if m == 0 { "ModelConfig".to_owned() } else { format!("ModelConfig_{}", measurement.name) };
        (measurement.name.clone(), json!({"mcName": name, "pdfName": "simPdf"}))
    };
    let configs: Map<String, Value> = workspace.measurements.iter().enumerate().map(config).collect();
    json!({
        "ModelConfigs": configs,
        "combined_datasets": {"obsData": data},
        "combined_distributions": {"simPdf": pdf},
    })
}

/// Returns the name of the factor of a bin.
fn element(vector: &str, bin: usize) -> String {
    format!("{vector}_bin_{bin}")
}

/// Returns the names of the elements of a parameter.
fn elements(name: &str, role: &ParameterRole<'_>) -> Vec<String> {
    if role.is_vector() { (0..role.n_elements).map(|bin| element(name, bin)).collect() } else { vec![name.to_owned()] }
}
