"""The cases of generate.py: histograms, and what their XML says."""

FOUR = [5.0, 12.0, 9.0, 3.0]
HISTOGRAMS = {
    "signal": {"values": FOUR, "errors": [0.2, 0.3, 0.3, 0.4]},
    "background": {"values": [50.0, 40.0, 30.0, 10.0], "errors": [1.5, 2.5, 3.0, 4.0]},
    "other": {"values": [20.0, 10.0, 5.0, 0.0], "errors": [4.0, 3.0, 2.0, 0.0]},
    "unweighted": {"values": [100.0, 25.0, 9.0, 400.0]},
    "flat": {"values": [1.0, 1.0, 1.0, 1.0], "class": "TH1I"},
    "data": {"values": [61.0, 70.0, 41.0, 12.0]},
    "data_control": {"values": [205.0, 98.0, 60.0, 31.0]},
    "control": {"values": [200.0, 100.0, 55.0, 30.0], "errors": [3.0, 6.0, 4.0, 1.0]},
    # Relative uncertainties of Gaussian terms are small: ROOT normalises such a term over 0 … 10.
    "precise": {"values": [50.0, 40.0, 30.0, 20.0], "errors": [1.5, 2.5, 3.0, 1.7]},
    "relative": {"values": [0.1, 0.12, 0.0, 0.04]},
    "relative_small": {"values": [0.1, 0.08, 0.12, 0.05]},
    "relative_all": {"values": [0.1, 0.2, 0.15, 0.4]},
    "initial": {"values": [2.0, 1.5, 3.0, 0.5]},
    "shapes/up": {"values": [55.0, 46.0, 31.0, 14.0]},
    "shapes/down": {"values": [46.0, 31.0, 32.0, 7.0]},
    "shapes/inner/up": {"values": [4.0, 13.0, 11.0, 5.0]},
    "shapes/inner/down": {"values": [6.0, 10.0, 9.5, 0.2]},
    "shapes/other_up": {"values": [25.0, 9.0, 6.0, 0.0]},
    "shapes/other_down": {"values": [17.0, 12.0, 4.0, 0.0]},
    "steep_up": {"values": [80.0, 41.0, 60.0, 30.0]},
    "steep_down": {"values": [20.0, 39.0, 2.0, 1.0]},
    # ROOT keeps relative uncertainties of a TH1F in single precision, hence the other class.
    "float": {"values": [50.1, 40.3], "class": "TH1F", "edges": [0.0, 20.0, 100.0]},
    "double": {"values": [50.1, 40.3], "errors": [1.1, 5.7], "edges": [0.0, 20.0, 100.0]},
    "integer": {"values": [7.0, 4.0], "class": "TH1I", "edges": [0.0, 20.0, 100.0]},
    "two_bins": {"values": [61.0, 40.0], "class": "TH1S", "edges": [0.0, 20.0, 100.0]},
}

FILE = 'InputFile="data.root"'
DATA = '  <Data HistoName="data"/>'
SIGNAL = """  <Sample Name="signal" HistoName="signal">
    <NormFactor Name="mu" Val="1" Low="0" High="5"/>
  </Sample>"""
MEASUREMENT = """  <Measurement Name="m" Lumi="1.0" LumiRelErr="0.02" ExportOnly="True">
    <POI>mu</POI>
  </Measurement>"""


def sample(inside, name="background", attributes=""):
    """A sample with elements in it."""
    return f'  <Sample Name="{name}" HistoName="{name}" {attributes}>\n    {inside}\n  </Sample>'


def channel(*elements, attributes=FILE, data=DATA):
    """The attributes and the contents of a channel with the signal."""
    return attributes, "\n".join(part for part in (data, *elements[:-1], SIGNAL, elements[-1]) if part)


def measured(inside, attributes='Lumi="1.0" LumiRelErr="0.02"', name="m"):
    """A measurement of mu."""
    return f'  <Measurement Name="{name}" {attributes}>\n    <POI>mu</POI>\n    {inside}\n  </Measurement>'


STAT = '<StatError Activate="True"/>'
SYST = '<OverallSys Name="syst" Low="0.9" High="1.2"/>'


def case(contents, measurements=MEASUREMENT, **more):
    """A case with one channel."""
    return {"channels": {"SR": contents}, "measurements": measurements, **more}


CASES = {
    # What holds where the XML says nothing.
    "stat_default": case(channel(sample(STAT))),
    "stat_config_default": case(channel("  <StatErrorConfig/>", sample(STAT))),
    "shapesys_default": case(channel(sample('<ShapeSys Name="shape" HistoName="relative"/>'))),
    "measurement_default": case(channel(sample(SYST)), measured("", attributes="")),
    "theory_default": case(channel(sample(SYST)), measured("", attributes='Lumi="2.5" LumiRelErr="0.1"')),
    "no_data": case(channel(sample(STAT + SYST), data=""), measured('<ParamSetting Val="1.5">mu</ParamSetting>')),
    # Statistical uncertainties.
    "stat_gaussian": case(channel('  <StatErrorConfig RelErrorThreshold="0.07" ConstraintType="Gaussian"/>', sample(STAT, name="precise"))),
    "stat_gauss_all": case(channel('  <StatErrorConfig RelErrorThreshold="0.0" ConstraintType="Gauss"/>', sample(STAT, name="precise"))),
    "stat_pois_all": case(channel('  <StatErrorConfig RelErrorThreshold="0" ConstraintType="Pois"/>', sample(STAT))),
    "stat_relative": case(channel(sample('<StatError Activate="true" HistoName="relative_all"/>'))),
    "stat_of_two": case(channel(sample(STAT, name="other"), sample(STAT))),
    "stat_unweighted": case(channel(sample(STAT, name="unweighted"))),
    "stat_off": case(channel(sample('<StatError Activate="False"/>' + SYST))),
    # Shapes.
    "shapesys_poisson": case(channel(sample('<ShapeSys Name="shape" HistoName="relative" ConstraintType="Poisson"/>'))),
    "shapesys_gauss_two": case(
        channel(
            sample('<ShapeSys Name="one" HistoName="relative_small" ConstraintType="Gauss"/>', name="unweighted"),
            sample('<ShapeSys Name="two" HistoName="relative_all" ConstraintType="Pois"/>'),
        )
    ),
    "shapesys_shared": case(
        channel(
            sample('<ShapeSys Name="shape" HistoName="relative_small"/>', name="unweighted"),
            sample('<ShapeSys Name="shape" HistoName="relative_small"/>'),
        )
    ),
    "shapefactor": {
        "channels": {
            "SR": channel(sample('<ShapeFactor Name="free"/>', name="flat", attributes='NormalizeByTheory="False"')),
            "CR": (FILE, '  <Data HistoName="data_control"/>\n' + sample('<ShapeFactor Name="free"/>', name="flat", attributes='NormalizeByTheory="False"') + sample(SYST, name="control")),
        },
        "measurements": measured('<ParamSetting Const="True">Lumi</ParamSetting>'),
    },
    "shapefactor_initial": case(channel(sample('<ShapeFactor Name="start" HistoName="initial"/>'))),
    "shapefactor_const": case(channel(sample('<ShapeFactor Name="start" HistoName="initial" Const="True"/>'))),
    # Systematics.
    "overall_and_histo": case(
        channel(
            sample('<OverallSys Name="syst" Low="0.8" High="1.1"/><HistoSys Name="shift" HistoNameLow="other_down" HistoNameHigh="other_up" HistoPathLow="shapes" HistoPathHigh="shapes"/>', name="other"),
            sample(SYST + '<HistoSys Name="syst" HistoNameLow="down" HistoPathLow="shapes" HistoNameHigh="up" HistoPathHigh="/shapes/"/>'),
        ),
        alpha_range=0.95,
    ),
    "inheritance": case(
        (
            'InputFile="nowhere.root" HistoPath="nowhere"',
            '  <Data InputFile="data.root" HistoPath="" HistoName="data"/>\n'
            '  <Sample Name="signal" InputFile="data.root" HistoPath="" HistoName="signal">\n'
            '    <NormFactor Name="mu" Val="1" Low="0" High="5"/>\n'
            '    <HistoSys Name="a" HistoPathLow="shapes/inner" HistoNameLow="down" HistoPathHigh="shapes/inner" HistoNameHigh="up"/>\n'
            "  </Sample>\n"
            '  <Sample Name="background" InputFile="data.root" HistoPath="shapes" HistoName="up">\n'
            '    <HistoSys Name="a" HistoNameLow="down" HistoPathHigh="" HistoNameHigh="background" HistoFileHigh="data.root"/>\n'
            '    <StatError Activate="True" HistoPath="" HistoName="relative_all" />\n'
            "  </Sample>",
        )
    ) | {"not_in_root": "an empty HistoPath of StatError means the inherited one"},
    "clipped": case(channel(sample('<HistoSys Name="steep" HistoNameLow="steep_down" HistoNameHigh="steep_up"/>'))),
    "histofactor": case(channel(sample(SYST + '<HistoFactor Name="left_out"/>'))),
    # Factors.
    "norm_factors": {
        "channels": {
            "SR": channel(sample('<NormFactor Name="k" Val="1.2" Low="0.1" High="3"/><NormFactor Name="l" Val="0.5" Low="-1" High="2" Const="True"/>')),
            "CR": (FILE, '  <Data HistoName="data_control"/>\n' + sample('<NormFactor Name="k" Val="1.2" Low="0.1" High="3"/>', name="control")),
        },
        "measurements": '  <Measurement Name="m" Lumi="1" LumiRelErr="0.1">\n    <POI>mu k</POI>\n  </Measurement>',
    },
    # The luminosity.
    "lumi_value": case(channel(sample(STAT)), measured('<ParamSetting Val="2.1">Lumi</ParamSetting>', attributes='Lumi="2.0" LumiRelErr="0.05"')),
    "lumi_of_data_driven": case(
        channel(sample(STAT, attributes='NormalizeByTheory="False"'), sample(STAT + SYST, name="other", attributes='NormalizeByTheory="True"')),
        measured('<ParamSetting Const="True">Lumi</ParamSetting>', attributes='Lumi="3.0" LumiRelErr="0.05"'),
    ),
    # Settings.
    "settings": case(
        channel('  <StatErrorConfig RelErrorThreshold="0"/>', sample(STAT + SYST + '<OverallSys Name="fixed" Low="0.7" High="1.4"/>')),
        measured(
            '<ParamSetting Val="0.3" Const="True">alpha_fixed</ParamSetting>\n    <ParamSetting Val="-0.4">alpha_syst</ParamSetting>\n'
            '    <ParamSetting Const="True">gamma_stat_SR_bin_0 gamma_stat_SR_bin_1\n gamma_stat_SR_bin_2 gamma_stat_SR_bin_3</ParamSetting>'
        ),
    ),
    "two_measurements": case(
        channel(sample(SYST)),
        measured("", name="first") + "\n" + measured('<ParamSetting Const="True">alpha_syst</ParamSetting>', attributes='Lumi="1.5" LumiRelErr="0.05" BinLow="0" BinHigh="2" Mode="comb" ExportOnly="False"', name="second"),
        measurement="second",
    ),
    # Constraint terms.
    "gamma": case(channel(sample(SYST)), measured('<ConstraintTerm Type="Gamma" RelativeUncertainty="0.4">syst</ConstraintTerm>'), of_terms=True, notes={"gamma": {"syst": 0.4}}),
    "lognormal": case(
        channel(sample(SYST)),
        measured('<ConstraintTerm Type="LogNormal" RelativeUncertainty="0.3">syst</ConstraintTerm>\n    <ParamSetting Val="0.2">alpha_syst</ParamSetting>'),
        notes={"lognormal": {"syst": 0.3}},
    ),
    "uniform": case(
        channel(sample(SYST + '<HistoSys Name="shift" HistoPathLow="shapes" HistoNameLow="down" HistoPathHigh="shapes" HistoNameHigh="up"/>')),
        measured('<ConstraintTerm Type="Uniform" RelativeUncertainty="1">syst shift</ConstraintTerm>'),
    ),
    "no_constraint": case(channel(sample(SYST)), measured('<ConstraintTerm Type="NoConstraint">syst</ConstraintTerm>')) | {"not_in_root": "ROOT 6.40 leaves out such a systematic"},
    # Bins and types.
    "variable_bins": case((FILE, '  <Data HistoName="two_bins"/>\n  <Sample Name="signal" HistoName="integer">\n    <NormFactor Name="mu" Low="0" High="5"/>\n  </Sample>\n' + sample(SYST, name="float") + sample(STAT, name="double"))),
    # As TRExFitter writes it: everything named in full, the luminosity fixed.
    "exported": {
        "channels": {
            name: (
                FILE,
                f'  <Data HistoName="{data}" InputFile="data.root" HistoPath=""/>\n  <StatErrorConfig RelErrorThreshold="0.04" ConstraintType="Poisson"/>\n'
                + f'  <Sample Name="signal" HistoPath="" HistoName="signal" InputFile="data.root" NormalizeByTheory="True">\n    <OverallSys Name="lumi_13TeV" High="1.02" Low="0.98"/>\n    <NormFactor Name="mu" Val="1" High="10" Low="-10"/>\n  </Sample>\n'
                + f'  <Sample Name="{background}" HistoPath="" HistoName="{background}" InputFile="data.root" NormalizeByTheory="True">\n    <StatError Activate="True"/>\n    <OverallSys Name="xsec" High="1.1" Low="0.93"/>\n    <OverallSys Name="JES" High="1.05" Low="0.96"/>\n    <HistoSys Name="JES" HistoNameHigh="steep_up" HistoNameLow="steep_down" HistoPathHigh="" HistoPathLow=""/>\n    <NormFactor Name="norm" Val="1" High="5" Low="0"/>\n  </Sample>',
            )
            for name, data, background in (("SR_one", "data", "background"), ("CR_top", "data_control", "control"))
        },
        "measurements": '  <Measurement Name="FitExample" Lumi="1.0" LumiRelErr="0.1" ExportOnly="True">\n    <POI>mu</POI>\n    <ParamSetting Const="True">Lumi</ParamSetting>\n  </Measurement>',
        "alpha_range": 0.95,
    },
}
