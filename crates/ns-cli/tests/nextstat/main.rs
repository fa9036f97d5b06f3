//! The built command, run as its users run it: what it writes, what it says, how it exits.

mod combinations;
mod combine_cards;
mod commands;
mod devices;
mod docs;
mod exclusion;
mod failed_fits;
mod files;
mod fits;
mod gallery;
mod grid_shards;
mod histfactory;
mod histfactory_written;
mod hs3;
mod in_python;
#[cfg(unix)]
mod jobs;
mod layers;
mod new_users;
mod plausible_mistakes;
mod pois;
mod pyhf_commands;
mod reports;
mod schemas;
mod support;
mod tables;
mod toys;
mod workspaces;
