import type { LoggedText, SharedStore, SharedText } from "#serve/state/shared-store.ts";

/** A store of one process. While it is away it refuses everything. */
export class MemoryStore implements SharedStore {
  readonly #values = new Map<string, SharedText>();
  readonly #logs = new Map<string, LoggedText[]>();
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

  append(key: string, text: string): Promise<void> {
    if (this.isSilent) return new Promise(() => {});
    if (this.isAway) return Promise.reject(new Error("away"));
    const log = this.#logs.get(key) ?? [];
    this.#logs.set(key, [...log, { id: `${log.length + 1}-0`, text }]);
    return Promise.resolve();
  }

  logEnd(key: string): Promise<string> {
    if (this.isSilent) return new Promise(() => {});
    if (this.isAway) return Promise.reject(new Error("away"));
    return Promise.resolve(`${this.#logs.get(key)?.length ?? 0}-0`);
  }

  readLog(key: string, after: string, textsMax: number): Promise<readonly LoggedText[]> {
    if (this.isSilent) return new Promise(() => {});
    if (this.isAway) return Promise.reject(new Error("away"));
    const since = Number.parseInt(after);
    return Promise.resolve((this.#logs.get(key) ?? []).slice(since, since + textsMax));
  }

  /** It was restarted without what it held. */
  empty(): void {
    this.#values.clear();
    this.#logs.clear();
  }
}
