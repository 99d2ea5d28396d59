import { Agent } from "undici";
import type { EndpointId } from "#core/endpoint/endpoint.ts";
import type { StepTimes } from "#core/endpoint/step-times.ts";
import type { Micros } from "#core/base/units.ts";
import { nowMicros } from "../base/clock.ts";
import type { EndpointDirectory } from "../endpoints/endpoint-directory.ts";
import type { Intake } from "../base/intake.ts";
import type { ScrapeCounts } from "../scrape/scrape.ts";
import type { MemberContext } from "./member.ts";
import type { ProbeContext } from "./probe-listener.ts";
import type { KeeperEvent } from "../endpoints/keeper-event.ts";
import { type AdapterLoadCounts, AdapterLoads, type AdministrationDone } from "../endpoints/adapter-loads.ts";
import { KEEPER_TIMES_DEFAULT, type KeeperTimes } from "./keeper-times.ts";
import { ServerKeeper } from "./server-keeper.ts";
import { EngineConnections } from "../tls/connections.ts";
import type { CheckCounts, HealthCheckOptions } from "./health-checker.ts";
import { HealthChecks } from "./health-checks.ts";
import type { Target } from "../endpoints/target.ts";

export interface FleetKeeperOptions extends MemberContext, Omit<ProbeContext, "checkerOf"> {
  /** Active health checks; none where it is left out. */
  readonly healthChecks?: (HealthCheckOptions & { readonly concurrencyMax: number }) | undefined;
  readonly intake: Intake;
  readonly directory: EndpointDirectory;
  readonly times?: Partial<KeeperTimes>;
  /** Notified of what happens to servers, for the log. */
  readonly report?: (event: KeeperEvent) => void;
  readonly now?: () => Micros;
  readonly connectMillis?: number;
  readonly connections?: EngineConnections;
  /** Endpoints that may be known at once. */
  readonly endpointsMax?: number;
}

/** How one server's scrapes stand. */
export interface ScrapeRow {
  readonly url: string;
  readonly counts: Readonly<ScrapeCounts>;
  /** Since the last page that was read; -1 before the first. */
  readonly ageMicros: number;
  /** Why the last scrape failed, "" when it did not. */
  readonly lastError: string;
}

/** Who keeps an endpoint from new requests; "" for nobody. */
export type Cordon = "" | "operator" | "source";

/** vLLM closes idle connections after 5 s; a connection that is dropped sooner is never found closed. */
const KEEP_ALIVE_MILLIS = 4_000;

const RESET_PATH = "/reset_prefix_cache";
const CONNECT_MILLIS = 2_000;
const ENDPOINTS_MAX_DEFAULT = 4_096;

/**
 * Keeps the directory and the router in step with what the sources of endpoints say and the servers answer. A source
 * hands over all its targets each time; what it no longer names is removed.
 */
export class FleetKeeper {
  readonly #options: FleetKeeperOptions;
  readonly #dispatcher: Agent;
  readonly #checks: HealthChecks | undefined;
  readonly #servers = new Map<string, ServerKeeper>();
  readonly #targets = new Map<EndpointId, { readonly source: string; readonly target: Target }>();
  readonly #leaving = new Set<Promise<void>>();
  /** Endpoints that an operator keeps from new requests, whatever their source reports. */
  readonly #cordoned = new Set<EndpointId>();
  /** Of endpoints whose source knows none. */
  #stepTimes: StepTimes | undefined;
  #stopped = false;
  /** Targets that were not taken, for another source has one of that id or there are too many. */
  targetsRefused = 0;
  readonly #adapters = new AdapterLoads();

  constructor(options: FleetKeeperOptions) {
    this.#options = options;
    const { connections = new EngineConnections(), connectMillis = CONNECT_MILLIS, directory } = options;
    const connect = connections.connector(connectMillis, directory.serverNameOf);
    this.#dispatcher = new Agent({
      connections: 1,
      pipelining: 1,
      keepAliveTimeout: KEEP_ALIVE_MILLIS,
      keepAliveMaxTimeout: KEEP_ALIVE_MILLIS,
      connect,
      allowH2: false,
    });
    const { healthChecks } = options;
    this.#checks = healthChecks && new HealthChecks(healthChecks, connect);
  }

  /** What active health checks came to; undefined where there are none. */
  get checkCounts(): Readonly<CheckCounts> | undefined {
    return this.#checks?.counts;
  }

  /** Takes what one source knows now. The first source that names an id keeps it. */
  setTargets(source: string, targets: readonly Target[]): void {
    if (this.#stopped) return;
    const named = new Set(targets.map((target) => target.id));
    for (const [id, known] of this.#targets) if (known.source === source && !named.has(id)) this.#remove(id);
    for (const target of targets) this.#put(source, target);
  }

  /** Who keeps an endpoint from new requests: nobody, an operator, or its source. Undefined where there is no such one. */
  cordonOf(id: EndpointId): Cordon | undefined {
    const known = this.#targets.get(id);
    if (known === undefined) return undefined;
    return this.#cordoned.has(id) ? "operator" : known.target.cordoned ? "source" : "";
  }

  /** An operator's word on new requests for an endpoint, until it is taken back or its source names it no longer. */
  cordon(id: EndpointId, cordoned: boolean): void {
    const known = this.#targets.get(id);
    if (known === undefined || cordoned === this.#cordoned.has(id)) return;
    if (cordoned) this.#cordoned.add(id);
    else this.#cordoned.delete(id);
    if (!known.target.cordoned) this.#reportCordon(id, cordoned, "an operator");
    this.#servers.get(known.target.url)?.put(this.#effective(known.target));
  }

  /** What steps take at endpoints whose source does not state it, as somebody found out; those that join later included. */
  setStepTimes(stepTimes: StepTimes): void {
    this.#stepTimes = stepTimes;
    for (const { target } of this.#targets.values())
      if (target.stepTimes === undefined) this.#servers.get(target.url)?.put(this.#effective(target));
  }

  get adapterLoads(): Readonly<AdapterLoadCounts> {
    return this.#adapters.counts;
  }

  /**
   * What a call of administration changed is known at once: adapters, which later servers get too, and caches that were
   * emptied. vLLM answers a reset with 200 also where it could not: then what is still there counts as unknown.
   */
  async administered(done: AdministrationDone): Promise<void> {
    const servers = done.servers.flatMap((url) => this.#servers.get(url) ?? []);
    if (done.path === RESET_PATH) for (const server of servers) server.emptied();
    const models = servers.flatMap((server) => server.models);
    if (this.#adapters.note(done, models)) await Promise.all(servers.map((server) => server.readModelsAgain()));
  }

  rows(): ScrapeRow[] {
    const at = this.#now();
    return [...this.#servers.values()].map(({ url, scraper }) => ({
      url,
      counts: scraper.counts,
      ageMicros: scraper.lastPageAt < 0 ? -1 : at - scraper.lastPageAt,
      lastError: scraper.lastError,
    }));
  }

  /** Ends all scraping; the endpoints stay in the router. */
  async stop(): Promise<void> {
    this.#stopped = true;
    await Promise.all([...this.#leaving, ...[...this.#servers.values()].map((server) => server.stop())]);
    await Promise.all([this.#dispatcher.destroy(), this.#checks?.destroy()]);
  }

  #put(source: string, target: Target): void {
    const known = this.#targets.get(target.id);
    const full = this.#targets.size >= (this.#options.endpointsMax ?? ENDPOINTS_MAX_DEFAULT);
    if (known === undefined ? full : known.source !== source) {
      this.targetsRefused++;
      this.#report({ kind: "refused", subject: target.id, detail: full ? "too many endpoints" : "named twice" });
      return;
    }
    if (known !== undefined && !sameAddress(known.target, target)) this.#remove(target.id);
    const { id, cordoned } = target;
    if ((known?.target.cordoned ?? false) !== cordoned && !this.#cordoned.has(id))
      this.#reportCordon(id, cordoned, "its source");
    this.#targets.set(id, { source, target });
    const server = this.#servers.get(target.url);
    if (server !== undefined) server.put(this.#effective(target));
    else this.#servers.set(target.url, this.#serve(this.#effective(target)));
  }

  #serve(target: Target): ServerKeeper {
    const { intake, directory, times, hardwareOf, blockSizes, probes, healthPath } = this.#options;
    const checkerOf = this.#checks?.checkerOf;
    return new ServerKeeper(target.url, target, {
      intake,
      directory,
      dispatcher: this.#dispatcher,
      times: { ...KEEPER_TIMES_DEFAULT, ...times },
      servers: () => this.#servers.size,
      now: this.#now,
      report: this.#report,
      adapters: this.#adapters,
      ...(hardwareOf && { hardwareOf }),
      ...(blockSizes && { blockSizes }),
      ...(probes && { probes }),
      ...(healthPath !== undefined && { healthPath }),
      ...(checkerOf && { checkerOf }),
    });
  }

  #remove(id: EndpointId): void {
    const known = this.#targets.get(id);
    const server = known && this.#servers.get(known.target.url);
    if (server === undefined) return;
    this.#targets.delete(id);
    this.#cordoned.delete(id);
    server.remove(id);
    this.#report({ kind: "removed", subject: id, detail: "its source names it no longer" });
    if (server.size > 0) return;
    this.#servers.delete(server.url);
    const leaving = server.stop().finally(() => this.#leaving.delete(leaving));
    this.#leaving.add(leaving);
  }

  #effective(target: Target): Target {
    const stepTimes = target.stepTimes ?? this.#stepTimes;
    return {
      ...target,
      ...(this.#cordoned.has(target.id) && { cordoned: true }),
      ...(stepTimes && { stepTimes }),
    };
  }

  #reportCordon(subject: EndpointId, cordoned: boolean, by: string): void {
    const detail = cordoned ? `${by} wants no new requests for it` : `${by} lets it have requests again`;
    this.#report({ kind: cordoned ? "cordoned" : "uncordoned", subject, detail });
  }

  readonly #now = (): Micros => (this.#options.now ?? nowMicros)();

  readonly #report = (event: KeeperEvent): void => this.#options.report?.(event);
}

function sameAddress(a: Target, b: Target): boolean {
  return (
    a.url === b.url &&
    a.serverName === b.serverName &&
    a.dataParallelRank === b.dataParallelRank &&
    a.apiKey === b.apiKey
  );
}
