import { setTimeout as sleep } from "node:timers/promises";
import { MILLIS_PER_SECOND } from "#core/base/units.ts";
import { type DnsAnswer, DnsLookup, type DnsQuestion, type DnsServers } from "./dns-lookup.ts";
import type { KeeperEvent } from "../endpoints/keeper-event.ts";
import type { SourceBoard } from "../endpoints/source-board.ts";
import { SourceStatus } from "../endpoints/source-status.ts";
import { type StaticServer, serverTargets } from "./static.ts";
import type { Target } from "../endpoints/target.ts";

/** A name whose addresses are engines, and what is known of all of them. */
export interface DnsName extends DnsQuestion, Omit<StaticServer, "url" | "id"> {
  readonly scheme: "http" | "https";
}

export interface DnsTimes {
  /** Bounds on the time between two look-ups of a name; between them its records' time to live. */
  readonly millisMin: number;
  readonly millisMax: number;
  /** First pause after a look-up that failed; doubles up to `millisMax`. */
  readonly retryMillis?: number;
}

export interface DnsSourceOptions extends DnsServers, DnsTimes {
  /** An address that several of them have is described by the first. */
  readonly names: readonly DnsName[];
  /** All targets of all names, after each change. */
  readonly setTargets: (targets: readonly Target[]) => void;
  readonly report: (event: KeeperEvent) => void;
  readonly board: SourceBoard;
  /** A number in [0, 1) that spreads gateways over time. */
  readonly random?: () => number;
}

/** Look-ups differ by up to this share, so that gateways started together do not ask together. */
const JITTER = 0.1;
const RETRY_MILLIS = 500;
const DOUBLINGS_MAX = 20;

/**
 * Finds engines by names of the DNS. Each name is looked up again once its records' time to live is over, within bounds.
 * A look-up that fails, or that finds nothing, takes nothing away: the last answer stays in force, and an engine that is
 * gone is noticed like every other.
 */
export class DnsSource {
  readonly #options: DnsSourceOptions;
  readonly #random: () => number;
  readonly #stop = new AbortController();
  readonly #found: (readonly Target[])[];
  readonly #done: Promise<unknown>;

  constructor(options: DnsSourceOptions) {
    this.#options = options;
    this.#random = options.random ?? Math.random;
    this.#found = options.names.map(() => []);
    this.#done = Promise.all(options.names.map((name, i) => this.#follow(name, i)));
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#done;
  }

  async #follow(name: DnsName, i: number): Promise<void> {
    const { board } = this.#options;
    const { signal } = this.#stop;
    const lookup = new DnsLookup(this.#options);
    signal.addEventListener("abort", () => lookup.cancel(), { once: true });
    const status = new SourceStatus(`dns ${name.type} ${name.name}`);
    board.add(status);
    for (let failures = 0; !signal.aborted;) {
      const answer = await lookup.ask(name).catch((error: unknown) => reasonOf(error));
      if (signal.aborted) break;
      if (typeof answer === "string") this.#failed(status, answer);
      else this.#answered(status, i, name, answer);
      failures = typeof answer === "string" ? failures + 1 : 0;
      await this.#pause(typeof answer === "string" ? this.#retryMillis(failures) : this.#lifeMillis(answer));
    }
    board.remove(status);
  }

  #answered(status: SourceStatus, i: number, name: DnsName, answer: DnsAnswer): void {
    const { report } = this.#options;
    status.lists++;
    status.news();
    if (status.succeeded()) report({ kind: "source-recovered", subject: status.source, detail: "" });
    const targets = answer.addresses.flatMap((address) => targetsOf(name, address));
    status.targets = targets.length;
    if (JSON.stringify(targets) === JSON.stringify(this.#found[i])) return;
    this.#found[i] = targets;
    this.#options.setTargets(firstOfEach(this.#found));
  }

  #failed(status: SourceStatus, why: string): void {
    const kept = status.targets === 0 ? "nothing is known of it" : "its last answer stays in force";
    if (status.failed(why))
      this.#options.report({ kind: "source-failed", subject: status.source, detail: `${why}; ${kept}` });
  }

  #lifeMillis({ ttlSeconds }: DnsAnswer): number {
    const { millisMin, millisMax } = this.#options;
    const life = ttlSeconds === undefined ? millisMax : ttlSeconds * MILLIS_PER_SECOND;
    return Math.min(millisMax, Math.max(millisMin, life));
  }

  #retryMillis(failures: number): number {
    const { millisMax, retryMillis = RETRY_MILLIS } = this.#options;
    return Math.min(millisMax, retryMillis * 2 ** Math.min(failures - 1, DOUBLINGS_MAX));
  }

  async #pause(millis: number): Promise<void> {
    const spread = 1 - JITTER + 2 * JITTER * this.#random();
    try {
      await sleep(millis * spread, undefined, { signal: this.#stop.signal });
    } catch {
      // Stopped; the loop looks at that itself.
    }
  }
}

function targetsOf(name: DnsName, { host, port, name: certified }: DnsAnswer["addresses"][number]): Target[] {
  const { scheme, labels, apiKey, dataParallelRanks, kvCapacityTokens, concurrencyMax, stepTimes } = name;
  const server = { labels, apiKey, dataParallelRanks, kvCapacityTokens, concurrencyMax, stepTimes };
  const targets = serverTargets({ ...server, url: `${scheme}://${host}:${port}` });
  // A certificate names the host and not its address.
  return scheme === "http" ? targets : targets.map((target) => ({ ...target, serverName: certified }));
}

function firstOfEach(found: readonly (readonly Target[])[]): Target[] {
  const targets = new Map<string, Target>();
  for (const target of found.flat()) if (!targets.has(target.id)) targets.set(target.id, target);
  return [...targets.values()];
}

function reasonOf(error: unknown): string {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  switch (code) {
    case "ENOTFOUND":
      return "there is no such name (NXDOMAIN)";
    case "ENODATA":
      return "the name has no such records";
    case "ETIMEOUT":
    case "ECONNREFUSED":
      return `no name server answers (${code})`;
    default:
      return error instanceof Error ? error.message : String(error);
  }
}
