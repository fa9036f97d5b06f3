//! Tests of ns-translate through its public functions, and of the order of its modules.

mod combinations;
mod combine_cards;
mod combine_points;
mod conversions;
mod digests;
mod gallery;
mod histfactory;
mod histfactory_against_root;
mod histfactory_written;
mod hs3;
mod hs3_against_others;
mod layers;
mod loading;
mod patch_sets;
mod pyhf_values;
mod workspaces;
