import type { AdmissionPolicy } from "../admission/admission.ts";
import { TakenOver } from "../admission/windows-elsewhere.ts";
import type { PeerNews, PeerReported } from "../request/peer-news.ts";
import { RecentMap } from "../base/recent-map.ts";

/**
 * From which lives of peers limits took over what was used before this router started. From each it is done once, and
 * never from one whose reports are known from the first: its requests were counted as they came.
 */
export class PeerWindows {
  readonly #lives: RecentMap<string, number>;

  constructor(peersMax: number) {
    this.#lives = new RecentMap(peersMax);
  }

  lacks(peer: string, epoch: number): boolean {
    return this.#lives.get(peer) !== epoch;
  }

  /** What was taken over from a report that is not to be ignored. */
  take(limits: ReadonlyMap<string, AdmissionPolicy>, report: PeerReported): TakenOver | undefined {
    const { at, peer, epoch, sequence, snapshot, news } = report;
    if (!this.lacks(peer, epoch)) return undefined;
    const windows = snapshot === true ? news.filter(isWindow) : [];
    if (windows.length > 0 || sequence === 1) this.#lives.set(peer, epoch);
    if (windows.length === 0) return undefined;
    const taken = new TakenOver();
    for (const window of windows) taken.take(limits, at, window);
    return taken;
  }
}

function isWindow(news: PeerNews): news is PeerNews & { readonly kind: "window" } {
  return news.kind === "window";
}
