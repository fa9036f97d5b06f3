//! Writes workspaces as HS3, so that ROOT and pyhs3 read them.
//!
//! `channels` writes distributions and data, `settings` finds what measurements set for parameters,
//! `names` chooses names, `terms` writes constraint terms, and `points` parameter points and
//! domains. What HS3 cannot hold is collected, and nothing is written then.

mod channels;
mod names;
mod points;
mod settings;
mod terms;

use ns_core::spec::Workspace;
use serde_json::{Map, Value, json};

use self::channels::ChannelWriter;
use self::names::DocumentNames;
use self::settings::Roles;
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
    let mut roles = Roles::collect(workspace, &mut lacking);
    let names = names::choose(workspace, &mut roles, &mut lacking);
    let writer = ChannelWriter { workspace, roles: &roles, names: &names };
    let channels = writer.distributions(&mut lacking);
    let terms = terms::write(&roles, &mut lacking);
    lacking.into_result()?;
    let mut document = json!({
        "analyses": analyses(workspace, &roles, &names),
        "data": writer.data(),
        "distributions": channels.into_iter().chain(terms.distributions).collect::<Vec<_>>(),
        "domains": points::domains(&roles, &names),
        "likelihoods": [likelihood(workspace, terms.auxiliary)],
        "metadata": {
            "hs3_version": "0.2",
            "packages": [{"name": "nextstat", "version": env!("CARGO_PKG_VERSION")}],
        },
        "misc": {
            "ROOT_internal": root_internal(workspace, &names),
            origin::KEY: origin::write(workspace, |name| roles.element(name).is_some()),
        },
        "parameter_points": points::points(&roles, &names),
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

fn analyses(workspace: &Workspace, roles: &Roles<'_>, names: &DocumentNames) -> Vec<Value> {
    let analysis = |(m, measurement): (usize, &ns_core::spec::Measurement)| {
        // ROOT breaks off if the model does not have the parameter; `misc` has it then.
        let pois: Vec<&str> = measurement.pois().filter_map(|poi| roles.element(poi)).collect();
        json!({
            "name": measurement.name,
            "likelihood": LIKELIHOOD,
            "parameters_of_interest": pois,
            "domains": [names.domains[m]],
            "init": names.points[m],
        })
    };
    workspace.measurements.iter().enumerate().map(analysis).collect()
}

/// Returns what ROOT needs to make one `RooSimultaneous` and one data set of all channels.
fn root_internal(workspace: &Workspace, names: &DocumentNames) -> Value {
    let labels: Vec<&str> = observed_channels(workspace).collect();
    let indices: Vec<usize> = (0..labels.len()).collect();
    let distributions: Vec<String> = labels.iter().map(|label| distribution_of(label)).collect();
    let data = json!({"index_cat": names.category, "indices": indices, "labels": labels});
    let mut pdf = data.clone();
    pdf["distributions"] = distributions.into();
    let config = |(m, measurement): (usize, &ns_core::spec::Measurement)| {
        let name = if m == 0 { "ModelConfig".to_owned() } else { format!("ModelConfig_{}", measurement.name) };
        (measurement.name.clone(), json!({"mcName": name, "pdfName": names.simultaneous}))
    };
    let configs: Map<String, Value> = workspace.measurements.iter().enumerate().map(config).collect();
    json!({
        "ModelConfigs": configs,
        "combined_datasets": {"obsData": data},
        "combined_distributions": {names.simultaneous.as_str(): pdf},
    })
}
