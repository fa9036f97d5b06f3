"""Other packages in processes of their own: imported here they would stay for all other tests."""

import json
import subprocess
import sys

import pytest


def asked(package, code, question):
    """What `code` makes of `question`: both JSON, in the names `question` and `answer`."""
    # Asked in a process of its own: a folder of these tests is called `pyhf`, too.
    root = package.partition(".")[0]
    if subprocess.run([sys.executable, "-c", f"import {root}"], capture_output=True, check=False).returncode != 0:
        pytest.skip(f"could not import '{root}'")
    program = f"import json, sys, warnings\nwarnings.simplefilter('ignore')\nquestion = json.load(sys.stdin)\n{code}\njson.dump(answer, sys.stdout)"
    done = subprocess.run([sys.executable, "-c", program], input=json.dumps(question), capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
