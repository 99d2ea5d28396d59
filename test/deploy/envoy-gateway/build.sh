#!/usr/bin/env bash
# Builds what the walk through Envoy Gateway runs, into a folder that TEST_ENVOY_GATEWAY then names: two programs and the
# definitions of kinds. Needs Go and git; some ten minutes of CPU.
#
#     test/deploy/envoy-gateway/build.sh FOLDER
#
# AI_GATEWAY names sources of Envoy AI Gateway that are there already.
set -euo pipefail
ENVOY_GATEWAY=v1.9.1
ENVOY_AI_GATEWAY=v1.1.0
INFERENCE_EXTENSION=v1.6.0

mkdir -p "$1"
folder=$(cd "$1" && pwd)
work=$(mktemp -d)
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT

# A module's sources as the module proxy has them; they are built there, so that replacements in their go.mod hold.
sources() {
  local at
  at=$(cd "$work" && go mod download -json "$1" | sed -nE 's/^\s*"Dir": "(.*)",$/\1/p')
  cp -r "$at" "$2"
  chmod -R u+w "$2"
}

sources "github.com/envoyproxy/gateway@$ENVOY_GATEWAY" "$work/gateway"
sources "sigs.k8s.io/gateway-api-inference-extension@$INFERENCE_EXTENSION" "$work/extension"
if [ -n "${AI_GATEWAY:-}" ]; then
  cp -r "$AI_GATEWAY" "$work/ai-gateway"
else
  git clone -q --depth 1 --branch "$ENVOY_AI_GATEWAY" https://github.com/envoyproxy/ai-gateway "$work/ai-gateway"
fi

mkdir -p "$folder/definitions"
cp "$work"/gateway/charts/gateway-helm/charts/crds/crds/gatewayapi-crds.yaml \
  "$work"/gateway/charts/gateway-helm/charts/crds/crds/generated/*.yaml \
  "$work"/extension/config/crd/bases/*.yaml \
  "$work"/ai-gateway/manifests/charts/ai-gateway-crds-helm/templates/*.yaml "$folder/definitions"
(cd "$work/gateway" && go build -ldflags '-s -w' -o "$folder/envoy-gateway" ./cmd/envoy-gateway)
(cd "$work/ai-gateway" && go build -ldflags '-s -w' -o "$folder/ai-gateway-controller" ./cmd/controller)
ls -l "$folder"
