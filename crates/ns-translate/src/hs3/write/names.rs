//! The names that a document has beside those of the model: of elements, terms, data of terms, and
//! what ROOT makes one object each of.
//!
//! ROOT keeps variables, functions and distributions by name in one place, so each name is given
//! once. One that is taken gets a number: `nom_k_2`.

use std::collections::HashSet;

use ns_core::spec::{ConstraintTerm, ModifierKind, Workspace};

use super::super::names::vector_name;
use super::distribution_of;
use super::settings::Roles;
use super::terms::{Reference, reference};
use crate::not_representable::Lacking;

/// The names of what the constraint term of a parameter needs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct TermNames {
    /// The distribution.
    pub(super) term: String,
    /// The auxiliary datum.
    pub(super) datum: String,
    /// The constant width.
    pub(super) width: String,
    /// The constant factor of the mean of a Poisson term.
    pub(super) tau: String,
    /// The function that is the mean of a Poisson term.
    pub(super) mean: String,
    /// The function that is the logarithm of the parameter.
    pub(super) log: String,
}

/// The names of what belongs to no parameter.
pub(super) struct DocumentNames {
    /// The observable of each channel.
    pub(super) observables: Vec<String>,
    /// The distribution of all channels, which ROOT makes.
    pub(super) simultaneous: String,
    /// The category of ROOT that says in which channel an event is.
    pub(super) category: String,
    /// The domain of each measurement.
    pub(super) domains: Vec<String>,
    /// The parameter point of each measurement.
    pub(super) points: Vec<String>,
}

/// Names that are taken.
#[derive(Default)]
struct TakenNames(HashSet<String>);

impl TakenNames {
    /// Takes `wanted`, or that with the first number that is free.
    fn take(&mut self, wanted: String) -> String {
        let numbered = (2_usize..).map(|number| format!("{wanted}_{number}"));
        let mut names = std::iter::once(wanted.clone()).chain(numbered);
        names.find(|name| self.0.insert(name.clone())).unwrap_or(wanted)
    }

    /// Takes all of `names`, unless one of them is taken.
    fn take_all(&mut self, names: &[String]) -> bool {
        let are_free = !names.iter().any(|name| self.0.contains(name));
        if are_free {
            self.0.extend(names.iter().cloned());
        }
        are_free
    }
}

/// Chooses the names of elements and terms of all parameters and those of the document. Notes
/// names of the model that would have another meaning in a document.
pub(super) fn choose(workspace: &Workspace, roles: &mut Roles<'_>, lacking: &mut Lacking) -> DocumentNames {
    refuse_duplicates(workspace, lacking);
    let mut taken = TakenNames::default();
    for channel in &workspace.channels {
        taken.0.insert(distribution_of(&channel.name));
    }
    for (name, role) in &mut roles.roles {
        if role.is_vector() {
            continue;
        }
        role.elements = vec![(*name).to_owned()];
        if !taken.0.insert((*name).to_owned()) {
            lacking.add("a parameter that is called like the distribution of a channel,", name, role.pointer.clone());
        }
        let is_gaussian = matches!(role.own_term(), Some(ConstraintTerm::Gaussian { .. }));
        if role.kind == ModifierKind::NormFactor && is_gaussian && matches!(*name, "lumi" | "Lumi") {
            lacking.add(
                "a normfactor with a Gaussian term and the name of the luminosity,",
                name,
                role.pointer.clone(),
            );
        }
    }
    for (name, role) in roles.roles.iter_mut().filter(|(_, role)| role.is_vector()) {
        match elements(name, role.n_elements, &mut taken) {
            Some(elements) => role.elements = elements,
            None => {
                lacking.add("a vector whose elements are called like other parameters,", name, role.pointer.clone());
            }
        }
    }
    for (name, role) in &mut roles.roles {
        if !role.is_vector() && reference(role) == Reference::Named {
            role.names = term_names(name, &mut taken);
        }
    }
    document_names(workspace, taken)
}

/// Returns free names of the elements of the vector `name` that are read as this vector: those that
/// ROOT gives, if they are.
fn elements(name: &str, n_elements: usize, taken: &mut TakenNames) -> Option<Vec<String>> {
    let endings = [|bin| format!("_bin_{bin}"), |bin| format!("_{bin}"), |bin: usize| format!("[{bin}]")];
    let mut candidates = endings
        .into_iter()
        .map(|ending| -> Vec<String> { (0..n_elements).map(|bin| format!("{name}{}", ending(bin))).collect() });
    candidates.find(|elements| vector_name(elements, name) == name && taken.take_all(elements))
}

fn term_names(name: &str, taken: &mut TakenNames) -> TermNames {
    TermNames {
        term: taken.take(format!("{name}_constraint")),
        datum: taken.take(format!("nom_{name}")),
        width: taken.take(format!("{name}_sigma")),
        tau: taken.take(format!("{name}_tau")),
        mean: taken.take(format!("{name}_mean")),
        log: taken.take(format!("log_{name}")),
    }
}

fn document_names(workspace: &Workspace, mut taken: TakenNames) -> DocumentNames {
    let channels = workspace.channels.iter();
    let of_measurements = |ending: &str| {
        // Domains and points are only told apart from others of their kind.
        let mut taken = TakenNames::default();
        let name = |(m, measurement): (usize, &ns_core::spec::Measurement)| {
            let own = if m == 0 { "default" } else { measurement.name.as_str() };
            taken.take(format!("{own}_{ending}"))
        };
        workspace.measurements.iter().enumerate().map(name).collect()
    };
    DocumentNames {
        domains: of_measurements("domain"),
        points: of_measurements("values"),
        observables: channels.map(|channel| taken.take(format!("obs_x_{}", channel.name))).collect(),
        simultaneous: taken.take("simPdf".to_owned()),
        category: taken.take("channelCat".to_owned()),
    }
}

/// Notes channels, samples and measurements of one name, of which a document has one each.
fn refuse_duplicates(workspace: &Workspace, lacking: &mut Lacking) {
    for (c, channel) in workspace.channels.iter().enumerate() {
        let mut seen = HashSet::new();
        for (s, sample) in channel.samples.iter().enumerate().filter(|(_, sample)| !seen.insert(&sample.name)) {
            lacking.add(
                "a second sample of the channel, called",
                &sample.name,
                format!("/channels/{c}/samples/{s}/name"),
            );
        }
    }
    let mut seen = HashSet::new();
    for (c, channel) in workspace.channels.iter().enumerate().filter(|(_, channel)| !seen.insert(&channel.name)) {
        lacking.add("a second channel called", &channel.name, format!("/channels/{c}/name"));
    }
    let mut seen = HashSet::new();
    let measurements = workspace.measurements.iter().enumerate();
    for (m, measurement) in measurements.filter(|(_, measurement)| !seen.insert(&measurement.name)) {
        lacking.add("a second measurement called", &measurement.name, format!("/measurements/{m}/name"));
    }
}
