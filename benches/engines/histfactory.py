"""A pyhf document as a HistFactory workspace of ROOT, for benches/engines/with_root.py."""
import itertools


def histfactory_workspace(ROOT, document):
    """A pyhf document as a HistFactory workspace: first measurement, Gaussian staterrors,
    interpolation as HistFactory has it by default."""
    kit = ROOT.RooStats.HistFactory
    chosen = document["measurements"][0]
    settings = {p["name"]: p for p in chosen["config"]["parameters"]}
    lumi = settings.get("lumi", {})
    measurement = kit.Measurement(chosen["name"], chosen["name"])
    measurement.SetPOI(chosen["config"]["poi"])
    measurement.SetLumi(lumi.get("auxdata", [1.0])[0])
    measurement.SetLumiRelErr(lumi.get("sigmas", [0.1])[0])
    for name, setting in settings.items():
        if setting.get("fixed"):
            measurement.AddConstantParam({"lumi": "Lumi"}.get(name, name))
    if not lumi.get("fixed") and is_without_lumi(document):
        measurement.AddConstantParam("Lumi")
    observed = {o["name"]: o["data"] for o in document["observations"]}
    made_histograms = itertools.count()

    def histogram(values):
        one = ROOT.TH1D(f"h{next(made_histograms)}", "", len(values), 0, len(values))
        one.SetDirectory(0)
        ROOT.SetOwnership(one, False)  # HistFactory deletes what it is given
        for bin, value in enumerate(values):
            one.SetBinContent(bin + 1, value)
        return one

    for channel in document["channels"]:
        made = kit.Channel(channel["name"])
        made.SetStatErrorConfig(0.0, kit.Constraint.Gaussian)
        made.SetData(histogram(observed[channel["name"]]))
        for sample in channel["samples"]:
            made.AddSample(histfactory_sample(kit, sample, settings, histogram))
        measurement.AddChannel(made)
    workspace = kit.MakeModelAndMeasurementFast(measurement)
    if not workspace:
        raise RuntimeError("HistFactory made no workspace")
    return workspace


def is_without_lumi(document):
    """Whether no sample follows the luminosity. Here HistFactory scales all or none by it, whatever
    a sample says of being normalised by theory."""
    samples = [sample for channel in document["channels"] for sample in channel["samples"]]
    follows = [any(modifier["type"] == "lumi" for modifier in sample["modifiers"]) for sample in samples]
    if any(follows) and not all(follows):
        raise RuntimeError("a free luminosity that only some samples follow is not translated")
    return not any(follows)


def histfactory_sample(kit, sample, settings, histogram):
    made = kit.Sample(sample["name"])
    made.SetHisto(histogram(sample["data"]))
    made.SetNormalizeByTheory(any(m["type"] == "lumi" for m in sample["modifiers"]))
    relative = lambda errors: histogram([e / y if y > 0 else 0.0 for e, y in zip(errors, sample["data"])])
    for modifier in sample["modifiers"]:
        name, kind, data = modifier["name"], modifier["type"], modifier["data"]
        if kind == "normfactor":
            setting = settings.get(name, {})
            made.AddNormFactor(name, setting.get("inits", [1.0])[0], *setting.get("bounds", [[0.0, 10.0]])[0])
        elif kind == "normsys":
            made.AddOverallSys(name, data["lo"], data["hi"])
        elif kind == "histosys":
            one = kit.HistoSys()
            one.SetName(name)
            one.SetHistoLow(histogram(data["lo_data"]))
            one.SetHistoHigh(histogram(data["hi_data"]))
            made.AddHistoSys(one)
        elif kind == "staterror":
            made.ActivateStatError()
            made.GetStatError().SetErrorHist(relative(data))
        elif kind == "shapesys":
            one = kit.ShapeSys()
            one.SetName(name)
            one.SetErrorHist(relative(data))
            one.SetConstraintType(kit.Constraint.Poisson)
            made.AddShapeSys(one)
        elif kind != "lumi":
            raise RuntimeError(f"a {kind} is not translated")
    return made
