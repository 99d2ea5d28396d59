import type { SourceRow, SourceStatus } from "./source-status.ts";

/** All sources of endpoints that this process follows, in order of their names. */
export class SourceBoard {
  readonly #statuses = new Map<string, SourceStatus>();

  add(status: SourceStatus): void {
    this.#statuses.set(status.source, status);
  }

  remove(status: SourceStatus): void {
    if (this.#statuses.get(status.source) === status) this.#statuses.delete(status.source);
  }

  rows(): SourceRow[] {
    return [...this.#statuses.values()].map(({ row }) => row).sort((a, b) => (a.source < b.source ? -1 : 1));
  }
}
