#!/usr/bin/env bash
# Install what tests start by themselves: PostgreSQL, Redis, MariaDB, bubblewrap. Needs Debian's apt-get and root.
set -euo pipefail
missing=()
compgen -G "/usr/lib/postgresql/*/bin/initdb" > /dev/null || missing+=(postgresql)
command -v redis-server > /dev/null || missing+=(redis-server)
command -v mariadbd > /dev/null || missing+=(mariadb-server)
command -v openssl > /dev/null || missing+=(openssl)
command -v bwrap > /dev/null || missing+=(bubblewrap)
compgen -G "/usr/lib/*/libseccomp.so.2" > /dev/null || missing+=(libseccomp2)
[ -x /usr/bin/python3 ] || missing+=(python3) # the one that runs inside of a sandbox
if [ "${#missing[@]}" -eq 0 ]; then
    echo "all there"
    exit 0
fi
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt-get install -y -qq --no-install-recommends "${missing[@]}"
