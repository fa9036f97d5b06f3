#!/usr/bin/env python3
"""Plant bugs in copies of the kernels, and show that the tests catch every one.

    kernels_mutate.py [--module NAME] [--only WORD]   plant a module's bugs, those whose description has the word
    kernels_mutate.py --check                         check that the text of every bug is in its header once; builds nothing

Bugs are planted in a copy of the working tree, `mutants` in the build folder, with a build folder
of its own: Cargo takes two copies of a workspace for one. The first run builds it, which takes
minutes; later ones take seconds for each bug. A bug is caught by the tests of its kernels on the
emulated device, else by other tests of their crate (guarded memory), else by replays of recorded
launches under sanitizers. Exit status 1 if one is not caught, or if the tests fail without any.
"""
import argparse
import dataclasses
import filecmp
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

import kernels_sanitize
from kernel_modules import MODULES, ROOT


@dataclasses.dataclass(frozen=True)
class Mutant:
    """One bug: a text that is in a header once, and what is there instead."""

    what: str
    header: str
    old: str
    new: str


LIKELIHOOD = (
    Mutant("missing barrier after the cells", "yields.h", "yields[cell] = shifted * factor;\n    }\n    BARRIER();", "yields[cell] = shifted * factor;\n    }"),
    Mutant("missing barrier in the sum", "context.h", "            rests[LANE] = pair.rest;\n        }\n        BARRIER();", "            rests[LANE] = pair.rest;\n        }"),
    Mutant("missing barrier between columns of the panel", "solve.h", "(block[j * PANEL + k] * weight);\n        }\n        BARRIER();", "(block[j * PANEL + k] * weight);\n        }"),
    Mutant("overrun of the shared panel", "solve.h", "SHARED real* block = context.shared + 2u * N_LANES;", "SHARED real* block = context.shared + 2u * N_LANES + PANEL;"),
    Mutant("overrun of a table into the next", "solve.h", "for (uint item = LANE; item < n * stride; item += N_LANES) WORK(matrix)", "for (uint item = LANE; item < (n + 2u) * stride; item += N_LANES) WORK(matrix)"),
    Mutant("uninitialised read of work", "solve.h", "for (uint item = LANE; item < n * stride; item += N_LANES) WORK(matrix)", "for (uint item = LANE; item < n; item += N_LANES) WORK(matrix)"),
    Mutant("wrong offset of a table", "solve.h", "GLOBAL real* out = WORK(eliminated) + INDEX(local_coupling)[first];", "GLOBAL real* out = WORK(eliminated) + first;"),
    Mutant("early return of one lane", "solve.h", "FN void spread_step(const Context context LANES_PARAM) {", "FN void spread_step(const Context context LANES_PARAM) {\n    if (LANE == 3u) return;"),
    Mutant("wrong derivative of normsys outside ±1", "interpolation.h", "out.first = rate * out.value;", "out.first = ABS(rate) * out.value;"),
    Mutant("wrong second derivative of code4p", "interpolation.h", "(R(90.0) * x - R(120.0))", "(R(90.0) * x - R(110.0))"),
    Mutant("code2 has no derivative beyond its edge", "interpolation.h", "out.first = edge + side * R(0.5);", "out.first = side * R(0.5);"),
    Mutant("sign of the coupling", "derivatives.h", "value += weight * restricted", "value -= weight * restricted"),
    Mutant("missing curvature of the constraints", "derivatives.h", "constraint = jet.second;", "constraint = R(0.0);"),
    Mutant("two local factors of any template count", "derivatives.h", "!= 0u && mask[j * n_templates + t] != 0u", "!= 0u || mask[j * n_templates + t] != 0u"),
    Mutant("the product of two shared factors counts twice", "derivatives.h", "column >= last_factor", "column == last_factor"),
    Mutant("fixed parameter not masked", "solve.h", "real value = is_fixed ? R(0.0) : source[i * stride + column];", "real value = source[i * stride + column];"),
    Mutant("damping of the wrong sign", "solve.h", "WORK(diagonal)[param] + damping * WORK(scale)[param];", "WORK(diagonal)[param] - damping * WORK(scale)[param];"),
    Mutant("promise with a thousandfold damping", "fit.h", "-derivative - damping * WORK(scale)[i] * step", "-derivative - R(1e3) * damping * WORK(scale)[i] * step"),
    Mutant("the right-hand side is not carried along", "solve.h", "if (i + a <= n && j + b < n", "if (i + a < n && j + b < n"),
    Mutant("side of a kink", "fit.h", "is_kinked(box, i) && !SIGN_BIT(x) ? R(0.0)", "is_kinked(box, i) && SIGN_BIT(x) ? R(0.0)"),
    Mutant("released from the bound it is pushed against", "fit.h", "R(-1.0) : R(1.0)) <= R(0.0)) continue;", "R(-1.0) : R(1.0)) > R(0.0)) continue;"),
    Mutant("Poisson derivative at n = 0", "poisson.h", "out.first = R(1.0);\n        out.second = R(0.0);\n        return out;\n    }\n    const real ratio", "out.first = R(0.0);\n        out.second = R(0.0);\n        return out;\n    }\n    const real ratio"),
    Mutant("a count of zero below a negative yield", "poisson.h", "if (!(lambda >= R(0.0))) return INF;\n    if (n == R(0.0)) return lambda;", "if (n == R(0.0)) return lambda;\n    if (!(lambda >= R(0.0))) return INF;"),
    Mutant("a factor of zero divides", "yields.h", "factor.value = nonzero(factor.value);", ""),
    Mutant("auxiliary data of another item", "kernels.h", "aux + item * task->aux_step", "aux"),
    Mutant("memory of another block", "kernels.h", "work + BLOCK * layout->workspace", "work"),
    Mutant("convergence where the matrix is damped", "fit.h", "const bool is_last = progress->exact && is_undamped && progress->edm <= LAST_BELOW;", "const bool is_last = progress->edm <= R(1e-3);"),
    Mutant("missing barrier after the tables are copied", "templates.h", "context.work[i] = context.reals[i];\n    BARRIER();", "context.work[i] = context.reals[i];"),
    Mutant("missing barrier before the first that is refused", "templates.h", "context.shared[LANE] = real(own);\n    BARRIER();", "context.shared[LANE] = real(own);"),
    Mutant("overrun of a row's tables", "templates.h", "i < layout->n_row_reals; i", "i < layout->n_row_reals + 4u; i"),
    Mutant("a histosys that is not an input is another one at -1", "templates.h", "(lo == NONE ? REAL_TABLE(fixed_down)", "(lo == NONE ? REAL_TABLE(fixed_up)"),
    Mutant("differences from the model's nominal yields", "templates.h", "const real nominal = inputs[input];", "const real nominal = REAL_TABLE(nominal)[cell];"),
    Mutant("logarithms of a normsys change places", "templates.h", "table[0] = ln_hi;\n    table[1] = ln_lo;", "table[0] = ln_lo;\n    table[1] = ln_hi;"),
    Mutant("the polynomial's fourth coefficient", "templates.h", "out.a4 = (R(-12.0)", "out.a4 = (R(-10.0)"),
    Mutant("a factor at -1 is even like one at +1", "templates.h", "const real odd = is_hi ? R(1.0) : R(-1.0);", "const real odd = R(1.0);"),
    Mutant("the factor at -1 has a derivative above 0", "templates.h", "if (is_hi == SIGN_BIT(alpha)) return R(0.0);", ""),
    Mutant("a factor's derivative is not relative to it", "templates.h", "/ WORK(scalar_value)[e] * by_end", "* by_end"),
    Mutant("nominal yields count without the shifts down", "templates.h", "rest -= weight[0] + weight[1];", "rest -= weight[0];"),
    Mutant("factors may be zero", "templates.h", "inputs[i] <= R(0.0)", "inputs[i] < R(0.0)"),
    Mutant("the first row's templates for all", "kernels.h", "% task->n_rows * context->layout->n_row_reals", "* 0u"),
    Mutant("rows are counted from the launch's first item", "kernels.h", "(task->first_item + item) % task->n_rows", "item % task->n_rows"),
    Mutant("every row is made of the first one's inputs", "kernels.h", "inputs + row * layout->n_inputs", "inputs"),
    Mutant("the part that depends on the data alone is forgotten", "kernels.h", "value + constants[0]", "value"),
    Mutant("one point for all items", "kernels.h", "params + item * task->point_step", "params"),
    Mutant("zero derivatives by inputs outside the domain", "kernels.h", "is_inside ? input_derivative(context, x, i) : INF - INF", "is_inside ? input_derivative(context, x, i) : R(0.0)"),
    Mutant("variance of a damped matrix", "fit.h", "const real damping = is_end ? R(0.0) :", "const real damping = is_end ? R(1e-3) :"),
)  # fmt: skip

TRANSFORMER = (
    Mutant("missing barrier after the tile is loaded", "products.h", "column] : R(0.0);\n    }\n    BARRIER();", "column] : R(0.0);\n    }"),
    Mutant("missing barrier before the next tile", "tiled_product.h", "column, sums LANES_ARG);\n        BARRIER();", "column, sums LANES_ARG);"),
    Mutant("nothing waits for the warps' sums", "reduce.h", "BARRIER();\n    real sum = R(0.0);", "real sum = R(0.0);"),
    Mutant("nothing waits for the greatest of the warps", "reduce.h", "BARRIER();\n    real greatest = partial[0];", "real greatest = partial[0];"),
    Mutant("nothing waits for a tile's scores", "attention.h", "found[i] * layout->scale;\n        }\n    }\n    BARRIER();", "found[i] * layout->scale;\n        }\n    }"),
    Mutant("missing barrier in the greatest", "reduce.h", "MAX(greatest, partial[warp]);\n    BARRIER();", "MAX(greatest, partial[warp]);"),
    Mutant("missing barrier after the query", "attention.h", "room.query[d] = query[d];\n    BARRIER();", "room.query[d] = query[d];"),
    Mutant("missing barrier after the warps' values", "weighted.h", "parts LANES_ARG);\n    }\n    BARRIER();", "parts LANES_ARG);\n    }"),
    Mutant("overrun of the tile", "products.h", "item < n * TILE; item", "item < n * TILE + 64u; item"),
    Mutant("a part past the end of the row", "product.h", "item + (AT_ONCE - 1u) * WARP < last", "item + AT_ONCE * WARP < last + WARP + 1u"),
    Mutant("a row past the end of the matrix", "product.h", "MIN(first_row + row, layout->rows - 1u)", "first_row + row"),
    Mutant("uninitialised read of a score", "attention.h", "&& first + i * n_groups < n)", "&& first + i * n_groups + 1u < n)"),
    Mutant("early return of one lane", "attention.h", "    const uint n_groups = N_LANES / GROUP;", "    if (LANE == 3u) return;\n    const uint n_groups = N_LANES / GROUP;"),
    Mutant("wrong offset of a vector's outputs", "product.h", "(first_vector + vector) * layout->out_stride", "first_vector * layout->out_stride"),
    Mutant("joined outputs as close as those of one matrix", "product.h", "* layout->out_stride", "* layout->rows"),
    Mutant("the offset of the outputs is forgotten", "product.h", "out + layout->out_offset + ", "out + "),
    Mutant("the first row's bias for all", "product.h", "sum += bias[first_row + row];", "sum += bias[first_row];"),
    Mutant("the residual stream is replaced", "product.h", "layout->adds != 0u ? *to + sum : sum", "sum"),
    Mutant("heads share keys and values by turns", "attention.h", "const uint kv_head = head / (layout->n_heads / layout->n_kv_heads);", "const uint kv_head = head % layout->n_kv_heads;"),
    Mutant("window off by one", "attention.h", "MIN(position + 1u, layout->window)", "MIN(position + 1u, layout->window + 1u)"),
    Mutant("a token sees the next one", "attention.h", "{((start + position + 1u - n)", "{((start + position + 2u - n)"),
    Mutant("tiles begin at position 0 in spite of a window", "attention.h", "{((start + position + 1u - n)", "{((start)"),
    Mutant("values of earlier tiles are not rescaled", "attention.h", "FMA(before, shares.before, tile * shares.tile)", "before + tile * shares.tile"),
    Mutant("the sum of earlier tiles is not rescaled", "attention.h", "FMA(all->sum, shares.before, tile.sum * shares.tile)", "all->sum + tile.sum * shares.tile"),
    Mutant("a tile counts as if it had the greatest score", "attention.h", "FMA(before, shares.before, tile * shares.tile)", "FMA(before, shares.before, tile)"),
    Mutant("the last tile is added again", "attention.h", "if (first + i < n) value = added_value", "value = added_value"),
    Mutant("one tile more than there are", "kernels.h", ".n + N_LANES - 1u) / N_LANES", ".n + N_LANES) / N_LANES"),
    Mutant("positions behind the last tile's end", "kernels.h", "MIN(attended.n - first, N_LANES)", "N_LANES"),
    Mutant("tiles that nothing sees", "kernels.h", "WHERE (first < attended.n) {", "WHERE (true) {"),
    Mutant("tiles as far apart as their first head is wide", "kernels.h", "attended.first + first * layout->n_kv_heads * layout->head_dim", "attended.first + first * layout->head_dim"),
    Mutant("keys and values change places", "kernels.h", "keys + at, values + at", "values + at, keys + at"),
    Mutant("keys go where values belong", "kernels.h", "turn, from, keys + ", "turn, from, values + "),
    Mutant("the row of the cache is forgotten", "kernels.h", "(layout->kv_row + row) * n_kv_heads", "row * n_kv_heads"),
    Mutant("a gate lets the next gate through", "kernels.h", "gate[layout->width]", "gate[1]"),
    Mutant("gates of several tokens as if of one", "kernels.h", "joined + i + i / layout->width * layout->width", "joined + i"),
    Mutant("sequences share their keys", "attention.h", "start = places[layout->places_offset + layout->n_rows + row];", "start = 0u;"),
    Mutant("epsilon outside the root", "rows.h", "R(1.0) / SQRT(mean + layout->epsilon)", "R(1.0) / (SQRT(mean) + layout->epsilon)"),
    Mutant("pairs of halves are neighbours", "rows.h", "? pair : 2u * pair;", "? 2u * pair : 2u * pair;"),
    Mutant("turned the other way", "rows.h", "to[first] = a_cosine - b_sine;\n    to[second] = a_sine + b_cosine;", "to[first] = a_cosine + b_sine;\n    to[second] = b_cosine - a_sine;"),
    Mutant("position of another token", "kernels.h", "positions[layout->positions_offset + row]", "positions[layout->positions_offset]"),
    Mutant("upper bits of a group's scale", "formats.h", "(byte_of(block, 8u + group) & 15u) | ((byte_of(block, group) >> 6u) << 4u)", "byte_of(block, 8u + group) & 15u"),
    Mutant("fifth bit of the neighbour", "formats.h", "(fifths >> nibble_at(part, i)) & 1u", "(fifths >> (nibble_at(part, i) ^ 1u)) & 1u"),
    Mutant("scale of the next group of Q6_K", "formats.h", "192u + at_Q6K(part, i) / 16u", "192u + (at_Q6K(part, i) / 16u ^ 1u)"),
    Mutant("subnormal half numbers", "bits.h", "exponent == 0u ? R(6.103515625e-5) : R(0.0)", "R(0.0)"),
)  # fmt: skip


ENCODER = (
    Mutant("tiles are read before they are there", "products.h", "first, n, right LANES_ARG);\n        BARRIER();", "first, n, right LANES_ARG);"),
    Mutant("tiles are overwritten while they are read", "products.h", "sums[i] += here[i];\n        BARRIER();", "sums[i] += here[i];"),
    Mutant("columns behind the last one are read", "products.h", "row < n && column < layout->columns", "row < n"),
    Mutant("the last part of the inner axis alone", "products.h", "sums[i] += here[i];", "sums[i] = here[i];"),
    Mutant("biases of columns for rows", "products.h", "sum += bias[layout->bias + row];", "sum += bias[layout->bias + column];"),
    Mutant("all axes have the index of the last", "views.h", "        index /= size;\n", ""),
    Mutant("indices do not count from the end", "views.h", "named < 0 ? uint(named) + size : uint(named)", "uint(named)"),
    Mutant("lanes of a softmax with maxima of their own", "kernels.h", "    largest = largest_of_row_lanes(largest LANES_ARG);\n", ""),
    Mutant("the mean is not subtracted from squares", "kernels.h", "const real off = x[at + i] - mean,", "const real off = x[at + i],"),
    Mutant("root mean squares with a mean", "kernels.h", "layout->is_rms != 0u ? R(0.0) : sum / real(length)", "sum / real(length)"),
    Mutant("lanes behind the last row write", "kernels.h", "if (row < layout->n && LANE % ROW_LANES == 0u) out[row] = value;", "if (LANE % ROW_LANES == 0u) out[row] = value;"),
    Mutant("every update is the first one", "kernels.h", "updates[layout->updates + points[2u * block + 1u] + at]", "updates[layout->updates + at]"),
    Mutant("conditions are inverted for integers", "kernels.h", "KERNEL(choose_ints)(CONSTANTS(ElementsLayout, layout, 0), IN(uint, views, 1), IN(int, a, 2), IN(int, b, 3), IN(int, c, 4), OUT(int, out, 5) LANES) {\n    ENTER(shared);\n    EACH_ELEMENT(i) out[i] = c[AT(c, i)] != 0", "KERNEL(choose_ints)(CONSTANTS(ElementsLayout, layout, 0), IN(uint, views, 1), IN(int, a, 2), IN(int, b, 3), IN(int, c, 4), OUT(int, out, 5) LANES) {\n    ENTER(shared);\n    EACH_ELEMENT(i) out[i] = c[AT(c, i)] == 0"),
    Mutant("sign of the rest of ln 2", "functions.h", "R(2.1219444e-4)", "R(-2.1219444e-4)"),
    Mutant("the hyperbolic tangent is even", "functions.h", "COPYSIGN(R(1.0) - R(2.0) / (exp_of(R(2.0) * ABS(x)) + R(1.0)), x)", "(R(1.0) - R(2.0) / (exp_of(R(2.0) * ABS(x)) + R(1.0)))"),
    Mutant("products of pairs without their second parts", "wide.h", "high.low + (a.high * b.low + a.low * b.high)", "high.low"),
    Mutant("roots without their second part", "wide.h", "settled(root, rest.high / (root + root))", "wide_of(root, R(0.0))"),
    Mutant("logarithms are not corrected", "wide.h", "sum_of(product_of(x, power_of(-y)), wide_of(R(-1.0), R(0.0)))", "wide_of(R(0.0), R(0.0))"),
    Mutant("elements are picked as if they were side by side", "views.h", "slice_of(named, layout->size) * layout->distance;", "slice_of(named, layout->size);"),
    Mutant("tuples of one index", "views.h", "axis < layout->width; ++axis", "axis < 1u; ++axis"),
    Mutant("triangles without their diagonal", "views.h", "right >= diagonal : right <= diagonal", "right > diagonal : right < diagonal"),
    Mutant("a stack of matrices has one triangle", "views.h", "at / layout->columns % layout->rows;", "at / layout->columns;"),
    Mutant("running sums of a stack overlap", "views.h", "(line / layout->inner * layout->length + along) * layout->inner + line % layout->inner", "line / layout->inner * layout->length + along * layout->inner + line % layout->inner"),
    Mutant("running sums are never reversed", "views.h", "layout->is_reversed != 0u ? layout->length - 1u - step : step", "step"),
    Mutant("running sums of pairs have their element", "kernels.h", "const Wide number = layout->is_exclusive != 0u ? sum : next;", "const Wide number = next;"),
    Mutant("pairs of integers without their last digits", "kernels.h", "real(x - lower), real(lower)", "real(x), R(0.0)"),
    Mutant("sums of too many bits are taken", "ints.h", "((x ^ (x + y)) & (y ^ (x + y))) >= 0x80000000u", "false"),
    Mutant("a product of 2^31 is taken", "ints.h", "(a < 0) != (b < 0) ? 0x80000000u : 0x7fffffffu", "0x80000000u"),
    Mutant("remainders have the sign of the dividend", "ints.h", "operation == BINARY_MOD && is_other_sign ? rest + b : rest", "rest"),
    Mutant("angles of the right half-plane only", "wide.h", "    if (x < R(0.0)) angle = R(3.141592741) - angle;\n", ""),
)  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Suite:
    """The bugs of one module, and the tests that have to find them: arguments of `cargo test`."""

    mutants: tuple[Mutant, ...]
    kernels: tuple[str, ...]
    memory: tuple[str, ...]


# The tree that is tested is a copy elsewhere: what lies beside the repository is named.
REFERENCE_MODELS = pathlib.Path(os.environ.get("TORCHLESS_DATA", ROOT.parent / "shared/torchless")).absolute()

SUITES = {
    "likelihood": Suite(
        LIKELIHOOD,
        kernels=("-p", "ns-compute", "--test", "ns_compute", "--", "devices::", "--skip", "ensembles", "--skip", "published"),
        memory=("-p", "ns-compute", "--lib", "accel"),
    ),
    "transformer": Suite(
        TRANSFORMER,
        kernels=("-p", "torchless", "--lib", "--test", "torchless", "--", "device::", "devices::kernels", "devices::engine", "devices::launches"),
        # With the stored vectors where they are; their tests are ignored otherwise.
        memory=("-p", "torchless", "--test", "torchless", "--", "kernel_vectors", *(["--include-ignored"] if REFERENCE_MODELS.is_dir() else [])),
    ),
    "encoder": Suite(
        ENCODER,
        kernels=("-p", "torchless", "--test", "torchless", "--", "encoders::devices"),
        memory=("-p", "torchless", "--lib", "--", "encoder::device"),
    ),
}


def copy_the_tree(folder: pathlib.Path):
    """Leaves alone what is the same already, so that it is not built again."""
    files = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True, check=True).stdout
    for name in files.decode().split("\0"):
        old, new = ROOT / name, folder / name
        if name and old.is_file() and not (new.is_file() and filecmp.cmp(old, new, shallow=False)):
            new.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(old, new)


class Tree:
    """A copy of the working tree, its tests, and launches recorded before any bug was in it."""

    def __init__(self, name: str, recordings: pathlib.Path):
        target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).absolute()
        self.folder = target / "mutants/tree"
        target = target / "mutants/target"
        self.recordings = recordings
        self.environment = {**os.environ, "CARGO_TARGET_DIR": str(target), "RUST_BACKTRACE": "0", "PROPTEST_MAX_SHRINK_ITERS": "0", "TORCHLESS_DATA": str(REFERENCE_MODELS)}
        copy_the_tree(self.folder)
        self.suite = SUITES[name]
        self.module = next(module for module in MODULES if module.name == name)

    def test(self, *arguments: str, **environment: str) -> tuple[bool, str]:
        command = ["cargo", "test", "--quiet", "--locked", *arguments]
        try:
            done = subprocess.run(command, cwd=self.folder, env={**self.environment, **environment}, capture_output=True, text=True, timeout=900)
        except subprocess.TimeoutExpired:
            return False, "it does not end"
        # Neither of Rust nor of C++: a bug that does not compile was never planted.
        if "could not compile" in done.stderr or "failed to run custom build command" in done.stderr:
            raise SystemExit(done.stderr)
        failed = [line.split()[1] for line in done.stdout.splitlines() if line.startswith("test ") and line.endswith("FAILED")]
        failed += [line.strip() for line in done.stdout.splitlines() if line.startswith("    ") and "::" in line]
        return done.returncode == 0, failed[0] if failed else "the process died"

    def kernels(self) -> tuple[bool, str]:
        return self.test(*self.suite.kernels)

    def memory(self) -> tuple[bool, str]:
        return self.test(*self.suite.memory)

    def record(self):
        good, why = self.test(*self.module.record, NEXTSTAT_RECORD_LAUNCHES=str(self.recordings))
        if not good:
            raise SystemExit(f"nothing is recorded: {why}")

    def replays(self) -> tuple[bool, str]:
        """Under each sanitizer; differences from the recordings count too."""
        files = list(kernels_sanitize.choose(self.module, sorted(self.recordings.glob("*.replay")), 4))
        module = dataclasses.replace(self.module, crate=str(self.folder / self.module.crate))
        for lanes, sanitizer in kernels_sanitize.SANITIZERS.items():
            with tempfile.TemporaryDirectory() as folder:
                program = kernels_sanitize.build(module, sanitizer, pathlib.Path(folder))
                done = subprocess.run([program, lanes, *files], env={**os.environ, **kernels_sanitize.ENVIRONMENT}, capture_output=True, text=True)
            if done.returncode:
                found = [line for line in done.stderr.splitlines() if "Sanitizer" in line or line.startswith("replay:")]
                return False, f"{lanes}: {found[0][:70] if found else 'the process died'}"
        return True, ""

    def plant(self, mutant: Mutant):
        """Touches what this bug changes, and what the one before it changed."""
        for path in sorted(self.module.folder.glob("*.h")):
            clean = path.read_text(encoding="utf-8")
            wanted = clean
            if path.name == mutant.header:
                if clean.count(mutant.old) != 1:
                    raise SystemExit(f"`{mutant.what}`: its text is in {path.name} {clean.count(mutant.old)} times")
                wanted = clean.replace(mutant.old, mutant.new)
            copy = self.folder / path.relative_to(ROOT)
            if copy.read_text(encoding="utf-8") != wanted:
                copy.write_text(wanted, encoding="utf-8")

    def catch_nothing(self) -> str:
        """What fails before any bug is planted."""
        for check in (self.kernels, self.memory):
            good, why = check()
            if not good:
                return why
        self.record()
        return self.replays()[1]

    def catch(self) -> str:
        for check, name in ((self.kernels, "tests"), (self.memory, "other tests"), (self.replays, "replays")):
            good, why = check()
            if not good:
                return f"{name}: {why}"
        return ""


def try_module(name: str, word: str) -> int:
    """The number of bugs that nothing caught."""
    mutants = [mutant for mutant in SUITES[name].mutants if word in mutant.what]
    missed = 0
    with tempfile.TemporaryDirectory() as folder:
        tree = Tree(name, pathlib.Path(folder))
        if caught := tree.catch_nothing():
            raise SystemExit(f"without a bug: {caught}")
        for mutant in mutants:
            start = time.perf_counter()
            tree.plant(mutant)
            caught = tree.catch()
            missed += not caught
            print(f"{mutant.what:46} {mutant.header:16} {caught or 'NOT CAUGHT':80} {time.perf_counter() - start:4.0f} s", flush=True)
    print(f"{name}: {len(mutants) - missed} of {len(mutants)} bugs are caught")
    return missed


def check(name: str) -> int:
    """The number of bugs whose text is not in its header exactly once."""
    folder = next(module for module in MODULES if module.name == name).folder
    lost = 0
    for mutant in SUITES[name].mutants:
        count = (folder / mutant.header).read_text(encoding="utf-8").count(mutant.old)
        if count != 1:
            print(f"`{mutant.what}`: its text is in {name}'s {mutant.header} {count} times", file=sys.stderr)
            lost += 1
    return lost


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--module", choices=sorted(SUITES), help="this one only")
    parser.add_argument("--only", default="", metavar="WORD")
    parser.add_argument("--check", action="store_true", help="check the texts of the bugs only")
    arguments = parser.parse_args()
    names = [arguments.module] if arguments.module else list(SUITES)
    if arguments.check:
        return 1 if sum(check(name) for name in names) else 0
    return 1 if sum(try_module(name, arguments.only) for name in names) else 0


if __name__ == "__main__":
    sys.exit(main())
