//! Gradients with respect to templates: -ln L, and the profiled statistics, at 8 parameters and
//! at 184.

use crate::family::{Kind, workspace};
use crate::measure::{Times, repeat, repeat_times};
use clap::Args;
use ns_compute::DifferentiableSession;
use ns_core::templates::{Inputs, TemplateSelection, TemplateVariations};
use ns_core::{CompileOptions, Model, compile};
use ns_inference::differentiable::{
    AsimovPoint, DifferentiableError, DifferentiableOptions, FitStart, LimitKind, ProfiledDifferentiableSession,
};
use ns_inference::limit::LimitOptions;
use ns_inference::test_statistic::TestStatistic;
use ns_testkit::random::Random;
use ns_translate::{DocumentSource, LoadRequest, load};
use serde_json::json;
use std::error::Error;
use std::hint::black_box;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, Args)]
pub(crate) struct GradientsArgs {
    /// Folder with the published cases; without it the large model is a generated one
    #[arg(long, default_value = "../shared/data")]
    data: PathBuf,
    /// Milliseconds spent on each number
    #[arg(long, default_value_t = 1000)]
    budget: u64,
    /// Measure only what has this in its name
    #[arg(long, default_value = "")]
    only: String,
    /// The name is to be `--only` as a whole
    #[arg(long)]
    exact: bool,
    /// A number of calls of each instead of a time budget, for counting instructions:
    /// `valgrind --tool=callgrind`, once with 2 and once with 12, say
    #[arg(long)]
    calls: Option<usize>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl GradientsArgs {
    fn asks_for(&self, what: &str) -> bool {
        if self.exact { what == self.only } else { what.contains(&self.only) }
    }

    fn repeat(&self, work: impl FnMut()) -> Times {
        match self.calls {
            Some(calls) => repeat_times(calls, work),
            None => repeat(Duration::from_millis(self.budget), work),
        }
    }
}

pub(crate) fn run(arguments: &GradientsArgs) -> Result<(), Box<dyn Error>> {
    let small = compile(&workspace(Kind::Gammas, 8, 4), &CompileOptions::default())?;
    let published = arguments.data.join("workspaces/atlas_tHu_fcnc.json");
    let (name, large) = if published.is_file() {
        let request = LoadRequest::new(DocumentSource::Path(published));
        ("atlas_tHu_fcnc", compile(&load(&request)?, &CompileOptions::default())?)
    } else {
        ("generated", compile(&workspace(Kind::Gammas, 184, 41), &CompileOptions::default())?)
    };
    for (name, model) in [("generated", &small), (name, &large)] {
        let signal = signal_of(model).ok_or("no sample is scaled by the parameter of interest")?;
        let rows = measure(model, &signal, arguments)?;
        let size = format!("{name}: {} parameters, {} bins, signal `{signal}`", model.n_params(), model.n_bins());
        if arguments.json {
            println!("{}", json!({ "model": size, "rows": rows }));
            continue;
        }
        println!("{size}");
        for (what, times) in rows {
            println!("{what:56} {:>10.1} µs (median of {}, least {:.1})", times.median_us, times.n, times.min_us);
        }
    }
    Ok(())
}

/// The first sample that the parameter of interest scales.
fn signal_of(model: &Model) -> Option<String> {
    let (layout, poi) = (&model.layout, u32::try_from(model.poi()?).ok()?);
    let scaled = |&t: &usize| model.table(layout.scale_param)[model.part(layout.template_scale, t)].contains(&poi);
    let template = (0..model.n_templates()).find(scaled)?;
    Some(model.samples[model.table(layout.template_sample)[template] as usize].clone())
}

fn measure(model: &Model, signal: &str, arguments: &GradientsArgs) -> Result<Vec<(String, Times)>, Box<dyn Error>> {
    let selection =
        TemplateSelection { sample: signal.to_owned(), channel: None, variations: TemplateVariations::None };
    let inputs = Inputs::new(model, &[selection])?;
    let points = points(&inputs.values(model));
    let mut rows = Vec::new();
    let poi = model.poi().ok_or("no parameter of interest")?;
    for (asimov, start) in [
        (AsimovPoint::Fitted, FitStart::Initial),
        (AsimovPoint::Fitted, FitStart::Warm),
        (AsimovPoint::Nominal, FitStart::Initial),
        (AsimovPoint::Nominal, FitStart::Warm),
    ] {
        let options = DifferentiableOptions { asimov, start, ..DifferentiableOptions::default() };
        let likelihood = DifferentiableSession::new(model, inputs.clone());
        let mut session = ProfiledDifferentiableSession::new(model, likelihood, poi, options);
        let mut by_inputs = vec![0.0; inputs.len()];
        let mut failure: Option<DifferentiableError> = None;
        let followed = if start == FitStart::Warm { ", followed" } else { "" };
        for (what, work) in &mut works(model, asimov) {
            let what = format!("{what}{followed}");
            if !arguments.asks_for(&what) {
                continue;
            }
            let mut moved = points.iter().cycle();
            let times = arguments.repeat(|| {
                let values = moved.next().expect("a point");
                let done = session.set_inputs(black_box(values)).map_err(|error| error.to_string());
                done.expect("inputs near the model's own");
                failure = work(&mut session, &mut by_inputs).err().or(failure.take());
            });
            rows.push((what, times));
        }
        if let Some(failure) = failure {
            return Err(failure.into());
        }
    }
    Ok(rows)
}

/// Inputs as a training would move them: from one to the next by up to one in a hundred each.
fn points(values: &[f64]) -> Vec<Vec<f64>> {
    let mut random = Random::new(1);
    let mut near = || values.iter().map(|value| value * (1.0 + random.between(-0.005, 0.005))).collect();
    (0..61).map(|_| near()).collect()
}

/// What is measured, by name, for Asimov data made there.
fn works(model: &Model, asimov: AsimovPoint) -> Vec<(&'static str, Work)> {
    let (params, mut gradient) = (model.parameters.init.clone(), vec![0.0; model.n_params()]);
    let [q0, limit] = match asimov {
        AsimovPoint::Nominal => ["q0, Asimov data at nominal values", "expected limit, Asimov data at nominal values"],
        AsimovPoint::Fitted => ["q0, Asimov data at the fit", "expected limit, Asimov data at the fit"],
    };
    let mut works: Vec<(&'static str, Work)> = vec![
        (q0, Box::new(|session, out| session.asimov_statistic(TestStatistic::Q0, 0.0, Some(out)).map(drop))),
        (limit, Box::new(|session, out| session.limit(LimitOptions::default(), EXPECTED, Some(out)).map(drop))),
    ];
    if asimov == AsimovPoint::Fitted {
        works.push((
            "-ln L and both gradients",
            Box::new(move |session, out| {
                black_box(session.nll(&params, &mut gradient, out));
                Ok(())
            }),
        ));
        works.push(("profiled -ln L", Box::new(|session, out| session.profiled_nll(None, Some(out)).map(drop))));
        let statistic = |statistic, mu| -> Work {
            Box::new(move |session, out| session.statistic(statistic, mu, Some(out)).map(drop))
        };
        works.push(("q0, observed", statistic(TestStatistic::Q0, 0.0)));
        works.push(("q_mu tilde, observed", statistic(TestStatistic::QTilde, 1.0)));
        works.push((
            "sigma, observed",
            Box::new(|session, out| match session.sigma(Some(out)) {
                Err(DifferentiableError::NoUncertainty { .. }) => Ok(()),
                other => other.map(drop),
            }),
        ));
    }
    works
}

const EXPECTED: LimitKind = LimitKind::Expected(0.0);

/// What is measured: something of a session with its gradient.
type Work = Box<
    dyn FnMut(&mut ProfiledDifferentiableSession<DifferentiableSession>, &mut [f64]) -> Result<(), DifferentiableError>,
>;
