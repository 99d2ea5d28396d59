import { labelText, promFloat } from "./exposition.ts";

/** A cumulative histogram with its lines' text prepared, so that a scrape only joins strings. */
export class Histogram {
  readonly #bounds: readonly number[];
  readonly #counts: Float64Array;
  readonly #bucketHeads: readonly string[];
  readonly #countHead: string;
  readonly #sumHead: string;
  #sum = 0;
  #count = 0;

  /** @param bounds ascending upper bounds, without infinity */
  constructor(name: string, labels: Readonly<Record<string, string>>, bounds: readonly number[]) {
    this.#bounds = bounds;
    this.#counts = new Float64Array(bounds.length + 1);
    const heads = [...bounds, Number.POSITIVE_INFINITY];
    this.#bucketHeads = heads.map((le) => `${name}_bucket${labelText({ ...labels, le: promFloat(le) })} `);
    this.#countHead = `${name}_count${labelText(labels)} `;
    this.#sumHead = `${name}_sum${labelText(labels)} `;
  }

  get count(): number {
    return this.#count;
  }

  observe(value: number, times = 1): void {
    let index = 0;
    while (index < this.#bounds.length && value > (this.#bounds[index] ?? 0)) index++;
    this.#counts[index] = (this.#counts[index] ?? 0) + times;
    this.#count += times;
    this.#sum += value * times;
  }

  render(): string {
    let text = "";
    let total = 0;
    for (const [index, head] of this.#bucketHeads.entries()) {
      total += this.#counts[index] ?? 0;
      text += `${head}${promFloat(total)}\n`;
    }
    return `${text}${this.#countHead}${promFloat(this.#count)}\n${this.#sumHead}${promFloat(this.#sum)}\n`;
  }
}
