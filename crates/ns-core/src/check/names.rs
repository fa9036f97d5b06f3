//! Finds names that differ in case or blanks only, equal templates, and settings without a
//! parameter.

use super::finding::{Finding, FindingKind, FindingPlace};
use crate::model::Model;
use crate::spec::{Channel, Workspace};
use std::collections::{BTreeMap, HashMap};

pub(super) fn look(workspace: &Workspace, model: &Model, findings: &mut Vec<Finding>) {
    similar_names(workspace, findings);
    for (c, channel) in workspace.channels.iter().enumerate() {
        same_templates(c, channel, findings);
    }
    unused_settings(workspace, model, findings);
    unused_observations(workspace, findings);
}

fn similar_names(workspace: &Workspace, findings: &mut Vec<Finding>) {
    let (mut channels, mut samples, mut modifiers) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
    for (c, channel) in workspace.channels.iter().enumerate() {
        channels.entry(channel.name.as_str()).or_insert_with(|| format!("/channels/{c}"));
        for (s, sample) in channel.samples.iter().enumerate() {
            let pointer = format!("/channels/{c}/samples/{s}");
            for (m, modifier) in sample.modifiers.iter().enumerate() {
                modifiers.entry(modifier.name.as_str()).or_insert_with(|| format!("{pointer}/modifiers/{m}"));
            }
            samples.entry(sample.name.as_str()).or_insert(pointer);
        }
    }
    for (what, names) in [("channel", channels), ("sample", samples), ("modifier", modifiers)] {
        let mut seen: HashMap<String, &str> = HashMap::new();
        for (name, pointer) in names {
            let plain = name.split_whitespace().collect::<String>().to_lowercase();
            if let Some(other) = seen.insert(plain, name) {
                let problem = FindingKind::SimilarNames { what, name: name.to_owned(), other: other.to_owned() };
                findings
                    .push(Finding { problem, at: FindingPlace { pointer: Some(pointer), ..FindingPlace::default() } });
            }
        }
    }
}

fn same_templates(c: usize, channel: &Channel, findings: &mut Vec<Finding>) {
    let mut seen: HashMap<Vec<u64>, &str> = HashMap::new();
    for (s, sample) in channel.samples.iter().enumerate() {
        // One bin or a flat template may well agree by chance; several different numbers don't.
        let is_distinctive = sample.data.windows(2).any(|pair| pair[0] != pair[1]);
        if !is_distinctive {
            continue;
        }
        let bits = sample.data.iter().map(|yields| yields.to_bits()).collect();
        if let Some(other) = seen.insert(bits, &sample.name) {
            let problem = FindingKind::SameTemplate { other: other.to_owned() };
            let pointer = Some(format!("/channels/{c}/samples/{s}/data"));
            let (channel, sample) = (Some(channel.name.clone()), Some(sample.name.clone()));
            findings
                .push(Finding { problem, at: FindingPlace { pointer, channel, sample, ..FindingPlace::default() } });
        }
    }
}

fn unused_settings(workspace: &Workspace, model: &Model, findings: &mut Vec<Finding>) {
    let measurements = workspace.measurements.iter().enumerate();
    for (m, measurement) in measurements.filter(|(_, measurement)| measurement.name == model.measurement) {
        for (p, config) in measurement.parameters.iter().enumerate() {
            if model.parameters.set(&config.name).is_some() {
                continue;
            }
            let similar = model.parameters.similar(&config.name).map(str::to_owned);
            let problem = FindingKind::UnusedSetting { name: config.name.clone(), similar };
            let pointer = Some(format!("/measurements/{m}/config/parameters/{p}"));
            findings.push(Finding { problem, at: FindingPlace { pointer, ..FindingPlace::default() } });
        }
    }
}

fn unused_observations(workspace: &Workspace, findings: &mut Vec<Finding>) {
    let channels = || workspace.channels.iter().map(|channel| channel.name.as_str());
    for (o, observation) in workspace.observations.iter().enumerate() {
        if channels().any(|name| name == observation.name) {
            continue;
        }
        let similar = crate::similar_name(&observation.name, channels()).map(str::to_owned);
        let problem = FindingKind::UnusedObservation { name: observation.name.clone(), similar };
        let pointer = Some(format!("/observations/{o}"));
        findings.push(Finding { problem, at: FindingPlace { pointer, ..FindingPlace::default() } });
    }
}
