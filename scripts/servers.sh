#!/usr/bin/env bash
# Install the servers that tests start by themselves: PostgreSQL, Redis, MariaDB. Needs Debian's apt-get and root.
set -euo pipefail
missing=()
compgen -G "/usr/lib/postgresql/*/bin/initdb" > /dev/null || missing+=(postgresql)
command -v redis-server > /dev/null || missing+=(redis-server)
command -v mariadbd > /dev/null || missing+=(mariadb-server)
command -v openssl > /dev/null || missing+=(openssl)
if [ "${#missing[@]}" -eq 0 ]; then
    echo "all there"
    exit 0
fi
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt-get install -y -qq --no-install-recommends "${missing[@]}"
