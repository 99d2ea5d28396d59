import assert from "node:assert/strict";
import { test } from "node:test";
import { troubleOf } from "#page/status/trouble.ts";
import { endpointCase, overviewCase } from "./overview-case.ts";

test("an endpoint that is well has no sign of trouble", () => {
  assert.deepEqual(troubleOf(endpointCase("e")), { severity: 0, signs: [], todo: "" });
});

test("signs are in order of what they mean for who is served", () => {
  const known = { cordoned: true, breaker: "open", standing: "hung", freshness: "stale", ageMillis: 12_000 } as const;
  assert.deepEqual(troubleOf(endpointCase("e", known, { detail: "the router refuses it" })), {
    severity: 3,
    signs: ["hung", "breaker open", "cordoned", "signals 12 s old", "the router refuses it"],
    todo: "Restart its engine; others serve meanwhile.",
  });
});

test("what is not ready is in trouble, whatever else is known", () => {
  assert.deepEqual(troubleOf(endpointCase("e", {}, { state: "waiting", known: null })), {
    severity: 3,
    signs: ["not reached yet"],
    todo: "See whether its engine runs and its address is right.",
  });
  const gone = endpointCase("e", {}, { state: "lost", known: null, detail: "refused", scrapeError: "timeout" });
  assert.deepEqual(troubleOf(gone), {
    severity: 3,
    signs: ["lost: refused", "scrape: timeout"],
    todo: "See whether its engine still runs; it is let back by itself.",
  });
});

test("a scrape that failed once is no trouble while the signals are fresh", () => {
  assert.equal(troubleOf(endpointCase("e", {}, { scrapeError: "timeout" })).severity, 0);
  assert.deepEqual(
    troubleOf(endpointCase("e", { freshness: "unknown", ageMillis: null }, { scrapeError: "404" })).signs,
    ["never scraped", "scrape: 404"],
  );
});

test("each of those in trouble states what to do", () => {
  const troubled = overviewCase()
    .endpoints.map(troubleOf)
    .filter(({ severity }) => severity > 0);
  assert.equal(troubled.length, 6);
  assert.deepEqual(
    troubled.filter(({ todo }) => todo === ""),
    [],
  );
});
