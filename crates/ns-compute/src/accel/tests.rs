#![allow(unsafe_code)]
use ns_device as _;
use super::layout::{Layout, Task, NONE};
use super::tables::Tables;
use crate::cpu::CpuLikelihood;
use ns_core::interpolate::*;
use ns_core::{Data, DataLikelihood, Likelihood, Model};
use ns_testkit::random::{self, Random, Shape};
use std::ffi::c_void;

#[repr(C)]
struct Launch { blocks: u32, lanes: u32, shared_reals: u32, schedule: u32, seed: u64, host_threads: u32, unused: u32, failure: *mut c_void }
unsafe extern "C" {
    fn nll_and_gradient_f64(l: *const Launch, a: *const *mut c_void);
    fn newton_f64(l: *const Launch, a: *const *mut c_void);
    fn fit_f64(l: *const Launch, a: *const *mut c_void);
}
type K = unsafe extern "C" fn(*const Launch, *const *mut c_void);
fn go(k: K, t: &Tables, task: &Task, bufs: &mut [&mut [f64]], blocks: u32) {
    let lanes = 32;
    let launch = Launch { blocks, lanes, shared_reals: 2 * lanes + 256, schedule: 0, seed: 0, host_threads: 1, unused: 0, failure: std::ptr::null_mut() };
    let mut work = vec![f64::NAN; (t.layout.workspace * blocks) as usize];
    let mut reals = t.reals.clone();
    let mut indices = t.indices.clone();
    let mut layout = t.layout; let mut task = *task;
    let mut args: Vec<*mut c_void> = vec![(&raw mut layout).cast(), (&raw mut task).cast(), indices.as_mut_ptr().cast(), reals.as_mut_ptr().cast()];
    for b in bufs.iter_mut() { args.push(b.as_mut_ptr().cast()); }
    args.push(work.as_mut_ptr().cast());
    unsafe { k(&launch, args.as_ptr()) };
}
fn task(model: &Model) -> Task { Task { n_items: 1, counts_step: model.n_bins() as u32, aux_step: model.n_aux() as u32, max_iterations: 100, variance_param: NONE, exact: 1 } }

const RULES: [Interpolation; 3] = [
    Interpolation::KINKED,
    Interpolation { normsys: NormSysInterpolation::SmoothExponential, histosys: HistoSysInterpolation::SmoothLinear },
    Interpolation { normsys: NormSysInterpolation::SmoothExponential, histosys: HistoSysInterpolation::Quadratic },
];

#[test]
fn gradients() {
    for seed in 0..60 {
        let model = random::model(seed, Shape::SMALL, RULES[seed as usize % 3]);
        let mut cpu = CpuLikelihood::new(&model);
        let t = Tables::new(&model, cpu.plan()).unwrap();
        let mut rng = Random::new(seed);
        let mut x = random::point(&model.parameters, &mut rng, 1.0);
        let n = model.n_params();
        let (mut counts, mut aux) = (model.observed.main.clone(), model.observed.aux.clone());
        let zeros = model.observed.clone();
        let mut g = vec![0.0; n]; let mut v = vec![0.0];
        go(nll_and_gradient_f64, &t, &task(&model), &mut [&mut counts, &mut aux, &mut x, &mut v, &mut g], 1);
        let mut gc = vec![0.0; n];
        let vc = cpu.nll_and_grad(&x, &mut gc);
        let _ = zeros;
        let constant = crate::cpu::terms::constants(&cpu.plan().terms, &model.observed);
        let err = g.iter().zip(&gc).map(|(a, b)| (a - b).abs() / b.abs().max(1.0)).fold(0.0, f64::max);
        println!("{seed}: {} {} {err:e}", v[0] + constant, vc);
        assert!((v[0] + constant - vc).abs() < 1e-9 * vc.abs().max(1.0) || (v[0].is_infinite() && vc.is_infinite()));
        assert!(err < 1e-9);
    }
}

#[test]
fn fits() {
    let mut bad = 0;
    for seed in 0..2000 {
        let model = random::model(seed, Shape::SMALL, RULES[seed as usize % 3]);
        let mut cpu = CpuLikelihood::new(&model);
        let t = Tables::new(&model, cpu.plan()).unwrap();
        let n = model.n_params();
        let mut x = model.parameters.init.clone();
        let (mut counts, mut aux) = (model.observed.main.clone(), model.observed.aux.clone());
        let mut domain = model.parameters.lower.clone();
        domain.extend(&model.parameters.upper);
        domain.extend(model.parameters.fixed.iter().map(|&f| f64::from(u8::from(f))));
        domain.extend(model.kinked().iter().map(|&f| f64::from(u8::from(f))));
        let mut results = vec![0.0; 8];
        go(fit_f64, &t, &task(&model), &mut [&mut counts, &mut aux, &mut domain, &mut x, &mut results], 1);
        let constant = crate::cpu::terms::constants(&cpu.plan().terms, &model.observed);
        let data = model.observed.clone();
        let _ = data;
        let (dom, start) = ns_inference::fit::domain_and_start(&model, &ns_inference::FitOptions::default());
        let r = ns_inference::minimize::Minimizer::new(&cpu.structure()).minimize(&mut cpu, &start, &dom, &Default::default());
        let d = 2.0 * (results[0] + constant) - 2.0*r.nll;
        let ok = results[2] == 0.0 && d.abs() < 1e-8;
        if !ok { bad += 1; println!("{seed} P {n} rule {}: status {} it {} d {d:e} edm {:e} | cpu {:?} it {} bounds {:?}", seed%3, results[2], results[3], results[1], r.outcome, r.iterations, r.edm); }
    }
    println!("bad {bad}");
}

#[test]
fn published() {
    let dir = std::path::Path::new("/work/shared/data/workspaces");
    let mut names: Vec<_> = std::fs::read_dir(dir).unwrap().map(|e| e.unwrap().path()).collect();
    names.sort();
    for path in names {
        let Ok(w) = ns_translate::load(&ns_translate::LoadRequest::new(ns_translate::Source::Path(path.clone()))) else { println!("no {path:?}"); continue };
        let Ok(model) = ns_core::compile(&w, &Default::default()) else { println!("not compiled {path:?}"); continue };
        let mut cpu = CpuLikelihood::new(&model);
        let t = Tables::new(&model, cpu.plan()).unwrap();
        let n = model.n_params();
        let mut x = model.parameters.init.clone();
        let (mut counts, mut aux) = (model.observed.main.clone(), model.observed.aux.clone());
        let mut domain = model.parameters.lower.clone();
        domain.extend(&model.parameters.upper);
        domain.extend(model.parameters.fixed.iter().map(|&f| f64::from(u8::from(f))));
        domain.extend(model.kinked().iter().map(|&f| f64::from(u8::from(f))));
        let mut results = vec![0.0; 8];
        let start = std::time::Instant::now();
        go(fit_f64, &t, &task(&model), &mut [&mut counts, &mut aux, &mut domain, &mut x, &mut results], 1);
        let time = start.elapsed();
        let constant = crate::cpu::terms::constants(&cpu.plan().terms, &model.observed);
        let (dom, start) = ns_inference::fit::domain_and_start(&model, &ns_inference::FitOptions::default());
        let r = ns_inference::minimize::Minimizer::new(&cpu.structure()).minimize(&mut cpu, &start, &dom, &Default::default());
        let d = 2.0 * (results[0] + constant) - 2.0*r.nll;
        println!("{:40} P {n} G {} L {} B {} work {} kB: status {} it {} d {d:e} edm {:e} {time:?} | cpu {:?} it {}", path.file_name().unwrap().to_str().unwrap(), t.layout.n_global, t.layout.n_local, t.layout.n_bins, t.layout.workspace * 8 / 1024, results[2], results[3], results[1], r.outcome, r.iterations);
    }
}
