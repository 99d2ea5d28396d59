#!/bin/sh
# prune.sh FOLDER ARCHITECTURE: leaves of an installed package what runs on Linux with glibc on that architecture (x64,
# arm64): no binaries of other platforms, no source maps, declarations, documents or build tools.
set -eu
cd "$1"
find . -type f \( -name '*.map' -o -name '*.d.ts' -o -name '*.d.mts' -o -name '*.d.cts' -o -name '*.md' \) -delete
find node_modules/tokenizers -name '*.node' ! -name "*.linux-$2-gnu.node" -delete
find node_modules/zeromq/build -mindepth 1 -maxdepth 1 -type d ! -name linux -exec rm -r {} +
find node_modules/zeromq/build/linux -mindepth 1 -maxdepth 1 -type d ! -name "$2" -exec rm -r {} +
find node_modules/zeromq/build/linux -type d -name 'musl-*' -prune -exec rm -r {} +
rm -rf node_modules/zeromq/src node_modules/.bin node_modules/.package-lock.json
