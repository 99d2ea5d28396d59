import { ApproximateIndex } from "#core/prefix/approximate.ts";
import type { Input } from "#core/input/input.ts";
import { Router } from "#core/router.ts";
import { TraceReader } from "#trace/reader.ts";
import type { TraceHeader, TraceRecord } from "#trace/codec/record.ts";

/** One request of a trace: what either mind expected where it went, and what its engine reported. All in tokens. */
export interface MindsRow {
  readonly requestId: string;
  /** Microseconds of the trace. */
  readonly at: number;
  readonly endpoint: string;
  readonly source: "precise" | "approximate";
  readonly promptTokens: number;
  /** What the gateway expected, by the source. */
  readonly expected: number;
  /** What an approximate index would have expected there, after the same requests. */
  readonly guessed: number;
  readonly reported: number;
  /** Prompt tokens of the gateway's other requests that were under way there. */
  readonly inFlightTokens: number;
}

/** What a trace's engine events cost. */
export interface ReportCost {
  inputs: number;
  blocks: number;
}

/** Reads a trace whose gateway followed KV events; its requests go again to where they went, without any events. */
export async function minds(path: string): Promise<{ rows: MindsRow[]; cost: ReportCost }> {
  const rows: MindsRow[] = [];
  const cost = { inputs: 0, blocks: 0 };
  const open = new Map<string, Omit<MindsRow, "reported">>();
  let blind: Router | undefined;
  for await (const item of new TraceReader(path).items()) {
    if (item.kind === "run") blind = blindRouter(item.header);
    if (item.kind !== "record") continue;
    const { input } = item;
    if (isReport(input)) {
      cost.inputs++;
      if ("hashes" in input) cost.blocks += input.hashes.length / 2;
      continue;
    }
    const guessed = blind === undefined ? 0 : guessOf(blind, item);
    const { decision } = item;
    // A request that went to another endpoint is compared there, where it was answered.
    if (decision?.kind === "routed") {
      const { requestId, endpoint, prefixSource: source, hitTokens, heldTokens: expected = hitTokens } = decision;
      const promptTokens =
        input.kind === "request-arrived" ? input.request.promptTokens : open.get(requestId)?.promptTokens;
      open.delete(requestId);
      const inFlight = [...open.values()].filter((row) => row.endpoint === endpoint);
      const inFlightTokens = inFlight.reduce((sum, row) => sum + row.promptTokens, 0);
      if (promptTokens !== undefined)
        open.set(requestId, {
          requestId,
          at: input.at,
          endpoint,
          source,
          promptTokens,
          expected,
          guessed,
          inFlightTokens,
        });
    }
    if (input.kind !== "request-finished") continue;
    const row = open.get(input.requestId);
    open.delete(input.requestId);
    if (row !== undefined && input.outcome === "ok" && input.cachedTokens !== undefined)
      rows.push({ ...row, reported: input.cachedTokens });
  }
  return { rows, cost };
}

function isReport(input: Input): boolean {
  return input.kind.startsWith("kv-events-") || (input.kind.startsWith("blocks-") && !isRestart(input));
}

function isRestart(input: Input): boolean {
  return input.kind === "blocks-cleared" && input.inOrder !== true;
}

function guessOf(blind: Router, { input, decision }: TraceRecord): number {
  const forced = decision?.kind === "routed" ? decision.endpoint : undefined;
  const made =
    input.kind === "request-arrived" || input.kind === "request-retried"
      ? blind.accept(input, forced)
      : blind.accept(input);
  return made?.kind === "routed" ? made.hitTokens : 0;
}

function blindRouter({ router: { breaker, ...settings } }: TraceHeader): Router {
  const options = { ...settings, index: new ApproximateIndex() };
  return new Router(breaker === undefined ? options : { ...options, breaker });
}
