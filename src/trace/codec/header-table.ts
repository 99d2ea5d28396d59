import type { BreakerOptions } from "#core/endpoint/breaker.ts";
import type { EndpointRules, OutlierRules, SlowStartRules } from "#core/endpoint/endpoint-rules.ts";
import type { HostMemoryPrice } from "#core/prefix/host-memory-price.ts";
import { TraceFormatError, TraceVersionError } from "./format-error.ts";
import {
  TRACE_HASH_ALGORITHMS,
  TRACE_VERSION,
  type TraceDerivation,
  type TraceEmulated,
  type TraceEngine,
  type TraceHash,
  type TraceHeader,
  type TraceMachine,
  type TraceObserved,
  type TraceRouter,
} from "./record.ts";
import { admission } from "./admission-table.ts";
import {
  type Beside,
  bool,
  flag,
  integer,
  type JsonFields,
  listOf,
  maybe,
  number,
  oneOf,
  optional,
  text,
  unchecked,
  usually,
} from "./field-type.ts";
import { blockTokens, endpoint } from "./input-table.ts";
import type { JsonBytes } from "./json-bytes.ts";
import { profiles } from "./profile-table.ts";
import { record } from "./record-type.ts";

/** Unit of every time in a trace of version 1. */
const CLOCK_UNIT = "microseconds";

const breaker = record<BreakerOptions>({
  failuresMax: number,
  pauseMicros: number,
  pauseMicrosMax: number,
  // Traces of before it was there, and of before it was a setting.
  jitterShare: usually(0, number),
  saturatedPauseMicros: number,
  drainingPauseMicros: usually(0, number),
});

const endpointRules = record<EndpointRules>({
  outliers: optional(
    record<OutlierRules>({
      intervalMicros: integer(1),
      requestsMin: integer(1),
      failureShare: number,
      slowFactor: number,
      ejectMicros: integer(0),
      ejectMicrosMax: integer(0),
    }),
  ),
  slowStart: optional(record<SlowStartRules>({ windowMicros: integer(1), shareMin: number })),
  floorShare: number,
});

const router = record<TraceRouter>({
  seed: number,
  profiles,
  defaultProfile: text,
  policyVersion: optional(integer(1)),
  admission: optional(admission),
  blockTokens,
  staleAfterMicros: integer(0),
  hostMemory: optional(
    record<HostMemoryPrice>({ baseMicros: number, tokenMicros: number, prefillTokenMicros: number }),
  ),
  breaker: maybe(breaker),
  endpointRules: optional(endpointRules),
});

const engine = record<TraceEngine>({
  blockTokens: optional(integer(1)),
  kvBlocks: optional(integer(2)),
  sequencesMax: optional(integer(1)),
  batchTokensMax: optional(integer(1)),
  longPrefillTokens: optional(integer(0)),
  modelTokensMax: optional(integer(1)),
  prefixCaching: optional(bool),
  reserveFullPrompt: optional(bool),
  chunkedPrefill: optional(bool),
  asyncScheduling: optional(bool),
  dataParallel: optional(integer(1)),
});

const header = record<Omit<TraceHeader, "version">>({
  run: text,
  segment: integer(0),
  startWallMicros: integer(0),
  router,
  hash: record<TraceHash>({ algorithm: oneOf(TRACE_HASH_ALGORITHMS), blockTokens: number, tokenizer: text }),
  endpoints: listOf(endpoint),
  engine: optional(engine),
  // Whether the parameters make an engine is for the schema of engine files to say.
  emulated: optional(record<TraceEmulated>({ engine: text, parameters: unchecked("an object") })),
  checked: flag,
  continues: optional(integer(0)),
  machine: optional(record<TraceMachine>({ digest: optional(text), engineVersion: optional(text) })),
  observed: optional(record<TraceObserved>({ router: text })),
  derived: optional(record<TraceDerivation>({ steps: listOf(text), replayable: bool })),
});

/** The first line of a segment. */
export function encodeHeader({ version, ...rest }: TraceHeader, to: JsonBytes, beside: Beside): void {
  const start = to.length;
  to.ascii(`,"kind":"header","format":"gnomon-trace","version":${version},"clock":"${CLOCK_UNIT}"`);
  header.fields(rest, to, beside);
  to.object(start);
}

/** Reads a header; throws TraceFormatError, for a version that is not known before all else. */
export function decodeHeader(line: JsonFields, beside: Beside): TraceHeader {
  if (line["kind"] !== "header" || line["format"] !== "gnomon-trace")
    throw new TraceFormatError("invalid", "expected a gnomon trace, which begins with a header, got something else");
  const { version } = line;
  if (version !== TRACE_VERSION)
    throw new TraceVersionError(`version: expected ${TRACE_VERSION}, got ${JSON.stringify(version) ?? "nothing"}`);
  oneOf([CLOCK_UNIT]).read(line["clock"], undefined, "clock", beside);
  return { version, ...header.readFields(line, undefined, beside) };
}
