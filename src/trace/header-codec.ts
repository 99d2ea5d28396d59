import type { BreakerOptions } from "#core/endpoint/breaker.ts";
import type { EndpointRules, OutlierRules, SlowStartRules } from "#core/endpoint/endpoint-rules.ts";
import type { HostMemoryPrice } from "#core/prefix/host-memory-price.ts";
import { Fields, TraceFormatError, TraceVersionError } from "./fields.ts";
import { decodeEndpoint } from "./input-codec.ts";
import { decodeAdmission } from "./admission-codec.ts";
import { decodeProfiles } from "./profile-codec.ts";
import {
  TRACE_HASH_ALGORITHMS,
  TRACE_VERSION,
  type TraceEmulated,
  type TraceEngine,
  type TraceHash,
  type TraceHeader,
  type TraceMachine,
  type TraceRouter,
} from "./record.ts";

/** Unit of every time in a trace of version 1. */
const CLOCK_UNIT = "microseconds";

export function encodeHeader({ version, ...rest }: TraceHeader): string {
  return JSON.stringify({ kind: "header", format: "gnomon-trace", version, clock: CLOCK_UNIT, ...rest });
}

/** Reads a header; throws TraceFormatError, for a version that is not known before all else. */
export function decodeHeader(fields: Fields): TraceHeader {
  if (fields.raw("kind") !== "header" || fields.raw("format") !== "gnomon-trace") {
    throw new TraceFormatError("invalid", "expected a gnomon trace, which begins with a header, got something else");
  }
  const version = fields.raw("version");
  if (version !== TRACE_VERSION) {
    throw new TraceVersionError(`version: expected ${TRACE_VERSION}, got ${JSON.stringify(version) ?? "nothing"}`);
  }
  fields.oneOf("clock", [CLOCK_UNIT]);
  const header: TraceHeader = {
    version,
    run: fields.string("run"),
    segment: fields.integer("segment", 0),
    startWallMicros: fields.integer("startWallMicros", 0),
    router: decodeRouter(fields.object("router")),
    hash: decodeHash(fields.object("hash")),
    endpoints: fields.list("endpoints").map((entry, i) => decodeEndpoint(new Fields(entry, `endpoints[${i}]`))),
    ...(fields.has("emulated") ? { emulated: decodeEmulated(fields.object("emulated")) } : {}),
    ...(fields.boolean("checked", false) ? { checked: true } : {}),
    ...(fields.has("continues") ? { continues: fields.integer("continues", 0) } : {}),
    ...(fields.has("engine") ? { engine: decodeEngine(fields.object("engine")) } : {}),
    ...(fields.has("machine") ? { machine: decodeMachine(fields.object("machine")) } : {}),
  };
  if (!fields.has("derived")) return header;
  const derived = fields.object("derived");
  return { ...header, derived: { steps: derived.strings("steps"), replayable: derived.boolean("replayable") } };
}

const ENGINE_SIZES = [
  ["blockTokens", 1],
  ["kvBlocks", 2],
  ["sequencesMax", 1],
  ["batchTokensMax", 1],
  ["longPrefillTokens", 0],
  ["modelTokensMax", 1],
  ["dataParallel", 1],
] as const;
const ENGINE_SWITCHES = ["prefixCaching", "reserveFullPrompt", "chunkedPrefill", "asyncScheduling"] as const;

function decodeEngine(fields: Fields): TraceEngine {
  const sizes = ENGINE_SIZES.filter(([key]) => fields.has(key)).map(([key, min]) => [key, fields.integer(key, min)]);
  const switches = ENGINE_SWITCHES.filter((key) => fields.has(key)).map((key) => [key, fields.boolean(key)]);
  return Object.fromEntries([...sizes, ...switches]) as TraceEngine;
}

/** Whether the parameters make an engine is for the schema of engine files to say. */
function decodeEmulated(fields: Fields): TraceEmulated {
  const parameters = fields.object("parameters");
  return {
    engine: fields.string("engine"),
    parameters: Object.fromEntries(parameters.keys().map((key) => [key, parameters.raw(key)])),
  };
}

function decodeMachine(fields: Fields): TraceMachine {
  return {
    ...(fields.has("digest") ? { digest: fields.string("digest") } : {}),
    ...(fields.has("engineVersion") ? { engineVersion: fields.string("engineVersion") } : {}),
  };
}

function decodeRouter(fields: Fields): TraceRouter {
  return {
    seed: fields.number("seed"),
    profiles: decodeProfiles(fields.object("profiles")),
    defaultProfile: fields.string("defaultProfile"),
    ...(fields.has("policyVersion") ? { policyVersion: fields.integer("policyVersion", 1) } : {}),
    blockTokens: fields.blockTokens("blockTokens"),
    staleAfterMicros: fields.integer("staleAfterMicros", 0),
    ...(fields.has("hostMemory") && { hostMemory: decodeHostMemory(fields.object("hostMemory")) }),
    ...(fields.has("admission") && { admission: decodeAdmission(fields.object("admission")) }),
    ...(fields.has("endpointRules") && { endpointRules: decodeEndpointRules(fields.object("endpointRules")) }),
    breaker: fields.has("breaker") ? decodeBreaker(fields.object("breaker")) : undefined,
  };
}

function decodeHostMemory(fields: Fields): HostMemoryPrice {
  return {
    baseMicros: fields.number("baseMicros"),
    tokenMicros: fields.number("tokenMicros"),
    prefillTokenMicros: fields.number("prefillTokenMicros"),
  };
}

function decodeEndpointRules(fields: Fields): EndpointRules {
  return {
    ...(fields.has("outliers") && { outliers: decodeOutliers(fields.object("outliers")) }),
    ...(fields.has("slowStart") && { slowStart: decodeSlowStart(fields.object("slowStart")) }),
    floorShare: fields.number("floorShare"),
  };
}

function decodeOutliers(fields: Fields): OutlierRules {
  return {
    intervalMicros: fields.integer("intervalMicros", 1),
    requestsMin: fields.integer("requestsMin", 1),
    failureShare: fields.number("failureShare"),
    slowFactor: fields.number("slowFactor"),
    ejectMicros: fields.integer("ejectMicros", 0),
    ejectMicrosMax: fields.integer("ejectMicrosMax", 0),
  };
}

function decodeSlowStart(fields: Fields): SlowStartRules {
  return { windowMicros: fields.integer("windowMicros", 1), shareMin: fields.number("shareMin") };
}

function decodeBreaker(fields: Fields): BreakerOptions {
  return {
    failuresMax: fields.number("failuresMax"),
    pauseMicros: fields.number("pauseMicros"),
    pauseMicrosMax: fields.number("pauseMicrosMax"),
    // Traces of before it was there.
    jitterShare: fields.optionalNumber("jitterShare") ?? 0,
    saturatedPauseMicros: fields.number("saturatedPauseMicros"),
    // Traces of before it was a setting.
    drainingPauseMicros: fields.optionalNumber("drainingPauseMicros") ?? 0,
  };
}

function decodeHash(fields: Fields): TraceHash {
  return {
    algorithm: fields.oneOf("algorithm", TRACE_HASH_ALGORITHMS),
    blockTokens: fields.number("blockTokens"),
    tokenizer: fields.string("tokenizer"),
  };
}
