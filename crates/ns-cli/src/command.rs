//! The verbs: each is one file, whose `run` goes from arguments by one library call to one report.
//!
//! A new verb is a variant of [`Verb`], a struct in `args`, a file here, and a line in [`run`].

pub(crate) mod check;
mod combine;
mod completions;
mod devices;
mod digest;
mod document;
mod each_patch;
mod evaluate;
pub(crate) mod fit;
mod gof;
mod hypotest;
mod hypotest_toys;
mod inspect;
mod limit;
mod model;
mod patchset;
mod prune;
mod ranking;
mod rename;
mod report;
mod scan;
mod setup;
mod significance;
mod sort;
pub(crate) mod toys;

use crate::args::Verb;
use crate::error::CliError;

/// How a command that could be done ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Status {
    /// As it should: exit code 0.
    Done,
    /// With a result, but a bad one: exit code 1.
    Negative,
    /// Before its end, by Ctrl-C, with what was done until then: exit code 130.
    Interrupted,
}

impl Status {
    pub(crate) fn positive_if(good: bool) -> Self {
        if good { Self::Done } else { Self::Negative }
    }

    /// The exit code.
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Negative => 1,
            Self::Interrupted => 130,
        }
    }
}

/// Does what `verb` asks.
pub(crate) fn run(verb: Verb) -> Result<Status, CliError> {
    match verb {
        Verb::Fit(args) => fit::run(&args),
        Verb::Gof(args) => gof::run(&args),
        Verb::Report(args) => report::run(&args),
        Verb::Scan(args) => scan::run(&args),
        Verb::Ranking(args) => ranking::run(&args),
        Verb::Evaluate(args) => evaluate::run(&args),
        Verb::Hypotest(args) => hypotest::run(*args),
        Verb::Limit(args) => limit::run(&args),
        Verb::Significance(args) => significance::run(&args),
        Verb::Toys(args) => toys::run(&args),
        Verb::HypotestToys(args) => hypotest_toys::run(&args),
        Verb::Inspect(args) => inspect::run(&args),
        Verb::Check(args) => check::run(&args),
        Verb::Combine(args) => combine::run(&args),
        Verb::Prune(args) => prune::run(&args),
        Verb::Rename(args) => rename::run(&args),
        Verb::Sort(args) => sort::run(&args),
        Verb::Patchset(args) => patchset::run(args.verb),
        Verb::Digest(args) => digest::run(&args),
        Verb::Devices(args) => devices::run(&args),
        Verb::Completions(args) => completions::run(args.shell),
    }
}
