import { readFileSync } from "node:fs";
import { join } from "node:path";
import { servePlan } from "#cli/serve/serve-options.ts";
import type { Input, RequestArrived } from "#core/input/input.ts";
import { newRouter, routerSettings } from "#serve/policy/live-router.ts";
import { promptText, type Step } from "./steps.ts";
import { load } from "../../core/state.ts";
import { startedGateway } from "../started-gateway.ts";

const STEP_MICROS = 50_000;

/** What a decision of theirs is to the profile of ours, which had everything where they had put it until then. */
export interface Compared {
  readonly id: string;
  readonly session: string | undefined;
  readonly theirs: number;
  /** The endpoints that ours holds for equally good. */
  readonly best: readonly number[];
}

/** A sample that record-sample.ts recorded. */
function readSample(name: string): { readonly engines: number; readonly steps: readonly Step[] } {
  const text = readFileSync(join(import.meta.dirname, `../../golden/migrate/${name}.jsonl`), "utf8");
  const [head, ...steps] = text
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as unknown);
  return { ...(head as { readonly engines: number }), steps: steps as Step[] };
}

/**
 * Every request of a sample goes over HTTP to a gateway with this configuration, and what it makes of it, as its router
 * gets it, to a router of the same configuration with the sample's engines, where each decision of theirs is forced.
 */
export async function decideAgain(
  name: string,
  config: string,
  environment: Readonly<Record<string, string>>,
  headers: Readonly<Record<string, string>>,
): Promise<Compared[]> {
  const { engines, steps } = readSample(name);
  const plan = servePlan({ config, set: ["listen.drainNoticeMillis=0"] }, environment);
  const asked = await askedOf(plan, environment, headers, steps);
  const router = newRouter(routerSettings(plan));
  for (let i = 0; i < engines; i++) {
    const endpoint = { id: `e${i}`, models: [], labels: {}, kvCapacityTokens: 1_600_000, concurrencyMax: undefined };
    router.accept({ kind: "endpoint-joined", at: 0, endpoint });
  }
  const compared: Compared[] = [];
  for (const [i, step] of steps.entries()) {
    const at = (i + 1) * STEP_MICROS;
    for (const input of inputsOf(step, at, asked)) {
      if (!("ask" in step) || input.kind !== "request-arrived") {
        router.accept(input);
        continue;
      }
      const { totals, candidates } = router.accept(input, `e${step.chose}`).breakdown;
      const highest = Math.max(...totals.filter((total) => !Number.isNaN(total)));
      const best = candidates.flatMap((_, at) => (totals[at]! > highest - 1e-9 ? [at] : []));
      compared.push({ id: step.ask, session: step.session, theirs: step.chose, best });
    }
  }
  return compared;
}

/** What a gateway's router is given for each request of the sample; it has no endpoint, and refuses them all. */
async function askedOf(
  plan: ReturnType<typeof servePlan>,
  environment: Readonly<Record<string, string>>,
  headers: Readonly<Record<string, string>>,
  steps: readonly Step[],
): Promise<Map<string, RequestArrived>> {
  const stack = await startedGateway(plan, environment);
  try {
    let last: RequestArrived | undefined;
    stack.intake.listen({
      accepted: (input) => {
        if (input.kind === "request-arrived") last = input;
      },
    });
    const { url } = await stack.gateway.listen("127.0.0.1", 0);
    const asked = new Map<string, RequestArrived>();
    for (const step of steps) {
      if (!("ask" in step)) continue;
      const response = await fetch(`${url}/v1/completions`, {
        method: "POST",
        headers: { "content-type": "application/json", ...headers, ...(step.session && { "x-user-id": step.session }) },
        body: JSON.stringify({ model: "llama", prompt: promptText(step.prompt), max_tokens: 1 }),
      });
      const text = await response.text();
      if (last === undefined) throw new Error(`${step.ask}: ${response.status} ${text}`);
      asked.set(step.ask, { ...last, request: { ...last.request, id: step.ask } });
      last = undefined;
    }
    return asked;
  } finally {
    await stack.close();
  }
}

function inputsOf(step: Step, at: number, asked: ReadonlyMap<string, RequestArrived>): Input[] {
  if ("ask" in step) return [{ ...asked.get(step.ask)!, at }];
  if ("end" in step) {
    const counts = { promptTokens: undefined, cachedTokens: undefined, outputTokens: 1 };
    return [
      { kind: "first-token", at, requestId: step.end },
      { kind: "request-finished", at, requestId: step.end, outcome: "ok", ...counts },
    ];
  }
  return step.load.map(([waiting, running, kvUtilization], i) => ({
    kind: "load-observed",
    at,
    endpoint: `e${i}`,
    load: load({ waiting, running, kvUtilization }),
  }));
}
