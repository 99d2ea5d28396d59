import { type Slo, sloWith } from "#core/request/slo.ts";
import type { Identity } from "../http/identity.ts";
import type { RequestHeaders } from "../http/headers.ts";
import { MICROS_PER_MILLI } from "#core/base/units.ts";

export interface SloRulesOptions {
  /** By class; "*" is for classes that are not named, and for requests without one. */
  readonly classes: Readonly<Record<string, Slo>>;
  /** Class of requests that name none, by tenant, else by model. */
  readonly tenants: Readonly<Record<string, string>>;
  readonly models: Readonly<Record<string, string>>;
}

export interface Promised {
  readonly sloClass: string;
  /** Absent where nothing is promised. */
  readonly slo?: Slo;
}

type Who = Pick<Identity, "sloClass" | "tenant">;

const NO_PROMISE: Promised = { sloClass: "" };
const NOTHING: SloRulesOptions = { classes: {}, tenants: {}, models: {} };

/** What requests are promised. */
export class SloRules {
  readonly #classes: ReadonlyMap<string, Slo>;
  readonly #tenants: ReadonlyMap<string, string>;
  readonly #models: ReadonlyMap<string, string>;

  constructor({ classes, tenants, models }: SloRulesOptions = NOTHING) {
    this.#classes = new Map(Object.entries(classes));
    this.#tenants = new Map(Object.entries(tenants));
    this.#models = new Map(Object.entries(models));
  }

  /**
   * The class that a request names, else its tenant's, else its model's, "" where there is none; and each target as the
   * client stated it, else as its class has it. A text where a header is wrong.
   */
  of(headers: RequestHeaders, { sloClass: named, tenant }: Who, model: string): Promised | string {
    const sloClass = named === "" ? (this.#tenants.get(tenant) ?? this.#models.get(model) ?? "") : named;
    const own = sloOf(headers);
    if (typeof own === "string") return own;
    const ofClass = this.#classes.get(sloClass) ?? this.#classes.get("*");
    // Most requests.
    if (own === undefined && ofClass === undefined && sloClass === "") return NO_PROMISE;
    const slo = sloWith(own?.ttftMicros ?? ofClass?.ttftMicros, own?.tpotMicros ?? ofClass?.tpotMicros);
    return { sloClass, ...(slo !== undefined && { slo }) };
  }
}

/** Milliseconds above 0, at most 12 digits before the point. */
const MILLIS = /^\d{1,12}(?:\.\d{1,3})?$/;

/**
 * The targets that a client stated for its request, in milliseconds above 0; undefined where it stated none. Returns
 * what is wrong where a header is not that.
 */
export function sloOf(headers: RequestHeaders): Slo | undefined | string {
  const ttft = headers.get("x-gnomon-slo-ttft-ms").trim();
  const tpot = headers.get("x-gnomon-slo-tpot-ms").trim();
  if (ttft === "" && tpot === "") return undefined;
  const [ttftMicros, tpotMicros] = [microsOf(ttft), microsOf(tpot)];
  if (Number.isNaN(ttftMicros)) return `x-gnomon-slo-ttft-ms: ${EXPECTED}`;
  if (Number.isNaN(tpotMicros)) return `x-gnomon-slo-tpot-ms: ${EXPECTED}`;
  return sloWith(ttftMicros, tpotMicros);
}

const EXPECTED = "expected milliseconds above 0, such as 500 or 12.5";

/** NaN where it is none; undefined where there is nothing. */
function microsOf(text: string): number | undefined {
  if (text === "") return undefined;
  const micros = MILLIS.test(text) ? Math.round(Number(text) * MICROS_PER_MILLI) : NaN;
  return micros > 0 ? micros : NaN;
}
