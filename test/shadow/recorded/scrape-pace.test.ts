import assert from "node:assert/strict";
import { test } from "node:test";
import { ScrapePace } from "#shadow/recorded/scrape-pace.ts";

test("the interval of scrapes is what a trace's gauges show, whatever failed, came late or was not simulated", () => {
  for (const every of [50_000, 1_000_000, 5_000_000]) {
    const pace = new ScrapePace();
    for (let turn = 0; turn < 100; turn++) {
      for (const [place, endpoint] of ["a", "b", "c"].entries()) {
        // Every third scrape of c fails; all are late by up to a few milliseconds.
        if (endpoint === "c" && turn % 3 === 0) continue;
        pace.observe(turn * every + place * 1_000 + ((turn * 7 + place) % 5) * 90, endpoint);
      }
    }
    assert.equal(pace.found.scrapeMicros, every);
  }
  const quiet = new ScrapePace();
  quiet.observe(0, "a");
  quiet.observe(1_000, "b");
  assert.deepEqual(quiet.found, {}, "no two scrapes of one endpoint");
});
