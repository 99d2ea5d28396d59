import * as z from "zod";
import { MICROS_PER_SECOND } from "#core/base/units.ts";
import { strict } from "./strict-object.ts";

const CLIENTS_MAX = 100_000;
const count = z.int().positive().max(CLIENTS_MAX);
const tokens = z.int().nonnegative().max(10_000_000);

/** `inference_perf` of a BLIS WorkloadSpec: stages of load, and users who share system prompts. */
export const INFERENCE_PERF = strict({
  stages: z
    .array(strict({ rate: z.number().positive().max(1e6), duration: z.number().positive().max(1e9) }))
    .min(1)
    .max(1_000),
  shared_prefix: strict({
    num_unique_system_prompts: count,
    num_users_per_system_prompt: count,
    system_prompt_len: tokens,
    question_len: tokens,
    output_len: tokens,
    enable_multi_turn_chat: z.boolean().default(false),
  }),
}).refine(({ stages, shared_prefix: { num_unique_system_prompts: prompts, num_users_per_system_prompt: users } }) => {
  return stages.length * prompts * users <= CLIENTS_MAX;
}, `expected at most ${CLIENTS_MAX} clients: stages x prompts x users`);

export type InferencePerf = z.output<typeof INFERENCE_PERF>;

/**
 * The clients and the horizon that it stands for, as BLIS expands it: a client for each stage and user, active in its
 * stage at its share of the stage's rate. Users who chat have one conversation a stage, whose turns come as often as the
 * stage's requests are spread over its users. Within a stage arrivals are Poisson; BLIS gives a single stage the exact
 * number of requests.
 */
export function inferencePerfClients({ stages, shared_prefix: shared }: InferencePerf) {
  const users = shared.num_unique_system_prompts * shared.num_users_per_system_prompt;
  let startMicros = 0;
  const clients = stages.flatMap(({ rate, duration }, stage) => {
    const window = { start_us: startMicros, end_us: startMicros + duration * MICROS_PER_SECOND };
    startMicros = window.end_us;
    const requests = Math.floor(rate * duration);
    return Array.from({ length: users }, (_, user) => {
      const group = `prompt-${Math.floor(user / shared.num_users_per_system_prompt)}`;
      const rounds = Math.floor(requests / users) + (user < requests % users ? 1 : 0);
      const client = {
        id: `stage-${stage}-${group}-user-${user % shared.num_users_per_system_prompt}`,
        tenant_id: group,
        slo_class: "standard",
        input_distribution: { type: "constant", params: { value: shared.question_len } },
        output_distribution: { type: "constant", params: { value: shared.output_len } },
        prefix_group: group,
        prefix_length: shared.system_prompt_len,
        lifecycle: { windows: [{ ...window, trace_rate: rate / users }] },
      };
      if (!shared.enable_multi_turn_chat) return [client];
      const think_time_us = Math.floor((users / rate) * MICROS_PER_SECOND);
      const multi_turn = { max_rounds: rounds, think_time_us, single_session: true };
      return rounds === 0 ? [] : [{ ...client, reasoning: { multi_turn } }];
    }).flat();
  });
  return { clients, horizon: startMicros };
}
