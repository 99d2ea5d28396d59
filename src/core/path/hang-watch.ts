import type { Input } from "../input/input.ts";
import type { Micros } from "../base/units.ts";
import type { EndpointId } from "../endpoint/endpoint.ts";
import {
  HangJudge,
  nothingWaits,
  type HangOptions,
  type HangVerdict,
  type ProbeResult,
  type TimedKind,
  type WaitKind,
  type WaitingThere,
} from "../endpoint/hang-judge.ts";

export interface HangWatchOptions {
  readonly judge: HangOptions;
  /** Requests that an endpoint serves one after the other before it is taken for well again. */
  readonly servedUntilWell: number;
  accept(input: Extract<Input, { kind: "endpoint-suspended" | "endpoint-resumed" }>): void;
  /** Called after the router got to know, with the requests that wait there. */
  judged?(endpoint: EndpointId, verdict: HangVerdict, requestsWaiting: number): void;
  /** What several endpoints share as ranks of one server; undefined for an endpoint of its own. */
  serverOf?(endpoint: EndpointId): string | undefined;
}

/** What `follow` is to be given. */
export const WATCHED_INPUTS: readonly Input["kind"][] = [
  "endpoint-joined",
  "endpoint-left",
  "endpoint-slept",
  "endpoint-suspended",
  "endpoint-resumed",
];

/** An endpoint of the router, and the requests there that wait for a byte as the sweep under way finds them. */
interface Watched {
  readonly id: EndpointId;
  readonly judge: HangJudge;
  /** What it shares with others as ranks of one server; undefined where it is one of its own. */
  readonly server: string | undefined;
  waiting: WaitingThere;
  requestsWaiting: number;
}

/**
 * Puts what probes and requests find to a judge per endpoint, and carries its verdicts to the router as inputs: so they
 * are in the trace. Has no clock; the host hands it every input that the router accepted (`follow`) and, in each sweep,
 * every request that waits.
 */
export class HangWatch {
  readonly #options: HangWatchOptions;
  readonly #watched = new Map<EndpointId, Watched>();
  /** Suspended in the router. */
  readonly #hung = new Set<EndpointId>();
  /** Their engines sleep: requests that wait there wait for somebody to wake them. */
  readonly #asleep = new Set<EndpointId>();
  /** Servers of several ranks from which an answer came since the last sweep. */
  readonly #aliveServers = new Set<string>();

  constructor(options: HangWatchOptions) {
    this.#options = options;
  }

  isHung(endpoint: EndpointId): boolean {
    return this.#hung.has(endpoint);
  }

  /** An input that the router accepted. */
  follow(input: Input): void {
    if (input.kind === "endpoint-suspended") this.#hung.add(input.endpoint);
    else if (input.kind === "endpoint-resumed" || input.kind === "endpoint-left") this.#hung.delete(input.endpoint);
    if (input.kind === "endpoint-left") {
      this.#watched.delete(input.endpoint);
      this.#asleep.delete(input.endpoint);
    }
    if (input.kind === "endpoint-joined") this.#watch(input.endpoint.id, input.at);
    if (input.kind !== "endpoint-slept") return;
    if (input.asleep) this.#asleep.add(input.endpoint);
    else this.#asleep.delete(input.endpoint);
    // What waited while it slept speaks against nobody.
    if (!input.asleep && !this.#hung.has(input.endpoint)) this.#watch(input.endpoint, input.at);
  }

  #watch(id: EndpointId, at: Micros): void {
    const judge = new HangJudge(this.#options.judge, at);
    const server = this.#options.serverOf?.(id);
    this.#watched.set(id, { id, judge, server, waiting: nothingWaits(), requestsWaiting: 0 });
  }

  /** A probe of an endpoint's server came to something. */
  probed(endpoint: EndpointId, result: ProbeResult, at: Micros): void {
    const watched = this.#watched.get(endpoint);
    if (watched === undefined) return;
    watched.judge.probed(at, result);
    this.#judge(watched, at);
  }

  /** A byte of an answer came since the last sweep. */
  answered(endpoint: EndpointId, at: Micros): void {
    const watched = this.#watched.get(endpoint);
    if (watched === undefined) return;
    watched.judge.answered(at);
    if (watched.server !== undefined) this.#aliveServers.add(watched.server);
  }

  /** An answer's first byte came after so long, or all of one that comes in one piece. */
  took(endpoint: EndpointId, kind: TimedKind, micros: Micros): void {
    this.#watched.get(endpoint)?.judge.took(kind, micros);
  }

  sweepBegins(): void {
    for (const watched of this.#watched.values()) {
      watched.waiting = nothingWaits();
      watched.requestsWaiting = 0;
    }
  }

  /** The host stood still until then: what it did not see meanwhile is no silence. */
  stoodStill(at: Micros): void {
    for (const { judge } of this.#watched.values()) judge.stoodStill(at);
  }

  /** A request waits for a byte since then, the first one after so many tokens of its prompt are computed. */
  waits(endpoint: EndpointId, kind: WaitKind, since: Micros, promptTokens = 0): void {
    const watched = this.#watched.get(endpoint);
    if (watched === undefined || this.#asleep.has(endpoint)) return;
    const { waiting } = watched;
    watched.requestsWaiting++;
    waiting[kind] = Math.min(waiting[kind], since);
    waiting.promptTokens = Math.max(waiting.promptTokens, promptTokens);
  }

  sweepEnds(at: Micros): void {
    this.#tellRanks(at);
    for (const watched of this.#watched.values()) {
      watched.judge.waits(watched.waiting);
      this.#judge(watched, at);
    }
  }

  /** A byte from one rank is a sign of life of the server that all its ranks share. */
  #tellRanks(at: Micros): void {
    if (this.#aliveServers.size === 0) return;
    for (const { judge, server } of this.#watched.values()) {
      if (server !== undefined && this.#aliveServers.has(server)) judge.alive(at);
    }
    this.#aliveServers.clear();
  }

  #judge({ id: endpoint, judge, requestsWaiting }: Watched, at: Micros): void {
    const verdict = judge.judge(at);
    if (verdict === undefined) return;
    const { servedUntilWell } = this.#options;
    if (verdict.kind === "suspend")
      this.#options.accept({ kind: "endpoint-suspended", at, endpoint, reason: verdict.reason });
    else this.#options.accept({ kind: "endpoint-resumed", at, endpoint, servedUntilWell });
    this.#options.judged?.(endpoint, verdict, requestsWaiting);
  }
}
