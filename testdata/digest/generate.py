"""Writes python_json.json: how Python's json module and pyhf.utils.digest treat numbers, strings and documents.

Run it with the Python of an environment that has pyhf:

    python testdata/digest/generate.py > testdata/digest/python_json.json

The random numbers are seeded: the same versions write the same file.
"""

import datetime
import json
import platform
import random
import struct
import sys

import pyhf

SEED = 20240917
N_RANDOM = 400


def spellings(number):
    """The same double as people and programs write it."""
    return {repr(number), f"{number:.17g}", f"{number:.20e}", f"{number:.16E}"}


def special_numbers():
    yield from (0.0, 5e-324, 2.2250738585072014e-308, 2.225073858507201e-308, 1.7976931348623157e308)
    yield from (2.0**53, 2.0**53 + 2, 9007199254740993.0, 0.1, 0.3, 1 / 3, 4.35, 2.675, 1e21, 1e22, 1e23, 9.5e15)
    for exponent in range(-25, 26):
        power = 10.0**exponent
        bits = struct.unpack("<q", struct.pack("<d", power))[0]
        for step in (-1, 0, 1):
            yield struct.unpack("<d", struct.pack("<q", bits + step))[0]
    for exponent in range(-1074, 1024, 37):
        yield 2.0**exponent


def random_numbers(rng):
    for _ in range(N_RANDOM):
        number = struct.unpack("<d", rng.randbytes(8))[0]
        if number == number and abs(number) != float("inf"):
            yield number
        yield rng.uniform(-1000, 1000)
        # Often halfway between two shortest forms, where Python takes the even digit.
        yield rng.randrange(2**52, 2**53) / rng.choice((4, 8, 16, 32))
        yield round(rng.uniform(0, 100), rng.randrange(8))


def numbers(rng):
    written = {"-0", "0", "-0.0", "-0e5", "1E400", "-1e400", "1e-400", "12345678901234567890123", "-5", "1e0", "1E+2"}
    for number in special_numbers():
        written |= spellings(number)
    for number in random_numbers(rng):
        written.add(rng.choice(sorted(spellings(number))))
    return sorted(written)


DOCUMENTS = [
    '{"a": 2.0, "b": 3.0, "c": 1.0}',
    '{"b":{"z":[],"y":{}},"a":[1,1.0,-0,-0.0,1e5,null,true,false],"":""}',
    '{"k":1,"j":2,"k":{"last":"wins"}}',
    '{"\\u00e9":1,"z":2,"\\ud83d\\ude00":3,"\\uff61":4,"A":5}',
    '"\\u0000\\u001f\\u007f\\u0080\\u2028\\/\\"\\\\\\b\\f\\n\\r\\t é 😀"',
    ' [ NaN , Infinity ,\r\n\t-Infinity ] ',
    '[1e16,123456789012345680.0,0.0001,0.00001,1e22,100000000000000000000000]',
    "7",
    "null",
]


def main():
    rng = random.Random(SEED)
    documents = []
    for text in DOCUMENTS:
        value = json.loads(text)
        documents.append({
            "text": text,
            "canonical": json.dumps(value, sort_keys=True, ensure_ascii=False),
            "md5": pyhf.utils.digest(value, algorithm="md5"),
            "sha256": pyhf.utils.digest(value, algorithm="sha256"),
        })
    certificate = {
        "tool": "json.dumps(json.loads(text), sort_keys=True, ensure_ascii=False) and pyhf.utils.digest",
        "versions": {"python": platform.python_version(), "pyhf": pyhf.__version__},
        "command": "python testdata/digest/generate.py > testdata/digest/python_json.json",
        "date": datetime.date.today().isoformat(),
        "seed": SEED,
    }
    pairs = [[text, json.dumps(json.loads(text))] for text in numbers(rng)]
    json.dump({"certificate": certificate, "documents": documents, "numbers": pairs}, sys.stdout, indent=0)
    print()


if __name__ == "__main__":
    main()
