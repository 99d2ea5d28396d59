import { CacheWatch } from "#live/keeper/cache-watch.ts";
import type { EndpointDirectory } from "#live/endpoints/endpoint-directory.ts";
import { FOLLOWED_INPUTS, KvEvents } from "#live/kv-events/kv-events.ts";
import type { FaultLog } from "#live/log/fault-log.ts";
import { HitAccuracy } from "#live/metrics/prediction-accuracy.ts";
import type { KvEventSources } from "#live/metrics/metric-kv-events.ts";
import type { Intake } from "#live/base/intake.ts";
import type { StatusOptions } from "#live/status/status.ts";
import { hasherOf, namesBlocks, rootsOf } from "#live/tokenizer/chain-hash.ts";
import type { Config } from "#config/schema.ts";
import { engineChainsOf, type Tokenizers } from "./tokenizers.ts";
import { part } from "../assembly/part.ts";
import type { GatewayContext } from "../plan/gateway-context.ts";

interface Surroundings {
  readonly config: Config;
  readonly secret: Uint8Array;
  readonly intake: Intake;
  readonly directory: EndpointDirectory;
  readonly tokenizers: Tokenizers;
  readonly blockSizes: { readonly blockTokens: number };
  readonly faults: Pick<FaultLog, "report">;
}

/** Kinds whose prompts are the engines' own tokens. */
const EXACT: ReadonlySet<string> = new Set(["huggingface", "vllm"]);

/** What is followed, for the pages that show it. */
export interface LiveKvEvents {
  readonly metrics: KvEventSources;
  readonly status: Pick<StatusOptions, "kvEvents">;
  stop(): Promise<void>;
}

/** Follows engines' KV events as configured, and compares what is expected of caches with what engines report. */
function liveKvEvents(surroundings: Surroundings): LiveKvEvents {
  const events = kvEvents(surroundings);
  const hitAccuracy = new HitAccuracy(surroundings.config.metrics.endpointsMax);
  const { intake, directory, faults } = surroundings;
  for (const listener of [hitAccuracy, new CacheWatch({ intake, directory, report: faults.report })])
    intake.listen(listener);
  if (events === undefined) return { metrics: { hitAccuracy }, status: {}, stop: async () => {} };
  intake.listen(events, FOLLOWED_INPUTS);
  return {
    metrics: { hitAccuracy, kvEvents: () => events.rows() },
    status: { kvEvents: events },
    stop: () => events.stop(),
  };
}

function kvEvents(surroundings: Surroundings): KvEvents | undefined {
  const { config, secret, intake, directory, tokenizers, blockSizes, faults } = surroundings;
  const { mode, discover, port, replayPort, topic, replayMillis } = config.kvEvents;
  const { blockHash } = config.prefix;
  if (mode === "off") return undefined;
  return new KvEvents({
    intake,
    directory,
    hasherOf: hasherOf(blockHash),
    namesBlocks: namesBlocks(blockHash),
    roots: rootsOf(blockHash, secret, engineChainsOf(config)),
    isExact: (model) => mode === "on" || EXACT.has(tokenizers.of(model).name),
    discover,
    ports: { port, replayPort, topic },
    blockTokens: () => blockSizes.blockTokens,
    report: faults.report,
    times: { replayMillis },
  });
}

interface Needed extends Pick<GatewayContext, "plan">, Omit<Surroundings, "config" | "faults"> {
  readonly logs: Pick<Surroundings, "faults">;
}

export const kvEventsPart = part({
  name: "kvEvents",
  needs: ["plan", "secret", "intake", "directory", "tokenizers", "blockSizes", "logs"],
  start: ({ plan, logs: { faults }, ...parts }: Needed) => liveKvEvents({ ...parts, config: plan.config, faults }),
  stop: (events) => events.stop(),
});
