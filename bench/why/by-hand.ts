import { MICROS_PER_MILLI } from "#core/base/units.ts";
import type { RequestArrived } from "#core/input/input.ts";
import type { RecordedDecision } from "#trace/codec/record.ts";
import { TraceReader } from "#trace/reader.ts";

/** What the records of a trace say of one request, read one by one and without `why`. */
export interface ReadByHand {
  readonly id: string;
  readonly tenant: string;
  readonly endpoint: string;
  readonly ttftMillis: number;
  readonly promptTokens: number;
  readonly cachedTokens: number;
  /** By endpoint, the tokens that the gateway believed to be there. */
  readonly believed: Readonly<Record<string, number>>;
  /** Tokens of other prompts whose first tokens its endpoint gave between its arrival and its own first token. */
  readonly others: readonly { readonly id: string; readonly tenant: string; readonly computed: number }[];
}

const BELIEVED_TOKENS_MIN = 256;

interface Life {
  readonly arrived: RequestArrived;
  readonly decision: RecordedDecision | undefined;
  firstAt: number;
  cachedTokens: number;
}

/**
 * The request of a trace whose first token came last, of others than this tenant; where `believed`, of those of which the
 * gateway believed more to be there than was.
 */
export async function slowestByHand(trace: string, but: string, believed: boolean): Promise<ReadByHand> {
  const lives = new Map<string, Life>();
  for await (const item of new TraceReader(trace).items()) {
    if (item.kind !== "record") continue;
    const { input, decision } = item;
    if (input.kind === "request-arrived")
      lives.set(input.request.id, { arrived: input, decision, firstAt: NaN, cachedTokens: 0 });
    else if (input.kind === "first-token") {
      const life = lives.get(input.requestId);
      if (life !== undefined && Number.isNaN(life.firstAt)) life.firstAt = input.at;
    } else if (input.kind === "request-finished") {
      const life = lives.get(input.requestId);
      if (life !== undefined) life.cachedTokens = input.cachedTokens ?? 0;
    }
  }
  const all = [...lives.values()].filter(({ firstAt }) => !Number.isNaN(firstAt));
  const slowest = all
    .filter(({ arrived }) => arrived.request.tenant !== but)
    .sort((a, b) => b.firstAt - b.arrived.at - (a.firstAt - a.arrived.at))
    .map((one) => readOf(one, all))
    .find((one) => !believed || one.believed[one.endpoint]! >= one.cachedTokens + BELIEVED_TOKENS_MIN);
  if (slowest === undefined) throw new Error(`${trace} has no such request`);
  return slowest;
}

function readOf({ arrived, decision, firstAt, cachedTokens }: Life, all: readonly Life[]): ReadByHand {
  const { id, tenant, promptTokens } = arrived.request;
  const endpoint = endpointOf(decision);
  const candidates = decision?.kind === "routed" ? decision.breakdown.candidates : [];
  return {
    id,
    tenant,
    endpoint,
    ttftMillis: (firstAt - arrived.at) / MICROS_PER_MILLI,
    promptTokens,
    cachedTokens,
    believed: Object.fromEntries(candidates.map((one) => [one.endpoint, Math.round(one.hitTokens)])),
    others: all
      .filter((other) => other.arrived.request.id !== id && endpointOf(other.decision) === endpoint)
      .filter((other) => other.firstAt > arrived.at && other.firstAt <= firstAt)
      .map((other) => ({
        id: other.arrived.request.id,
        tenant: other.arrived.request.tenant,
        computed: other.arrived.request.promptTokens - other.cachedTokens,
      })),
  };
}

function endpointOf(decision: RecordedDecision | undefined): string {
  return decision?.kind === "routed" ? decision.endpoint : "";
}
