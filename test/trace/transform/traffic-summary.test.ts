import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { MICROS_PER_SECOND } from "#core/base/units.ts";
import { TrafficSummary } from "#trace/transform/traffic-summary.ts";
import type { TrafficRequest } from "#trace/transform/traffic.ts";

test("law: rates are those of the arrivals, and the most within a second of the clock is that of some second", () => {
  const gaps = fc.array(fc.integer({ min: 0, max: 900_000 }), { minLength: 2, maxLength: 60 });
  fc.assert(
    fc.property(gaps, (micros) => {
      const summary = new TrafficSummary();
      const inSecond = new Map<number, number>();
      let at = 0;
      for (const gap of micros) {
        at += gap;
        const request = { promptTokens: 10, outputTokens: 5, arrivalMicros: at, session: "", tenant: "", model: "m" };
        summary.add({ request } as unknown as TrafficRequest);
        const second = Math.floor(at / MICROS_PER_SECOND);
        inSecond.set(second, (inSecond.get(second) ?? 0) + 1);
      }
      const figures = summary.figures();
      const span = at - micros[0]!;
      assert.equal(figures.requests, micros.length);
      assert.equal(figures.requestsPerSecondMax, Math.max(...inSecond.values()));
      assert.equal(figures.spanMicros, span);
      if (span > 0)
        assert.ok(Math.abs((figures.requestsPerSecond * span) / MICROS_PER_SECOND - micros.length + 1) < 1e-6);
    }),
  );
});
