import type { Decision } from "#core/input/decision.ts";
import type { Fault } from "#core/endpoint/fault.ts";
import type { Outcome } from "#core/endpoint/outcome.ts";
import type { Input } from "#core/input/input.ts";
import { type Random, randomFor } from "#core/base/random.ts";
import type { Router } from "#core/router.ts";
import { chain, load, request } from "./state.ts";

export interface Step {
  readonly input: Input;
  readonly decision: Decision | undefined;
}

interface Live {
  readonly id: string;
  routed: boolean;
  started: boolean;
  /** Another endpoint computes its prompt, as far as is known. */
  prefills: boolean;
}

const FAULTS: readonly Fault[] = ["connect", "status", "saturated", "draining", "cut", "timeout", "garbage", "hung"];
const STAGES_FAILED = ["attempt-failed", "prefill-failed", "transfer-failed"] as const;
const OUTCOMES: readonly Outcome[] = ["ok", "ok", "ok", "failed", "aborted", "timeout"];

/**
 * Drives a router with drawn traffic: arrivals, first tokens, progress, failed attempts with and without a retry, every
 * outcome, endpoints that come, go and are cordoned, scrapes. Ends by finishing all that is in flight.
 */
export function drawTraffic(
  router: Router,
  seed: number,
  steps: number,
  endpoints = 4,
  labelsOf: (endpoint: string) => Readonly<Record<string, string>> = () => ({}),
): Step[] {
  const random = randomFor(seed, 0);
  const log: Step[] = [];
  const live: Live[] = [];
  const joined = new Set<string>();
  let at = 0;
  let requests = 0;
  const accept = (input: Input) => {
    const decision = router.accept(input);
    log.push({ input, decision });
    return decision;
  };
  const name = () => `e${random.below(endpoints)}`;
  const toggleEndpoint = () => {
    const id = name();
    if (joined.delete(id)) accept({ kind: "endpoint-left", at, endpoint: id });
    else {
      joined.add(id);
      accept({
        kind: "endpoint-joined",
        at,
        endpoint: { id, models: ["m"], labels: labelsOf(id), kvCapacityTokens: 640, concurrencyMax: 8 },
      });
    }
  };
  const decide = (entry: Live, decision: Decision | undefined) => {
    entry.routed = decision?.kind === "routed";
    entry.started = false;
    entry.prefills = decision?.kind === "routed" && decision.prefill !== undefined;
  };
  const arrive = () => {
    const entry: Live = { id: `r${requests++}`, routed: false, started: false, prefills: false };
    live.push(entry);
    const asked = request({
      id: entry.id,
      blocks: chain(random.below(8), random.below(10)),
      session: `s${random.below(5)}`,
      sequences: 1 + random.below(2),
    });
    decide(entry, accept({ kind: "request-arrived", at, request: asked }));
  };
  const finish = (entry: Live) => {
    live.splice(live.indexOf(entry), 1);
    const outcome = entry.routed ? OUTCOMES[random.below(OUTCOMES.length)]! : "refused";
    accept({
      kind: "request-finished",
      at,
      requestId: entry.id,
      outcome,
      promptTokens: 40,
      cachedTokens: 16,
      outputTokens: 1 + random.below(30),
    });
  };
  for (let i = 0; i < endpoints; i++) toggleEndpoint();
  for (let i = 0; i < steps; i++) {
    at += random.below(20_000);
    const entry = live[random.below(Math.max(1, live.length))];
    const roll = random.below(100);
    if (roll < 35 || entry === undefined) arrive();
    else if (roll < 50) progress(entry, random, at, accept);
    else if (roll < 60 && entry.routed && !entry.started) {
      const fault = FAULTS[random.below(FAULTS.length)]!;
      const { id: requestId } = entry;
      const kind = entry.prefills ? STAGES_FAILED[random.below(STAGES_FAILED.length)]! : "attempt-failed";
      accept(kind === "transfer-failed" ? { kind, at, requestId } : { kind, at, requestId, fault });
      entry.routed = false;
      if (random.below(3) > 0) decide(entry, accept({ kind: "request-retried", at, requestId: entry.id }));
    } else if (roll < 80) finish(entry);
    else if (roll < 94) {
      accept({
        kind: "load-observed",
        at,
        endpoint: name(),
        load: load({ running: random.below(9), waiting: random.below(5), kvUtilization: random.next() }),
      });
    } else if (roll < 94.2) {
      const asleep = random.below(2) === 0;
      accept({ kind: "endpoint-slept", at, endpoint: name(), asleep, ...(asleep && { emptied: true }) });
    } else if (roll < 94.5) accept({ kind: "endpoint-checked", at, endpoint: name(), healthy: random.below(2) === 0 });
    else if (roll < 95) accept({ kind: "endpoint-suspended", at, endpoint: name(), reason: "silent" });
    else if (roll < 96) accept({ kind: "endpoint-resumed", at, endpoint: name(), servedUntilWell: random.below(4) });
    else if (roll < 97)
      accept({ kind: random.below(2) === 0 ? "endpoint-cordoned" : "endpoint-uncordoned", at, endpoint: name() });
    else toggleEndpoint();
  }
  while (live[0] !== undefined) finish(live[0]);
  return log;
}

function progress(entry: Live, random: Random, at: number, accept: (input: Input) => unknown): void {
  if (!entry.routed) return;
  if (entry.prefills && random.below(4) > 0) {
    accept({ kind: "prefill-finished", at, requestId: entry.id, cachedTokens: random.below(40) });
    entry.prefills = false;
    return;
  }
  if (entry.started) accept({ kind: "progress", at, requestId: entry.id, outputTokens: 1 + random.below(40) });
  else accept({ kind: "first-token", at, requestId: entry.id });
  entry.started = true;
}
