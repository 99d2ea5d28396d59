import { loadProfile } from "#config/profile-file.ts";
import { numberedIds } from "#core/endpoint/numbered-ids.ts";
import { TRACE_VERSION, type TraceHeader } from "#trace/codec/record.ts";
import type { TraceSource } from "./trace-source.ts";

const STALE_AFTER_MICROS = 5_000_000;

/** The header of a trace that another system recorded, at so many endpoints under a profile. Throws ConfigError. */
export function importedHeader(
  { format, run, routed }: Pick<TraceSource, "format" | "run" | "routed">,
  {
    endpoints,
    profile,
    router = format,
  }: { readonly endpoints: number; readonly profile: string; readonly router?: string },
): TraceHeader {
  const { name, spec } = loadProfile(profile);
  const engine = run?.engine;
  const blockTokens = engine?.blockTokens ?? 16;
  const ranks = engine?.dataParallel ?? 1;
  return {
    version: TRACE_VERSION,
    run: "imported",
    segment: 0,
    startWallMicros: run?.startWallMicros ?? routed?.startWallMicros ?? 0,
    router: {
      seed: 0,
      profiles: { [name]: spec },
      defaultProfile: name,
      blockTokens,
      staleAfterMicros: STALE_AFTER_MICROS,
      breaker: undefined,
    },
    hash: { algorithm: run === undefined ? "fast" : "blake3", blockTokens, tokenizer: format },
    endpoints: (routed?.endpoints ?? numberedIds("endpoint", endpoints)).map((id) => ({
      id,
      models: run === undefined || run.model === "" ? [] : [run.model],
      labels: {},
      kvCapacityTokens: engine?.kvBlocks === undefined ? undefined : ranks * (engine.kvBlocks - 1) * blockTokens,
      concurrencyMax: engine?.sequencesMax && ranks * engine.sequencesMax,
      ...(ranks > 1 ? { dataParallel: ranks } : {}),
    })),
    ...(engine === undefined ? {} : { engine }),
    ...(routed === undefined ? {} : { observed: { router } }),
    ...(run === undefined || run.version === "" ? {} : { machine: { engineVersion: run.version } }),
    derived: { steps: [`import of ${format}`], replayable: false },
  };
}
