#!/usr/bin/env bash
# Print the path of a working interpreter of the given version, such as 3.13; end with 1 when there is none.
set -euo pipefail

works() {
    [ "$("$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2> /dev/null)" = "$version" ]
}

version=$1
for candidate in "python$version" "${PYENV_ROOT:-$HOME/.pyenv}/versions/$version".*/bin/python /usr/local/bin/"python$version"; do
    if works "$candidate"; then
        command -v "$candidate"
        exit 0
    fi
done
exit 1
