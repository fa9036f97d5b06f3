//! No kernel reads or writes beside a table of the memory that it works in.

use super::*;
use ns_core::interpolate::Interpolation;
use ns_core::templates::{TemplateSelection, TemplateVariations};
use ns_testkit::random::{self, Shape};

/// Numbers before and after every table of a block's memory.
const GUARD: u32 = 8;

/// Moves the tables of working memory apart. Where the gaps begin.
fn move_apart(layout: &mut Layout) -> Vec<u32> {
    let mut gaps = vec![];
    let tables = layout.fields_mut().into_iter().filter(|(name, _)| name.starts_with("work_"));
    for (i, (_, offset)) in tables.enumerate() {
        *offset += i as u32 * GUARD;
        gaps.push(*offset);
        *offset += GUARD;
    }
    layout.workspace += gaps.len() as u32 * GUARD;
    gaps.push(layout.workspace);
    layout.workspace += GUARD;
    gaps
}

/// Returns all templates with their variations.
fn everything(model: &Model) -> Inputs {
    let all = |sample: &String| TemplateSelection {
        sample: sample.clone(),
        channel: None,
        variations: TemplateVariations::All,
    };
    Inputs::new(model, &model.samples.iter().map(all).collect::<Vec<_>>()).expect("its samples")
}

fn results(session: &mut DeviceSession, model: &Model) -> Vec<u64> {
    let parameters = &model.parameters;
    let items = BatchPoints { data: BatchData::Shared(&model.observed), points: &parameters.init };
    let task = BatchTask {
        data: BatchData::Shared(&model.observed),
        starts: &parameters.init,
        lower: &parameters.lower,
        upper: &parameters.upper,
        fixed: BatchFixed::Shared(&parameters.fixed),
        kinked: &model.kinked(),
        variance_of: model.poi(),
    };
    let (mut all, gradient) = session.nll_and_grad(&items).expect("the device computes");
    all.extend(gradient);
    all.extend(session.nll(&items).expect("the device computes"));
    for exact in [false, true] {
        all.extend(session.newton_steps(&task, exact).expect("the device computes"));
    }
    for fit in session.fit(&task).expect("the device computes") {
        all.extend(fit.params);
        all.extend([fit.nll, fit.edm, fit.variance.unwrap_or(-1.0)]);
    }
    let point = template_batch::DeviceInput::Host(&parameters.init);
    let found = session.nll_and_gradients(&model.observed, point, 1).expect("the device computes");
    all.extend([found.values, found.by_params, found.by_inputs].concat());
    all.into_iter().map(f64::to_bits).collect()
}

/// An overrun of one table into the next stays inside the buffer, where no sanitizer sees it.
#[test]
fn no_kernel_reads_or_writes_beside_a_table_of_its_memory() {
    let device = Device::open(Backend::Emulated, 0).expect("the emulated device opens");
    for seed in 0..40 {
        let rule = if seed % 2 == 0 { Interpolation::default() } else { Interpolation::KINKED };
        let model = random::model(seed, Shape::PYHF, rule);
        let [mut usual, mut guarded] =
            [(); 2].map(|()| DeviceSession::with_inputs(&device, &model, everything(&model)).expect("the model fits"));
        let gaps = move_apart(&mut guarded.layout);
        assert_eq!(results(&mut usual, &model), results(&mut guarded, &model), "seed {seed}: what is read");
        assert_eq!(guarded.kept.len(), 6, "every kernel ran");
        for work in guarded.kept.drain(..) {
            let work = work.download().expect("the device computes");
            for gap in &gaps {
                let gap = *gap as usize..(gap + GUARD) as usize;
                assert!(work[gap.clone()].iter().all(|x| x.is_nan()), "seed {seed}: something was written at {gap:?}");
            }
        }
    }
}

/// A batch that is too large for one launch is done in several, whose items go on counting the
/// elements.
#[test]
fn items_of_a_later_launch_have_their_own_templates() {
    let device = Device::open(Backend::Emulated, 0).expect("the emulated device opens");
    let model = random::model(3, Shape::PYHF, Interpolation::default());
    let inputs = everything(&model);
    let values = inputs.values(&model);
    let scaled = |factor: f64| values.iter().map(|x| x * factor).collect::<Vec<f64>>();
    let mut session = DeviceSession::with_inputs(&device, &model, inputs).expect("the model fits");
    session
        .set_input_batch(template_batch::DeviceInput::Host(&[scaled(1.0), scaled(1.01), scaled(1.02)].concat()))
        .expect("sound templates");
    let parameters = &model.parameters;
    let mut fit = |first: usize, n: usize| -> Vec<u64> {
        let task = BatchTask {
            data: BatchData::Shared(&model.observed),
            starts: &parameters.init.repeat(n),
            lower: &parameters.lower,
            upper: &parameters.upper,
            fixed: BatchFixed::Shared(&parameters.fixed),
            kinked: &[],
            variance_of: None,
        };
        let fits = session.fit_at_once(first, &task).expect("the device computes");
        fits.iter().map(|fit| fit.nll.to_bits()).collect()
    };
    let all = fit(0, 5);
    assert!(all[0] != all[1] && all[1] != all[2] && all[0] == all[3]);
    assert_eq!(fit(2, 3), all[2..]);
}
