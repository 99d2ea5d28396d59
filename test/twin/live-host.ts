import { request as httpRequest } from "node:http";
import type { TestContext } from "node:test";
import { LostJudge, returnPause } from "#core/endpoint/lost-judge.ts";
import { ApproximateIndex } from "#core/prefix/approximate.ts";
import { Router } from "#core/router.ts";
import type { PathRules } from "#core/path/path-rules.ts";
import { MICROS_PER_MILLI, type Micros } from "#core/base/units.ts";
import type { Hold } from "#engine/block-fetch.ts";
import type { EngineRequest } from "#engine/request.ts";
import type { EngineSink } from "#engine/sink.ts";
import { EndpointDirectory } from "#live/endpoints/endpoint-directory.ts";
import { Member } from "#live/keeper/member.ts";
import { createGateway } from "#live/gateway/gateway.ts";
import { Intake } from "#live/base/intake.ts";
import { HangDetector } from "#live/keeper/hang-detector.ts";
import { EngineFleet } from "#sim/fleet/engine-fleet.ts";
import { Flight } from "#sim/path/flight.ts";
import type { FlightPaths } from "#sim/path/flight-paths.ts";
import { Handoff, type HandoffHost } from "#sim/handoff/handoff-desk.ts";
import { PrefillLeg } from "#sim/path/prefill-leg.ts";
import { TRANSFER_DEFAULTS, transferMicros } from "#sim/setting/transfer-options.ts";
import { IDENTITY, WORD_TOKENIZER } from "../live/gateway/rig.ts";
import { listed } from "../sim/cluster.ts";
import { SocketEngine, type SocketRequest } from "./socket-engine.ts";
import { ENGINE, ROUTER, RULES, SCRAPE_MICROS, SHARING_ROUTER } from "./twin-rules.ts";
import { endpointId, engineOf, labelsOf, type ScriptedEvent, type TwinScript } from "./twin-script.ts";
import { Words } from "./word.ts";

const MODELS = [{ id: "tiny", object: "model" as const, owned_by: "vllm" }];
/** Longest that anything real may take; nothing waits for it to pass. */
const GUARD_MILLIS = 20_000;

/** A prompt that one engine computed for another. */
interface Held {
  readonly leg: PrefillLeg;
  readonly hold: Hold;
  readonly at: Micros;
  readonly life: number;
}

/** An engine's request with the socket that its answer goes to. */
interface Aboard {
  readonly flight: Flight;
  readonly request: SocketRequest;
}

/** Something that is due, by the order in which the simulation takes things at one time. */
interface Due {
  readonly at: Micros;
  readonly rank: number;
  readonly act: () => void | Promise<void>;
}

/**
 * The gateway as it runs, over real sockets, in a time that stands still while anything is under way: every step waits
 * until the router has had what it is to have and all bytes have arrived. Engines are the engine model behind sockets;
 * what probes find is reported at the times of a scraper.
 */
/** What becomes of requests is the gateway's here; engines alone are simulated. */
const NO_PATHS = {} as FlightPaths;

export class LiveHost implements HandoffHost {
  readonly words = new Words();
  readonly gateway;
  readonly #router: Router;
  readonly #intake: Intake;
  readonly #directory = new EndpointDirectory();
  readonly #hangs: HangDetector;
  readonly #fleet = new EngineFleet();
  readonly #engines: SocketEngine[] = [];
  readonly #members: Member[] = [];
  readonly #judges: LostJudge[] = [];
  readonly #aboard: Map<string, Aboard>[] = [];
  readonly #held: SocketRequest[][] = [];
  readonly #anew = new Set<number>();
  readonly #steps: number[] = [];
  readonly #removed = new Set<number>();
  readonly #due: Due[] = [];
  readonly #prompts = new Map<string, Held>();
  /** What engines have sent and is not on a socket yet. */
  readonly #writes: { readonly act: () => void; readonly isInput: boolean }[] = [];
  #at: Micros = 0;
  #sweep: (() => void) | undefined;
  #asked = 0;
  #clients = 0;
  #tokensWritten = 0;
  #tokensRead = 0;
  #submitted = 0;

  constructor(t: TestContext, { admission, roles }: TwinScript, { waits, settings }: PathRules = RULES) {
    // A mock of the runner's would keep every call and its stack.
    performance.now = () => this.#at / MICROS_PER_MILLI;
    t.after(() => Reflect.deleteProperty(performance, "now"));
    const sweepMillis = RULES.sweepMicros / MICROS_PER_MILLI;
    const setReal = globalThis.setInterval;
    const timer = { unref: () => timer };
    t.mock.method(globalThis, "setInterval", ((act: () => void, millis: number) => {
      if (millis !== sweepMillis) return setReal(act, millis);
      this.#sweep = act;
      this.#later(this.#at + RULES.sweepMicros, 3, () => this.#sweeps());
      return timer as never;
    }) as typeof setInterval);
    const clearReal = globalThis.clearInterval;
    t.mock.method(globalThis, "clearInterval", ((given: never) => {
      if (given === timer) this.#sweep = undefined;
      else clearReal(given);
    }) as typeof clearInterval);
    this.#router = new Router({
      ...(roles ? SHARING_ROUTER : ROUTER),
      ...(admission && { admission }),
      index: new ApproximateIndex(),
    });
    this.#intake = new Intake(this.#router);
    this.#intake.listen({ accepted: this.words.take });
    this.#hangs = new HangDetector({ intake: this.#intake, directory: this.#directory });
    this.gateway = createGateway({
      tokenizer: () => WORD_TOKENIZER,
      identity: IDENTITY,
      intake: this.#intake,
      directory: this.#directory,
      hangs: this.#hangs,
      limits: {
        cutMillisMax: waits.cutMicrosMax / MICROS_PER_MILLI,
        ...settings,
        progressMillis: 1e9,
        progressTokens: 1e9,
      },
      stages: { clients: { continueStreams: settings["continuationsMax"] !== 0 } },
      observe: { finished: () => {}, retried: () => {}, tokenizerFellBack: () => {} },
    });
  }

  /** Plays the script; `expected` says how many inputs there are to be by a time, which is what each step waits for. */
  async play(script: TwinScript, expected: (at: Micros) => number): Promise<void> {
    const { endpoints, requests, events } = script;
    for (let i = 0; i < endpoints; i++) await this.#start(i, script);
    const { url } = await this.gateway.listen("127.0.0.1", 0);
    for (const one of requests) this.#later(one.at, 2, () => this.#ask(url, one.promptTokens, one.outputTokens));
    for (const event of events) this.#later(event.at, 1, () => this.#happens(event));
    for (let i = 0; i < endpoints; i++) this.#later(0, 3, () => this.#probe(i));
    const last = requests.at(-1)!.at;
    for (;;) {
      const next = this.#due.reduce<Due | undefined>(
        (first, one) => (first === undefined || before(one, first) ? one : first),
        undefined,
      );
      const engineAt = this.#fleet.nextAt;
      if (next === undefined || (this.#at > last && this.#router.inFlight === 0 && this.#clients === 0)) break;
      if (engineAt < next.at) {
        this.#at = engineAt;
        this.#fleet.advanceFirst();
        // What one step brings arrives in its order, where the router gets to know it.
        for (const { act, isInput } of this.#writes.splice(0)) {
          act();
          if (isInput) await this.#settle(0);
        }
      } else {
        this.#due.splice(this.#due.indexOf(next), 1);
        this.#at = next.at;
        await next.act();
      }
      const isLastOfTime = !this.#due.some(({ at }) => at === this.#at) && this.#fleet.nextAt > this.#at;
      await this.#settle(isLastOfTime ? expected(this.#at) : 0);
    }
  }

  async close(): Promise<void> {
    await this.gateway.close(0);
    await Promise.all(this.#engines.map((engine) => engine.close()));
  }

  #later(at: Micros, rank: number, act: Due["act"]): void {
    this.#due.push({ at, rank, act });
  }

  /** Until the router had so many inputs, and every byte and every end of a connection has arrived. */
  async #settle(inputs: number): Promise<void> {
    const until = process.hrtime.bigint() + BigInt(GUARD_MILLIS) * 1_000_000n;
    for (let quiet = 0; quiet < 3;) {
      await new Promise<void>((resolve) => setImmediate(resolve));
      // Of a request whose prompt is being computed, who answers has a charge already.
      const open = this.#engines.reduce(
        (sum, engine) => sum + [...engine.open].reduce((all, { prefills }) => all + (prefills ? 2 : 1), 0),
        0,
      );
      const charged = this.#router.openCharges;
      const isDone =
        this.words.all.length >= inputs &&
        open === charged &&
        this.#tokensRead >= this.#tokensWritten &&
        this.#asked === this.words.arrived;
      quiet = isDone ? quiet + 1 : 0;
      if (process.hrtime.bigint() > until) {
        const found = `${this.words.all.length} of ${inputs} inputs, ${open} requests at engines, ${charged} charged`;
        throw new Error(`at ${this.#at}: ${found}, ${this.#tokensRead} of ${this.#tokensWritten} tokens`);
      }
    }
  }

  #ask(url: string, promptTokens: number, outputTokens: number): void {
    this.#asked++;
    this.#clients++;
    const content = `say ${outputTokens} after ${promptTokens}`;
    const sent = httpRequest(`${url}/v1/chat/completions`, { method: "POST", agent: false }, (response) => {
      response.on("data", (chunk: Buffer) => {
        this.#tokensRead += chunk.toString().split('" t"').length - 1;
      });
      response.on("close", () => this.#clients--);
      response.on("error", () => {});
    });
    sent.setHeader("content-type", "application/json");
    const messages = [{ role: "user", content }];
    sent.end(JSON.stringify({ model: "tiny", stream: true, max_tokens: outputTokens, messages }));
  }

  async #start(i: number, script: TwinScript): Promise<void> {
    const labels = labelsOf(script, i);
    const engine = new SocketEngine(
      (request) => this.#came(i, request),
      (request) => this.#left(i, request),
    );
    await engine.listen();
    this.#engines.push(engine);
    const id = endpointId(i);
    const target = { id, url: engine.url, dataParallelRank: undefined, apiKey: undefined, labels, cordoned: false };
    this.#members.push(
      new Member({ ...target, kvCapacityTokens: undefined, concurrencyMax: undefined }, this.#intake, this.#directory),
    );
    this.#judges.push(new LostJudge(RULES.lostAfterMicros));
    this.#aboard.push(new Map());
    this.#held.push([]);
    this.#steps.push(0);
    const endpoint = { id, models: ["tiny"], labels, kvCapacityTokens: undefined, concurrencyMax: undefined };
    this.#fleet.add({ config: engineOf(script), endpoint }, () => this.#sinkOf(i));
    this.#members[i]!.join(this.#at, MODELS, undefined);
  }

  #sinkOf(i: number): EngineSink {
    return {
      token: (_at, { id, outputTokens }: EngineRequest, tokens) => {
        const request = this.#aboard[i]!.get(id)?.request;
        if (request !== undefined && !request.prefills)
          this.#writes.push({ act: () => this.#token(i, request, tokens === outputTokens), isInput: tokens === 1 });
      },
      finished: (_at, { id }, reason) => {
        const request = this.#aboard[i]!.get(id)?.request;
        this.#aboard[i]!.delete(id);
        if (request?.prefills === true && reason !== "abort")
          this.#writes.push({ act: () => this.#engines[i]!.prefilled(request, id), isInput: true });
        else if (request !== undefined && reason === "stop")
          this.#writes.push({ act: () => this.#engines[i]!.end(request), isInput: true });
      },
      held: (at, leg, hold) => {
        if (leg instanceof PrefillLeg) this.#prompts.set(leg.id, { leg, hold, at, life: this.#fleet.lifeOf(i) });
      },
    };
  }

  #token(i: number, request: SocketRequest, isLast: boolean): void {
    if (!request.open) return;
    this.#tokensWritten++;
    this.#engines[i]!.token(request, isLast);
  }

  #came(i: number, request: SocketRequest): void {
    const engine = this.#engines[i]!;
    switch (this.#fleet.conditions[i]!) {
      case "draining":
        return engine.refuse(request, 500, "cannot schedule new futures after shutdown");
      case "refusing":
        return engine.refuse(request, 503, "The engine is currently busy and cannot accept new requests.");
      case "hung":
      case "asleep":
        this.#held[i]!.push(request);
        return;
      case "serving":
      case "dead":
      case "vanished":
        engine.begin(request);
        this.#submit(i, request);
    }
  }

  #submit(i: number, request: SocketRequest): void {
    const row = this.#submitted++;
    const one = listed(row, this.#at, request.promptTokens, request.outputTokens);
    const flight = new Flight(row, { ...one, engineHashes: () => one.route.blocks.hashes }, NO_PATHS);
    flight.engine = i;
    flight.hashes = one.route.blocks.hashes;
    if (request.prefills) flight.leg = new PrefillLeg(flight, i, i);
    const held = request.fetches === undefined ? undefined : this.#prompts.get(request.fetches);
    if (held !== undefined) flight.fetch = new Handoff(held.leg, held.hold, held.at, held.life, this);
    this.#aboard[i]!.set(flight.id, { flight, request });
    this.#fleet.submit(this.#at, flight);
  }

  /** As the simulation does it between engines that are there. */
  transfer(handoff: Handoff, tokens: number): Micros {
    const bytes = Math.ceil(tokens / ENGINE.blockTokens) * ENGINE.blockTokens * ENGINE.kvBytesPerToken;
    const micros = transferMicros(TRANSFER_DEFAULTS, bytes, 1);
    this.#later(this.#at + micros, 0, () => {
      const hold = handoff.ends(true);
      if (hold !== undefined) this.#fleet.giveBack(this.#at, handoff.leg.engine, hold);
    });
    return micros;
  }

  /** The gateway closed the connection. */
  #left(i: number, request: SocketRequest): void {
    for (const { flight, request: one } of this.#aboard[i]!.values())
      if (one === request) this.#fleet.abort(this.#at, flight);
  }

  async #happens(event: ScriptedEvent): Promise<void> {
    const i = this.#members.findIndex(({ entry }) => entry.id === event.endpoint);
    const { conditions } = this.#fleet;
    switch (event.kind) {
      case "endpoint-cordoned":
      case "endpoint-uncordoned":
        return void this.#intake.accept(event);
      case "endpoint-left":
        this.#removed.add(i);
        return this.#members[i]!.remove(this.#at);
      case "answers-cut":
        return this.#reset(i);
      case "engine-killed":
        conditions[i] = "dead";
        this.#fleet.stop(this.#at, i);
        await this.#engines[i]!.deafen();
        return this.#reset(i);
      case "engine-vanished":
        conditions[i] = "vanished";
        this.#fleet.stop(this.#at, i);
        return this.#engines[i]!.deafen();
      case "engine-hung":
        conditions[i] = "hung";
        return this.#fleet.stop(this.#at, i);
      case "engine-asleep":
        conditions[i] = "asleep";
        this.#fleet.forget(this.#at, i);
        return this.#fleet.stop(this.#at, i);
      case "engine-awake":
      case "engine-continued":
        conditions[i] = "serving";
        this.#fleet.start(this.#at, i);
        for (const request of this.#held[i]!.splice(0)) {
          if (!request.open) continue;
          this.#engines[i]!.begin(request);
          this.#submit(i, request);
        }
        return;
      case "engine-draining":
        conditions[i] = "draining";
        return;
      case "engine-refusing":
        conditions[i] = "refusing";
        return;
      case "engine-started":
        if (conditions[i] === "dead") {
          this.#fleet.replace(this.#at, i);
          this.#anew.add(i);
          this.#steps[i] = 0;
          await this.#engines[i]!.listen();
        }
        conditions[i] = "serving";
    }
  }

  /** Connections break one after the other, in the order in which their requests came to the gateway. */
  async #reset(i: number): Promise<void> {
    const placeOf = ({ request }: Aboard) => this.words.numberOf(request.id);
    const aboard = [...this.#aboard[i]!.values()].sort((a, b) => placeOf(a) - placeOf(b));
    for (const { flight, request } of aboard) {
      this.#fleet.abort(this.#at, flight);
      await this.#break(i, request);
    }
    for (const request of this.#held[i]!.splice(0)) await this.#break(i, request);
  }

  async #break(i: number, request: SocketRequest): Promise<void> {
    if (!request.open) return;
    const known = this.words.all.length;
    this.#engines[i]!.reset(request);
    await this.#settle(known + 1);
  }

  #sweeps(): void {
    if (this.#sweep === undefined) return;
    this.#later(this.#at + RULES.sweepMicros, 3, () => this.#sweeps());
    this.#sweep();
  }

  /** As the keeper of a server probes it; what a page says is an engine's gauges. */
  #probe(i: number): void {
    if (this.#removed.has(i) || this.#members[i]!.entry.state === "lost") return;
    const sentAt = this.#at;
    const condition = this.#fleet.conditions[i]!;
    if (condition === "hung") return this.#later(sentAt + RULES.probeMicrosMax, 3, () => this.#await(i, sentAt, 1));
    this.#later(sentAt + SCRAPE_MICROS, 3, () => this.#probe(i));
    if (condition === "dead" || condition === "vanished") this.#unreachable(i);
    else this.#read(i);
  }

  #await(i: number, sentAt: Micros, waited: number): void {
    const condition = this.#fleet.conditions[i]!;
    if (condition === "hung") {
      this.#hangs.probed(endpointId(i), "none");
      if (waited === 1) return this.#later(this.#at + RULES.probeMicrosMax, 3, () => this.#await(i, sentAt, 2));
    } else if (condition === "dead" || condition === "vanished") this.#unreachable(i);
    else if (waited === 2) this.#hangs.probed(endpointId(i), "health");
    else this.#read(i);
    const next = sentAt + (Math.floor((this.#at - sentAt) / SCRAPE_MICROS) + 1) * SCRAPE_MICROS;
    this.#later(next, 3, () => this.#probe(i));
  }

  #unreachable(i: number): void {
    if (!this.#judges[i]!.unreachable(this.#at)) return;
    this.#judges[i] = new LostJudge(RULES.lostAfterMicros);
    this.#members[i]!.lose(this.#at, "nobody accepts a connection");
    this.#asks(i, 0);
  }

  #asks(i: number, attempt: number): void {
    if (this.#fleet.conditions[i] === "serving") {
      this.#anew.delete(i);
      this.#members[i]!.join(this.#at, MODELS, undefined);
      return this.#probe(i);
    }
    const pause = Math.round(returnPause(endpointId(i), attempt, RULES.returns));
    this.#later(this.#at + pause, 3, () => this.#asks(i, attempt + 1));
  }

  #read(i: number): void {
    const endpoint = endpointId(i);
    this.#judges[i]!.reached();
    if (this.#anew.delete(i)) this.#intake.accept({ kind: "blocks-cleared", at: this.#at, endpoint });
    this.#members[i]!.sleeps(this.#at, this.#fleet.conditions[i] === "asleep" ? "emptied" : "awake");
    const { running, waiting, kvUtilization, steps } = this.#fleet.gauges(this.#at, i);
    const load = { ...NO_LOAD, running, waiting, kvUtilization };
    this.#intake.accept({ kind: "load-observed", at: this.#at, endpoint, load });
    this.#hangs.probed(endpoint, steps === this.#steps[i] ? "static" : "moving");
    this.#steps[i] = steps;
  }
}

const NO_LOAD = {
  prefixHitRatio: undefined,
  ttftMicros: undefined,
  tpotMicros: undefined,
  tokensPerSecond: undefined,
  adaptersRunning: undefined,
  adaptersWaiting: undefined,
  adaptersMax: undefined,
  watts: undefined,
  smUtilization: undefined,
};

function before(one: Due, other: Due): boolean {
  return one.at < other.at || (one.at === other.at && one.rank < other.rank);
}
