//! What `combine`, `prune`, `rename` and `sort` say beside the workspace that they write.

use ns_translate::workspace::{Counts, Document, Kept, Orphan, Side};

/// How much there is of it.
pub(crate) fn summary(document: &Document) -> String {
    let Counts { channels, samples, modifiers, measurements } = document.counts();
    let parts = [(channels, "channel"), (samples, "sample"), (modifiers, "modifier"), (measurements, "measurement")];
    let parts = parts.map(|(n, what)| format!("{n} {what}{}", if n == 1 { "" } else { "s" }));
    format!("{}\n", parts.join(", "))
}

/// What was decided between the two workspaces called `names`.
pub(crate) fn kept(kept: &[Kept], names: &[String; 2]) -> Vec<String> {
    let line = |Kept { part, name, side, difference }: &Kept| {
        let from = match side {
            Side::Left => &names[0],
            Side::Right => &names[1],
        };
        format!("the {part} `{name}` of {from} is kept, the other one differs: {difference}")
    };
    kept.iter().map(line).collect()
}

/// Measurements that have lost what they measure.
pub(crate) fn orphans(orphans: &[Orphan]) -> Vec<String> {
    let line = |Orphan { measurement, poi }: &Orphan| {
        format!("no modifier is left that uses `{poi}`, the parameter of interest of the measurement `{measurement}`")
    };
    orphans.iter().map(line).collect()
}
