import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { type TestContext, test } from "node:test";
import { whatIfCommand } from "#cli/what-if/what-if.ts";
import { inProcess } from "../in-process.ts";
import { emulatedHere } from "./emulated-here.ts";
import { gatewayHere } from "./gateway-here.ts";

const SERVE = ["--port", "0", "--log-level", "info"];

/** A gateway that answers some requests; its log. */
async function served(t: TestContext, ...flags: readonly string[]): Promise<string> {
  const [engine = ""] = await emulatedHere(t, 1);
  const { url, log, stop } = await gatewayHere(t, [...SERVE, "--endpoint", engine, ...flags]);
  for (let i = 0; i < 8; i++) {
    const body = JSON.stringify({
      model: "llama-3.1-8b",
      messages: [{ role: "user", content: `${i}` }],
      max_tokens: 8,
    });
    const headers = { "content-type": "application/json" };
    await (await fetch(`${url}/v1/chat/completions`, { method: "POST", headers, body })).text();
    await setTimeout(100);
  }
  await stop();
  return log();
}

test("a gateway reads gauges as its profile states, warns where it may not, and what-if reads from its trace which it had", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "gnomon-signals-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const [own, slow] = [join(folder, "own"), join(folder, "slow")];
  const log = await served(t, "--profile", "llm-d", "--record", own);
  assert.match(log, /"event":"signals","intervalMillis":50/);
  assert.doesNotMatch(log, /signals-slow/);
  const warned = await served(t, "--profile", "llm-d", "--scrape-interval", "150", "--record", slow);
  assert.match(warned, /"event":"signals-slow".*llm-d is made for gauges every 50 ms.*every 150 ms/);
  for (const [trace, millis] of [
    [own, 50],
    [slow, 150],
  ] as const) {
    const { notes } = await inProcess(
      t,
      [whatIfCommand()],
      ["what-if", trace, "--profile", "gnomon", "--threads", "1"],
    );
    // A busy machine may be late for some of them.
    const [, found] = /^note: llm-d: gauges every (\d+) ms, 5 ms late \(as the trace shows\)$/m.exec(notes) ?? [];
    assert.ok(Math.abs(Number(found) - millis) <= millis / 5, notes);
    assert.match(notes, /^note: gnomon: gauges every 1000 ms/m);
  }
});
