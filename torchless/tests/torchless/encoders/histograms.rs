//! Histograms of a score: those of the scores of `encode`, the same bits however events are
//! divided, and errors that name the variation.

use torchless::encoder::{
    ClassFraction, Column, EncodeOptions, Encoder, EncoderEvents, EventWeights, FillOptions, Flow, InputValues,
    Offsets, RaggedInput, Score, ScoreHistogram, ScoreHistograms, ScoreTransform, ScratchPool, Variation,
    WeightedEvents,
};
use torchless::{Error, HistogramProblem, Threads};

use super::models::folder;

/// Sentences of `text17.onnx`: words one after another, and weights over many powers of ten.
pub(super) struct Sentences {
    offsets: Vec<i64>,
    words: Vec<i64>,
    /// Other words, and sentences without their last word.
    replaced: Vec<i64>,
    shorter: Vec<i64>,
    shorter_words: Vec<i64>,
    weights: Vec<f64>,
    single_weights: Vec<f32>,
}

const EDGES: [f64; 5] = [-0.27, -0.22, -0.17, -0.12, -0.02];

impl Sentences {
    pub(super) fn new(n_events: usize) -> Sentences {
        let mut state = 1_u64;
        let mut random = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        let (mut offsets, mut shorter) = (vec![0], vec![0]);
        let (mut words, mut shorter_words) = (Vec::new(), Vec::new());
        for _ in 0..n_events {
            let first = words.len();
            words.extend((0..2 + random(9)).map(|_| random(10) as i64));
            shorter_words.extend_from_slice(&words[first..words.len() - 1]);
            offsets.push(words.len() as i64);
            shorter.push(shorter_words.len() as i64);
        }
        let replaced = words.iter().map(|word| (word + 3) % 10).collect();
        let mut weight = || (random(1000) as f64 - 300.0) * 10_f64.powi(random(30) as i32 - 15);
        let weights: Vec<f64> = (0..n_events).map(|event| if event % 7 == 0 { 0.0 } else { weight() }).collect();
        let single_weights = weights.iter().map(|weight| *weight as f32 * 1.25).collect();
        Sentences { offsets, words, replaced, shorter, shorter_words, weights, single_weights }
    }

    fn n_events(&self) -> usize {
        self.weights.len()
    }
}

fn model() -> Encoder {
    Encoder::open(folder().join("text17.onnx")).expect("a model")
}

fn column(words: &[i64]) -> [Column<'_>; 1] {
    [Column::contiguous(InputValues::I64(words))]
}

fn ids<'a>(offsets: &'a [i64], columns: &'a [Column<'a>]) -> [RaggedInput<'a>; 1] {
    [RaggedInput { name: "ids", offsets: Offsets::I64(offsets), columns }]
}

fn options(chunk_size: usize, events_at_once: usize) -> FillOptions {
    FillOptions { encode: EncodeOptions { events_at_once, mask: Some("mask".into()) }, chunk_size }
}

fn ratio() -> Score {
    let transform = ScoreTransform::LogRatio(vec![ClassFraction { column: 0, fraction: 1.25 }]);
    Score { output: None, column: 1, transform }
}

/// How events are divided: threads, events of a chunk, events at once, and events of a call.
#[derive(Debug, Clone, Copy)]
pub(super) struct Division {
    pub(super) threads: usize,
    pub(super) chunk_size: usize,
    pub(super) events_at_once: usize,
    pub(super) call: usize,
}

/// What computes scores.
pub(super) struct Scorer {
    model: Encoder,
    threads: Threads,
    pool: ScratchPool,
}

impl Scorer {
    pub(super) fn new(threads: usize) -> Scorer {
        Scorer { model: model(), threads: Threads::new(threads), pool: ScratchPool::new() }
    }
}

/// Fills the nominal histogram and those of four variations.
fn filled(sentences: &Sentences, flow: Flow, division: Division) -> Vec<ScoreHistogram> {
    filled_by(&Scorer::new(division.threads), sentences, flow, division)
}

/// Fills them with scores of a model that others may use.
pub(super) fn filled_by(scorer: &Scorer, sentences: &Sentences, flow: Flow, division: Division) -> Vec<ScoreHistogram> {
    let Division { chunk_size, events_at_once, call, .. } = division;
    let Scorer { model, threads, pool } = scorer;
    let mut histograms = ScoreHistograms::new(&EDGES, ratio(), flow).expect("edges");
    let [words, replaced, shorter] = [&sentences.words, &sentences.replaced, &sentences.shorter_words];
    let [words, replaced, shorter] = [column(words), column(replaced), column(shorter)];
    let mut start = 0;
    while start < sentences.n_events() {
        let end = sentences.n_events().min(start + call);
        let offsets = &sentences.offsets[start..=end];
        let (nominal, replaced) = (ids(offsets, &words), ids(offsets, &replaced));
        let shorter = ids(&sentences.shorter[start..=end], &shorter);
        let single = Some(EventWeights::F32(&sentences.single_weights[start..end]));
        let variation = |name, ragged, weights| Variation { name, dense: &[], ragged, weights };
        let variations = [
            variation("words", &replaced, None),
            variation("weights", &[], single),
            variation("shorter", &shorter, single),
            variation("nominal again", &nominal, None),
        ];
        let inputs = EncoderEvents { dense: &[], ragged: &nominal };
        let weights = Some(EventWeights::F64(&sentences.weights[start..end]));
        let events = WeightedEvents { inputs, weights, variations: &variations };
        histograms.fill(model, threads, pool, &events, &options(chunk_size, events_at_once)).expect("histograms");
        start = end;
    }
    assert_eq!(histograms.names(), ["words", "weights", "shorter", "nominal again"]);
    let varied = histograms.names().iter().map(|name| histograms.variation(name).expect("a variation"));
    std::iter::once(histograms.nominal()).chain(varied).collect()
}

const WHOLE: Division = Division { threads: 1, chunk_size: usize::MAX, events_at_once: 16, call: usize::MAX };

/// Returns the bits of all numbers.
pub(super) fn bits(histograms: &[ScoreHistogram]) -> Vec<u64> {
    let numbers = |one: &ScoreHistogram| [&one.values, &one.variances, &one.underflow[..], &one.overflow].concat();
    histograms.iter().flat_map(numbers).map(f64::to_bits).collect()
}

#[test]
fn no_bit_depends_on_threads_chunks_or_calls() {
    let sentences = Sentences::new(300);
    let expected = filled(&sentences, Flow::Drop, WHOLE);
    let divided = |threads, chunk_size, events_at_once, call| Division { threads, chunk_size, events_at_once, call };
    for division in [
        divided(3, 64, 16, 300),
        divided(2, 1, 16, 300),
        divided(1, 37, 1, 41),
        divided(2, 1000, 5, 7),
        divided(1, 0, 0, 150),
    ] {
        let found = filled(&sentences, Flow::Drop, division);
        assert_eq!(bits(&found), bits(&expected), "{division:?}");
    }
}

#[test]
fn sums_are_exact() {
    let sentences = Sentences::new(300);
    let columns = column(&sentences.words);
    // Multiples of 2⁻⁴⁰, of forty bits and more; their squares are rounded to multiples of 2⁻⁸⁰.
    let weight =
        |event: u64| (event.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 24) as f64 * 2_f64.powi((event % 15) as i32 - 40);
    let weights: Vec<f64> =
        (1..=300).map(|event| if event % 3 == 0 { -weight(event) } else { weight(event) }).collect();
    let exact = |unit: i32, terms: &[f64]| {
        let integers = terms.iter().map(|term| (term * 2_f64.powi(-unit)) as i128);
        integers.sum::<i128>() as f64 * 2_f64.powi(unit)
    };
    let squares: Vec<f64> = weights.iter().map(|weight| weight * weight).collect();
    let mut histograms = ScoreHistograms::new(&[f64::NEG_INFINITY, f64::INFINITY], ratio(), Flow::Drop).expect("edges");
    for part in [0..100, 100..300] {
        let ragged = ids(&sentences.offsets[part.start..=part.end], &columns);
        let inputs = EncoderEvents { dense: &[], ragged: &ragged };
        let events = WeightedEvents { inputs, weights: Some(EventWeights::F64(&weights[part])), variations: &[] };
        histograms
            .fill(&model(), &Threads::new(1), &ScratchPool::new(), &events, &options(64, 16))
            .expect("histograms");
    }
    let found = histograms.nominal();
    assert_eq!((found.values[0], found.variances[0]), (exact(-40, &weights), exact(-80, &squares)));
    let plain: f64 = squares.iter().sum();
    assert_ne!(plain, found.variances[0], "sums of double precision would do");
}

#[test]
fn histograms_are_those_of_the_scores() {
    let mut sentences = Sentences::new(300);
    // Weights whose sums are exact in any order.
    sentences.weights.iter_mut().enumerate().for_each(|(event, weight)| *weight = (event % 5) as f64 - 1.0);
    sentences.single_weights.iter_mut().enumerate().for_each(|(event, weight)| *weight = (event % 3) as f32);
    let found = filled(&sentences, Flow::Drop, WHOLE);
    let merged = filled(&sentences, Flow::Merge, WHOLE);
    let double = &sentences.weights;
    let single: Vec<f64> = sentences.single_weights.iter().map(|weight| f64::from(*weight)).collect();
    let expected = [
        (&sentences.offsets, &sentences.words, double),
        (&sentences.offsets, &sentences.replaced, double),
        (&sentences.offsets, &sentences.words, &single),
        (&sentences.shorter, &sentences.shorter_words, &single),
        (&sentences.offsets, &sentences.words, double),
    ];
    for (index, (offsets, words, weights)) in expected.into_iter().enumerate() {
        let columns = column(words);
        let events = EncoderEvents { dense: &[], ragged: &ids(offsets, &columns) };
        let outputs = model().encode_events(&Threads::new(1), &ScratchPool::new(), events, &options(1, 16).encode);
        let logits = outputs.expect("outputs").swap_remove(0).values.to_f64();
        let mut sums = [[0.0; 2]; EDGES.len() + 1];
        for (logits, weight) in logits.chunks(2).zip(weights) {
            let place = EDGES.iter().filter(|edge| **edge <= logits[1] - logits[0] - 1.25_f64.ln()).count();
            sums[place] = [sums[place][0] + weight, sums[place][1] + weight * weight];
        }
        let [under, bins @ .., over] = sums;
        assert_eq!([found[index].underflow, found[index].overflow], [under, over], "histogram {index}");
        let inner = |at: usize| bins.iter().map(|bin| bin[at]).collect::<Vec<f64>>();
        assert_eq!([&found[index].values, &found[index].variances], [&inner(0), &inner(1)], "histogram {index}");
        assert!(bins.iter().all(|bin| bin[1] > 0.0) && under[1] > 0.0 && over[1] > 0.0, "{sums:?}");
        let (mut values, last) = (inner(0), bins.len() - 1);
        values[0] += under[0];
        values[last] += over[0];
        assert_eq!((&merged[index].values, merged[index].overflow), (&values, [0.0, 0.0]), "histogram {index}");
    }
}

#[test]
fn a_bin_has_its_lower_edge_and_not_its_upper_one() {
    let sentences = Sentences::new(9);
    let columns = column(&sentences.words);
    let nominal = ids(&sentences.offsets, &columns);
    let events = EncoderEvents { dense: &[], ragged: &nominal };
    let options = options(4, 3);
    let outputs = model().encode_events(&Threads::new(1), &ScratchPool::new(), events, &options.encode);
    let logits = outputs.expect("outputs").swap_remove(0).values.to_f64();
    let mut edges: Vec<f64> = logits.chunks(2).map(|logits| logits[0]).collect();
    edges.sort_by(f64::total_cmp);
    edges.dedup();
    let count = |edge: &f64| logits.chunks(2).filter(|logits| logits[0] == *edge).count() as f64;
    let (last, inner) = edges.split_last().expect("edges");
    let expected: Vec<f64> = inner.iter().map(count).collect();
    let mut histograms = ScoreHistograms::new(&edges, Score::default(), Flow::Drop).expect("edges");
    let events = WeightedEvents { inputs: events, weights: None, variations: &[] };
    histograms.fill(&model(), &Threads::new(1), &ScratchPool::new(), &events, &options).expect("histograms");
    let found = histograms.nominal();
    assert_eq!((found.values, found.underflow[0], found.overflow[0]), (expected, 0.0, count(last)));
}

#[test]
fn events_without_weight_have_no_score() {
    let sentences = Sentences::new(3);
    let columns = column(&sentences.words);
    // The second event has no words, and the softmax of a row without keys is NaN.
    let offsets = [0, 2, 2, 4];
    let fill = |weights: &[f64], varied: &[f64]| {
        let mut histograms = ScoreHistograms::new(&[-9.0, 9.0], ratio(), Flow::Drop).expect("edges");
        let weights_up = Some(EventWeights::F64(varied));
        let variations = [Variation { name: "up", dense: &[], ragged: &[], weights: weights_up }];
        let inputs = EncoderEvents { dense: &[], ragged: &ids(&offsets, &columns) };
        let events = WeightedEvents { inputs, weights: Some(EventWeights::F64(weights)), variations: &variations };
        let filled = histograms.fill(&model(), &Threads::new(1), &ScratchPool::new(), &events, &options(1, 16));
        assert!(filled.is_ok() || histograms.nominal().values == [0.0], "nothing was added");
        filled.map(|()| histograms.nominal().values)
    };
    assert_eq!(fill(&[2.0, 0.0, 3.0], &[1.0, 0.0, 1.0]).expect("a histogram"), [5.0]);
    for (nominal, varied) in [([1.0, 1.0, 1.0], [1.0, 0.0, 1.0]), ([1.0, 0.0, 1.0], [1.0, 1.0, 1.0])] {
        let error = fill(&nominal, &varied).expect_err("a score that is NaN");
        assert_eq!(error.to_string(), "the score of event 1 is NaN");
        assert!(error.hint().is_some());
    }
}

/// Returns the error of four events.
fn error_of(score: Score, weights: Option<EventWeights<'_>>, variations: &[Variation<'_>]) -> String {
    let sentences = Sentences::new(4);
    let columns = column(&sentences.words);
    let nominal = ids(&sentences.offsets, &columns);
    let inputs = EncoderEvents { dense: &[], ragged: &nominal };
    let events = WeightedEvents { inputs, weights, variations };
    let mut histograms = ScoreHistograms::new(&EDGES, score, Flow::Drop).expect("edges");
    let filled = histograms.fill(&model(), &Threads::new(1), &ScratchPool::new(), &events, &options(3, 16));
    assert_eq!(histograms.nominal().values, [0.0; 4]);
    filled.expect_err("an error").to_string()
}

#[test]
fn errors_name_the_variation_and_the_input() {
    let few = column(&[1, 2, 3]);
    let [short, other] = [ids(&[0, 1, 2, 3], &few), ids(&[0, 3, 3, 3, 3], &few)];
    let unknown = [RaggedInput { name: "words", ..other[0] }];
    let long = [RaggedInput { offsets: Offsets::I64(&[0, 1, 2, 3, 9]), ..other[0] }];
    let weights = |weights| Some(EventWeights::F64(weights));
    let variation = |name, ragged, weights| Variation { name, dense: &[], ragged, weights };
    let cases: [(&[Variation<'_>], &str); 8] = [
        (&[variation("up", &short, None)], "variation `up`: its inputs have 3 events, and there are 4"),
        (&[variation("up", &unknown, None)], "variation `up`: input `words`: the model has no such input"),
        (&[variation("up", &long, None)], "variation `up`: input `ids`: it has 3 particles, and its offsets end at 9"),
        (&[variation("up", &other, weights(&[1.0]))], "variation `up`: there are 1 weights, and 4 events"),
        (
            &[variation("up", &[], weights(&[1.0, 1.0, f64::NAN, 1.0]))],
            "variation `up`: the weight of event 2 is NaN, and its square must be finite",
        ),
        (&[variation("up", &[], None)], "variation `up`: it has neither inputs nor weights of its own"),
        (&[variation("nominal", &other, None)], "variation `nominal`: the name is taken"),
        (&[variation("up", &other, None)], "variation `up`: the score of event 1 is NaN"),
    ];
    for (variations, message) in cases {
        assert_eq!(error_of(ratio(), None, variations), message);
    }
    let found = error_of(ratio(), weights(&[1.0, 1e200, 1.0, 1.0]), &[]);
    assert!(found.starts_with("the weight of event 1 is 1000"), "{found}");
}

#[test]
fn scores_that_the_model_does_not_have_are_errors() {
    let named = |output: &str, column| Score { output: Some(output.into()), column, transform: ScoreTransform::Number };
    let against = |classes| Score { transform: ScoreTransform::LogRatio(classes), ..Score::default() };
    let class = |column, fraction| ClassFraction { column, fraction };
    let cases = [
        (named("score", 0), "score: the model has no output `score`; it has `logits`"),
        (named("logits", 2), "score: the output `logits` has 2 numbers of an event, and no column 2"),
        (against(vec![class(5, 1.0)]), "score: the output `logits` has 2 numbers of an event, and no column 5"),
        (against(vec![class(1, -1.0)]), "score: the fraction of column 1 is -1, and must be above 0 and finite"),
        (against(Vec::new()), "score: a log ratio needs classes to compare with, and there are none"),
    ];
    for (score, message) in cases {
        assert_eq!(error_of(score, None, &[]), message);
    }
}

#[test]
fn edges_that_do_not_ascend_are_errors() {
    let new = |edges: &[f64]| ScoreHistograms::new(edges, Score::default(), Flow::Drop).map(|_| ());
    assert!(new(&[f64::NEG_INFINITY, f64::INFINITY]).is_ok());
    assert!(matches!(new(&[1.0]), Err(Error::Histogram(HistogramProblem::Edges { found: 1 }))));
    for edges in [[0.0, 1.0, 1.0], [0.0, f64::NAN, 1.0], [0.0, 1.0, f64::NAN]] {
        assert!(matches!(new(&edges), Err(Error::Histogram(HistogramProblem::Edge { .. }))), "{edges:?}");
    }
}

#[test]
fn all_calls_have_the_same_variations() {
    let sentences = Sentences::new(4);
    let columns = column(&sentences.words);
    let nominal = ids(&sentences.offsets, &columns);
    let mut histograms = ScoreHistograms::new(&[-9.0, 9.0], ratio(), Flow::Drop).expect("edges");
    let mut fill = |names: &[&'static str]| {
        let [up, other] = [[1.0, 2.0, 3.0, 4.0], [1000.0; 4]];
        let weights = |name: &str| Some(EventWeights::F64(if name == "up" { &up } else { &other }));
        let variation =
            |name: &'_ &'static str| Variation { name, dense: &[], ragged: &nominal, weights: weights(name) };
        let variations: Vec<Variation<'_>> = names.iter().map(variation).collect();
        let inputs = EncoderEvents { dense: &[], ragged: &nominal };
        let events = WeightedEvents { inputs, weights: None, variations: &variations };
        let filled = histograms.fill(&model(), &Threads::new(1), &ScratchPool::new(), &events, &options(9, 9));
        filled.map(|()| histograms.variation("up").expect("a variation").values).map_err(|error| error.to_string())
    };
    assert_eq!(fill(&["up", "down"]), Ok(vec![10.0]));
    // In any order.
    assert_eq!(fill(&["down", "up"]), Ok(vec![20.0]));
    assert_eq!(fill(&["up"]), Err("variation `down`: it is not given, and earlier events have it".into()));
    let new = fill(&["up", "down", "side"]);
    assert_eq!(new, Err("variation `side`: earlier events do not have it".into()));
    assert_eq!(fill(&["up", "up"]), Err("variation `up`: the name is taken".into()));
    assert_eq!(fill(&["up", "down"]), Ok(vec![30.0]));
}
