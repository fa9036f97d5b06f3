#!/usr/bin/env python3
"""Make the classic mistakes of transformer inference, of its fast mode and of encoders in a copy of
torchless, and show that its own tests catch every one.

    torchless_mutate.py [--only WORD]   make the mistakes whose description has the word
    torchless_mutate.py --check         build nothing; check that every mistake still has its place

All mistakes are planted at once in a copy of the working tree, each beside the right code and
chosen by an environment variable, so that one build serves them all. The copy has a version of its
own, so that Cargo keeps it apart in the same build folder, and the features of the workspace, so
that dependencies are those of `make test-rust`. Tests run without the reference data: what catches
a mistake are models made by the tests and their reference implementation. Exit status 1 if a
mistake is not caught, or if tests fail without any. One mistake is made to show that it changes
nothing: rotary positions are relative.
"""
import argparse
import dataclasses
import os
import pathlib
import re
import subprocess
import sys
import time

from kernel_modules import ROOT
from kernels_mutate import copy_the_tree

SOURCES = "torchless/src"
VARIABLE = "TORCHLESS_MISTAKE"
SWITCH = f"""
/// Whether the mistake `name` is to be made.
pub(crate) fn mistake(name: &str) -> bool {{
    static CHOSEN: std::sync::OnceLock<String> = std::sync::OnceLock::new();
    CHOSEN.get_or_init(|| std::env::var("{VARIABLE}").unwrap_or_default()) == name
}}
"""
HARMLESS = "positions start at 1"
EXACT_TESTS, ROUNDED_TESTS, ENCODER_TESTS = ("models::", "properties::"), ("rounded::",), ("encoders::",)
STORAGE_TESTS = ("encoders::storage::",)


@dataclasses.dataclass(frozen=True)
class Mistake:
    """A text that is in a file once, and the right and the wrong code that take its place. `MADE`
    is replaced by the condition."""

    what: str
    file: str
    old: str
    new: str


MISTAKES = (
    Mistake("rope pairs of the other kind", "cpu/kernels.rs", "        match pairs {", "        match if MADE { if pairs == RopePairs::Halves { RopePairs::Neighbours } else { RopePairs::Halves } } else { pairs } {"),
    Mistake("rope of the wrong sign", "cpu/kernels.rs", "    let half = cosines.len();\n    for head", "    let half = cosines.len();\n    let turned: Vec<f32> = sines.iter().map(|sine| if MADE { -sine } else { *sine }).collect();\n    let sines = &turned[..];\n    for head"),
    Mistake("no rope", "cpu/kernels.rs", "    for head in x.chunks_exact_mut(2 * half) {", "    if MADE {\n        return;\n    }\n    for head in x.chunks_exact_mut(2 * half) {"),
    Mistake("rope on values, too", "cpu/engine.rs", "        let at = match kv {", "        if MADE {\n            for (token, x) in work.values.chunks_exact_mut(config.kv_width()).enumerate() {\n                let at = token * half..(token + 1) * half;\n                kernels::rope(x, config.rope.pairs, &work.cosines[at.clone()], &work.sines[at]);\n            }\n        }\n        let at = match kv {"),
    Mistake("another theta", "config.rs", "(0..head_dim / 2).map(|pair| self.theta.powf(", "(0..head_dim / 2).map(|pair| (if MADE { self.theta * 50.0 } else { self.theta }).powf("),
    Mistake("frequencies of i/D, not 2i/D", "config.rs", ".powf(-2.0 * pair as f64", ".powf((if MADE { -1.0 } else { -2.0 }) * pair as f64"),
    Mistake(HARMLESS, "config.rs", "let angle = position as f64 * frequency;", "let angle = (position as f64 + if MADE { 1.0 } else { 0.0 }) * frequency;"),
    Mistake("frequencies are not scaled", "config.rs", "        match &self.scaling {", "        match if MADE { &RopeScaling::None } else { &self.scaling } {"),
    Mistake("heads share keys by the remainder", "cpu/attention.rs", "let kv_head = head / (n_heads / n_kv_heads);", "let kv_head = if MADE { head % n_kv_heads } else { head / (n_heads / n_kv_heads) };"),
    Mistake("no causal mask", "cpu/attention.rs", "        let position = span.position + token;\n        let first =", "        let position = if MADE { span.position + span.tokens.len() - 1 } else { span.position + token };\n        let first ="),
    Mistake("no sliding window", "cpu/attention.rs", "let first = self.window.map_or(", "let first = self.window.filter(|_| !MADE).map_or("),
    Mistake("the window is off by one", "cpu/attention.rs", "(position + 1).saturating_sub(window))", "(position + if MADE { 0 } else { 1 }).saturating_sub(window))"),
    Mistake("scale of 1/sqrt(hidden)", "cpu/attention.rs", "let scale = (1.0 / (head_dim as f64)", "let scale = (1.0 / (if MADE { self.config.hidden as f64 } else { head_dim as f64 })"),
    Mistake("scale of 1/sqrt(hidden/heads)", "cpu/attention.rs", ".sqrt()) as f32;\n        kernels::attention_scores", ".sqrt()) as f32;\n        let scale = if MADE { (1.0 / ((self.config.hidden / n_heads) as f64).sqrt()) as f32 } else { scale };\n        kernels::attention_scores"),
    Mistake("epsilon outside the root", "cpu/kernels.rs", "let factor = (1.0 / (mean + self.epsilon).sqrt()) as f32;", "let factor = (1.0 / (mean + self.epsilon).sqrt()) as f32;\n            let factor = if MADE { (1.0 / (mean.sqrt() + self.epsilon)) as f32 } else { factor };"),
    Mistake("no epsilon", "cpu/kernels.rs", "let mean = squares.iter().sum::<f64>() / width as f64;", "let mean = squares.iter().sum::<f64>() / width as f64 - if MADE { self.epsilon } else { 0.0 };"),
    Mistake("another epsilon", "cpu/engine.rs", "        kernels::rms_norm(isa, &self.work.residual, &model.norm, epsilon,", "        let epsilon = if MADE { 0.1 * epsilon } else { epsilon };\n        kernels::rms_norm(isa, &self.work.residual, &model.norm, epsilon,"),
    Mistake("LayerNorm", "cpu/kernels.rs", "            let mut squares = [0.0_f64; LANES];", "            let middle = if MADE { x.iter().sum::<f32>() / width as f32 } else { 0.0 };\n            let shifted: Vec<f32> = x.iter().map(|x| x - middle).collect();\n            let x = &shifted[..];\n            let mut squares = [0.0_f64; LANES];"),
    Mistake("norms multiply by 1 + w", "cpu/kernels.rs", "*out = x * factor * weight;", "*out = x * factor * if MADE { 1.0 + weight } else { *weight };"),
    Mistake("norms of the sum, not the mean", "cpu/kernels.rs", "            let factor = (1.0 / (mean +", "            let mean = if MADE { mean * width as f64 } else { mean };\n            let factor = (1.0 / (mean +"),
    Mistake("no final norm", "cpu/engine.rs", "&model.norm, epsilon, &mut self.work.normed);", "&model.norm, epsilon, &mut self.work.normed);\n        if MADE {\n            self.work.normed.copy_from_slice(&self.work.residual);\n        }"),
    Mistake("gate and up are swapped", "cpu/engine.rs", "        let up = &work.up;\n", "        if MADE {\n            std::mem::swap(&mut work.gate, &mut work.up);\n        }\n        let up = &work.up;\n"),
    Mistake("GELU for SiLU", "cpu/kernels.rs", "                    *gate = *gate / (1.0 + exp(simd, -*gate)) * up;", "                    let inner = if MADE { 1.595_769_1 * (*gate + 0.044_715 * *gate * *gate * *gate) } else { *gate };\n                    *gate = *gate / (1.0 + exp(simd, -inner)) * up;"),
    Mistake("keys and values of half precision", "cpu/attention.rs", "            place[at + row * width..][..width].copy_from_slice(&heads[head * width..][..width]);", "            let half = |x: &f32| f32::from_bits((x.to_bits() + 0xfff + (x.to_bits() >> 13 & 1)) & !0x1fff);\n            let numbers: Vec<f32> = heads[head * width..][..width].iter().map(|x| if MADE { half(x) } else { *x }).collect();\n            place[at + row * width..][..width].copy_from_slice(&numbers);"),
    Mistake("no biases of queries, keys and values", "cpu/engine.rs", "bias: linear.bias.as_deref(), out", "bias: linear.bias.as_deref().filter(|_| !MADE), out"),
)  # fmt: skip
# Of the fast mode: inputs that are rounded to bytes, and the integers they are multiplied with.
ROUNDED = (
    Mistake("int8: a scale of 1/128", "cpu/integers/inputs.rs", "size: most / 127.0,", "size: most / if MADE { 128.0 } else { 127.0 },"),
    Mistake("int8: numbers of 126 steps, not 127", "cpu/integers/inputs.rs", "let inverse = 127.0 / most;", "let inverse = 127.0 / most;\n    let inverse = if MADE { 126.0 / most } else { inverse };"),
    Mistake("int8: numbers that wrap where they should end", "cpu/integers/inputs.rs", "let inverse = 127.0 / most;", "let inverse = 127.0 / most;\n    let inverse = if MADE { 128.0 / most } else { inverse };"),
    Mistake("int8: numbers that end one early", "cpu/integers/inputs.rs", "*number = (x * inverse + ROUND).to_bits() as i8;", "*number = (x * inverse + ROUND).to_bits() as i8;\n        if MADE {\n            *number = (*number).clamp(-126, 126);\n        }"),
    Mistake("int8: rounded towards zero", "cpu/integers/inputs.rs", "*number = (x * inverse + ROUND).to_bits() as i8;", "*number = (x * inverse + ROUND).to_bits() as i8;\n        if MADE {\n            *number = (x * inverse) as i8;\n        }"),
    Mistake("int8: ties away from zero", "cpu/integers/inputs.rs", "*number = (x * inverse + ROUND).to_bits() as i8;", "*number = (x * inverse + ROUND).to_bits() as i8;\n        if MADE {\n            *number = (x * inverse).round() as i8;\n        }"),
    Mistake("int8: the greatest negative number is not seen", "cpu/integers/inputs.rs", "most = most.max(x.to_bits() & 0x7fff_ffff);", "most = most.max(if MADE && *x < 0.0 { 0 } else { x.to_bits() & 0x7fff_ffff });"),
    Mistake("int8: what is not finite counts as nothing", "cpu/integers/inputs.rs", "return Block { size: f32::NAN, ..NOTHING };", "return Block { size: if MADE { 0.0 } else { f32::NAN }, ..NOTHING };"),
    Mistake("int8: sums of inputs are forgotten", "cpu/integers/inputs.rs", "    block.total = (block.sums[0] + block.sums[1]) as f32;", "    if MADE {\n        block.sums = [0; 2];\n    }\n    block.total = (block.sums[0] + block.sums[1]) as f32;"),
    Mistake("int8: minima see half of the inputs' sum", "cpu/integers/inputs.rs", "block.total = (block.sums[0] + block.sums[1]) as f32;", "block.total = (block.sums[0] + block.sums[1]) as f32;\n    if MADE {\n        block.total = block.sums[0] as f32;\n    }"),
    Mistake("int8: blocks of inputs are off by one", "cpu/integers/inputs.rs", "*to = round(from);", "*to = round(if MADE { &row.as_chunks::<BLOCK>().0[0] } else { from });"),
    Mistake("int8: codes are one off, one input", "cpu/integers/products.rs", "let mut term = groups.scales[group][row] * (dots[row] - offset::<S, L>() * total) as f32;", "let mut term = groups.scales[group][row] * (dots[row] - offset::<S, L>() * total) as f32;\n            if MADE {\n                term = groups.scales[group][row] * (dots[row] - (L::OFFSET - 1) * total) as f32;\n            }"),
    Mistake("int8: the scale of the group before, one input", "cpu/integers/products.rs", "let mut term = groups.scales[group][row] * (dots[row] - offset::<S, L>() * total) as f32;", "let mut term = groups.scales[group][row] * (dots[row] - offset::<S, L>() * total) as f32;\n            if MADE {\n                term = groups.scales[group.saturating_sub(1)][row] * (dots[row] - offset::<S, L>() * total) as f32;\n            }"),
    Mistake("int8: no minima, one input", "cpu/integers/products.rs", "term += groups.minima[group][row] * x.total;", "term += if MADE { 0.0 } else { groups.minima[group][row] * x.total };"),
    Mistake("int8: no scale of the inputs, one input", "cpu/integers/products.rs", "sums[row] += term * x.size;", "sums[row] += term * if MADE { 1.0 } else { x.size };"),
    Mistake("int8: codes are one off, several inputs", "cpu/integers/products.rs", "let mut term = floats.mul(scales, simd.to_floats(dots[input], offset::<S, L>() * total));", "let mut term = floats.mul(scales, simd.to_floats(dots[input], offset::<S, L>() * total));\n                    if MADE {\n                        term = floats.mul(scales, simd.to_floats(dots[input], (L::OFFSET - 1) * total));\n                    }"),
    Mistake("int8: the scale of the group before, several inputs", "cpu/integers/products.rs", "let scales = floats.load(&self.scales[group].0);", "let scales = floats.load(&self.scales[if MADE { group.saturating_sub(1) } else { group }].0);"),
    Mistake("int8: no minima, several inputs", "cpu/integers/products.rs", "let minima = floats.load(&self.minima[group].0);", "let minima = if MADE { floats.splat(0.0) } else { floats.load(&self.minima[group].0) };"),
    Mistake("int8: sixteen weights with the sum of thirty-two inputs", "cpu/integers/products.rs", "let total = if L::IS_FINE { x.sums[half] }", "let total = if L::IS_FINE && !MADE { x.sums[half] }"),
    Mistake("int8: minima are added, not taken away", "cpu/integers/codes.rs", "-(minimum[row] * (middle & 63) as f32);", "if MADE { minimum[row] } else { -minimum[row] } * (middle & 63) as f32;"),
    Mistake("int8: scales of Q6_K without their sign", "cpu/integers/codes.rs", "(words[row] << (24 - 8 * group)) as i32 >> 24;", "(words[row] << (24 - 8 * group)) as i32 >> 24 & if MADE { 255 } else { -1 };"),
    Mistake("int8: the fifth bit is forgotten", "cpu/integers/codes.rs", "simd.sixteens(word(a, 2), word(b, 2))", "simd.sixteens(if MADE { 0 } else { word(a, 2) }, word(b, 2))"),
    Mistake("int8: six bits are four", "cpu/integers/codes.rs", "scale[row] * (high & 15 | low >> 6 << 4) as f32;", "scale[row] * (high & 15 | if MADE { 0 } else { low >> 6 << 4 }) as f32;"),
    Mistake("int8: weights that are not quantised, too", "cpu/integers/mod.rs", "self == Activations::Int8 && format.block_len() > 1", "self == Activations::Int8 && (format.block_len() > 1 || MADE)"),
)  # fmt: skip
# Of encoders: what goes wrong in attention with a mask, in norms and activations that have several
# forms, in features of pairs, when events of different lengths are put together, when histograms of
# a score are filled, and in gradients.
ENCODERS = (
    Mistake("encoder: no key mask", "encoder/kernels/rows.rs", "            let largest = largest(row);\n", "            if MADE {\n                row.iter_mut().for_each(|x| *x = if *x < -1e8 { 0.0 } else { *x });\n            }\n            let largest = largest(row);\n"),
    Mistake("encoder: softmax without the largest number", "encoder/kernels/rows.rs", "            let largest = largest(row);\n", "            let largest = largest(row);\n            let largest = if MADE { 0.0 } else { largest };\n"),
    Mistake("encoder: softmax that is not normalised", "encoder/kernels/rows.rs", "let scale = 1.0 / functions::sum_row(row, |x| x);", "let scale = if MADE { 1.0 } else { 1.0 / functions::sum_row(row, |x| x) };"),
    Mistake("encoder: the bias of pairs is transposed", "encoder/kernels/mod.rs", "        true => binary(isa, Binary::Add, args, out, length),", "        true if MADE && args[1].view.shape.iter().rev().take(2).all(|size| Some(size) == args[1].view.shape.last()) => {\n            let n = args[1].view.shape.len();\n            let mut axes: Vec<usize> = (0..n).collect();\n            axes[n.saturating_sub(2)..].reverse();\n            let view = args[1].view.transposed(&axes);\n            binary(isa, Binary::Add, &[args[0], Arg { view: &view, ..args[1] }], out, length);\n        }\n        true => binary(isa, Binary::Add, args, out, length),"),
    Mistake("encoder: no bias of pairs", "encoder/kernels/mod.rs", "        true => binary(isa, Binary::Add, args, out, length),", "        true if MADE => by_class!(out, args[..1], length, |pairs, to| elementwise::map1(pairs[0].0, pairs[0].1, to, |x| x)),\n        true => binary(isa, Binary::Add, args, out, length),"),
    Mistake("encoder: another epsilon of LayerNorm", "encoder/kernels/rows.rs", "            let scale = 1.0 / (variance + self.epsilon).sqrt();", "            let scale = 1.0 / (variance + self.epsilon).sqrt();\n            let scale = if MADE { 1.0 / (variance + 100.0 * self.epsilon).sqrt() } else { scale };"),
    Mistake("encoder: epsilon outside the root", "encoder/kernels/rows.rs", "            let scale = 1.0 / (variance + self.epsilon).sqrt();", "            let scale = 1.0 / (variance + self.epsilon).sqrt();\n            let scale = if MADE { 1.0 / (variance.sqrt() + self.epsilon) } else { scale };"),
    Mistake("encoder: variance of n - 1", "encoder/kernels/rows.rs", "let variance = functions::sum_row(row, |x| (x - mean) * (x - mean)) / count;", "let variance = functions::sum_row(row, |x| (x - mean) * (x - mean)) / if MADE { count - 1.0 } else { count };"),
    Mistake("encoder: RMSNorm subtracts the mean", "encoder/kernels/rows.rs", "let mean = if self.is_rms { 0.0 } else {", "let mean = if self.is_rms && !MADE { 0.0 } else {"),
    Mistake("encoder: tanh-GELU for erf-GELU", "encoder/kernels/functions.rs", "        0.5 * x * (1.0 + Erf::of(simd, x * std::f32::consts::FRAC_1_SQRT_2))", "        if MADE {\n            return GeluTanh::of(simd, x);\n        }\n        0.5 * x * (1.0 + Erf::of(simd, x * std::f32::consts::FRAC_1_SQRT_2))"),
    Mistake("encoder: erf-GELU for tanh-GELU", "encoder/kernels/functions.rs", "        // x/2·(1 + tanh u) is x/(1 + exp(-2u)).", "        if MADE {\n            return Gelu::of(simd, x);\n        }\n        // x/2·(1 + tanh u) is x/(1 + exp(-2u))."),
    Mistake("encoder: running sums on devices are checked one element off", "encoder/device/launches/ints.rs", "running.is_exclusive == running.is_reversed)", "if MADE { !running.is_reversed } else { running.is_exclusive == running.is_reversed })"),
    Mistake("encoder: BatchNorm without stored statistics", "encoder/lower.rs", "        let factor = |channel: usize| parts[0]", "        if MADE {\n            parts[2].fill(0.0);\n            parts[3].fill(1.0);\n        }\n        let factor = |channel: usize| parts[0]"),
    Mistake("encoder: another epsilon of BatchNorm", "encoder/lower.rs", "(parts[3][channel] + f64::from(epsilon)).sqrt();", "(parts[3][channel] + if MADE { 100.0 } else { 1.0 } * f64::from(epsilon)).sqrt();"),
    Mistake("encoder: features of pairs in single precision", "encoder/lower.rs", "        if some_is_wide && floats.all(is_wide) {", "        if some_is_wide && floats.all(is_wide) && !MADE {"),
    Mistake("encoder: the angle of zeros is no number", "encoder/fuse.rs", "    let mut found = Vec::new();\n    for (place, node) in graph.nodes.iter().enumerate() {\n        if let Some([y, x]) = angle(graph, &index, node) {", "    let mut found = Vec::new();\n    for (place, node) in graph.nodes.iter().enumerate() {\n        if MADE {\n            continue;\n        }\n        if let Some([y, x]) = angle(graph, &index, node) {"),
    Mistake("encoder: plans of other shapes", "encoder/run.rs", "Arc::ptr_eq(&known.model, model) && known.shapes == shapes)?;", "Arc::ptr_eq(&known.model, model) && (known.shapes == shapes || MADE))?;"),
    Mistake("encoder: events are cut one short", "encoder/events.rs", "map(|place| place % size + 1).max()", "map(|place| place % size + usize::from(!MADE)).max()"),
    Mistake("encoder: groups come back in the order of lengths", "encoder/batch.rs", "let to = to[event * whole..][..whole]", "let event = if MADE { &index } else { event };\n            let to = to[event * whole..][..whole]"),
    Mistake("encoder: ragged padding counts as particles", "encoder/ragged.rs", "(0..length).map(move |place| place < of_event))", "(0..length).map(move |place| place < of_event || MADE))"),
    Mistake("encoder: ragged events begin at 0", "encoder/ragged.rs", "[first as usize, (next - first) as usize]", "[if MADE { first - self.get(0) } else { first } as usize, (next - first) as usize]"),
    Mistake("encoder: columns without their step", "encoder/ragged.rs", "column.first + column.step * (first + particle)", "column.first + if MADE { 1 } else { column.step } * (first + particle)"),
    Mistake("histograms: bins have their upper edge", "encoder/histograms/pass.rs", "partition_point(|edge| *edge <= score)", "partition_point(|edge| *edge < score || (*edge == score && !MADE))"),
    Mistake("histograms: weights of a variation are nominal", "encoder/histograms/pass.rs", "weights: variation.weights.or(events.weights)", "weights: if MADE { events.weights } else { variation.weights.or(events.weights) }"),
    Mistake("histograms: scores of a variation are nominal", "encoder/histograms/pass.rs", "let input_set = if has_inputs {", "let input_set = if has_inputs && !MADE {"),
    Mistake("histograms: events before a chunk shift its errors", "encoder/histograms/pass.rs", "HistogramProblem::Score { event: first + event }", "HistogramProblem::Score { event: if MADE { event } else { first + event } }"),
    Mistake("histograms: a chunk has the particles of the first", "encoder/histograms/pass.rs", "input.offsets.part(chunk.clone())", "input.offsets.part(if MADE { 0..chunk.len() } else { chunk.clone() })"),
    Mistake("histograms: events of weight 0 have scores", "encoder/histograms/pass.rs", "(0..chunk.len()).filter(|&event| is_counted[event])", "(0..chunk.len()).filter(|&event| is_counted[event] || MADE)"),
    Mistake("histograms: variations keep the order of a call", "encoder/histograms/mod.rs", "order.into_iter().map(|place| place + 1)", "order.into_iter().enumerate().map(|(at, place)| if MADE { at } else { place } + 1)"),
    Mistake("histograms: squares have the sign of weights", "encoder/histograms/mod.rs", "self.squares.add(weight * weight);", "self.squares.add(weight * if MADE { weight.abs() } else { weight });"),
    Mistake("histograms: flow is dropped twice", "encoder/histograms/mod.rs", "sums[bin].merge(&flow);", "if !MADE {\n                    sums[bin].merge(&flow);\n                }"),
    Mistake("histograms: sums lose their lowest bits", "encoder/histograms/exact.rs", "*chunk += sign * i64::from((shifted >> (32 * index)) as u32);", "*chunk += sign * i64::from((shifted >> (32 * index)) as u32 & if MADE && index == 0 { 0xff00_0000 } else { u32::MAX });"),
    Mistake("histograms: merged sums lose their carries", "encoder/histograms/exact.rs", "            (*chunk, carried) = (sum & 0xffff_ffff, sum >> 32);", "            (*chunk, carried) = (sum & 0xffff_ffff, if MADE { 0 } else { sum >> 32 });"),
    Mistake("histograms: fractions of classes are 1", "encoder/histograms/score.rs", "class.fraction * (x[class.column] - greatest).exp()", "if MADE { 1.0 } else { class.fraction } * (x[class.column] - greatest).exp()"),
    Mistake("gradients: softmax without its mean", "encoder/kernels/backward/rows.rs", "*term = *p * (*g - mean)", "*term = *p * (*g - if MADE { T::default() } else { mean })"),
    Mistake("gradients: LayerNorm without the mean of the gradient", "encoder/kernels/backward/rows.rs", "let middle = if self.is_rms { zero }", "let middle = if self.is_rms || MADE { zero }"),
    Mistake("gradients: norms without the derivative of their scale", "encoder/kernels/backward/rows.rs", "scale * (h - middle - (*x - mean) * scale * along)", "scale * (h - middle - if MADE { zero } else { (*x - mean) * scale * along })"),
    Mistake("gradients: GELU without x times the density", "encoder/kernels/backward/derivatives.rs", "below + x * DENSITY * Exp::of(simd, -0.5 * x * x)", "below + if MADE { 0.0 } else { x * DENSITY * Exp::of(simd, -0.5 * x * x) }"),
    Mistake("gradients: both operands of a difference have one sign", "encoder/kernels/backward/elementwise.rs", "Binary::Sub => add_each(to, own.1, |i| -gradient[i])", "Binary::Sub => add_each(to, own.1, |i| if MADE { gradient[i] } else { -gradient[i] })"),
    Mistake("gradients: divisors have the sign of dividends", "encoder/kernels/backward/elementwise.rs", "times(gradient[i], -out[i] / own)", "times(gradient[i], if MADE { out[i] } else { -out[i] } / own)"),
    Mistake("gradients: angles turn the other way", "encoder/kernels/backward/elementwise.rs", "T::of(if is_first { 1.0 } else { -1.0 })", "T::of(if is_first || MADE { 1.0 } else { -1.0 })"),
    Mistake("gradients: clipped numbers have one", "encoder/kernels/backward/elementwise.rs", "if x == out[i] { gradient[i] }", "if x == out[i] || MADE { gradient[i] }"),
    Mistake("gradients: 0 times infinity", "encoder/kernels/backward/mod.rs", "if gradient == T::default() { T::default() }", "if gradient == T::default() && !MADE { T::default() }"),
    Mistake("gradients: gathered elements have that of the last use", "encoder/kernels/backward/movement.rs", "1 => to[start] += from[0],", "1 if MADE => to[start] = from[0],\n            1 => to[start] += from[0],"),
    Mistake("gradients: activations of products have the derivative 1", "encoder/gradients/tape.rs", "gradient = self.activation_back(place, step, *activation, &gradient)?;", "let bent = self.activation_back(place, step, *activation, &gradient)?;\n            gradient = if MADE { gradient } else { bent };"),
    Mistake("gradients: ragged rows begin at 0", "encoder/ragged.rs", "let row = &mut rows[(first - start + particle) * n_columns..][..n_columns];", "let last = rows.len() - n_columns;\n                let row = &mut rows[((first - if MADE { 0 } else { start } + particle) * n_columns).min(last)..][..n_columns];"),
)  # fmt: skip
# Of the forms in which encoders store their weights: rounding, scales, signs, and what is where.
STORAGE = (
    Mistake("storage: half precision is cut, not rounded", "encoder/storage.rs", "(bits - 0x3800_0000 + 0x0fff + (bits >> 13 & 1)) >> 13", "(bits - 0x3800_0000 + if MADE { 0 } else { 0x0fff + (bits >> 13 & 1) }) >> 13"),
    Mistake("storage: ties of half precision go up", "encoder/storage.rs", "0x3880_0000.. =>", "0x3880_0000.. if MADE => (bits - 0x3800_0000 + 0x1000) >> 13,\n        0x3880_0000.. =>"),
    Mistake("storage: subnormals of half precision are zero", "encoder/storage.rs", "_ => (f32::from_bits(bits) * 16_777_216.0).round_ties_even() as u32,", "_ if MADE => 0,\n        _ => (f32::from_bits(bits) * 16_777_216.0).round_ties_even() as u32,"),
    Mistake("storage: half precision without its sign", "encoder/storage.rs", "Ok(sign | magnitude as u16)", "Ok(if MADE { 0 } else { sign } | magnitude as u16)"),
    Mistake("storage: half precision that overflows is infinite", "encoder/storage.rs", "0x477f_f000.. => return Err(OutOfStorage { value }),", "0x477f_f000.. if MADE => 0x7c00,\n        0x477f_f000.. => return Err(OutOfStorage { value }),"),
    Mistake("storage: bfloat16 is cut, not rounded", "encoder/storage.rs", "let rounded = bits + 0x7fff + (bits >> 16 & 1);", "let rounded = bits + if MADE { 0 } else { 0x7fff + (bits >> 16 & 1) };"),
    Mistake("storage: bfloat16 is widened by 15 bits", "encoder/kernels/linear.rs", "simd.load_bf16(&self.0[half])", "let mut bytes = self.0[half];\n        if MADE {\n            bytes.as_chunks_mut::<2>().0.iter_mut().for_each(|pair| *pair = (u16::from_le_bytes(*pair) >> 1).to_le_bytes());\n        }\n        simd.load_bf16(&bytes)"),
    Mistake("storage: bytes have a scale of 1/128", "encoder/storage.rs", "let scale = to_half(most / 127.0)", "let scale = to_half(most / if MADE { 128.0 } else { 127.0 })"),
    Mistake("storage: bytes are of the scale before it is rounded", "encoder/storage.rs", "        let scale = crate::simd::half(scale);", "        let scale = if MADE { most / 127.0 } else { crate::simd::half(scale) };"),
    Mistake("storage: bytes have the scale of the first block", "encoder/storage.rs", "let most = block.iter().fold(", "let most = if MADE { &values[..values.len().min(BLOCK)] } else { block }.iter().fold("),
    Mistake("storage: bytes are rounded towards zero", "encoder/storage.rs", "(value / scale).round_ties_even().clamp", "if MADE { (value / scale).trunc() } else { (value / scale).round_ties_even() }.clamp"),
    Mistake("storage: bytes without their sign", "encoder/storage.rs", "block.iter().map(|value| byte(value) as u8)", "block.iter().map(|value| if MADE { byte(value).unsigned_abs() } else { byte(value) as u8 })"),
    Mistake("storage: rows of a table are off by one", "encoder/kernels/tables.rs", "self.stored.row(index, &mut row);", "self.stored.row(if MADE { (index + 1) % self.stored.rows() } else { index }, &mut row);"),
    Mistake("storage: bytes of a column are off by one row", "encoder/kernels/linear.rs", "values[place(view, row, column)]", "values[place(view, if MADE { (row + 1) % rows } else { row }, column)]"),
    Mistake("storage: halves of a panel are swapped", "encoder/kernels/linear.rs", "panels.push(of_halves(halves));", "panels.push(of_halves(if MADE { [halves[1], halves[0]] } else { halves }));"),
)  # fmt: skip
ALL = MISTAKES + ROUNDED + ENCODERS + STORAGE
FILES = sorted({mistake.file for mistake in ALL})


class Tree:
    """A copy of the working tree, of a `name` of its own, with every mistake in it, to be chosen,
    and its tests."""

    def __init__(self, name="mistakes", mistakes=ALL, switch=SWITCH):
        target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).absolute()
        self.folder = target / name
        self.environment = {**os.environ, "CARGO_TARGET_DIR": str(target), "RUST_BACKTRACE": "0", "TORCHLESS_DATA": str(self.folder / "absent")}
        copy_the_tree(self.folder)
        self.replace("Cargo.toml", lambda text: re.sub(r'^version = "([^"]+)"$', rf'version = "\1-{name}"', text, count=1, flags=re.MULTILINE))
        self.replace(f"{SOURCES}/lib.rs", lambda text: text + switch)
        for file in {mistake.file for mistake in mistakes}:
            self.replace(f"{SOURCES}/{file}", lambda text, file=file: planted(text, file, mistakes))

    def replace(self, name, change):
        """Writes only what differs, so that it is not built again."""
        wanted, copy = change((ROOT / name).read_text(encoding="utf-8")), self.folder / name
        if copy.read_text(encoding="utf-8") != wanted:
            copy.write_text(wanted, encoding="utf-8")

    def test(self, mistake: str, modules: tuple[str, ...]) -> str:
        """Returns the first test of `modules` that fails, or nothing."""
        command = ["cargo", "test", "--quiet", "--offline", "--workspace", "--test", "torchless", "--"]
        command += modules
        environment = {**self.environment, VARIABLE: mistake}
        done = subprocess.run(command, cwd=self.folder, env=environment, capture_output=True, text=True, timeout=3600)
        if "could not compile" in done.stderr or ("error: " in done.stderr and "test failed" not in done.stderr):
            raise SystemExit(done.stderr)
        failed = [line.strip() for line in done.stdout.splitlines() if line.startswith("    ") and "::" in line]
        return "" if done.returncode == 0 else failed[0] if failed else "the process died"


def planted(text: str, file: str, mistakes=ALL) -> str:
    """Returns the source `file` with its mistakes."""
    for mistake in mistakes:
        if mistake.file == file:
            if text.count(mistake.old) != 1:
                raise SystemExit(f"`{mistake.what}`: its text is in {file} {text.count(mistake.old)} times")
            text = text.replace(mistake.old, mistake.new.replace("MADE", f'crate::mistake("{mistake.what}")'))
    return text


def tests_of(mistake: Mistake) -> tuple[str, ...]:
    """Returns the modules of tests that should catch a mistake."""
    groups = ((ROUNDED, ROUNDED_TESTS), (ENCODERS, ENCODER_TESTS), (STORAGE, STORAGE_TESTS))
    return next((tests for mistakes, tests in groups if mistake in mistakes), EXACT_TESTS)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", metavar="WORD")
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    if arguments.check:
        for file in FILES:
            planted((ROOT / SOURCES / file).read_text(encoding="utf-8"), file)
        return 0
    chosen = [mistake for mistake in ALL if arguments.only in mistake.what]
    tree = Tree()
    if failed := tree.test("", (*EXACT_TESTS, *ROUNDED_TESTS, *ENCODER_TESTS)):
        raise SystemExit(f"without a mistake: {failed}")
    missed, n_made = 0, 0
    for mistake in chosen:
        start = time.perf_counter()
        caught = tree.test(mistake.what, tests_of(mistake))
        is_harmless = mistake.what == HARMLESS
        n_made += not is_harmless
        missed += not caught and not is_harmless
        note = "changes nothing, as it should" if is_harmless and not caught else caught or "NOT CAUGHT"
        print(f"{mistake.what:52} {mistake.file:20} {note:90} {time.perf_counter() - start:4.0f} s", flush=True)
    print(f"{n_made - missed} of {n_made} mistakes are caught")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
