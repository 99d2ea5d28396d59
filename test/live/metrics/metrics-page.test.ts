import assert from "node:assert/strict";
import { describe, test } from "node:test";
import * as fc from "fast-check";
import { Gauge, Histogram, Registry } from "prom-client";

import { MetricsPage, PAGE_MILLIS_MIN } from "#live/metrics/metrics-page.ts";
import { renderPage } from "#live/metrics/render-page.ts";

describe("the metrics page", () => {
  test("is made at most once a second, whoever asks how often", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.nat(3 * PAGE_MILLIS_MIN), { maxLength: 40 }), async (pauses) => {
        const made: number[] = [];
        let now = 0;
        const page = new MetricsPage({
          render: () => {
            made.push(now);
            return Promise.resolve(`made at ${now}`);
          },
          now: () => now,
        });
        for (const pause of pauses) {
          now += pause;
          const text = await page.text();
          const age = now - Number(text.slice("made at ".length));
          assert.ok(age < PAGE_MILLIS_MIN, `a page of ${age} ms`);
        }
        for (const [i, at] of made.entries()) if (i > 0) assert.ok(at - made[i - 1]! >= PAGE_MILLIS_MIN);
      }),
    );
  });

  test("is made once for all that ask meanwhile, and anew where that failed", async () => {
    let made = 0;
    let finish = (_text: string): void => {};
    let fail = (_error: Error): void => {};
    const render = (): Promise<string> =>
      new Promise((resolve, reject) => {
        made++;
        [finish, fail] = [resolve, reject];
      });
    const page = new MetricsPage({ render, now: () => 0 });
    const failing = [page.text(), page.text()];
    fail(new Error("no"));
    for (const one of failing) await assert.rejects(one, /no/);
    const asked = Array.from({ length: 100 }, () => page.text());
    finish("page");
    assert.deepEqual(new Set(await Promise.all(asked)), new Set(["page"]));
    assert.equal(made, 2);
  });

  test("is what the registry makes at once, and others have their turn in between", async () => {
    const registry = new Registry();
    const none = new Gauge({ name: "none", help: "without rows", labelNames: ["a"] });
    registry.registerMetric(none);
    for (const rows of [1, 255, 256, 257, 20_000]) {
      const gauge = new Gauge({ name: `g${rows}`, help: "two\nlines", labelNames: ["a"], registers: [registry] });
      for (let i = 0; i < rows; i++) gauge.set({ a: `"${i}"\n` }, i);
    }
    const histogram = new Histogram({ name: "h", help: "help", labelNames: ["a"], registers: [registry] });
    for (let i = 0; i < 100; i++) histogram.observe({ a: String(i) }, i);
    let turns = 0;
    const other = setInterval(() => turns++);
    const page = await renderPage(registry);
    clearInterval(other);
    assert.equal(page, await registry.metrics());
    assert.ok(turns > 3, `others had ${turns} turns`);
  });
});
