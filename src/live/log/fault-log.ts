/** Levels of lines about faults; what is normal is info, what needs eyes is warn, what loses data or is a defect error. */
export type FaultLevel = "info" | "warn" | "error";

/** Every kind of fault or change that an operator sees at level info, with its level and its sentence. */
export const FAULT_KINDS = {
  "attempt-failed": { level: "warn", message: "an attempt failed before the client got a byte" },
  "retry-denied": { level: "warn", message: "a retry was denied" },
  "answer-cut": { level: "warn", message: "an answer was cut after the client got a part of it" },
  "stream-continued": { level: "warn", message: "a stream broke and goes on at another endpoint" },
  "turned-away": { level: "warn", message: "a request was turned away that an endpoint had" },
  "client-stalled": { level: "warn", message: "a client did not read its answer" },
  "breaker-open": { level: "warn", message: "an endpoint's breaker opened" },
  "breaker-closed": { level: "info", message: "an endpoint's breaker closed" },
  "signals-stale": { level: "warn", message: "an endpoint's signals are stale" },
  "signals-slow": { level: "warn", message: "a profile is made for gauges that are read more often" },
  "signals-fresh": { level: "info", message: "an endpoint's signals are fresh again" },
  "endpoint-waiting": { level: "warn", message: "an endpoint is waited for" },
  "endpoint-ready": { level: "info", message: "an endpoint joined" },
  "endpoint-lost": { level: "warn", message: "an endpoint is lost" },
  "endpoint-hung": { level: "warn", message: "an endpoint hangs" },
  "gateway-stood-still": { level: "warn", message: "the gateway itself stood still" },
  "endpoint-returning": { level: "info", message: "an endpoint that hung is let back slowly" },
  "endpoint-removed": { level: "info", message: "an endpoint left" },
  "endpoint-refused": { level: "warn", message: "an endpoint was refused" },
  "endpoint-cordoned": { level: "info", message: "an endpoint takes no new requests" },
  "endpoint-uncordoned": { level: "info", message: "an endpoint takes requests again" },
  "endpoint-asleep": { level: "info", message: "an endpoint's engine was put to sleep" },
  "endpoint-awake": { level: "info", message: "an endpoint's engine is awake" },
  "endpoint-unhealthy": { level: "warn", message: "an endpoint's health checks fail" },
  "endpoint-healthy": { level: "info", message: "an endpoint's health checks succeed again" },
  "block-size-changed": { level: "info", message: "prompts are cut into blocks of another size" },
  "block-size-differs": { level: "warn", message: "an endpoint's block size differs" },
  "kv-events-alive": { level: "info", message: "an endpoint's KV events are followed" },
  "kv-events-lost": { level: "warn", message: "an endpoint's KV events are lost" },
  "sharing-lost": { level: "warn", message: "nothing is shared with other gateways" },
  "sharing-recovered": { level: "info", message: "news are shared with other gateways again" },
  "sharing-refused": { level: "warn", message: "what another gateway sent is not used" },
  "policy-changed": { level: "info", message: "the policy changed" },
  "rollout-step": { level: "info", message: "a rollout moved" },
  "rollout-taken-back": { level: "warn", message: "a rollout was taken back or paused by what was measured" },
  "rollout-refused": { level: "warn", message: "a rollout was refused" },
  "autopilot-proposed": { level: "info", message: "a better policy is proposed" },
  "autopilot-refused": { level: "warn", message: "a proposal could not be started" },
  "state-failed": { level: "error", message: "what survives a restart could not be written or read" },
  "state-written": { level: "info", message: "what survives a restart is written again" },
  "policy-refused": { level: "warn", message: "a change of policy was refused" },
  "tls-changed": { level: "info", message: "a certificate changed" },
  "tls-refused": { level: "warn", message: "a change of certificates was refused" },
  "keys-changed": { level: "info", message: "the clients' keys changed" },
  "keys-refused": { level: "warn", message: "a change of the clients' keys was refused" },
  "endpoint-adapter-failed": {
    level: "warn",
    message: "an endpoint that joined would not load an adapter that others were given",
  },
  "cache-emptied": { level: "info", message: "an engine's prefix cache was found empty" },
  "hits-never-come": { level: "warn", message: "prefix hits are expected of an engine, and none ever comes" },
  "endpoint-gets-nothing": { level: "warn", message: "an endpoint that is well gets no request, others do" },
  "forecasts-off": { level: "warn", message: "what is predicted is not what is observed" },
  "forecasts-unsure": { level: "warn", message: "forecasts are too far off to decide by" },
  "rollout-without-evidence": { level: "warn", message: "an arm of a rollout gets no request" },
  "source-failed": { level: "warn", message: "a source of endpoints failed" },
  "source-missing": { level: "warn", message: "what endpoints are taken from is not there" },
  "source-recovered": { level: "info", message: "a source of endpoints recovered" },
  "files-exhausted": { level: "error", message: "no more files can be opened" },
  "files-free": { level: "info", message: "files can be opened again" },
  "recorder-failed": { level: "error", message: "the recorder failed" },
  "recorder-recovered": { level: "info", message: "the recorder goes on" },
  "recorder-dropped": { level: "warn", message: "the recorder dropped records" },
  "spans-failed": { level: "warn", message: "spans could not be sent" },
  "spans-recovered": { level: "info", message: "spans are sent again" },
  "tap-failed": { level: "error", message: "a request of another router could not be observed" },
  "shadow-failed": { level: "warn", message: "the shadow failed" },
  "shadow-dropped": { level: "warn", message: "the shadow missed records" },
} as const satisfies Readonly<Record<string, { readonly level: FaultLevel; readonly message: string }>>;

export type FaultKind = keyof typeof FAULT_KINDS;

/** One fault and what was done about it. Holds no prompt and no key. */
export interface FaultEvent {
  readonly kind: FaultKind;
  /** Endpoint, server or source that it is about; left out where it is the gateway's own. */
  readonly endpoint?: string;
  readonly requestId?: string;
  /** What went wrong, in a few words. */
  readonly detail: string;
  /** What the gateway did about it, in a few words. */
  readonly done: string;
  /** Further numbers, with their units in the names. */
  readonly figures?: Readonly<Record<string, number>>;
}

export interface FaultLogOptions {
  readonly write: (level: FaultLevel, fields: Readonly<Record<string, unknown>>, message: string) => void;
  /** A clock that only grows, in milliseconds. */
  readonly nowMillis?: () => number;
}

/** So many lines of one kind in one window; what is beyond is counted and summed up in one line as the window ends. */
export const LINES_PER_WINDOW_MAX = 20;
export const WINDOW_MILLIS = 10_000;
/** Endpoints that such a line names one by one, those with the most first. */
const NAMED_MAX = 8;
/** Endpoints that are counted apart within one window; the others count together. */
const COUNTED_MAX = 64;
const TEXT_CHARS_MAX = 300;

interface Window {
  readonly sinceMillis: number;
  lines: number;
  withheld: number;
  readonly byEndpoint: Map<string, number>;
  timer: NodeJS.Timeout | undefined;
}

/**
 * Writes one line per fault, and when faults come in a storm, a bounded number of lines and then one that counts the
 * rest: at most LINES_PER_WINDOW_MAX + 1 lines of a kind in WINDOW_MILLIS.
 */
export class FaultLog {
  readonly #write: FaultLogOptions["write"];
  readonly #nowMillis: () => number;
  readonly #windows = new Map<FaultKind, Window>();
  /** Events without a line of their own, by kind. */
  readonly withheld: Partial<Record<FaultKind, number>> = {};

  constructor({ write, nowMillis = () => performance.now() }: FaultLogOptions) {
    this.#write = write;
    this.#nowMillis = nowMillis;
  }

  readonly report = (event: FaultEvent): void => {
    const window = this.#windowOf(event.kind);
    if (window.lines < LINES_PER_WINDOW_MAX) {
      window.lines++;
      this.#line(event);
    } else this.#withhold(event, window);
  };

  /** Writes what is still only counted. */
  close(): void {
    for (const kind of this.#windows.keys()) this.#end(kind);
  }

  #windowOf(kind: FaultKind): Window {
    const now = this.#nowMillis();
    const current = this.#windows.get(kind);
    if (current !== undefined && now - current.sinceMillis < WINDOW_MILLIS) return current;
    this.#end(kind);
    const window = { sinceMillis: now, lines: 0, withheld: 0, byEndpoint: new Map<string, number>(), timer: undefined };
    this.#windows.set(kind, window);
    return window;
  }

  #line({ kind, endpoint, requestId, detail, done, figures }: FaultEvent): void {
    const { level, message } = FAULT_KINDS[kind];
    const fields = {
      event: kind,
      ...(endpoint !== undefined && { endpoint }),
      ...(requestId !== undefined && { requestId }),
      detail: detail.slice(0, TEXT_CHARS_MAX),
      done: done.slice(0, TEXT_CHARS_MAX),
      ...figures,
    };
    this.#write(level, fields, message);
  }

  #withhold({ kind, endpoint = "" }: FaultEvent, window: Window): void {
    this.withheld[kind] = (this.withheld[kind] ?? 0) + 1;
    window.withheld++;
    const { byEndpoint } = window;
    const counted = byEndpoint.has(endpoint) || byEndpoint.size < COUNTED_MAX ? endpoint : "";
    byEndpoint.set(counted, (byEndpoint.get(counted) ?? 0) + 1);
    const left = WINDOW_MILLIS - (this.#nowMillis() - window.sinceMillis);
    window.timer ??= setTimeout(() => this.#end(kind), left).unref();
  }

  #end(kind: FaultKind): void {
    const window = this.#windows.get(kind);
    this.#windows.delete(kind);
    clearTimeout(window?.timer);
    if (window === undefined || window.withheld === 0) return;
    const { level, message } = FAULT_KINDS[kind];
    const named = [...window.byEndpoint]
      .filter(([endpoint]) => endpoint !== "")
      .sort(([, a], [, b]) => b - a)
      .slice(0, NAMED_MAX);
    const fields = {
      event: kind,
      withheld: window.withheld,
      windowMillis: Math.round(this.#nowMillis() - window.sinceMillis),
      ...(named.length > 0 && { byEndpoint: Object.fromEntries(named) }),
    };
    this.#write(level, fields, `${message}: ${window.withheld} more, without lines of their own`);
  }
}
