export type LabelTexts = Readonly<Record<string, string>>;

/** Label objects that stay the same between pages; forgotten when there are too many. */
export class SharedLabels {
  readonly #known = new Map<string, LabelTexts>();

  of(labels: LabelTexts): LabelTexts {
    const key = JSON.stringify(labels);
    const known = this.#known.get(key);
    if (known !== undefined) return known;
    if (this.#known.size >= SHARED_LABELS_MAX) this.#known.clear();
    this.#known.set(key, labels);
    return labels;
  }
}

const SHARED_LABELS_MAX = 20_000;
