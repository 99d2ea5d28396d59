import type { EndpointEntry } from "../endpoints/endpoint-directory.ts";
import { countUp, type GatewayCounters } from "../base/gateway-counters.ts";
import { RequestHeaders } from "../http/headers.ts";
import type { EngineCaller } from "./engine-caller.ts";

/** Longest that an engine may take to cut one letter into tokens. */
const MILLIS_MAX = 5_000;
/** A kept connection may close just as it is used again. */
const TRIES_MAX = 2;
const SERVER_ERROR = 500;

interface Check {
  readonly done: Promise<boolean>;
  /** Begins once this one is over. */
  next: Promise<boolean> | undefined;
}

/**
 * Asks engines whether they still serve. One that shuts down aborts its answers, and vLLM calls an aborted answer of
 * /v1/responses completed; but it has given up its tokenizer before that, so that `/tokenize` shows which it was. At most one
 * question to an engine is under way, and one more waits, for all answers that ended meanwhile.
 */
export class ServingChecks {
  readonly #caller: EngineCaller;
  readonly #counters: GatewayCounters;
  readonly #checks = new Map<string, Check>();

  constructor(caller: EngineCaller, counters: GatewayCounters) {
    this.#caller = caller;
    this.#counters = counters;
  }

  /** Whether it served after this was asked. An engine that knows no such question serves; one that does not answer does not. */
  ask(entry: EndpointEntry): Promise<boolean> {
    const check = this.#checks.get(entry.url);
    if (check === undefined) return this.#begin(entry);
    // The one under way may have been answered before.
    check.next ??= check.done.then(() => this.#begin(entry));
    return check.next;
  }

  #begin(entry: EndpointEntry): Promise<boolean> {
    const check: Check = { done: this.#check(entry), next: undefined };
    this.#checks.set(entry.url, check);
    void check.done.then(() => {
      if (check.next === undefined) this.#checks.delete(entry.url);
    });
    return check.done;
  }

  async #check(entry: EndpointEntry): Promise<boolean> {
    let serves: boolean | undefined;
    for (let tries = 0; serves === undefined && tries < TRIES_MAX; tries++) serves = await this.#tokenizes(entry);
    countUp(this.#counters.servingChecks, serves === true ? "serves" : "ends");
    return serves === true;
  }

  /** Undefined where there is no answer. */
  async #tokenizes(entry: EndpointEntry): Promise<boolean | undefined> {
    try {
      const signal = AbortSignal.timeout(MILLIS_MAX);
      const answer = await this.#caller.call(entry, { ...QUESTION, signal });
      answer.body.on("error", () => {}).resume();
      return answer.statusCode < SERVER_ERROR;
    } catch {
      return undefined;
    }
  }
}

const QUESTION = {
  method: "POST",
  path: "/tokenize",
  headers: new RequestHeaders(["content-type", "application/json"]),
  body: Buffer.from('{"prompt":"a"}'),
  requestId: "gnomon-serves",
  dropAuthorization: true,
  withheld: new Set<string>(),
} as const;
