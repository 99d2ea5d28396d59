import { Agent } from "undici";
import type { EndpointId, Load } from "#core/endpoint/endpoint.ts";
import { MICROS_PER_MILLI, type Micros } from "#core/base/units.ts";
import { inTurns, STAYS } from "../base/loop-turn.ts";
import { type DeviceReading, dcgmPage } from "./dcgm-page.ts";
import { askEngine } from "../endpoints/engine-request.ts";

/** Labels that a GPU's series must have to belong to an endpoint; a value may list several, separated by commas. */
export type DeviceMatch = Readonly<Record<string, string>>;

export interface PowerOptions {
  /** Addresses of dcgm-exporter's metrics pages. */
  readonly exporters: readonly string[];
  /** Which GPUs an endpoint runs on. One that is left out has those whose `pod` label is its own. */
  readonly devices: Readonly<Record<EndpointId, DeviceMatch>>;
  readonly intervalMillis: number;
  readonly timeoutMillis: number;
  readonly staleAfterMillis: number;
  /** Of one page. */
  readonly pageBytesMax: number;
  readonly now: () => Micros;
}

export type PowerReading = Pick<Load, "watts" | "smUtilization">;

const NO_READING: PowerReading = { watts: undefined, smUtilization: undefined };

/** Label under which Kubernetes discovery keeps a pod's name. */
const POD_LABEL = "kubernetes.io/pod";

interface Page {
  readonly at: Micros;
  readonly devices: readonly DeviceReading[];
}

/** Reads DCGM exporters on a timer, and reports what an endpoint's GPUs draw and how busy they are. */
export class PowerKeeper {
  /** Pages that could not be had, and lines that could not be read. */
  readonly counts = { scrapes: 0, errors: 0, malformedLines: 0 };
  readonly #options: PowerOptions;
  readonly #pages = new Map<string, Page>();
  readonly #dispatcher = new Agent({ connections: 1, pipelining: 1, allowH2: false });
  readonly #stop = new AbortController();
  #timer: NodeJS.Timeout | undefined;
  #underWay: Promise<void> = Promise.resolve();
  #busy = false;

  constructor(options: PowerOptions) {
    this.#options = options;
  }

  start(): void {
    if (this.#options.exporters.length === 0) return;
    const turn = () => {
      if (!this.#busy) this.#underWay = this.scrape();
    };
    this.#timer = setInterval(turn, this.#options.intervalMillis);
    this.#timer.unref();
    turn();
  }

  /** Reads every exporter once. Never rejects. */
  async scrape(): Promise<void> {
    this.#busy = true;
    await Promise.all(this.#options.exporters.map((url) => this.#scrapeOne(url)));
    this.#busy = false;
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    this.#stop.abort();
    await this.#underWay;
    await this.#dispatcher.destroy();
  }

  /** Power summed and activity averaged over the endpoint's GPUs, in pages that are not too old. */
  of(endpoint: EndpointId, labels: Readonly<Record<string, string>>): PowerReading {
    const own = this.#options.devices[endpoint];
    const pod = labels[POD_LABEL];
    const match = own ?? (pod === undefined ? undefined : { pod });
    if (match === undefined || this.#pages.size === 0) return NO_READING;
    const oldest = this.#options.now() - this.#options.staleAfterMillis * MICROS_PER_MILLI;
    const devices = [...this.#pages.values()].flatMap((page) => (page.at < oldest ? [] : page.devices));
    const mine = devices.filter((device) => belongs(device, match));
    const watts = known(mine.map((device) => device.watts));
    const activity = known(mine.map((device) => device.smUtilization));
    return {
      watts: watts.length === 0 ? undefined : sum(watts),
      smUtilization: activity.length === 0 ? undefined : sum(activity) / activity.length,
    };
  }

  async #scrapeOne(url: string): Promise<void> {
    const { timeoutMillis, pageBytesMax, now } = this.#options;
    this.counts.scrapes++;
    const ask = { dispatcher: this.#dispatcher, apiKey: undefined, timeoutMillis, stop: this.#stop.signal };
    const answer = await askEngine(url, { ...ask, bytesMax: pageBytesMax });
    if (answer.kind === "failed") {
      this.counts.errors++;
      return;
    }
    const { devices, malformed } = await inTurns(dcgmPage(answer.text), STAYS);
    this.counts.malformedLines += malformed;
    this.#pages.set(url, { at: now(), devices });
  }
}

function belongs({ labels }: DeviceReading, match: DeviceMatch): boolean {
  return Object.entries(match).every(([name, values]) => {
    const value = labels.get(name);
    return value !== undefined && values.split(",").some((accepted) => accepted.trim() === value);
  });
}

function known(values: readonly (number | undefined)[]): number[] {
  return values.filter((value) => value !== undefined);
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
