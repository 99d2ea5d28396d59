import type { RouteRequest } from "../request.ts";
import { BoundedTenants } from "../tenant/bounded-tenants.ts";
import type { Micros } from "../units.ts";
import { ADMIT, type Admission, type AdmissionPolicy, type OnLimit, type UsedTokens, above } from "./admission.ts";
import { type LimitUse, tenantOfSubject } from "./limit-use.ts";
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
      : new BoundedTenants((at) => ({ number: numberAt(at, windowMicros), now: [0, 0, 0], before: [0, 0, 0] }));
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

  #add(request: RouteRequest, at: Micros, cost: Counts): void {
    const { per, windowMicros } = this.#options;
    const window = this.#windows.of(subjectOf(per, request), at);
    const number = numberAt(at, windowMicros);
    if (number !== window.number) {
      window.before = number === window.number + 1 ? window.now : [0, 0, 0];
      window.now = [0, 0, 0];
      window.number = number;
    }
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

/** How long until at most `room` is used, 0 where that is so. */
function waitMicros(window: Window | undefined, i: number, room: number, at: Micros, windowMicros: Micros): Micros {
  if (window === undefined || room === Infinity) return 0;
  const passed = at - numberAt(at, windowMicros) * windowMicros;
  const [now, before] = countsAt(window, i, at, windowMicros);
  if (usedAt(window, i, at, windowMicros) <= room) return 0;
  const left = windowMicros - passed;
  if (now <= room) return Math.max(1, windowMicros * (1 - (room - now) / before) - passed);
  return left + windowMicros * (1 - room / now);
}

/** Counted in the window that `at` is in, and in the one before. */
function countsAt(window: Window, i: number, at: Micros, windowMicros: Micros): [now: number, before: number] {
  const age = numberAt(at, windowMicros) - window.number;
  if (age > 1) return [0, 0];
  return age === 0 ? [window.now[i]!, window.before[i]!] : [0, window.now[i]!];
}

function usedAt(window: Window, i: number, at: Micros, windowMicros: Micros): number {
  const [now, before] = countsAt(window, i, at, windowMicros);
  const passed = at - numberAt(at, windowMicros) * windowMicros;
  return now + before * (1 - passed / windowMicros);
}
