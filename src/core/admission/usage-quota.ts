import type { RouteRequest } from "../request/request.ts";
import { BoundedTenants } from "../tenant/bounded-tenants.ts";
import type { Micros } from "../base/units.ts";
import {
  ADMIT,
  type Admission,
  type AdmissionPolicy,
  type OnLimit,
  type UsedTokens,
  type UsedWindows,
  above,
} from "./admission.ts";
import { type LimitUse, tenantOfSubject } from "./limit-use.ts";
import type { LimitWindow } from "./limit-window.ts";
import { type Subject, subjectOf } from "./subject.ts";

/** What a window may hold at most; no bound where it is left out. */
export interface UsageBounds {
  readonly requestsMax?: number | undefined;
  readonly promptTokensMax?: number | undefined;
  readonly outputTokensMax?: number | undefined;
}

export interface UsageQuotaOptions extends UsageBounds {
  readonly windowMicros: Micros;
  /** Who has a quota of their own. */
  readonly per: Subject;
  /** Others for named tenants. */
  readonly byTenant: Readonly<Record<string, UsageBounds>>;
  /** Output tokens that a request is taken to need where its client set no ceiling. */
  readonly outputTokensAssumed: number;
  readonly onLimit: OnLimit;
}

/** Requests, prompt tokens, output tokens. */
type Counts = [number, number, number];
const COUNTED = ["requests", "prompt-tokens", "output-tokens"] as const;

interface Window {
  /** How far its windows lie before those that begin at time 0, as they did where it was counted first. */
  shiftMicros: number;
  /** Number of the window that `now` counts. */
  number: number;
  now: Counts;
  before: Counts;
}

/**
 * What each tenant (or user, or model) may use in a window of time, estimated from two counts:
 *
 *     used(t) = count of this window + count of the one before * the share of it that a window ending at t covers
 *
 * At its admission a request takes its prompt and the most that it may generate; at its end what it did not need is given
 * back, and what it used beyond that is taken. A request that never fits, being dearer than the whole quota, is refused.
 */
export class UsageQuota implements AdmissionPolicy {
  readonly name = "usage-quota";
  readonly holds = false;
  readonly continues: boolean;
  readonly #options: UsageQuotaOptions;
  readonly #windows: BoundedTenants<Window>;

  /** With `previous` what was used counts on, if it is of the same subjects and windows. */
  constructor(options: UsageQuotaOptions, previous?: UsageQuota) {
    this.#options = options;
    const { per, windowMicros } = options;
    const same =
      previous !== undefined && previous.#options.per === per && previous.#options.windowMicros === windowMicros;
    this.continues = same;
    this.#windows = same
      ? previous.#windows
      : new BoundedTenants((at) => {
          const number = numberAt(at, windowMicros);
          return { shiftMicros: 0, number, now: [0, 0, 0], before: [0, 0, 0] };
        });
  }

  check(request: RouteRequest, at: Micros): Admission {
    const { per, windowMicros, onLimit } = this.#options;
    const bounds = this.#boundsOf(request.tenant);
    const cost = this.#costOf(request);
    const window = this.#windows.peek(subjectOf(per, request));
    let waits = 0;
    for (let i = 0; i < cost.length; i++) {
      if (cost[i]! > bounds[i]!) return { action: "reject", reason: "usage-quota" };
      waits = Math.max(waits, waitMicros(window, i, bounds[i]! - cost[i]!, at, windowMicros));
    }
    return waits === 0 ? ADMIT : above(onLimit, "usage-quota", waits);
  }

  admitted(request: RouteRequest, at: Micros, requests = 1): void {
    const [count, promptTokens, outputTokens] = this.#costOf(request);
    this.#add(request, at, [requests * count, requests * promptTokens, requests * outputTokens]);
  }

  ended(request: RouteRequest, at: Micros, { promptTokens, outputTokens }: UsedTokens): void {
    const [, prompt, output] = this.#costOf(request);
    this.#add(request, at, [0, promptTokens - prompt, outputTokens === undefined ? 0 : outputTokens - output]);
  }

  uses(at: Micros): LimitUse[] {
    const { per, windowMicros } = this.#options;
    const uses: LimitUse[] = [];
    for (const [subject, window] of this.#windows.entries()) {
      this.#boundsOf(tenantOfSubject(per, subject)).forEach((max, i) => {
        if (max !== Infinity) uses.push({ subject, of: COUNTED[i]!, used: usedAt(window, i, at, windowMicros), max });
      });
    }
    return uses;
  }

  get windows(): UsedWindows {
    const { per, windowMicros } = this.#options;
    return {
      measure: `usage-quota ${per} ${windowMicros}`,
      subjectOf: (request) => subjectOf(per, request),
      list: (at) => this.#listed(at),
      raise: (at, window) => this.#raise(at, window),
    };
  }

  #listed(at: Micros): LimitWindow[] {
    const { windowMicros } = this.#options;
    const listed: LimitWindow[] = [];
    for (const [subject, window] of this.#windows.entries()) {
      const counted = COUNTED.map((_, i) => countsAt(window, i, at, windowMicros));
      const counts = [...counted.map(([now]) => now), ...counted.map(([, before]) => before)].map(Math.round);
      if (counts.every((count) => count === 0)) continue;
      listed.push({ subject, passedMicros: Math.round(passedAt(window, at, windowMicros)), counts });
    }
    return listed.toReversed();
  }

  /** A subject that is new here gets the window with its beginning; else what is missing is added to the one there is. */
  #raise(at: Micros, { subject, passedMicros: passedThen, ageMicros = 0, counts }: LimitWindow): void {
    const { windowMicros } = this.#options;
    if (counts.length !== 2 * COUNTED.length || passedThen >= windowMicros) return;
    const theirs: Window = {
      shiftMicros: 0,
      number: 0,
      now: [counts[0]!, counts[1]!, counts[2]!],
      before: [counts[3]!, counts[4]!, counts[5]!],
    };
    turn(theirs, passedThen + ageMicros, windowMicros);
    theirs.number = 0;
    const passedMicros = (passedThen + ageMicros) % windowMicros;
    if ([...theirs.now, ...theirs.before].every((count) => count === 0)) return;
    const known = this.#windows.peek(subject);
    const ours = COUNTED.map((_, i) => (known === undefined ? 0 : usedAt(known, i, at, windowMicros)));
    const more = COUNTED.map((_, i) => usedAt(theirs, i, passedMicros, windowMicros) - ours[i]!);
    const window = this.#windows.of(subject, at);
    if (ours.every((used) => used === 0)) {
      window.shiftMicros = (((passedMicros - at) % windowMicros) + windowMicros) % windowMicros;
      window.number = numberAt(at + window.shiftMicros, windowMicros);
      window.now = theirs.now;
      window.before = theirs.before;
      return;
    }
    turn(window, at, windowMicros);
    more.forEach((count, i) => (window.now[i] = window.now[i]! + Math.max(0, count)));
  }

  #add(request: RouteRequest, at: Micros, cost: Counts): void {
    const { per, windowMicros } = this.#options;
    const window = this.#windows.of(subjectOf(per, request), at);
    turn(window, at, windowMicros);
    for (let i = 0; i < cost.length; i++) {
      // What is given back may have been taken in the window before.
      const left = window.now[i]! + cost[i]!;
      window.now[i] = Math.max(0, left);
      if (left < 0) window.before[i] = Math.max(0, window.before[i]! + left);
    }
  }

  #boundsOf(tenant: string | undefined): Counts {
    const { byTenant } = this.#options;
    const has = tenant !== undefined && Object.hasOwn(byTenant, tenant);
    const bounds: UsageBounds = has ? byTenant[tenant]! : this.#options;
    const { requestsMax = Infinity, promptTokensMax = Infinity, outputTokensMax = Infinity } = bounds;
    return [requestsMax, promptTokensMax, outputTokensMax];
  }

  #costOf({ promptTokens, outputTokensMax, sequences }: RouteRequest): Counts {
    return [1, promptTokens, (outputTokensMax ?? this.#options.outputTokensAssumed) * sequences];
  }
}

function numberAt(at: Micros, windowMicros: Micros): number {
  return Math.floor(at / windowMicros);
}

function passedAt({ shiftMicros }: Window, at: Micros, windowMicros: Micros): Micros {
  return (at + shiftMicros) % windowMicros;
}

/** Its counts are those of the window that `at` is in. */
function turn(window: Window, at: Micros, windowMicros: Micros): void {
  const number = numberAt(at + window.shiftMicros, windowMicros);
  if (number === window.number) return;
  window.before = number === window.number + 1 ? window.now : [0, 0, 0];
  window.now = [0, 0, 0];
  window.number = number;
}

/** How long until at most `room` is used, 0 where that is so. */
function waitMicros(window: Window | undefined, i: number, room: number, at: Micros, windowMicros: Micros): Micros {
  if (window === undefined || room === Infinity) return 0;
  const passed = passedAt(window, at, windowMicros);
  const [now, before] = countsAt(window, i, at, windowMicros);
  if (usedAt(window, i, at, windowMicros) <= room) return 0;
  const left = windowMicros - passed;
  if (now <= room) return Math.max(1, windowMicros * (1 - (room - now) / before) - passed);
  return left + windowMicros * (1 - room / now);
}

/** Counted in the window that `at` is in, and in the one before. */
function countsAt(window: Window, i: number, at: Micros, windowMicros: Micros): [now: number, before: number] {
  const age = numberAt(at + window.shiftMicros, windowMicros) - window.number;
  if (age > 1) return [0, 0];
  return age === 0 ? [window.now[i]!, window.before[i]!] : [0, window.now[i]!];
}

function usedAt(window: Window, i: number, at: Micros, windowMicros: Micros): number {
  const [now, before] = countsAt(window, i, at, windowMicros);
  const passed = passedAt(window, at, windowMicros);
  return now + before * (1 - passed / windowMicros);
}
