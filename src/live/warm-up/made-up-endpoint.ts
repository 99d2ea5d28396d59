import type { Micros } from "#core/base/units.ts";
import type { EndpointDirectory } from "../endpoints/endpoint-directory.ts";
import { Member } from "../keeper/member.ts";
import type { Intake } from "../base/intake.ts";
import { readEnginePage } from "../scrape/scrape-map.ts";

/** Names the only model of made-up endpoints and requests. */
export const MADE_UP_MODEL = "warm-up";

/** Of vLLM's, with room for 500,000 tokens. */
const PAGE = readEnginePage(
  [
    'vllm:num_requests_running{model_name="warm-up"} 1.0',
    'vllm:num_requests_waiting{model_name="warm-up"} 0.0',
    'vllm:kv_cache_usage_perc{model_name="warm-up"} 0.1',
    'vllm:cache_config_info{block_size="16",num_gpu_blocks="31250"} 1.0',
    "",
  ].join("\n"),
);

/**
 * An endpoint that is ready, entered by the code that enters real ones: another object with the same fields has another
 * shape for V8, which throws away what it optimized for that one when a request to a real endpoint comes.
 */
export function joinMadeUp(url: string, at: Micros, intake: Intake, directory: EndpointDirectory): void {
  const unknown = { dataParallelRank: undefined, apiKey: undefined, kvCapacityTokens: undefined };
  const target = { id: url, url, ...unknown, concurrencyMax: undefined, labels: {}, cordoned: false };
  new Member(target, intake, directory).join(at, [{ id: MADE_UP_MODEL, object: "model" }], PAGE);
}
