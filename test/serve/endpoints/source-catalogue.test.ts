import assert from "node:assert/strict";
import { test } from "node:test";
import { loadConfig } from "#config/load.ts";
import { overrideFromText, type Override } from "#config/override.ts";
import { CONFIG_SCHEMA } from "#config/schema.ts";
import { schemaNode } from "#config/schema-node.ts";
import { namesSources, SOURCES } from "#serve/endpoints/source-catalogue.ts";

function configured(...texts: readonly string[]) {
  const overrides = texts.map((text) => overrideFromText(text, schemaNode(CONFIG_SCHEMA)) as Override);
  return loadConfig({ file: undefined, environment: {}, overrides });
}

test("each way of naming endpoints is one source, and none but the list needs no source", () => {
  const ways = ["discovery.file=x.yaml", 'discovery.dns=[{"name":"engines"}]', "discovery.kind=kubernetes"];
  const named = ways.map((way) => {
    const config = configured(way, ...(way.endsWith("kubernetes") ? ["discovery.service=engines"] : []));
    assert.ok(namesSources(config), way);
    return SOURCES.flatMap((source, i) => (source.isNamed(config.discovery) ? [i] : []));
  });
  assert.deepEqual(
    named.flat().sort((a, b) => a - b),
    [...SOURCES.keys()],
    "each names one, and each is named by one",
  );
  assert.equal(namesSources(configured()), false);
  assert.equal(namesSources(configured('endpoints=[{"url":"http://e:8000"}]')), true);
});
