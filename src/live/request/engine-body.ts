import { isFields, type Fields } from "../base/fields.ts";
import { type ParsedRequest, READ_AT_ONCE_BYTES } from "./parse-request.ts";
import { withFields } from "../http/request-body.ts";
import { ENGINE_FIELDS, ENGINE_HEADERS, type EngineName } from "#core/engine-names.ts";
import { type Refusal, refusal } from "../http/errors.ts";
import { type Asker, loopTurn } from "../base/loop-turn.ts";
import { countUp, type GatewayCounters } from "../base/gateway-counters.ts";
import { cutFields } from "./cut-fields.ts";
import { PRIORITY, type RequestHeaders } from "../http/headers.ts";

/** What a request is sent as. */
export interface SentContent {
  readonly path: string;
  readonly body: Buffer;
}

interface AddedFields {
  readonly hidesUsage: boolean;
  readonly more: object | undefined;
}

/** What an engine gets: the client's own bytes, but for fields that must be there. */
export function engineBody(
  body: Buffer,
  { model: asked, fields }: ParsedRequest,
  model: string,
  { hidesUsage, more }: AddedFields,
): Buffer {
  const isNamed = asked === model || fields === undefined;
  if (isNamed && !hidesUsage && more === undefined) return body;
  const options = fields?.["stream_options"];
  const merged = { ...(isFields(options) ? options : {}), include_usage: true, continuous_usage_stats: false };
  return withFields(body, {
    ...(!isNamed && { model }),
    ...(hidesUsage && { stream_options: merged }),
    ...more,
  });
}

/** Objects whose fields vLLM takes as if they stood beside its own parameters. */
const WITHIN: ReadonlySet<string> = new Set(["vllm_xargs", "sampling_params", "extra_args"]);
const NONE: readonly string[] = [];

export interface Stripped {
  readonly body: Buffer;
  readonly parsed: ParsedRequest;
  /** Names of what was taken out, each once. */
  readonly names: readonly string[];
}

interface Asking extends Asker {
  readonly shared: { readonly engineFields: EngineFields; readonly counters: GatewayCounters };
  readonly headers: RequestHeaders;
}

/** Counts the headers of a request that no engine gets. */
export function countEngineHeaders({ shared: { engineFields, counters }, headers }: Asking): void {
  for (const name of engineFields.headersIn(headers)) countUp(counters.stripped, name);
}

/**
 * A request without the fields that are for engines alone, which it counts; undefined where it has none. A long body waits
 * for its turn with all other long work.
 */
export function stripEngineFields(
  asking: Asking,
  parsed: ParsedRequest,
  body: Buffer,
): Stripped | Refusal | Promise<Stripped | Refusal> | undefined {
  const { engineFields, counters } = asking.shared;
  if (!engineFields.isIn(parsed)) return undefined;
  const strip = (): Stripped | Refusal => {
    const stripped = engineFields.strip(parsed, body);
    for (const name of stripped?.names ?? []) countUp(counters.stripped, name);
    return stripped ?? NOT_JSON;
  };
  return body.length > READ_AT_ONCE_BYTES ? loopTurn(asking).then(strip) : strip();
}

const NOT_JSON = refusal("bad-request", "The request body is not valid JSON.", "body");

/**
 * Keeps what engines arrange among themselves out of clients' requests: they reach the engines with the gateway's own key,
 * and a client that names a host there has the engine fetch from it.
 */
export class EngineFields {
  readonly #fields: ReadonlySet<string>;
  /** Headers that no client may send, in lower case. */
  readonly headers: ReadonlySet<string>;
  #lastNames: readonly string[] = NONE;
  #lastFound: readonly string[] = NONE;

  /** `allowed` pass as they come. */
  constructor(allowed: readonly EngineName[] = []) {
    const denied = (name: EngineName): boolean => !allowed.includes(name);
    this.#fields = new Set(ENGINE_FIELDS.filter(denied));
    this.headers = new Set(ENGINE_HEADERS.filter(denied));
  }

  /** Those that a request has. Requests of one client share their list of names, so that they are looked through once. */
  headersIn({ names }: RequestHeaders): readonly string[] {
    if (names === this.#lastNames) return this.#lastFound;
    const found = names.filter((name) => this.headers.has(name));
    this.#lastNames = names;
    this.#lastFound = found.length === 0 ? NONE : [...new Set(found)];
    return this.#lastFound;
  }

  /** Whether a body has any. */
  isIn({ fields }: ParsedRequest): boolean {
    return fields !== undefined && this.#isIn(fields);
  }

  /** The body without them, and what was read of it; undefined where it is no JSON after all. */
  strip(parsed: ParsedRequest, body: Buffer): Stripped | undefined {
    const cut = cutFields(body, this.#fields, WITHIN);
    if (cut === undefined) return undefined;
    const names = new Set<string>();
    const fields = this.#without(parsed.fields ?? {}, names);
    const priority = names.has("priority") ? 0 : parsed.priority;
    return { body: cut, parsed: { ...parsed, priority, fields }, names: [...names] };
  }

  #isIn(fields: Fields): boolean {
    for (const name of this.#fields) if (Object.hasOwn(fields, name)) return true;
    for (const name of WITHIN) {
      if (!Object.hasOwn(fields, name)) continue;
      const inner = fields[name];
      if (isFields(inner) && this.#isIn(inner)) return true;
    }
    return false;
  }

  #without(fields: Fields, names: Set<string>): Fields {
    const kept: [string, unknown][] = [];
    for (const [name, value] of Object.entries(fields)) {
      if (this.#fields.has(name)) names.add(name);
      else kept.push([name, WITHIN.has(name) && isFields(value) ? this.#without(value, names) : value]);
    }
    return Object.fromEntries(kept);
  }
}

/** vLLM's priority, as far as clients may state it: it lets the header go before the body. */
export function priorityOf({ headers, shared }: Asking, parsed: ParsedRequest): number {
  const header = shared.engineFields.headers.has(PRIORITY) ? "" : headers.get("x-vllm-priority");
  const priority = Number(header);
  return header === "" || !Number.isFinite(priority) ? parsed.priority : priority;
}
