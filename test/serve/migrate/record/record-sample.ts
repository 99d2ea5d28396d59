/**
 * Records what another router decides under the configuration that docs/migrate.md prints for it, as a sample that
 * decides.test.ts decides again by the same page's configuration of gnomon:
 *
 *     npx node test/serve/migrate/record/record-sample.ts --router NAME --command PROGRAM --version TEXT
 *
 * NAME: llm-d, production-stack, SMG, LiteLLM or nginx; PROGRAM: `epp`, `vllm-router`, `sglang-router` or `smg`, `litellm`,
 * `nginx`.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { endAll } from "../../../../bench/children.ts";
import { engineHost, HeldEngines } from "./held-engines.ts";
import { PickerClient } from "./picker-client.ts";
import { ROUTERS, type RunningRouter } from "./routers.ts";
import { drawSteps, promptText, type Step } from "../steps.ts";

const ENGINES = 3;
const START_MILLIS_MAX = 60_000;
/** Counts of requests in flight are kept beside the answer's way by some. */
const SETTLE_MILLIS = 40;

const { values } = parseArgs({
  options: {
    router: { type: "string" },
    command: { type: "string" },
    version: { type: "string", default: "" },
    count: { type: "string", default: "120" },
    seed: { type: "string", default: "1" },
  },
});

const { router: name = "", command = "", version } = values;
const start = ROUTERS[name];
if (start === undefined || command === "") {
  throw new Error(`--router: one of ${Object.keys(ROUTERS).join(", ")}; --command: its program`);
}
const scratch = mkdtempSync(join(tmpdir(), "gnomon-migrate-"));
const engines = new HeldEngines();
try {
  await engines.start(ENGINES);
  const isLlmD = name === "llm-d";
  const router = await start({ command, engines: engines.ports, scratch });
  const ask = isLlmD
    ? byPicker(
        new PickerClient(
          router.port,
          engines.ports.map((port, i) => `${engineHost(i)}:${port}`),
        ),
      )
    : byHttp(router);
  await ready(ask);
  const lines = [{ router: name, version, engines: ENGINES }, ...(await record(ask, isLlmD))];
  process.stdout.write(lines.map((line) => `${JSON.stringify(line)}\n`).join(""));
} finally {
  endAll();
  engines.close();
  rmSync(scratch, { recursive: true, force: true });
}
process.exit();

type Ask = (step: { readonly ask: string; readonly session?: string; readonly prompt: string }) => Promise<Asked>;
interface Asked {
  readonly chose: number;
  /** Ends it; resolves when its client has the answer. */
  readonly end: () => Promise<void>;
}

/** Until the router answers: with a request of its own, which ends at once. */
async function ready(ask: Ask): Promise<void> {
  const began = performance.now();
  for (;;) {
    try {
      await (await ask({ ask: "ready", prompt: "ready?" })).end();
      return;
    } catch (error) {
      if (performance.now() - began > START_MILLIS_MAX) throw error;
      await sleep(200);
    }
  }
}

async function record(ask: Ask, withLoads: boolean): Promise<Step[]> {
  const steps: Step[] = [];
  const open = new Map<string, Asked>();
  for (const step of drawSteps(Number(values.seed), Number(values.count), ENGINES, withLoads)) {
    if ("load" in step) {
      await engines.state(step.load);
      steps.push(step);
    } else if ("end" in step) {
      await open.get(step.end)!.end();
      open.delete(step.end);
      await sleep(SETTLE_MILLIS);
      steps.push(step);
    } else {
      const asked = await ask({ ...step, prompt: promptText(step.prompt) });
      open.set(step.ask, asked);
      await sleep(SETTLE_MILLIS);
      steps.push({ ...step, chose: asked.chose });
    }
  }
  return steps;
}

function byHttp({ port, headers }: RunningRouter): Ask {
  return async ({ ask: id, session, prompt }) => {
    const arrived = engines.next(id);
    const answer = fetch(`http://127.0.0.1:${port}/v1/completions`, {
      method: "POST",
      headers: { "content-type": "application/json", ...headers, ...(session && { "x-user-id": session }) },
      body: JSON.stringify({ model: "llama", prompt, max_tokens: 1 }),
    }).then(async (response) => ({ status: response.status, text: await response.text() }));
    const first = await Promise.race([arrived, answer]);
    if (typeof first !== "number") throw new Error(`${first.status}: ${first.text}`);
    const end = async (): Promise<void> => {
      engines.end(id);
      const { status, text } = await answer;
      if (status !== 200) throw new Error(`${status}: ${text}`);
    };
    return { chose: first, end };
  };
}

function byPicker(client: PickerClient): Ask {
  return async ({ ask: id, prompt }) => {
    const pick = await client.pick(JSON.stringify({ model: "llama", prompt, max_tokens: 1 }), id);
    return { chose: pick.engine, end: async () => pick.end() };
  };
}
