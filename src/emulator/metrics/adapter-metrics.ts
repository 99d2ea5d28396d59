import { MILLIS_PER_SECOND } from "#core/base/units.ts";
import { familyHead, labelText, promFloat } from "./exposition.ts";

/** Adapters that vLLM loads at once by default (--max-loras). */
const ADAPTERS_LOADED = "1";
/** Label sets kept; the oldest is forgotten first. */
const SERIES_MAX = 64;

/**
 * vLLM's family about LoRA requests: the state is in the labels, the value is the time at which it was last true, and
 * old label sets stay as further series.
 */
export class AdapterMetrics {
  readonly #running = new Map<string, number>();
  readonly #waiting = new Map<string, number>();
  readonly #series = new Map<string, number>();

  constructor() {
    this.touch();
  }

  queued(adapter: string): void {
    change(this.#waiting, adapter, 1);
  }

  admitted(adapter: string): void {
    change(this.#waiting, adapter, -1);
    change(this.#running, adapter, 1);
  }

  left(adapter: string, wasRunning: boolean): void {
    change(wasRunning ? this.#running : this.#waiting, adapter, -1);
  }

  /** Notes that what is counted now is true now. */
  touch(): void {
    const labels = labelText({
      max_lora: ADAPTERS_LOADED,
      running_lora_adapters: names(this.#running),
      waiting_lora_adapters: names(this.#waiting),
    });
    this.#series.delete(labels);
    this.#series.set(labels, Date.now() / MILLIS_PER_SECOND);
    const [oldest] = this.#series.keys();
    if (this.#series.size > SERIES_MAX && oldest !== undefined) this.#series.delete(oldest);
  }

  render(): string {
    const name = "vllm:lora_requests_info";
    const lines = [...this.#series].map(([labels, at]) => `${name}${labels} ${promFloat(at)}\n`);
    return [familyHead(name, "gauge", "Running stats on lora requests."), ...lines].join("");
  }
}

function change(counts: Map<string, number>, adapter: string, by: number): void {
  const count = (counts.get(adapter) ?? 0) + by;
  if (count > 0) counts.set(adapter, count);
  else counts.delete(adapter);
}

function names(counts: ReadonlyMap<string, number>): string {
  return [...counts.keys()].sort().join(",");
}
