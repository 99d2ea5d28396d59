import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { engineNames, loadEngine } from "#config/engine-file.ts";
import { Engine } from "#engine/engine.ts";

test("every engine that comes with gnomon loads, serves, and states where it is from and how far off it is", () => {
  assert.ok(engineNames().length >= 5);
  for (const name of engineNames()) {
    const text = readFileSync(new URL(`../../config/engines/${name}.yaml`, import.meta.url), "utf8");
    assert.match(text, /[Mm]easured error|[Nn]ot validated/, name);
    let tokens = 0;
    const engine = new Engine(
      { ...loadEngine(name), check: true },
      {
        token: (_at, _request, outputTokens) => (tokens = outputTokens),
        finished: () => undefined,
      },
    );
    const request = { id: "a", promptTokens: 2000, outputTokens: 20, hashes: new Int32Array(0), priority: 0 };
    assert.equal(engine.submit(0, { ...request, deadlineAt: undefined, cacheRead: true }), "queued", name);
    for (let at = engine.nextEventAt(); at !== undefined; at = engine.nextEventAt()) engine.advanceTo(at);
    assert.equal(tokens, 20, name);
  }
});
