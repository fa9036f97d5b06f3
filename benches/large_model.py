"""Make a model of the size of a W-mass measurement, and measure a process that fits it.

python benches/large_model.py write FILE [--bins 2880] [--systematics 1500]
python benches/large_model.py rabbit WORKSPACE FILE
python benches/large_model.py measure COMMAND...

The model has one channel of three samples, a signal with a free strength, a staterror in every bin
and histosys that act on every bin of every sample, with equal effects up and down: with the sizes
above 4,381 parameters and 26 million varied yields. `rabbit` writes the same templates as the input
of rabbit-fit, which has to be installed and run with `rabbit_fit FILE -t 0 --unblind '.*'
--binByBinStatType normal-multiplicative --noChi2 --allowNegativePOI`. `measure` prints processor
time and the peak of resident memory of a command.
"""

import argparse
import json
import resource
import subprocess
import sys
import time

# Events in 2,880 bins; the effect of a systematic is a few per mille, a wave across the bins.
SEED = 1


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    kinds = parser.add_subparsers(required=True)
    write = kinds.add_parser("write", help="write a workspace")
    write.add_argument("file")
    write.add_argument("--bins", type=int, default=2880)
    write.add_argument("--systematics", type=int, default=1500)
    write.set_defaults(run=lambda given: write_workspace(given.file, given.bins, given.systematics))
    rabbit = kinds.add_parser("rabbit", help="write the input of rabbit-fit")
    rabbit.add_argument("workspace")
    rabbit.add_argument("file")
    rabbit.set_defaults(run=lambda given: write_rabbit(given.workspace, given.file))
    measure = kinds.add_parser("measure", help="measure a command")
    measure.add_argument("command", nargs=argparse.REMAINDER)
    measure.set_defaults(run=lambda given: measured(given.command))
    given = parser.parse_args()
    return given.run(given)


def write_workspace(path, n_bins, n_systematics):
    import numpy

    generator = numpy.random.default_rng(SEED)
    x = numpy.linspace(-1, 1, n_bins)
    samples = {"signal": 1e5 * numpy.exp(-(x**2)), "tau": 5e3 * numpy.exp(-((x + 0.3) ** 2)), "fakes": 8e3 * (1.2 - x)}
    observed = generator.poisson(sum(samples.values()))

    def numbers(values):
        return "[" + ",".join(f"{value:.2f}" for value in values) + "]"

    with open(path, "w") as file:
        file.write('{"channels":[{"name":"w","samples":[')
        for k, (name, yields) in enumerate(samples.items()):
            file.write(f'{"," if k else ""}{{"name":"{name}","data":{numbers(yields)},"modifiers":[')
            if name == "signal":
                file.write('{"name":"mu","type":"normfactor","data":null},')
            file.write(f'{{"name":"stat","type":"staterror","data":{numbers(0.7 * numpy.sqrt(yields))}}}')
            for i in range(n_systematics):
                size, phase, waves = generator.normal(0, 0.004), generator.uniform(0, 6), generator.uniform(1, 36)
                effect = yields * (size * numpy.sin(waves * x + phase) + 0.001 * generator.normal())
                data = f'{{"lo_data":{numbers(yields - effect)},"hi_data":{numbers(yields + effect)}}}'
                file.write(f',{{"name":"sys{i}","type":"histosys","data":{data}}}')
            file.write("]}")
        counts = ",".join(str(count) for count in observed)
        file.write(f']}}],"observations":[{{"name":"w","data":[{counts}]}}],')
        file.write('"measurements":[{"name":"m","config":{"poi":"mu","parameters":[]}}],"version":"1.0.0"}')


def write_rabbit(workspace, path):
    import hist
    import numpy
    from rabbit.tensorwriter import TensorWriter

    with open(workspace) as file:
        document = json.load(file)
    counts = numpy.array(document["observations"][0]["data"], float)
    axes = [hist.axis.Integer(0, len(counts), name="bin", underflow=False, overflow=False)]

    def histogram(values, variances):
        made = hist.Hist(*axes, storage=hist.storage.Weight())
        made.values()[...], made.variances()[...] = values, variances
        return made

    writer = TensorWriter()
    writer.add_channel(axes, "w")
    writer.add_data(histogram(counts, counts), "w")
    for sample in document["channels"][0]["samples"]:
        name, yields = sample["name"], numpy.array(sample["data"])
        errors = next(modifier["data"] for modifier in sample["modifiers"] if modifier["type"] == "staterror")
        writer.add_process(histogram(yields, numpy.square(errors)), name, "w", signal=name == "signal")
        for modifier in sample["modifiers"]:
            if modifier["type"] == "histosys":
                varied = histogram(modifier["data"]["hi_data"], yields)
                writer.add_systematic(varied, modifier["name"], name, "w", mirror=True)
    folder, _, name = path.rpartition("/")
    writer.write(folder or ".", name)


def measured(command):
    begun = time.perf_counter()
    code = subprocess.run(command, stdout=subprocess.DEVNULL).returncode
    wall, used = time.perf_counter() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu, peak = used.ru_utime + used.ru_stime, used.ru_maxrss / 1000
    print(f"{cpu:.2f} s of processor time, {wall:.2f} s, {peak:.0f} MB at the peak", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
