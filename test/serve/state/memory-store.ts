import type { SharedStore, SharedText } from "#serve/state/shared-store.ts";

/** A store of one process. While it is away it refuses everything. */
export class MemoryStore implements SharedStore {
  readonly #values = new Map<string, SharedText>();
  isAway = false;
  /** It is there, and answers nothing. */
  isSilent = false;

  read(key: string): Promise<SharedText | undefined> {
    if (this.isSilent) return new Promise(() => {});
    if (this.isAway) return Promise.reject(new Error("away"));
    return Promise.resolve(this.#values.get(key));
  }

  replace(key: string, revision: number, text: string): Promise<number | undefined> {
    if (this.isSilent) return new Promise(() => {});
    if (this.isAway) return Promise.reject(new Error("away"));
    if ((this.#values.get(key)?.revision ?? 0) !== revision) return Promise.resolve(undefined);
    this.#values.set(key, { revision: revision + 1, text });
    return Promise.resolve(revision + 1);
  }

  /** It was restarted without what it held. */
  empty(): void {
    this.#values.clear();
  }
}
