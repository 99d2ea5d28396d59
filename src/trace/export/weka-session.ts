import { MICROS_PER_MILLI, MICROS_PER_SECOND } from "#core/base/units.ts";
import type { TrafficRequest } from "../transform/traffic.ts";
import type { WorkloadRequest } from "../workload-request.ts";

/** One of WEKA's session files, as kv-cache-tester reads it; times are seconds from the session's start. */
export interface WekaSessionFile {
  readonly id: string;
  readonly models: readonly string[];
  readonly block_size: number;
  readonly hash_id_scope: "global";
  readonly tool_tokens: 0;
  readonly system_tokens: 0;
  readonly requests: readonly WekaEntry[];
  readonly totals: object;
}

interface WekaCall {
  readonly t: number;
  /** Streamed, with a time of its first token, or not. */
  readonly type: "s" | "n";
  readonly model: string;
  readonly in: number;
  readonly out: number;
  readonly hash_ids: readonly number[];
  readonly input_types: readonly string[];
  readonly output_types: readonly string[];
  readonly stop: string;
  readonly api_time: number;
  readonly ttft?: number;
  readonly think_time: number;
}

interface WekaSubagent {
  /** Of its end where its parent waited for it, else of its launch. */
  readonly t: number;
  readonly type: "subagent";
  readonly agent_id: string;
  readonly subagent_type: string;
  readonly tool_tokens: 0;
  readonly system_tokens: 0;
  readonly duration_ms?: number;
  readonly status?: "async_launched";
  readonly requests: readonly WekaEntry[];
}

type WekaEntry = WekaCall | WekaSubagent;

/** Block ids as small numbers, the same for the same content in all files of an export. */
export class WekaBlockIds {
  readonly #known = new Map<number, number>();
  #next = 1;

  /** One id per full block of the prompt; blocks that the workload does not know are this request's own. */
  of({ blockIds, blockTokens, promptTokens }: WorkloadRequest): number[] {
    return Array.from({ length: Math.floor(promptTokens / wholeBlockTokens(blockTokens)) }, (_, i) => {
      const id = blockIds?.[i];
      const known = id === undefined ? undefined : this.#known.get(id);
      if (known !== undefined) return known;
      if (id !== undefined) this.#known.set(id, this.#next);
      return this.#next++;
    });
  }
}

/** The format knows whole tokens alone; blocks of bytes have a number of tokens that was learned, such as 15.998. */
function wholeBlockTokens(blockTokens: number): number {
  return Math.max(1, Math.round(blockTokens));
}

/**
 * The conversations of a group (as `conversations` makes them), each with those that its turns start: what the importer
 * reads as the same workload but for its arrival, for which the format has no place. A service time that was not
 * observed is 0, so that think times are what they were.
 */
export function* wekaSessions(group: readonly TrafficRequest[], ids: WekaBlockIds): Generator<WekaSessionFile> {
  const turns = new Map<string, TrafficRequest[]>();
  for (const one of group) {
    const list = turns.get(one.request.session);
    if (list === undefined) turns.set(one.request.session, [one]);
    else list.push(one);
  }
  const isRoot = ({ request: { parent } }: TrafficRequest): boolean =>
    parent === undefined || !turns.has(parent.session);
  for (const [id, own] of turns) {
    const first = own[0]!;
    if (!isRoot(first)) continue;
    const { entries, total } = new SessionWriter(turns, ids).conversation(id);
    yield {
      id,
      models: [...new Set(total.models)],
      block_size: wholeBlockTokens(first.request.blockTokens),
      hash_id_scope: "global",
      tool_tokens: 0,
      system_tokens: 0,
      requests: entries,
      totals: {
        parent_tokens: tokensOf(own),
        combined_tokens: { input: total.input, output: total.output },
        subagent_count: total.subagents,
      },
    };
  }
}

function tokensOf(own: readonly TrafficRequest[]): object {
  const sum = (of: (one: WorkloadRequest) => number): number => own.reduce((all, { request }) => all + of(request), 0);
  return { input: sum(({ promptTokens }) => promptTokens), output: sum(({ outputTokens }) => outputTokens) };
}

class SessionWriter {
  readonly #turns: ReadonlyMap<string, readonly TrafficRequest[]>;
  readonly #ids: WekaBlockIds;
  readonly #total = { input: 0, output: 0, subagents: 0, models: new Set<string>() };

  constructor(turns: ReadonlyMap<string, readonly TrafficRequest[]>, ids: WekaBlockIds) {
    this.#turns = turns;
    this.#ids = ids;
  }

  conversation(session: string) {
    const entries: WekaEntry[] = [];
    const own = this.#turns.get(session)!;
    /** Ends of sub-agents that are waited for, in microseconds from this conversation's start. */
    const ends = new Map<string, number>();
    const joined = new Set(own.flatMap(({ request }) => request.joins));
    const startMicros = own[0]!.request.arrivalMicros;
    let endMicros = 0;
    for (const [i, one] of own.entries()) {
      const { thinkMicros, arrivalMicros, joins, turn } = one.request;
      const after = Math.max(endMicros, ...joins.map((name) => ends.get(name) ?? 0));
      const thinks = thinkMicros ?? Math.max(0, arrivalMicros - startMicros - after);
      const at = i === 0 ? 0 : after + thinks;
      entries.push(this.#call(one, at, i === 0 ? 0 : thinks));
      endMicros = at + serviceMicros(one);
      for (const [name, [first]] of this.#turns) {
        if (first!.request.parent?.session !== session || !spawnedAt(first!.request, turn, own[i + 1])) continue;
        const subagent = this.#subagent(session, name, endMicros, joined.has(name));
        ends.set(name, subagent.t * MICROS_PER_SECOND);
        entries.push(subagent);
      }
    }
    return { entries, endMicros: Math.max(endMicros, ...ends.values()), total: this.#total };
  }

  #subagent(session: string, name: string, spawnedMicros: number, isJoined: boolean): WekaSubagent {
    this.#total.subagents++;
    const launch = spawnedMicros + (this.#turns.get(name)![0]!.request.thinkMicros ?? 0);
    const { entries, endMicros } = this.conversation(name);
    return {
      t: (isJoined ? launch + endMicros : launch) / MICROS_PER_SECOND,
      type: "subagent",
      agent_id: name.startsWith(`${session}/`) ? name.slice(session.length + 1) : name,
      subagent_type: "",
      tool_tokens: 0,
      system_tokens: 0,
      ...(isJoined ? { duration_ms: endMicros / MICROS_PER_MILLI } : { status: "async_launched" }),
      requests: entries,
    };
  }

  #call({ request, observed }: TrafficRequest, at: number, thinkMicros: number): WekaCall {
    const { promptTokens, outputTokens, model } = request;
    const ttft = observed?.ttftMicros;
    this.#total.input += promptTokens;
    this.#total.output += outputTokens;
    this.#total.models.add(model);
    return {
      t: at / MICROS_PER_SECOND,
      type: ttft === undefined || Number.isNaN(ttft) ? "n" : "s",
      model,
      in: promptTokens,
      out: outputTokens,
      hash_ids: this.#ids.of(request),
      input_types: [],
      output_types: [],
      stop: "",
      api_time: serviceMicros({ observed }) / MICROS_PER_SECOND,
      ...(ttft !== undefined && !Number.isNaN(ttft) && { ttft: ttft / MICROS_PER_SECOND }),
      think_time: thinkMicros / MICROS_PER_SECOND,
    };
  }
}

/** It was started by that turn, or by one that is not there between it and the `next` one. */
function spawnedAt({ parent }: WorkloadRequest, turn: number, next: TrafficRequest | undefined): boolean {
  if (parent === undefined) return false;
  return parent.turn >= turn && (next === undefined || parent.turn < next.request.turn);
}

function serviceMicros({ observed }: Pick<TrafficRequest, "observed">): number {
  const micros = observed?.e2eMicros ?? 0;
  return Number.isNaN(micros) ? 0 : micros;
}
