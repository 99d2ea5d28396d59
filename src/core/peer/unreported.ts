import type { PeerCharged, PeerNews, PeerReleased, PeerUsed } from "../request/peer-news.ts";

/** Requests, and those whose use is counted together, that are kept; further ones are forgotten. */
const KEPT_MAX = 65_536;

/**
 * Requests that were let in while no report got through, and are over: what limits of others are to count once one does.
 * A request that is still in flight then comes with the snapshot.
 */
export class Unreported {
  /** First charges that were dropped, of requests in flight. */
  readonly #charges = new Map<number, PeerCharged>();
  readonly #used = new Map<string, PeerUsed>();
  /** Requests that no limit of others will count. */
  forgotten = 0;

  /** These news reach nobody. */
  dropped(news: readonly PeerNews[]): void {
    for (const one of news) {
      if (one.kind === "released") this.#released(one);
      else if (one.kind !== "charged" || one.attempt !== 1) continue;
      else if (this.#charges.size < KEPT_MAX) this.#charges.set(one.request, one);
      else this.forgotten++;
    }
  }

  /** What is to be sent first, now that `news` are sent, and after them a snapshot. */
  taken(news: readonly PeerNews[]): readonly PeerUsed[] {
    if (this.#charges.size === 0 && this.#used.size === 0) return NOTHING;
    for (const one of news) if (one.kind === "released") this.#released(one);
    const used = [...this.#used.values()];
    this.#used.clear();
    this.#charges.clear();
    return used;
  }

  #released({ request, promptTokens, outputTokens }: PeerReleased): void {
    const charged = this.#charges.get(request);
    if (charged === undefined) return;
    this.#charges.delete(request);
    const { model, tenant, user } = charged;
    const key = `${tenant}\n${user ?? ""}\n${model}`;
    const before = this.#used.get(key);
    if (before === undefined && this.#used.size >= KEPT_MAX) {
      this.forgotten++;
      return;
    }
    this.#used.set(key, {
      kind: "used",
      model,
      tenant,
      ...(user !== undefined && { user }),
      requests: (before?.requests ?? 0) + 1,
      promptTokens: (before?.promptTokens ?? 0) + (promptTokens ?? Math.round(charged.promptTokens)),
      outputTokens: (before?.outputTokens ?? 0) + (outputTokens ?? 0),
    });
  }
}

const NOTHING: readonly PeerUsed[] = [];
