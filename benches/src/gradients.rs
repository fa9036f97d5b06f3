//! Gradients with respect to templates: -ln L, and the profiled statistics, at 8 parameters and at 184.

use crate::family::{Kind, workspace};
use crate::measure::{Times, repeat};
use clap::Args;
use ns_compute::DifferentiableSession;
use ns_core::templates::{Inputs, Selection, Variations};
use ns_core::{CompileOptions, Model, compile};
use ns_inference::differentiable::{
    AsimovPoint, DifferentiableError, DifferentiableOptions, ProfiledDifferentiableSession, Which,
};
use ns_inference::limit::LimitOptions;
use ns_inference::test_statistic::TestStatistic;
use ns_translate::{LoadRequest, Source, load};
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
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &GradientsArgs) -> Result<(), Box<dyn Error>> {
    let budget = Duration::from_millis(arguments.budget);
    let small = compile(&workspace(Kind::Gammas, 8, 4), &CompileOptions::default())?;
    let published = arguments.data.join("workspaces/atlas_tHu_fcnc.json");
    let (name, large) = if published.is_file() {
        let request = LoadRequest { workspace: Source::Path(published), patches: Vec::new(), patchset: None };
        ("atlas_tHu_fcnc", compile(&load(&request)?, &CompileOptions::default())?)
    } else {
        ("generated", compile(&workspace(Kind::Gammas, 184, 41), &CompileOptions::default())?)
    };
    for (name, model) in [("generated", &small), (name, &large)] {
        let signal = signal_of(model).ok_or("no sample is scaled by the parameter of interest")?;
        let rows = measure(model, &signal, budget)?;
        let size = format!("{name}: {} parameters, {} bins, signal `{signal}`", model.n_params(), model.n_bins());
        if arguments.json {
            println!("{}", json!({ "model": size, "rows": rows }));
            continue;
        }
        println!("{size}");
        for (what, times) in rows {
            println!("{what:44} {:>10.1} µs (median of {}, least {:.1})", times.median_us, times.n, times.min_us);
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

fn measure(model: &Model, signal: &str, budget: Duration) -> Result<Vec<(&'static str, Times)>, Box<dyn Error>> {
    let selection = Selection { sample: signal.to_owned(), channel: None, variations: Variations::None };
    let inputs = Inputs::new(model, &[selection])?;
    let (values, m) = (inputs.values(model), inputs.len());
    let mut rows = Vec::new();
    let poi = model.poi().ok_or("no parameter of interest")?;
    for (nominal, asimov) in [(false, AsimovPoint::Fitted), (true, AsimovPoint::Nominal)] {
        let options = DifferentiableOptions { asimov, ..DifferentiableOptions::default() };
        let likelihood = DifferentiableSession::new(model, inputs.clone());
        let mut session = ProfiledDifferentiableSession::new(model, likelihood, poi, options);
        let (mut gradient, mut by_inputs) = (vec![0.0; model.n_params()], vec![0.0; m]);
        let params = model.parameters.init.clone();
        let mut failure: Option<DifferentiableError> = None;
        let mut time = |what, session: &mut ProfiledDifferentiableSession<DifferentiableSession>, work: Work<'_>| {
            let times = repeat(budget, || {
                let done = session.set_inputs(black_box(&values)).map_err(|error| error.to_string());
                done.expect("the model's own inputs");
                failure = work(session, &mut by_inputs).err().or(failure.take());
            });
            rows.push((what, times));
        };
        if !nominal {
            time("-ln L and both gradients", &mut session, &mut |session, out| {
                black_box(session.nll(&params, &mut gradient, out));
                Ok(())
            });
            time("profiled -ln L", &mut session, &mut |session, out| session.profiled_nll(None, Some(out)).map(drop));
            time("q0, observed", &mut session, &mut |session, out| {
                session.statistic(TestStatistic::Q0, 0.0, Some(out)).map(drop)
            });
            time("q_mu tilde, observed", &mut session, &mut |session, out| {
                session.statistic(TestStatistic::QTilde, 1.0, Some(out)).map(drop)
            });
            time("sigma, observed", &mut session, &mut |session, out| match session.sigma(Some(out)) {
                Err(DifferentiableError::NoUncertainty { .. }) => Ok(()),
                other => other.map(drop),
            });
        }
        let [asimov, limit] = if nominal {
            ["q0, Asimov data at nominal values", "expected limit, Asimov data at nominal values"]
        } else {
            ["q0, Asimov data at the fit", "expected limit, Asimov data at the fit"]
        };
        time(asimov, &mut session, &mut |session, out| {
            session.asimov_statistic(TestStatistic::Q0, 0.0, Some(out)).map(drop)
        });
        time(limit, &mut session, &mut |session, out| {
            session.limit(LimitOptions::default(), Which::Expected(0.0), Some(out)).map(drop)
        });
        if let Some(failure) = failure {
            return Err(failure.into());
        }
    }
    Ok(rows)
}

/// What is measured: something of a session with its gradient.
type Work<'a> = &'a mut dyn FnMut(
    &mut ProfiledDifferentiableSession<DifferentiableSession>,
    &mut [f64],
) -> Result<(), DifferentiableError>;
