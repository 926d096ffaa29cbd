#!/usr/bin/env bash
# Install a wheel into an empty environment with pip, and run there what a newcomer runs first.
# Usage: try_wheel.sh PYTHON FOLDER WHEEL [PIP OPTIONS]
set -euo pipefail

python=$1 folder=$2 wheel=$3
shift 3
root=$(cd "$(dirname "$0")/.." && pwd)

"$python" -m venv "$folder"
"$folder/bin/python" -m pip install --quiet --disable-pip-version-check "$wheel" "$@"
"$folder/bin/python" -m pip check
cd "$folder"
"$folder/bin/python" "$root/scripts/import_all.py"
# The first example is taken from the README itself, as a reader would copy it.
"$folder/bin/python" "$root/scripts/readme_example.py" "$root/README.md" > first.py
"$folder/bin/python" first.py
"$folder/bin/graphwright" demo
