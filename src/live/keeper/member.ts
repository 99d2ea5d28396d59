import type { Endpoint, EndpointId, Load } from "#core/endpoint/endpoint.ts";
import type { Micros } from "#core/base/units.ts";
import type { EndpointDirectory, EndpointEntry, ServedModel } from "../endpoints/endpoint-directory.ts";
import type { KeeperEvent } from "../endpoints/keeper-event.ts";
import type { Intake } from "../base/intake.ts";
import type { EnginePage } from "../scrape/scrape-map.ts";
import {
  blockTokensOf,
  capacityTokensOf,
  dataParallelOf,
  loadOf,
  type SignalReading,
  readingOf,
  restarted,
  sleepOf,
  workedBetween,
} from "../scrape/scrape-map-load.ts";
import type { Target } from "../endpoints/target.ts";

/** Of an endpoint that was listed and not reached for yet. */
export const NOT_ASKED = "not asked yet";

/** Power and activity of an endpoint's devices, where something reads them. */
export type HardwareOf = (
  endpoint: EndpointId,
  labels: Readonly<Record<string, string>>,
) => Pick<Load, "watts" | "smUtilization">;

/** Is notified of tokens per block of engines' caches. */
export interface BlockSizeListener {
  reported(endpoint: EndpointId, blockTokens: number, at: Micros): void;
  gone(endpoint: EndpointId, at: Micros): void;
}

/** What of an endpoint others want to know, or know themselves. */
export interface MemberContext {
  readonly hardwareOf?: HardwareOf;
  readonly blockSizes?: BlockSizeListener;
  readonly report?: (event: KeeperEvent) => void;
}

/** One endpoint of a server: its entry in the directory, and what of it the router was notified of. */
export class Member {
  readonly entry: EndpointEntry;
  readonly #intake: Intake;
  readonly #directory: EndpointDirectory;
  readonly #context: MemberContext;
  #target: Target;
  /** What its engine lists. */
  #listed: readonly ServedModel[] = [];
  /** As the router knows it; undefined while it is not in the router. */
  #endpoint: Endpoint | undefined;
  #cordoned = false;
  #asleep = false;
  #reading: SignalReading | undefined;
  /** What the engine reported of its room, kept while a page leaves it out. */
  #capacityTokens: number | undefined;
  /** Ranks that its page shows together. */
  #dataParallel = 1;

  constructor(target: Target, intake: Intake, directory: EndpointDirectory, context: MemberContext = {}) {
    this.#target = target;
    this.#intake = intake;
    this.#directory = directory;
    this.#context = context;
    const { id, url, dataParallelRank, apiKey, labels, serverName } = target;
    const named = serverName === undefined ? {} : { serverName };
    this.entry = {
      ...named,
      id,
      url,
      dataParallelRank,
      apiKey,
      state: "waiting",
      detail: NOT_ASKED,
      models: [],
      labels,
    };
    directory.add(this.entry);
  }

  /** Enters the router. `page` is the server's first, if it gave one. */
  join(at: Micros, models: readonly ServedModel[], page: EnginePage | undefined): void {
    this.#takeModels(models);
    this.entry.state = "ready";
    this.entry.detail = "";
    this.#reading = page && readingOf(at, page, this.#target.dataParallelRank);
    this.#capacityTokens = this.#reading && capacityTokensOf(this.#reading);
    this.#dataParallel = this.#reading === undefined ? 1 : dataParallelOf(this.#reading);
    if (this.#reading !== undefined) this.#tellBlocks(at, this.#reading);
    const endpoint = this.#describe();
    const { id } = endpoint;
    this.#endpoint = endpoint;
    this.#cordoned = false;
    this.#intake.accept({ kind: "endpoint-joined", at, endpoint });
    this.#cordon(at);
    if (this.#reading === undefined) return;
    this.sleeps(at, sleepOf(this.#reading));
    this.#intake.accept({ kind: "load-observed", at, endpoint: id, load: this.#load(this.#reading, undefined) });
  }

  /** The server lists other models now, such as a new adapter. */
  remodel(at: Micros, models: readonly ServedModel[]): void {
    this.#takeModels(models);
    this.#report(at);
  }

  /** Its source reports something new of it. */
  retarget(at: Micros, target: Target): void {
    this.#target = target;
    this.entry.labels = target.labels;
    if (this.#endpoint !== undefined) this.#takeModels(this.#listed);
    this.#report(at);
    if (this.#endpoint !== undefined) this.#cordon(at);
  }

  /**
   * Reports to the router the load that a page shows. A page that does not speak of this rank is passed over: its
   * signals age then, as after a failed scrape. An engine that was started anew holds no blocks any more. Returns
   * whether the engine did any work since the last page, undefined where its pages do not show that.
   */
  observe(at: Micros, page: EnginePage): boolean | undefined {
    const reading = readingOf(at, page, this.#target.dataParallelRank);
    if (this.#endpoint === undefined || reading === undefined) return undefined;
    const worked = this.#reading && workedBetween(reading, this.#reading);
    const endpoint = this.#target.id;
    let before = this.#reading;
    if (before !== undefined && restarted(reading, before)) {
      this.#intake.accept({ kind: "blocks-cleared", at, endpoint });
      before = undefined;
    }
    this.#reading = reading;
    this.#tellBlocks(at, reading);
    this.sleeps(at, sleepOf(reading));
    this.#intake.accept({ kind: "load-observed", at, endpoint, load: this.#load(reading, before) });
    const capacityTokens = capacityTokensOf(reading) ?? this.#capacityTokens;
    const dataParallel = dataParallelOf(reading);
    if (capacityTokens !== this.#capacityTokens || dataParallel !== this.#dataParallel) {
      this.#capacityTokens = capacityTokens;
      this.#dataParallel = dataParallel;
      this.#report(at);
    }
    return worked;
  }

  /** Its engine's cache was emptied. */
  emptied(at: Micros): void {
    if (this.#endpoint !== undefined) this.#intake.accept({ kind: "blocks-cleared", at, endpoint: this.#target.id });
  }

  /** Its page shows whether its engine sleeps, or has no word of it. */
  sleeps(at: Micros, state: ReturnType<typeof sleepOf>): void {
    const asleep = state === "paused" || state === "emptied";
    if (state === undefined || this.#endpoint === undefined || asleep === this.#asleep) return;
    this.#asleep = asleep;
    const { id } = this.#target;
    const emptied = state === "emptied" && { emptied: true as const };
    this.#directory.sleep(id, asleep);
    this.#intake.accept({ kind: "endpoint-slept", at, endpoint: id, asleep, ...emptied });
    const detail = `its page shows vllm:engine_sleep_state awake ${asleep ? 0 : 1}`;
    this.#context.report?.({ kind: asleep ? "asleep" : "awake", subject: id, detail });
  }

  /** Its server's health checks fail from now on, or do not any more. */
  checked(at: Micros, healthy: boolean): void {
    if (this.#endpoint === undefined) return;
    this.#intake.accept({ kind: "endpoint-checked", at, endpoint: this.#target.id, healthy });
  }

  /** Leaves the router, which forgets its cache; the directory keeps it. */
  lose(at: Micros, detail: string): void {
    this.entry.state = "lost";
    this.entry.detail = detail;
    this.#leave(at, true);
  }

  remove(at: Micros): void {
    this.#leave(at, false);
    this.#directory.remove(this.#target.id);
  }

  #takeModels(listed: readonly ServedModel[]): void {
    this.#listed = listed;
    const { models } = this.#target;
    this.entry.models =
      models?.map((id) => listed.find((model) => model.id === id) ?? { id, object: "model" }) ?? listed;
  }

  #load(reading: SignalReading, before: SignalReading | undefined): Load {
    const load = loadOf(reading, before);
    const { id, labels } = this.#target;
    const { hardwareOf } = this.#context;
    return hardwareOf === undefined ? load : { ...load, ...hardwareOf(id, labels) };
  }

  #tellBlocks(at: Micros, reading: SignalReading): void {
    const blockTokens = blockTokensOf(reading);
    if (blockTokens === undefined) return;
    this.entry.blockTokens = blockTokens;
    this.#context.blockSizes?.reported(this.#target.id, blockTokens, at);
  }

  #leave(at: Micros, lost: boolean): void {
    if (this.#endpoint === undefined) return;
    this.#endpoint = undefined;
    this.#asleep = false;
    this.#directory.sleep(this.#target.id, false);
    this.#intake.accept({ kind: "endpoint-left", at, endpoint: this.#target.id, ...(lost && { lost }) });
    this.#context.blockSizes?.gone(this.#target.id, at);
  }

  #report(at: Micros): void {
    if (this.#endpoint === undefined) return;
    const endpoint = this.#describe();
    if (JSON.stringify(endpoint) === JSON.stringify(this.#endpoint)) return;
    this.#endpoint = endpoint;
    this.#intake.accept({ kind: "endpoint-changed", at, endpoint });
  }

  #cordon(at: Micros): void {
    const { cordoned, id } = this.#target;
    if (cordoned === this.#cordoned) return;
    this.#cordoned = cordoned;
    this.#intake.accept({ kind: cordoned ? "endpoint-cordoned" : "endpoint-uncordoned", at, endpoint: id });
  }

  #describe(): Endpoint {
    const { id, labels, kvCapacityTokens, concurrencyMax, stepTimes } = this.#target;
    return {
      id,
      models: this.entry.models.map((model) => model.id),
      labels,
      kvCapacityTokens: this.#capacityTokens ?? kvCapacityTokens,
      concurrencyMax,
      ...(this.#dataParallel > 1 ? { dataParallel: this.#dataParallel } : {}),
      ...(stepTimes && { stepTimes }),
    };
  }
}
