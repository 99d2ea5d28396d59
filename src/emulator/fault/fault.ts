/**
 * What can be made to go wrong with one request. `events` counts server-sent events that still arrive whole; an answer
 * that is no stream counts as one event, of which half arrives.
 *
 *   status=CODE        answers with that status and an error object, without generating
 *   hang               reads the request and never answers
 *   reset              resets the connection before any byte
 *   kill               the engine process dies, and the server with it
 *   slow=MS            every event, or the whole body, that many milliseconds later
 *   content-type=TYPE  the right bytes under the wrong name
 *   garbage            200 with bytes that are neither JSON nor events
 *   cut=N              closes the connection after N events
 *   stall=N            sends nothing more after N events, connection open
 *   truncate=N         ends the body cleanly after N events, without [DONE]
 *   error=N            an error event and [DONE] after N events; status 500 for an answer that is no stream
 *   abort=N            finish_reason "abort" after N tokens, as a server that is being terminated does
 */
export type InjectedFault =
  | { readonly kind: "status"; readonly code: number }
  | { readonly kind: "hang" | "reset" | "kill" }
  | { readonly kind: "garbage" }
  | { readonly kind: "slow"; readonly ms: number }
  | { readonly kind: "content-type"; readonly value: string }
  | { readonly kind: "cut" | "stall" | "truncate" | "error"; readonly events: number }
  | { readonly kind: "abort"; readonly tokens: number };

export type InjectedFaultKind = InjectedFault["kind"];

const ACCEPTED: Readonly<Record<InjectedFaultKind, string>> = {
  status: "status=CODE (100..599)",
  hang: "hang",
  reset: "reset",
  kill: "kill",
  slow: "slow=MS",
  "content-type": "content-type=TYPE",
  garbage: "garbage",
  cut: "cut=N",
  stall: "stall=N",
  truncate: "truncate=N",
  error: "error=N",
  abort: "abort=N",
};

/** A fault that is not in the set, or has no usable value. The message lists what is accepted. */
export class FaultSyntaxError extends Error {
  constructor(text: string) {
    super(`unknown fault ${JSON.stringify(text)}; accepted, joined by ";": ${Object.values(ACCEPTED).join(", ")}`);
  }
}

/** Parses for example "slow=20; cut=3". Throws FaultSyntaxError. */
export function parseFaults(text: string): readonly InjectedFault[] {
  return text
    .split(";")
    .map((part) => part.trim())
    .filter((part) => part !== "")
    .map(parseFault);
}

function parseFault(text: string): InjectedFault {
  const equals = text.indexOf("=");
  const kind = (equals < 0 ? text : text.slice(0, equals)).trim();
  const value = equals < 0 ? undefined : text.slice(equals + 1).trim();
  if (!Object.hasOwn(ACCEPTED, kind)) throw new FaultSyntaxError(text);
  return makeFault(kind as InjectedFaultKind, value, text);
}

function makeFault(kind: InjectedFaultKind, value: string | undefined, text: string): InjectedFault {
  switch (kind) {
    case "status":
      return { kind, code: integer(value, 100, 599, text) };
    case "hang":
    case "reset":
    case "kill":
      if (value !== undefined) throw new FaultSyntaxError(text);
      return { kind };
    case "garbage":
      if (value !== undefined) throw new FaultSyntaxError(text);
      return { kind };
    case "slow":
      return { kind, ms: integer(value, 0, 3_600_000, text) };
    case "content-type":
      if (value === undefined || !/^[\w.+-]+\/[\w.+-]+(; *[\w-]+=[\w.-]+)*$/.test(value))
        throw new FaultSyntaxError(text);
      return { kind, value };
    case "cut":
    case "stall":
    case "truncate":
    case "error":
      return { kind, events: integer(value, 0, 1_000_000, text) };
    case "abort":
      return { kind, tokens: integer(value, 0, 1_000_000, text) };
  }
}

function integer(value: string | undefined, low: number, high: number, text: string): number {
  const parsed = value !== undefined && /^\d+$/.test(value) ? Number(value) : Number.NaN;
  if (!(parsed >= low && parsed <= high)) throw new FaultSyntaxError(text);
  return parsed;
}

/** Where a body or a stream stops being right. */
export interface FaultyEnding {
  readonly kind: "cut" | "stall" | "truncate" | "error" | "garbage";
  readonly events: number;
}

/** A fault that takes the place of any handling. */
export type InsteadFault =
  | { readonly kind: "status"; readonly code: number }
  | { readonly kind: "hang" | "reset" | "kill" };

/** The faults of one request, sorted by where they act. The first of a kind wins. */
export interface FaultSet {
  /** Acts instead of any handling. */
  readonly instead: InsteadFault | undefined;
  readonly slowMs: number;
  readonly contentType: string | undefined;
  readonly ending: FaultyEnding | undefined;
  readonly abortAfterTokens: number | undefined;
}

export const NO_FAULTS: FaultSet = {
  instead: undefined,
  slowMs: 0,
  contentType: undefined,
  ending: undefined,
  abortAfterTokens: undefined,
};

export function sortFaults(faults: readonly InjectedFault[]): FaultSet {
  let set: FaultSet = NO_FAULTS;
  for (const fault of faults.toReversed()) set = withFault(set, fault);
  return set;
}

function withFault(set: FaultSet, fault: InjectedFault): FaultSet {
  switch (fault.kind) {
    case "status":
      return { ...set, instead: fault };
    case "hang":
    case "reset":
    case "kill":
      return { ...set, instead: fault };
    case "garbage":
      return { ...set, ending: { kind: "garbage", events: 0 } };
    case "slow":
      return { ...set, slowMs: fault.ms };
    case "content-type":
      return { ...set, contentType: fault.value };
    case "cut":
    case "stall":
    case "truncate":
    case "error":
      return { ...set, ending: { kind: fault.kind, events: fault.events } };
    case "abort":
      return { ...set, abortAfterTokens: fault.tokens };
  }
}
