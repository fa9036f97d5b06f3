//! Arguments of `scan`.

use clap::Args;

use super::values::{finite, fraction};
use super::{DeviceArgs, EXIT_CODES, OutputArgs, SetupArgs, ThreadArgs};

/// Arguments of `scan`.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct ScanArgs {
    #[command(flatten)]
    pub(crate) setup: SetupArgs,

    /// The parameter to scan, the parameter of interest if not given; twice for a grid of two, as is `--poi` twice
    #[arg(long, value_name = "NAME")]
    pub(crate) parameter: Vec<String>,

    /// The first value; if not given, the scan covers 2 Δ(-ln L) up to about 9 within the parameter's range
    #[arg(long, value_name = "VALUE", value_parser = finite, requires = "stop", allow_hyphen_values = true)]
    pub(crate) start: Option<f64>,

    /// The last value
    #[arg(long, value_name = "VALUE", value_parser = finite, requires = "start", allow_hyphen_values = true)]
    pub(crate) stop: Option<f64>,

    /// How many values
    #[arg(long, value_name = "N", default_value_t = 21, value_parser = clap::value_parser!(u32).range(2..=100_000))]
    pub(crate) points: u32,

    /// The first value of the second parameter
    #[arg(long, value_name = "VALUE", value_parser = finite, requires = "stop2", allow_hyphen_values = true)]
    pub(crate) start2: Option<f64>,

    /// The last value of the second parameter
    #[arg(long, value_name = "VALUE", value_parser = finite, requires = "start2", allow_hyphen_values = true)]
    pub(crate) stop2: Option<f64>,

    /// How many values of the second parameter; as many as of the first if not given
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=100_000))]
    pub(crate) points2: Option<u32>,

    /// Add the contour of two parameters at a confidence level such as 0.68; repeatable
    #[arg(long, value_name = "CL", value_parser = fraction)]
    pub(crate) contour: Vec<f64>,

    /// How many points a contour has, beside those where a range cuts it off
    #[arg(long, value_name = "N", default_value_t = 40, value_parser = clap::value_parser!(u32).range(4..=100_000))]
    pub(crate) contour_points: u32,

    /// Leave out the parameters of the conditional fits
    #[arg(long)]
    pub(crate) no_params: bool,

    #[command(flatten)]
    pub(crate) output: OutputArgs,

    #[command(flatten)]
    pub(crate) threads: ThreadArgs,

    #[command(flatten)]
    pub(crate) device: DeviceArgs,
}
