import type { RouteRequest } from "../request/request.ts";
import { BoundedTenants } from "../tenant/bounded-tenants.ts";
import type { Micros } from "../base/units.ts";
import { ADMIT, type Admission, type AdmissionPolicy, type OnLimit, type UsedWindows, above } from "./admission.ts";
import type { LimitUse } from "./limit-use.ts";
import type { LimitWindow } from "./limit-window.ts";
import { type Subject, subjectOf } from "./subject.ts";

export interface RateLimitOptions {
  /** Requests admitted in any window at most. */
  readonly requestsMax: number;
  readonly windowMicros: Micros;
  /** Who has a limit of their own. */
  readonly per: Subject;
  readonly onLimit: OnLimit;
}

/** Room for times that a subject begins with; it grows up to the limit. */
const TIMES_MIN = 16;
/** Groups of admissions that another router gets; all of a group count as its latest. */
const GROUPS_MAX = 16;

/** Times of the last admissions, the oldest overwritten first. */
interface Recent {
  times: Float64Array;
  next: number;
  count: number;
}

/** At most so many admissions in every window that slides over time: the one so many before must lie a window back. */
export class RateLimit implements AdmissionPolicy {
  readonly name = "rate-limit";
  readonly holds = false;
  readonly continues: boolean;
  readonly #options: RateLimitOptions;
  readonly #recents: BoundedTenants<Recent>;

  /** With `previous` admissions of before count on, if they are of the same subjects. */
  constructor(options: RateLimitOptions, previous?: RateLimit) {
    this.#options = options;
    const same = previous !== undefined && previous.#options.per === options.per;
    this.continues = same;
    this.#recents = same
      ? previous.#recents
      : new BoundedTenants(() => ({ times: new Float64Array(TIMES_MIN), next: 0, count: 0 }));
  }

  check(request: RouteRequest, at: Micros): Admission {
    const { requestsMax, windowMicros, per, onLimit } = this.#options;
    const recent = this.#recents.peek(subjectOf(per, request));
    if (recent === undefined || recent.count < requestsMax) return ADMIT;
    const { times, next } = recent;
    const freeAt = times[(next - requestsMax + times.length) % times.length]! + windowMicros;
    return at >= freeAt ? ADMIT : above(onLimit, "rate-limit", freeAt - at);
  }

  admitted(request: RouteRequest, at: Micros, requests = 1): void {
    const { requestsMax, per } = this.#options;
    const recent = this.#recents.of(subjectOf(per, request), at);
    // More than fill a window change nothing more.
    for (let i = 0; i < Math.min(requests, requestsMax); i++) this.#add(recent, at);
  }

  get windows(): UsedWindows {
    const { per, windowMicros } = this.#options;
    return {
      measure: `rate-limit ${per} ${windowMicros}`,
      subjectOf: (request) => subjectOf(per, request),
      list: (at) => this.#listed(at),
      raise: (at, window) => this.#raise(at, window),
    };
  }

  /** Counts: of each group, the oldest first, how long ago its latest admission was, and how many it has. */
  #listed(at: Micros): LimitWindow[] {
    const listed: LimitWindow[] = [];
    for (const [subject, recent] of this.#recents.entries()) {
      const ages = this.#timesOf(recent, at).map((time) => Math.round(at - time));
      const size = Math.ceil(ages.length / GROUPS_MAX);
      const counts: number[] = [];
      for (let from = 0; from < ages.length; from += size) {
        const group = ages.slice(from, from + size);
        counts.push(group.at(-1)!, group.length);
      }
      if (counts.length > 0) listed.push({ subject, passedMicros: 0, counts });
    }
    return listed.toReversed();
  }

  /** Those that are missing here come in by their times, the oldest first. */
  #raise(at: Micros, { subject, ageMicros = 0, counts }: LimitWindow): void {
    const { requestsMax, windowMicros } = this.#options;
    const theirs: number[] = [];
    for (let i = 0; i + 1 < counts.length; i += 2) {
      const time = at - counts[i]! - ageMicros;
      if (time <= at - windowMicros) continue;
      for (let n = 0; n < Math.min(counts[i + 1]!, requestsMax); n++) theirs.push(time);
    }
    if (theirs.length === 0) return;
    const recent = this.#recents.of(subject, at);
    const ours = this.#timesOf(recent, at);
    const missing = theirs.length - ours.length;
    if (missing <= 0) return;
    const all = [...ours, ...theirs.slice(0, missing)].toSorted((a, b) => a - b);
    recent.count = 0;
    recent.next = 0;
    for (const time of all.slice(-requestsMax)) this.#add(recent, time);
  }

  /** Of admissions in the window that ends now, the oldest first. */
  #timesOf({ times, next, count }: Recent, at: Micros): number[] {
    const kept = Math.min(count, this.#options.requestsMax);
    const ordered = Array.from({ length: kept }, (_, i) => times[(next - kept + i + times.length) % times.length]!);
    return ordered.filter((time) => time > at - this.#options.windowMicros);
  }

  #add(recent: Recent, at: Micros): void {
    const { requestsMax } = this.#options;
    if (recent.count === recent.times.length && recent.count < requestsMax) grow(recent, requestsMax);
    recent.times[recent.next] = at;
    recent.next = (recent.next + 1) % recent.times.length;
    recent.count = Math.min(recent.times.length, recent.count + 1);
  }

  ended(): void {}

  /** Admissions of the window that ends now. */
  uses(at: Micros): LimitUse[] {
    const { requestsMax: max, windowMicros } = this.#options;
    return Array.from(this.#recents.entries(), ([subject, { times, count }]) => {
      const used = times.subarray(0, Math.min(count, times.length)).filter((time) => time > at - windowMicros).length;
      return { subject, of: "requests", used, max } as const;
    });
  }
}

function grow(recent: Recent, requestsMax: number): void {
  const { times, next, count } = recent;
  const grown = new Float64Array(Math.min(requestsMax, 2 * times.length));
  for (let i = 0; i < count; i++) grown[i] = times[(next - count + i + times.length) % times.length]!;
  recent.times = grown;
  recent.next = count % grown.length;
}
