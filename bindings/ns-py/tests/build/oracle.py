"""Other packages in processes of their own: imported here they would stay for all other tests."""

import importlib.util
import json
import subprocess
import sys

import pytest


def asked(package, code, question):
    """What `code` makes of `question`: both JSON, in the names `question` and `answer`."""
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"could not import '{package}'")
    program = f"import json, sys, warnings\nwarnings.simplefilter('ignore')\nquestion = json.load(sys.stdin)\n{code}\njson.dump(answer, sys.stdout)"
    done = subprocess.run([sys.executable, "-c", program], input=json.dumps(question), capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
