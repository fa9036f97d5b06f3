#!/bin/sh
# Runs the tests of the report page: run.sh VENV NEXTSTAT. They have a Python environment of their
# own, VENV; NEXTSTAT is a command whose documents some tests show. What the machine cannot run is
# skipped, and a line says why.
set -eu
venv=$1
nextstat=$2
web=$(cd "$(dirname "$0")/.." && pwd)
skip() {
    echo "warning: skipped: the tests of the report page: $*"
    exit 0
}
command -v "${CHROMIUM:-chromium}" >/dev/null || skip "there is no Chromium (Debian: chromium)"
if ! [ -x "$venv/bin/python" ]; then
    "${PYTHON:-python3}" -m venv "$venv" >/dev/null 2>&1 || skip "no virtual environment (Debian: python3-venv)"
fi
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check -r "$web/tests/requirements.txt" ||
    "$venv/bin/python" -c "import playwright, pytest" 2>/dev/null || skip "playwright could not be installed"
if command -v npm >/dev/null && ! [ -d "$web/node_modules" ]; then
    (cd "$web" && npm ci --no-audit --no-fund --silent) || echo "warning: npm could not install the packages of web/"
fi
[ -x "$nextstat" ] && NEXTSTAT=$(realpath "$nextstat") && export NEXTSTAT
exec "$venv/bin/python" -m pytest -p no:cacheprovider -rs "$web/tests"
