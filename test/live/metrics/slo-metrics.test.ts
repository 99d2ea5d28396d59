import assert from "node:assert/strict";
import { test } from "node:test";
import { Registry } from "prom-client";
import type { Decision } from "#core/input/decision.ts";
import type { Outcome } from "#core/endpoint/outcome.ts";
import type { Slo } from "#core/request/slo.ts";
import { SloMetrics } from "#live/metrics/metrics.ts";
import { requestOf } from "../../core/rollout/rollout-case.ts";

const SLO = { ttftMicros: 100, tpotMicros: 10 };

interface Passing {
  readonly slo?: Slo;
  readonly sloClass?: string;
  readonly arm?: string;
  readonly outcome?: Outcome;
  readonly ttft?: number;
  readonly tpot?: number;
}

function rig() {
  const registry = new Registry();
  const metrics = new SloMetrics(registry);
  let number = 0;
  const pass = ({ slo, sloClass = "", arm, outcome = "ok", ttft = 100, tpot = 10 }: Passing) => {
    const request = { ...requestOf(number++), sloClass, ...(slo && { slo }) };
    const rollout = arm === undefined ? {} : { rollout: { name: "try", arm, window: 0 } };
    const { id: requestId } = request;
    metrics.accepted({ kind: "request-arrived", at: 0, request }, { kind: "routed", ...rollout } as Decision);
    metrics.accepted({ kind: "first-token", at: ttft, requestId }, undefined);
    const counts = { promptTokens: 1, cachedTokens: 0, outputTokens: 11 };
    metrics.accepted({ kind: "request-finished", at: ttft + 10 * tpot, requestId, outcome, ...counts }, undefined);
  };
  const lines = async () =>
    (await registry.metrics()).split("\n").filter((line) => line.startsWith("gnomon_slo_requests_total{"));
  return { pass, lines };
}

test("goodput is counted by class, arm, target and result", async () => {
  const { pass, lines } = rig();
  pass({ slo: SLO, sloClass: "interactive", arm: "other" });
  pass({ slo: SLO, sloClass: "interactive", arm: "other", tpot: 11 });
  pass({ slo: { ttftMicros: 50 } });
  pass({ slo: { ttftMicros: 50 }, outcome: "aborted" });
  pass({ slo: { ttftMicros: 500 }, outcome: "refused" });
  pass({});
  const row = (sloClass: string, arm: string, target: string, result: string, count: number) =>
    `gnomon_slo_requests_total{slo_class="${sloClass}",arm="${arm}",target="${target}",result="${result}"} ${count}`;
  assert.deepEqual((await lines()).toSorted(), [
    row("", "", "all", "missed", 2),
    row("", "", "ttft", "missed", 2),
    row("interactive", "try/other", "all", "met", 1),
    row("interactive", "try/other", "all", "missed", 1),
    row("interactive", "try/other", "tpot", "met", 1),
    row("interactive", "try/other", "tpot", "missed", 1),
    row("interactive", "try/other", "ttft", "met", 2),
  ]);
});

test("clients that name classes without end do not make series without end", async () => {
  const { pass, lines } = rig();
  for (let i = 0; i < 200; i++) pass({ slo: { ttftMicros: 500 }, sloClass: `class-${i}` });
  const all = (await lines()).filter((line) => line.includes('target="all"'));
  assert.ok(all.length <= 64, `${all.length} series`);
  const counted = all.reduce((sum, line) => sum + Number(line.split(" ").at(-1)), 0);
  assert.equal(counted, 200);
});
