import { randomBytes } from "node:crypto";
import { createServer } from "node:net";
import type { AddressInfo } from "node:net";
import { clockOrigin } from "#live/clock.ts";
import type { EndpointDirectory, EndpointEntry } from "#live/discovery/endpoint-directory.ts";
import { ModelRewrites } from "#live/discovery/workload-rules.ts";
import type { FaultLog } from "#live/log/fault-log.ts";
import type { GatewayCounters } from "#live/metrics/gateway-counters.ts";
import type { TokenizerCounts } from "#live/metrics/metric-state.ts";
import type { WorkersStatus } from "#live/status/workers-status.ts";
import { Bell, newBellMemory } from "#live/worker/bell.ts";
import type { InnerPlace } from "#live/worker/inner-request.ts";
import { MailLoop } from "#live/worker/mail-loop.ts";
import type { DecidingParts } from "#live/worker/worker-desk.ts";
import type { Input } from "#core/input.ts";
import type { EndpointId } from "#core/endpoint/endpoint.ts";
import type { TraceRouter } from "#trace/record.ts";
import type { Config } from "#config/schema.ts";
import { summedCounters } from "./summed-counters.ts";
import type { ToWorker, WorkerCounts, WorkerPolicy } from "./worker-message.ts";
import { WorkerThread } from "./worker-thread.ts";

export interface WorkerPoolOptions {
  readonly config: Config;
  readonly secret: Uint8Array;
  readonly settings: TraceRouter;
  readonly parts: DecidingParts;
  readonly directory: EndpointDirectory;
  readonly policy: WorkerPolicy;
  readonly report: FaultLog["report"];
  /** The threads' code; for tests. */
  readonly script?: URL;
}

/** Restarts in a row, each of which follows a life shorter than STEADY_MILLIS, until a worker is given up. */
const RESTARTS_MAX = 8;
const PAUSE_MILLIS = 100;
const PAUSE_MILLIS_MAX = 10_000;
const STEADY_MILLIS = 60_000;
const RECOUNT_MILLIS = 1_000;
const TOKEN_BYTES = 24;

interface Place {
  readonly place: number;
  thread: WorkerThread | undefined;
  restartsInRow: number;
  startedMillis: number;
}

/**
 * The workers of a gateway: threads that listen at one address, carry requests and ask this thread where they go. What
 * they need to know of endpoints, policy and block size is sent to them before a decision that rests on it. One that dies
 * takes its requests with it, whose charges are released, and is started again.
 */
export class WorkerPool {
  /** Where this thread takes what is no inference. */
  readonly inner: InnerPlace;
  readonly #options: WorkerPoolOptions;
  readonly #deciding = newBellMemory();
  readonly #places: Place[];
  readonly #loop: MailLoop;
  readonly #hung = new Set<EndpointId>();
  #policy: WorkerPolicy;
  #blockTokens: number;
  #rewrites = ModelRewrites.none;
  #address: { readonly host: string; readonly port: number } = { host: "", port: 0 };
  #numbers = 0;
  #restarts = 0;
  #requestsLost = 0;
  /** Of workers that are gone. */
  #past: WorkerCounts[] = [];
  #sentEndpoints = "";
  #timer: NodeJS.Timeout | undefined;
  #isClosing = false;

  constructor(options: WorkerPoolOptions) {
    this.#options = options;
    this.#policy = options.policy;
    this.#blockTokens = options.settings.blockTokens;
    const count = options.config.listen.workers;
    this.#places = Array.from({ length: count }, (_, i) => ({
      place: i + 1,
      thread: undefined,
      restartsInRow: 0,
      startedMillis: 0,
    }));
    const name = `gnomon-${process.pid}-${randomBytes(4).toString("hex")}`;
    this.inner = { path: `\0${name}`, token: randomBytes(TOKEN_BYTES).toString("hex") };
    this.#loop = new MailLoop(new Bell(this.#deciding), () => this.#take());
    options.parts.tap.listen({ accepted: (input) => this.#follow(input) });
    options.directory.listen({ joined: () => {}, left: () => {}, evicting: () => this.#sendEndpoints() });
    options.directory.listen({ joined: () => this.#sendEndpoints(), left: () => this.#sendEndpoints() });
  }

  /** Starts all of them at one address; rejects where it cannot be had. */
  async listen(host: string, port: number): Promise<{ readonly url: string }> {
    this.#address = { host, port: await freePort(host, port) };
    for (const place of this.#places) this.#start(place);
    await Promise.all(this.#places.flatMap(({ thread }) => thread?.listening ?? []));
    this.#timer = setInterval(() => void this.recount(), RECOUNT_MILLIS).unref();
    const shown = host.includes(":") ? `[${host}]` : host;
    const scheme = this.#options.config.listen.tls.certFile === undefined ? "http" : "https";
    return { url: `${scheme}://${shown}:${this.#address.port}` };
  }

  /** What chooses profiles and limits has changed. */
  changePolicy(policy: WorkerPolicy): void {
    this.#policy = policy;
    this.#broadcast({ kind: "policy", policy: plain(policy) });
  }

  changeRewrites(rewrites: ModelRewrites): void {
    this.#rewrites = rewrites;
    this.#broadcast({ kind: "rewrites", rewrites: rewrites.rules });
  }

  resizeBlocks(blockTokens: number): void {
    this.#blockTokens = blockTokens;
    this.#broadcast({ kind: "block-size", blockTokens });
  }

  async recount(): Promise<void> {
    this.#sendEndpoints();
    await Promise.all(this.#threads().map((thread) => thread.recount()));
  }

  counters(own: GatewayCounters): GatewayCounters {
    return summedCounters([own, ...this.#counts().map(({ counters }) => counters)]);
  }

  tokenizers(own: readonly TokenizerCounts[]): readonly TokenizerCounts[] {
    const all = this.#counts().flatMap(({ tokenizers }) => tokenizers);
    return own.map((one) => ({
      ...one,
      counters: sumOf(
        one.counters,
        all.filter(({ model, name }) => model === one.model && name === one.name),
      ),
    }));
  }

  inFlight(): number {
    return this.#threads().reduce((sum, { desk }) => sum + desk.inFlight, 0);
  }

  status(): WorkersStatus {
    return {
      workers: this.#places.map(({ place, thread }) => ({
        worker: place,
        isUp: thread?.isUp ?? false,
        requestsInFlight: thread?.desk.inFlight ?? 0,
      })),
      restarts: this.#restarts,
      requestsLost: this.#requestsLost,
    };
  }

  /** All of them finish what they have; returns how many requests were cut. */
  async drain(graceMillis: number, noticeMillis: number): Promise<number> {
    this.#isClosing = true;
    const cut = await Promise.all(this.#threads().map((thread) => thread.drain(graceMillis, noticeMillis)));
    return cut.reduce((sum, one) => sum + one, 0);
  }

  async close(): Promise<void> {
    this.#isClosing = true;
    clearInterval(this.#timer);
    await Promise.all(this.#threads().map((thread) => thread.end()));
    this.#loop.close();
  }

  #threads(): WorkerThread[] {
    return this.#places.flatMap(({ thread }) => (thread === undefined ? [] : [thread]));
  }

  #counts(): WorkerCounts[] {
    return [...this.#past, ...this.#threads().flatMap(({ counts }) => (counts === undefined ? [] : [counts]))];
  }

  #take(): number {
    let count = 0;
    for (const { thread } of this.#places) count += thread?.desk.take() ?? 0;
    return count;
  }

  #start(place: Place): void {
    const { config, secret, settings, parts, script } = this.#options;
    place.startedMillis = performance.now();
    const thread: WorkerThread = new WorkerThread({
      script: script ?? new URL("./gateway.worker.ts", import.meta.url),
      deciding: this.#deciding,
      parts,
      work: {
        number: ++this.#numbers,
        among: this.#places.length,
        clockOrigin: clockOrigin(),
        config,
        policy: plain(this.#policy),
        settings,
        secret,
        blockTokens: this.#blockTokens,
        endpoints: this.#options.directory.all(),
        hung: [...this.#hung],
        rewrites: this.#rewrites.rules,
        address: this.#address,
        inner: this.inner,
      },
      died: (detail) => this.#died(place, thread, detail),
    });
    place.thread = thread;
  }

  #died(place: Place, thread: WorkerThread, detail: string): void {
    const requestsLost = thread.desk.end();
    this.#requestsLost += requestsLost;
    if (thread.counts !== undefined) this.#past = [foldedCounts([...this.#past, thread.counts])];
    place.thread = undefined;
    if (this.#isClosing) return;
    if (performance.now() - place.startedMillis > STEADY_MILLIS) place.restartsInRow = 0;
    const { report } = this.#options;
    const figures = { worker: place.place, requestsLost };
    if (place.restartsInRow === RESTARTS_MAX) {
      report({ kind: "worker-died", detail, done: "it is given up", figures });
      if (this.#threads().length === 0) throw new Error(`no worker is left: ${detail}`);
      return;
    }
    const pause = Math.min(PAUSE_MILLIS * 2 ** place.restartsInRow++, PAUSE_MILLIS_MAX);
    report({ kind: "worker-died", detail, done: `it is started again after ${pause} ms`, figures });
    setTimeout(() => {
      if (this.#isClosing) return;
      this.#restarts++;
      this.#start(place);
    }, pause);
  }

  #broadcast(message: ToWorker): void {
    for (const thread of this.#threads()) thread.send(message);
  }

  #follow(input: Input): void {
    if (!input.kind.startsWith("endpoint-")) return;
    if (input.kind === "endpoint-suspended") this.#hung.add(input.endpoint);
    else if (input.kind === "endpoint-resumed" || input.kind === "endpoint-left") this.#hung.delete(input.endpoint);
    else return this.#sendEndpoints();
    this.#broadcast({ kind: "hung", endpoints: [...this.#hung] });
    this.#sendEndpoints();
  }

  #sendEndpoints(): void {
    const endpoints: readonly EndpointEntry[] = this.#options.directory.all();
    const text = JSON.stringify(endpoints);
    if (text === this.#sentEndpoints) return;
    this.#sentEndpoints = text;
    this.#broadcast({ kind: "endpoints", endpoints });
  }
}

/** Only what a message may hold. */
function plain({ config, profiles }: WorkerPolicy): WorkerPolicy {
  return { config, profiles };
}

function foldedCounts(all: readonly WorkerCounts[]): WorkerCounts {
  return {
    counters: summedCounters(all.map(({ counters }) => counters)),
    tokenizers: all.flatMap(({ tokenizers }) => tokenizers),
    inFlight: 0,
  };
}

function sumOf(own: TokenizerCounts["counters"], others: readonly TokenizerCounts[]): TokenizerCounts["counters"] {
  const sum: Record<string, number> = { ...own };
  for (const { counters } of others) {
    for (const [name, count] of Object.entries(counters)) sum[name] = (sum[name] ?? 0) + count;
  }
  return sum;
}

/** The port, or a free one for 0; rejects where another process has it, which several listeners would not notice. */
function freePort(host: string, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once("error", reject);
    probe.listen({ host, port, exclusive: true }, () => {
      const { port: taken } = probe.address() as AddressInfo;
      probe.close(() => resolve(taken));
    });
  });
}
