"""The modifiers of HistFactory. The engine has these and no others."""

__all__ = ["histfactory_set"]


def __dir__():
    return __all__


#: What each modifier does to yields, by name.
histfactory_set = {
    "histosys": "addition",
    "lumi": "multiplication",
    "normfactor": "multiplication",
    "normsys": "multiplication",
    "shapefactor": "multiplication",
    "shapesys": "multiplication",
    "staterror": "multiplication",
}
