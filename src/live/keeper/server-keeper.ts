import type { Dispatcher } from "undici";
import type { EndpointId } from "#core/endpoint/endpoint.ts";
import type { ProbeResult } from "#core/endpoint/hang-judge.ts";
import { LostJudge, returnPause } from "#core/endpoint/lost-judge.ts";
import { MICROS_PER_MILLI, type Micros } from "#core/base/units.ts";
import type { EndpointDirectory, ServedModel } from "../endpoints/endpoint-directory.ts";
import type { Intake } from "../base/intake.ts";
import { nextTurn, phaseOf, Scraper, type ScrapeResult } from "../scrape/scrape.ts";
import type { EnginePage } from "../scrape/scrape-map.ts";
import { type RequestFault, askEngine } from "../endpoints/engine-request.ts";
import type { AdapterLoads } from "../endpoints/adapter-loads.ts";
import type { KeeperEvent } from "../endpoints/keeper-event.ts";
import type { KeeperTimes } from "./keeper-times.ts";
import type { HealthChecker } from "./health-checker.ts";
import { Member, type MemberContext } from "./member.ts";
import type { ProbeContext } from "./probe-listener.ts";
import { MODELS_BYTES_MAX, readServedModels } from "../endpoints/served-models.ts";
import type { Target } from "../endpoints/target.ts";

export interface KeeperOptions extends MemberContext, ProbeContext {
  readonly intake: Intake;
  readonly directory: EndpointDirectory;
  readonly dispatcher: Dispatcher;
  readonly times: KeeperTimes;
  /** Of the fleet, as many as there are now. */
  readonly servers: () => number;
  readonly now: () => Micros;
  readonly report: (event: KeeperEvent) => void;
  readonly adapters: AdapterLoads;
}

/** Faults that say nothing came from the server. */
const NO_ANSWER: ReadonlySet<RequestFault> = new Set(["timeout", "connect", "no-files", "stopped"]);
const HEALTH_PATH_DEFAULT = "/health";
const HEALTH_BYTES_MAX = 64 * 1024;

/**
 * Looks after one server and the endpoints behind it (one, or one per data-parallel rank), in a single loop, so that at
 * most one question is under way.
 * waiting: GET /v1/models is asked with growing pauses until it is answered; then a first scrape brings the capacity,
 * and the endpoints join the router. An engine whose metrics cannot be read joins all the same.
 *
 * ready: scraped on a fixed grid. A scrape that fails does not take it out: the signals age, the router's ledger stands
 * in for them, and requests that fail open the breaker; one that is not answered in time is followed by a health check,
 * and `ProbeListener` learns of both. Only where nobody accepts a connection
 * for `lostAfterMillis` the endpoints leave the router, since what comes back after that is a new process with an empty
 * cache; a process that was replaced sooner is seen by its counters.
 *
 * lost: as waiting, and the endpoints join again when it answers.
 */
export class ServerKeeper {
  readonly url: string;
  readonly scraper: Scraper;
  readonly #options: KeeperOptions;
  readonly #apiKey: string | undefined;
  readonly #members = new Map<EndpointId, Member>();
  readonly #stop = new AbortController();
  /** Of the pause between two questions. */
  #asleep: NodeJS.Timeout | undefined;
  #wake: (() => void) | undefined;
  readonly #done: Promise<void>;
  /** Set while the server is ready, for members that come later. */
  #ready: { models: readonly ServedModel[]; page: EnginePage | undefined } | undefined;
  #detail = "";
  readonly #checker: HealthChecker | undefined;

  constructor(url: string, first: Target, options: KeeperOptions) {
    this.url = url;
    this.#options = options;
    this.#apiKey = first.apiKey;
    const { scrapeTimeoutMillis: timeoutMillis, pageBytesMax } = options.times;
    const { dispatcher, now } = options;
    const own = { url, apiKey: first.apiKey, dispatcher, now, stop: this.#stop.signal };
    this.scraper = new Scraper({ ...own, timeoutMillis, pageBytesMax });
    const judged = (healthy: boolean, detail: string): void => this.#checked(healthy, detail);
    this.#checker = options.checkerOf?.({ url, apiKey: first.apiKey }, judged, () => this.#ready !== undefined);
    this.put(first);
    this.#done = this.#run();
  }

  get size(): number {
    return this.#members.size;
  }

  /** Adds an endpoint or changes it. */
  put(target: Target): void {
    const at = this.#options.now();
    let member = this.#members.get(target.id);
    if (member !== undefined) {
      member.retarget(at, target);
      return;
    }
    member = new Member(target, this.#options.intake, this.#options.directory, this.#options);
    this.#members.set(target.id, member);
    if (this.#ready === undefined) return;
    member.join(at, this.#ready.models, this.#ready.page);
    if (this.#checker?.healthy === false) member.checked(at, false);
  }

  remove(id: EndpointId): void {
    this.#members.get(id)?.remove(this.#options.now());
    this.#members.delete(id);
  }

  /** Its cache was emptied. */
  emptied(): void {
    const at = this.#options.now();
    for (const member of this.#members.values()) member.emptied(at);
  }

  /** Ends the loop; the endpoints stay as they are. */
  async stop(): Promise<void> {
    this.#stop.abort();
    clearTimeout(this.#asleep);
    this.#wake?.();
    await Promise.all([this.#done, this.#checker?.stop()]);
  }

  get #stopped(): boolean {
    return this.#stop.signal.aborted;
  }

  async #run(): Promise<void> {
    while (!this.#stopped) {
      const listed = await this.#untilAnswered();
      const models = listed && (await this.#withAdapters(listed));
      if (models === undefined || this.#stopped) return;
      const first = await this.scraper.scrape();
      if (this.#stopped) return;
      this.#admit(models, first.kind === "page" ? first.page : undefined);
      const detail = await this.#whileThere();
      if (this.#stopped) return;
      this.#lose(detail);
    }
  }

  async #untilAnswered(): Promise<readonly ServedModel[] | undefined> {
    const { retryMillis, retryMillisMax } = this.#options.times;
    const pauses = { retryMicros: retryMillis * MICROS_PER_MILLI, retryMicrosMax: retryMillisMax * MICROS_PER_MILLI };
    for (let attempt = 0; !this.#stopped; attempt++) {
      const models = await this.#askModels();
      if (typeof models !== "string") return models;
      if (this.#stopped) return undefined;
      this.#notReady(models);
      await this.#sleep(returnPause(this.url, attempt, pauses) / MICROS_PER_MILLI);
    }
    return undefined;
  }

  /** Loads what others were given through this gateway before it serves anybody; the models that it has then. */
  async #withAdapters(listed: readonly ServedModel[]): Promise<readonly ServedModel[]> {
    const { adapters, dispatcher } = this.#options;
    const given = { url: this.url, dispatcher, apiKey: this.#apiKey, stop: this.#stop.signal };
    const failed = (detail: string): void => this.#report("adapter-failed", detail);
    const models = (await adapters.loadAt(given, listed, failed)) ? await this.#askModels() : listed;
    return typeof models === "string" ? listed : models;
  }

  /** The models, or why there are none. */
  async #askModels(): Promise<readonly ServedModel[] | string> {
    const answer = await askEngine(`${this.url}/v1/models`, {
      dispatcher: this.#options.dispatcher,
      apiKey: this.#apiKey,
      timeoutMillis: this.#options.times.scrapeTimeoutMillis,
      bytesMax: MODELS_BYTES_MAX,
      stop: this.#stop.signal,
    });
    if (answer.kind === "failed") return `GET /v1/models: ${answer.detail}`;
    return readServedModels(answer.text) ?? "GET /v1/models: the answer is no list of models";
  }

  #notReady(detail: string): void {
    for (const { entry } of this.#members.values()) entry.detail = detail;
    if (detail !== this.#detail) this.#report("waiting", detail);
    this.#detail = detail;
  }

  #admit(models: readonly ServedModel[], page: EnginePage | undefined): void {
    const at = this.#options.now();
    this.#checker?.forget();
    this.#ready = { models, page };
    this.#detail = "";
    for (const member of this.#members.values()) member.join(at, models, page);
    this.#report("ready", `serves ${models.length} ${models.length === 1 ? "model" : "models"}`);
  }

  #checked(healthy: boolean, detail: string): void {
    if (this.#stopped || this.#ready === undefined) return;
    const at = this.#options.now();
    for (const member of this.#members.values()) member.checked(at, healthy);
    this.#report(healthy ? "healthy" : "unhealthy", detail);
  }

  #lose(detail: string): void {
    const at = this.#options.now();
    this.#ready = undefined;
    for (const member of this.#members.values()) member.lose(at, detail);
    this.#report("lost", detail);
  }

  /** Scrapes turn by turn; returns why the server is lost. */
  async #whileThere(): Promise<string> {
    const { now, times, servers } = this.#options;
    const interval = times.scrapeIntervalMillis * MICROS_PER_MILLI;
    const turnAfter = (at: Micros): Micros => nextTurn(at, interval, phaseOf(this.url, interval, servers()));
    let modelsAt = now() + times.modelsIntervalMillis * MICROS_PER_MILLI;
    const lost = new LostJudge(times.lostAfterMillis * MICROS_PER_MILLI);
    let turn = turnAfter(now());
    for (;;) {
      await this.#sleep((turn - now()) / MICROS_PER_MILLI);
      if (this.#stopped) return "";
      const result = await this.scraper.scrape();
      if (this.#stopped) return "";
      if (isUnreachable(result)) {
        if (lost.unreachable(result.at)) return result.detail;
      } else {
        const again = lost.reached();
        this.#observe(result);
        if (result.kind === "failed" && result.fault !== "no-files") await this.#probe(result.fault);
        // Whoever came back may serve other models than whoever went.
        if (again || result.at >= modelsAt) {
          await this.readModelsAgain();
          modelsAt = now() + times.modelsIntervalMillis * MICROS_PER_MILLI;
        }
      }
      const next = turnAfter(now());
      this.scraper.counts.skipped += Math.max(0, Math.round((next - turn) / interval) - 1);
      turn = next;
    }
  }

  #observe(result: ScrapeResult): void {
    if (result.kind !== "page" || this.#ready === undefined) return;
    this.#ready.page = result.page;
    // The clock is read again: inputs are reported in order of time, and others may have come since the page did.
    const at = this.#options.now();
    for (const [id, member] of this.#members) {
      const moved = member.observe(at, result.page);
      this.#options.probes?.probed(id, moved === undefined ? "no-page" : moved ? "moving" : "static");
    }
  }

  /**
   * A metrics page that does not come in time may be slow, or its server may hang: its health check decides. Whatever it
   * answers is a sign of life.
   */
  async #probe(fault: RequestFault): Promise<void> {
    if (fault !== "timeout") return this.#probed("no-page");
    this.#probed("none");
    const { dispatcher, times, healthPath } = this.#options;
    const answer = await askEngine(`${this.url}${healthPath ?? HEALTH_PATH_DEFAULT}`, {
      dispatcher,
      apiKey: this.#apiKey,
      timeoutMillis: times.scrapeTimeoutMillis,
      bytesMax: HEALTH_BYTES_MAX,
      stop: this.#stop.signal,
    });
    if (answer.kind === "answered" || !NO_ANSWER.has(answer.fault)) this.#probed("health");
    else if (answer.fault === "timeout") this.#probed("none");
  }

  #probed(result: ProbeResult): void {
    for (const id of this.#members.keys()) this.#options.probes?.probed(id, result);
  }

  /** What it was last known to serve. */
  get models(): readonly ServedModel[] {
    return this.#ready?.models ?? [];
  }

  /** A list that cannot be read now leaves the last one in force. */
  async readModelsAgain(): Promise<void> {
    const models = await this.#askModels();
    if (typeof models === "string" || this.#ready === undefined) return;
    const at = this.#options.now();
    this.#ready.models = models;
    for (const member of this.#members.values()) member.remodel(at, models);
  }

  #report(kind: KeeperEvent["kind"], detail: string): void {
    this.#options.report({ kind, subject: this.url, detail });
  }

  /** Until then, or until it is stopped. */
  #sleep(millis: number): Promise<void> {
    if (this.#stopped) return Promise.resolve();
    return new Promise((resolve) => {
      this.#wake = resolve;
      this.#asleep = setTimeout(resolve, Math.max(0, millis));
    });
  }
}

function isUnreachable(result: ScrapeResult): result is ScrapeResult & { kind: "failed"; fault: "connect" } {
  return result.kind === "failed" && result.fault === "connect";
}
