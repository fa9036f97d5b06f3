//! What `combine`, `prune`, `rename` and `sort` say beside the workspace that they write.

use ns_translate::workspace::{JoinDecision, OrphanedMeasurement, WorkspaceCounts, WorkspaceDocument, WorkspaceSide};

/// How much there is of it.
pub(crate) fn summary(document: &WorkspaceDocument) -> String {
    let WorkspaceCounts { channels, samples, modifiers, measurements } = document.counts();
    let parts = [(channels, "channel"), (samples, "sample"), (modifiers, "modifier"), (measurements, "measurement")];
    let parts = parts.map(|(n, what)| format!("{n} {what}{}", if n == 1 { "" } else { "s" }));
    format!("{}\n", parts.join(", "))
}

/// What was decided between the two workspaces called `names`.
pub(crate) fn kept(kept: &[JoinDecision], names: &[String; 2]) -> Vec<String> {
    let line = |JoinDecision { part, name, side, difference }: &JoinDecision| {
        let from = match side {
            WorkspaceSide::Left => &names[0],
            WorkspaceSide::Right => &names[1],
        };
        format!("the {part} `{name}` of {from} is kept, the other one differs: {difference}")
    };
    kept.iter().map(line).collect()
}

/// Measurements that have lost what they measure.
pub(crate) fn orphans(orphans: &[OrphanedMeasurement]) -> Vec<String> {
    let line = |OrphanedMeasurement { measurement, poi }: &OrphanedMeasurement| {
        format!("no modifier is left that uses `{poi}`, the parameter of interest of the measurement `{measurement}`")
    };
    orphans.iter().map(line).collect()
}
