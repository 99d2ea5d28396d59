import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";

import { Turnstile } from "#live/keeper/health-checker.ts";
import { staticTargets } from "#live/discovery/static.ts";
import { FleetUnderTest, until } from "../discovery/fleet-under-test.ts";
import { answer, engineText, modelsText, StubEngine } from "../discovery/stub-engine.ts";

const CHECKS = {
  path: "/health",
  intervalMillis: 4,
  timeoutMillis: 60_000,
  unhealthyAfter: 3,
  healthyAfter: 2,
  concurrencyMax: 8,
};

async function started(t: TestContext, timeoutMillis = CHECKS.timeoutMillis) {
  const engine = await StubEngine.start();
  t.after(() => engine.kill().catch(() => {}));
  let health: StubEngine["models"] = answer(200, "");
  engine.models = (request, response) =>
    request.url === "/health" ? health(request, response) : answer(200, modelsText("tiny"))(request, response);
  const fleet = new FleetUnderTest({ healthChecks: { ...CHECKS, timeoutMillis } });
  t.after(() => fleet.keeper.stop());
  const { url } = engine;
  fleet.keeper.setTargets("static", staticTargets([{ url }]));
  await until("ready", () => fleet.row(url) !== undefined);
  const become = (next: StubEngine["models"]): void => {
    health = next;
  };
  return { engine, fleet, url, become };
}

for (const [name, broken, timeoutMillis] of [
  ["answers 503", answer(503, ""), CHECKS.timeoutMillis],
  ["answers nothing in time", () => {}, 40],
  ["breaks the connection", (_: unknown, response: { destroy(): void }) => response.destroy(), CHECKS.timeoutMillis],
] as const)
  test(`a server whose check ${name} is left after three in a row, and comes back after two that succeed`, async (t) => {
    const { fleet, url, become } = await started(t, timeoutMillis);
    become(broken);
    await until("unhealthy", () => fleet.row(url)!.ejected === "unhealthy");
    const { failed } = fleet.keeper.checkCounts!;
    assert.ok(failed >= 3, String(failed));
    become(answer(200, ""));
    await until("healthy", () => fleet.row(url)!.ejected === "");
    assert.deepEqual(fleet.story(url), ["endpoint-joined", "endpoint-checked", "endpoint-checked"]);
    assert.deepEqual(
      fleet.events.filter(({ kind }) => kind.endsWith("healthy")).map(({ kind, subject }) => [kind, subject]),
      [
        ["unhealthy", url],
        ["healthy", url],
      ],
    );
    assert.match(fleet.events.find(({ kind }) => kind === "unhealthy")!.detail, /^GET \/health: /);
  });

test("checks that fail now and then change nothing", async (t) => {
  const { engine, fleet, url, become } = await started(t);
  let n = 0;
  become((request, response) => answer(n++ % 3 === 2 ? 200 : 500, "")(request, response));
  await until("many checks", () => engine.count("/health") > 30);
  assert.equal(fleet.row(url)!.ejected, "");
});

test("a metrics page that hangs delays no check, and who comes back after it was lost starts as healthy", async (t) => {
  const { engine, fleet, url, become } = await started(t);
  engine.metrics = () => {};
  const before = engine.count("/health");
  await until("further checks", () => engine.count("/health") > before + 5);
  engine.metrics = answer(200, engineText({}));
  become(answer(500, ""));
  await until("unhealthy", () => fleet.row(url)?.ejected === "unhealthy");
  const { port } = engine;
  await engine.kill();
  await until("lost", () => fleet.directory.get(url)!.state === "lost");
  const again = await StubEngine.start(port);
  t.after(() => again.kill());
  await until("back", () => fleet.row(url)?.ejected === "");
});

test("no more work at once than the turnstile lets, and all of it in the end", async () => {
  const turnstile = new Turnstile(3);
  let [now, most, done] = [0, 0, 0];
  const work = async (): Promise<void> => {
    most = Math.max(most, ++now);
    await sleep(1);
    now--;
    done++;
    if (done % 4 === 0) throw new Error("fails");
  };
  await Promise.allSettled(Array.from({ length: 20 }, () => turnstile.pass(work)));
  assert.deepEqual([most, done, now], [3, 20, 0]);
});
