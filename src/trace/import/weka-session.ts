import { nameHash } from "#core/base/random.ts";
import { MICROS_PER_SECOND, type Micros } from "#core/base/units.ts";
import { LENGTHS_ONLY, type WorkloadRequest } from "../workload-request.ts";
import { namespacedBlockId } from "./block-id.ts";
import type { ImportReport } from "./import-report.ts";
import { serviceTimeEstimate } from "./service-time.ts";
import { parseWekaEntry, type WekaCall, type WekaSubagent } from "./weka-entry.ts";

export interface WekaSession {
  /** Names the file in the report. */
  readonly place: string;
  readonly id: string;
  readonly blockTokens: number;
  /** Namespace of its block ids. */
  readonly namespace: number;
  readonly toolTokens: number;
  readonly systemTokens: number;
  readonly startMicros: Micros;
  readonly requests: readonly unknown[];
}

/** First of the namespaces that hold prefixes common to all sessions, one a kind of agent. */
const COMMON_NAMESPACE = 67_108_864;

interface Conversation {
  readonly session: string;
  readonly agentType: string;
  readonly prefixTokens: number;
  readonly head: Pick<WorkloadRequest, "arrivalMicros" | "parent" | "thinkMicros">;
  readonly requests: readonly unknown[];
}

/**
 * The requests of one session, closed loop: a turn comes `thinkMicros` after the one before. The think time is the
 * recorded start less the recorded end of what came before, be it the previous call or a sub-agent that the parent
 * waited for. The trace's own `think_time` is not used: after a call without `api_time` it counts from the last call
 * that had one.
 */
export class WekaReplay {
  readonly #file: WekaSession;
  readonly #sharedPrefix: number;
  readonly #report: ImportReport;
  /** Block ids of this session that stand for a common prefix. */
  readonly #common = new Map<number, number>();
  readonly #agentTypes = new Set<string>();

  constructor(file: WekaSession, sharedPrefix: number, report: ImportReport) {
    this.#file = file;
    this.#sharedPrefix = sharedPrefix;
    this.#report = report;
  }

  *requestsOf(): Generator<WorkloadRequest> {
    const { id, toolTokens, systemTokens, startMicros, requests } = this.#file;
    yield* this.#conversation({
      session: id,
      agentType: "",
      prefixTokens: toolTokens + systemTokens,
      head: { arrivalMicros: startMicros, parent: undefined, thinkMicros: undefined },
      requests,
    });
  }

  *#conversation(conversation: Conversation): Generator<WorkloadRequest, number> {
    const entries = this.#entries(conversation);
    const estimate = serviceTimeEstimate(
      entries.flatMap((entry) =>
        entry.kind === "call" && entry.serviceSeconds !== undefined
          ? [{ outputTokens: entry.outputTokens, seconds: entry.serviceSeconds }]
          : [],
      ),
    );
    let turn = 0;
    let callEndSeconds = 0;
    let joinedEndSeconds = 0;
    let joins: string[] = [];
    for (const entry of entries) {
      if (entry.kind === "subagent") {
        const session = `${conversation.session}/${entry.name}`;
        const sent = yield* this.#conversation(this.#spawned(entry, session, conversation, turn, callEndSeconds));
        if (sent === 0 || entry.endSeconds === undefined) continue;
        joins.push(session);
        joinedEndSeconds = Math.max(joinedEndSeconds, entry.endSeconds);
        continue;
      }
      const follows = {
        arrivalMicros: 0,
        parent: undefined,
        thinkMicros: between(Math.max(callEndSeconds, joinedEndSeconds), entry.startSeconds),
      };
      yield this.#request(entry, conversation, turn, turn === 0 ? conversation.head : follows, joins);
      if (entry.serviceSeconds === undefined) this.#report.adjust("service time estimated, api_time is absent");
      callEndSeconds = entry.startSeconds + (entry.serviceSeconds ?? estimate(entry.outputTokens));
      joins = [];
      turn++;
    }
    return turn;
  }

  #spawned(
    entry: WekaSubagent,
    session: string,
    parent: Conversation,
    parentTurns: number,
    parentEndSeconds: number,
  ): Conversation {
    const alone = parentTurns === 0;
    return {
      session,
      agentType: entry.type === "" ? "subagent" : entry.type,
      prefixTokens: entry.toolTokens + entry.systemTokens,
      head: {
        arrivalMicros: alone ? this.#file.startMicros + between(0, entry.launchSeconds) : 0,
        parent: alone ? undefined : { session: parent.session, turn: parentTurns - 1 },
        thinkMicros: alone ? undefined : between(parentEndSeconds, entry.launchSeconds),
      },
      requests: entry.requests,
    };
  }

  #entries(conversation: Conversation): (WekaCall | WekaSubagent)[] {
    const entries: (WekaCall | WekaSubagent)[] = [];
    for (const [i, raw] of conversation.requests.entries()) {
      const entry = parseWekaEntry(raw);
      const wrong = typeof entry === "string" ? entry : this.#blockCountFault(entry);
      if (typeof entry === "string" || entry.kind === "call") this.#report.records++;
      if (wrong !== undefined) this.#report.refuse(`${this.#file.place} ${conversation.session}[${i}]`, wrong);
      else if (typeof entry !== "string") entries.push(entry);
    }
    const first = entries.find((entry) => entry.kind === "call");
    if (first !== undefined) this.#shareCommon(conversation, first.hashIds);
    return entries;
  }

  /** The published sessions have ids for full blocks only; a last id for the partial block is accepted too. */
  #blockCountFault(entry: WekaCall | WekaSubagent): string | undefined {
    if (entry.kind === "subagent") return undefined;
    const blocks = entry.promptTokens / this.#file.blockTokens;
    const fits = entry.hashIds.length === Math.floor(blocks) || entry.hashIds.length === Math.ceil(blocks);
    return fits ? undefined : "hash_ids does not have one id per block of the prompt";
  }

  #shareCommon(conversation: Conversation, hashIds: readonly number[]): void {
    if (this.#agentTypes.has(conversation.agentType)) return;
    this.#agentTypes.add(conversation.agentType);
    const blocks = Math.floor((conversation.prefixTokens * this.#sharedPrefix) / this.#file.blockTokens);
    const namespace = COMMON_NAMESPACE + (nameHash(conversation.agentType) % COMMON_NAMESPACE);
    for (const [i, id] of hashIds.slice(0, blocks).entries()) this.#common.set(id, namespacedBlockId(namespace, i));
  }

  #request(
    call: WekaCall,
    { session }: Conversation,
    turn: number,
    start: Conversation["head"],
    joins: readonly string[],
  ): WorkloadRequest {
    if (call.outputTokens === 0) this.#report.adjust("output of 0 tokens raised to 1");
    const { namespace, blockTokens } = this.#file;
    return {
      ...LENGTHS_ONLY,
      ...start,
      index: this.#report.accept(),
      session,
      turn,
      joins,
      promptTokens: call.promptTokens,
      outputTokens: Math.max(1, call.outputTokens),
      blockIds: Float64Array.from(call.hashIds, (id) => this.#common.get(id) ?? namespacedBlockId(namespace, id)),
      blockTokens,
      model: call.model,
    };
  }
}

function between(fromSeconds: number, toSeconds: number): Micros {
  return Math.max(0, Math.round((toSeconds - fromSeconds) * MICROS_PER_SECOND));
}
