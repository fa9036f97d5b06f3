"""Digests of documents, options from the command line, and what to cite."""

import json

__all__ = ["citation", "digest", "options_from_eqdelimstring"]


def __dir__():
    return __all__


def digest(obj, algorithm="sha256"):
    """Returns the digest of a document, whatever the order of its keys.

    >>> import nextstat.pyhf as pyhf
    >>> pyhf.utils.digest({"a": 1, "b": 2}) == pyhf.utils.digest({"b": 2, "a": 1})
    True

    Raises
    ------
    ValueError
        For something that is not a document, or an algorithm that `hashlib` does not have.
    """
    try:
        text = json.dumps(obj, sort_keys=True, ensure_ascii=False).encode("utf8")
    except TypeError:
        raise ValueError("The supplied object is not JSON-serializable for calculating a hash.") from None
    # Code that only fits does without OpenSSL.
    import hashlib

    function = getattr(hashlib, algorithm, None)
    if function is None:
        raise ValueError(f"{algorithm} is not an algorithm provided by Python's hashlib library.")
    return function(text).hexdigest()


def options_from_eqdelimstring(opts):
    """Returns a dictionary from texts such as ``"maxiter=1000"``: values are truth values and
    nothing as YAML 1.1 spells them, JSON, or else text.

    >>> import nextstat.pyhf as pyhf
    >>> pyhf.utils.options_from_eqdelimstring(["maxiter=1000", "verbose=True", "method=BFGS"])
    {'maxiter': 1000, 'verbose': True, 'method': 'BFGS'}
    """
    return {name: _value(text) for name, text in (option.split("=", 1) for option in opts)}


#: Words that are values in YAML 1.1, in lower case; they may also be capitalised or in capitals.
_WORDS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False, "null": None}


def _value(text):
    text = text.strip()
    if text in ("", "~"):
        return None
    if text in (text.lower(), text.capitalize(), text.upper()) and text.lower() in _WORDS:
        return _WORDS[text.lower()]
    try:
        return json.loads(text)
    except ValueError:
        return text


_CITATION = """@article{pyhf_joss,
  author  = {Heinrich, Lukas and Feickert, Matthew and Stark, Giordon and Cranmer, Kyle},
  title   = {pyhf: pure-Python implementation of HistFactory statistical models},
  journal = {Journal of Open Source Software},
  volume  = {6},
  number  = {58},
  pages   = {2823},
  year    = {2021},
  doi     = {10.21105/joss.02823}
}"""


def citation(oneline=False):
    """Returns what to cite for the interface: the paper about pyhf, in BibTeX."""
    return "".join(_CITATION.splitlines()) if oneline else _CITATION
