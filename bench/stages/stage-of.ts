import type { Profiler } from "node:inspector";

/** Stages by where code is, the first that fits: files below src, packages, and Node's own modules. */
const STAGES: readonly (readonly [place: RegExp, stage: string])[] = [
  [/\/src\/live\/(json-scan|request\/(parse-|known-bodies|prompt-limits|lax-|truncation))/, "body: scan, JSON"],
  [/\/src\/live\/tokenizer\/bpe\//, "tokens of new text"],
  [/\/src\/live\/tokenizer\//, "memo of prefixes"],
  [/\/src\/core\/prompt\//, "block hashes"],
  [/\/src\/core\/prefix\//, "decision: prefix index"],
  [/\/src\/core\//, "decision: the rest"],
  [
    /\/src\/live\/(metrics|status|recorder|log|router-tap|scrape|discovery|rollout)|\/src\/shadow\/|prom-client/,
    "metrics, what is kept",
  ],
  [/\/src\/live\/(answer\/client-writer)/, "answer: write"],
  [/\/src\/live\/(answer|continuation|upstream\/(answer-delivery|token-progress))/, "answer: read events"],
  [/\/src\/live\/upstream\/|\/undici\/|^wasm:/, "to and from the engine"],
  [/\/src\/core\/path\//, "state of the request"],
  [/\/src\/live\/|\/src\/serve\/|\/hono\/|@hono/, "request: head, identity"],
];

/** Node's own code below none of these: where nothing of the above called it. */
const SOCKETS: readonly (readonly [place: RegExp, stage: string])[] = [
  [/^node:_http|^node:internal\/(http|streams)/, "node: HTTP and streams"],
  [/^node:net|^node:internal\/stream_base|^node:dgram/, "node: sockets"],
  [/^node:/, "node: the rest"],
];

const GC = "garbage collection";
const NATIVE = "native: kernel, event loop, V8";

export interface StageShare {
  readonly stage: string;
  /** Of the time that the thread ran, in [0, 1]. */
  readonly share: number;
}

/** A sample stands for no more: what is above that is time in which the thread waited for a core that others had. */
const SAMPLE_MICROS_MAX = 1_000;

/**
 * Where the time of a profile went. Node's code counts for whoever called it: writing to the client's socket is a part of
 * the answer, and to the engine's of its connection. Time without work is left out.
 */
export function stageShares({ nodes, samples = [], timeDeltas = [] }: Profiler.Profile): StageShare[] {
  const stages = stageById(nodes);
  const micros = new Map<string, number>();
  let total = 0;
  for (const [i, sample] of samples.entries()) {
    const stage = stages.get(sample)!;
    if (stage === "idle") continue;
    const delta = Math.min(SAMPLE_MICROS_MAX, timeDeltas[i] ?? 0);
    micros.set(stage, (micros.get(stage) ?? 0) + delta);
    total += delta;
  }
  return [...micros].map(([stage, time]) => ({ stage, share: time / total })).sort((a, b) => b.share - a.share);
}

function stageById(nodes: readonly Profiler.ProfileNode[]): ReadonlyMap<number, string> {
  const stages = new Map<number, string>();
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const visit = (node: Profiler.ProfileNode, above: string | undefined): void => {
    const own = ownStage(node.callFrame, above);
    stages.set(node.id, own);
    for (const child of node.children ?? []) visit(byId.get(child)!, own === NATIVE ? undefined : own);
  };
  visit(nodes[0]!, undefined);
  return stages;
}

function ownStage({ functionName, url }: Profiler.ProfileNode["callFrame"], above: string | undefined): string {
  if (functionName === "(idle)") return "idle";
  if (functionName === "(garbage collector)") return GC;
  if (functionName === "(program)" || functionName === "(root)") return NATIVE;
  const found = STAGES.find(([place]) => place.test(url));
  if (found !== undefined) return found[1];
  const called = above !== undefined && !above.startsWith("node:");
  return called ? above : (SOCKETS.find(([place]) => place.test(url))?.[1] ?? above ?? NATIVE);
}
