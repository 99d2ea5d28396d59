/** What is shared: a text and how often it was replaced. */
export interface SharedText {
  /** Counts up from 1. */
  readonly revision: number;
  readonly text: string;
}

/** Where the replicas of a gateway keep what all of them follow, by key. Values are small and change seldom. */
export interface SharedStore {
  /** Undefined where there is none. */
  read(key: string): Promise<SharedText | undefined>;
  /**
   * Replaces a value whose revision is still that one (0: there is none) and returns the new revision; undefined where
   * somebody else was quicker, and then nothing has changed.
   */
  replace(key: string, revision: number, text: string): Promise<number | undefined>;
  /** Notified of every value that changes from now on, by whomever; it may miss some in between. Returns how to end it. */
  watch(key: string, changed: (value: SharedText) => void): () => void;
}

/** A store of one process: for gateways that share one, and for tests of those that do not. */
export class MemoryStore implements SharedStore {
  readonly #values = new Map<string, SharedText>();
  readonly #watchers = new Map<string, Set<(value: SharedText) => void>>();

  read(key: string): Promise<SharedText | undefined> {
    return Promise.resolve(this.#values.get(key));
  }

  replace(key: string, revision: number, text: string): Promise<number | undefined> {
    if ((this.#values.get(key)?.revision ?? 0) !== revision) return Promise.resolve(undefined);
    const value = { revision: revision + 1, text };
    this.#values.set(key, value);
    for (const changed of this.#watchers.get(key) ?? []) queueMicrotask(() => changed(value));
    return Promise.resolve(value.revision);
  }

  watch(key: string, changed: (value: SharedText) => void): () => void {
    const watchers = this.#watchers.get(key) ?? new Set();
    this.#watchers.set(key, watchers.add(changed));
    return () => watchers.delete(changed);
  }
}
