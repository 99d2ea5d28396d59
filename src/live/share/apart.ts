import type { ApartReason, ApartRow, ShareEvent } from "./share-status.ts";

/** Replicas on the same link that this one does not listen to: reported when they come, shown while they are there. */
export class Apart {
  readonly #rows = new Map<string, { readonly reason: ApartReason; readonly detail: string; seenAt: number }>();
  readonly #report: (event: ShareEvent) => void;
  readonly #replicasMax: number;

  constructor(report: (event: ShareEvent) => void, replicasMax: number) {
    this.#report = report;
    this.#replicasMax = replicasMax;
  }

  rows(now: number): ApartRow[] {
    return Array.from(this.#rows, ([replica, { reason, detail, seenAt }]) => {
      return { replica, reason, detail, silentMillis: now - seenAt };
    });
  }

  seen(replica: string, reason: ApartReason, detail: string): void {
    const known = this.#rows.get(replica);
    if (known?.reason === reason) {
      known.seenAt = performance.now();
      return;
    }
    if (known === undefined && this.#rows.size >= this.#replicasMax) return;
    this.#rows.set(replica, { reason, detail, seenAt: performance.now() });
    this.#report({ kind: "sharing-refused", detail: `replica ${replica} is not listened to: ${detail}` });
  }

  left(replica: string): void {
    this.#rows.delete(replica);
  }

  /** Those that were silent since then are gone. */
  expire(since: number): void {
    for (const [replica, { seenAt }] of this.#rows) if (seenAt < since) this.#rows.delete(replica);
  }
}
