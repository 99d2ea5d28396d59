import type { PeerWindow } from "../request/peer-news.ts";
import type { Micros } from "../base/units.ts";
import type { AdmissionPolicy } from "./admission.ts";

/** Windows that one report has at most; beyond, those that used something longest ago are left out. */
const WINDOWS_MAX = 4_096;

type Limits = ReadonlyMap<string, AdmissionPolicy>;

/** What is used of each limit, for a router that starts, and how many windows there was no room for. */
export function windowsOf(limits: Limits, at: Micros): { readonly windows: PeerWindow[]; readonly leftOut: number } {
  const windows: PeerWindow[] = [];
  let leftOut = 0;
  for (const [limit, { windows: used }] of limits) {
    if (used === undefined) continue;
    const listed = used.list(at);
    const room = Math.min(listed.length, WINDOWS_MAX - windows.length);
    leftOut += listed.length - room;
    for (const window of listed.slice(0, room))
      windows.push({ kind: "window", limit, measure: used.measure, ...window });
  }
  return { windows, leftOut };
}

/** Names of limits and subjects whose windows were taken over: what is in flight elsewhere is in them already. */
export class TakenOver {
  readonly #keys = new Set<string>();

  take(limits: Limits, at: Micros, window: PeerWindow): void {
    const used = limits.get(window.limit)?.windows;
    if (used?.measure !== window.measure) return;
    used.raise(at, window);
    this.#keys.add(`${window.limit}\n${window.subject}`);
  }

  has(limit: string, subject: string): boolean {
    return this.#keys.has(`${limit}\n${subject}`);
  }
}
