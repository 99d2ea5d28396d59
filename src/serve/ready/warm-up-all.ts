import type { GatewayOptions } from "#live/gateway/gateway.ts";
import { Intake } from "#live/base/intake.ts";
import { warmUp } from "#live/warm-up/warm-up.ts";
import { warmUpPath } from "#live/warm-up/warm-up-path.ts";
import type { TraceRouter } from "#trace/codec/record.ts";
import { newRouter } from "../policy/live-router.ts";
import type { ServePlan } from "../plan/serve-plan.ts";
import { settle } from "./settle.ts";
import { part } from "../assembly/part.ts";
import type { GatewayContext } from "../plan/gateway-context.ts";

/**
 * Runs made-up requests: first the decision alone, then the whole path from socket to socket, each on a router that is
 * thrown away and lets all in; then the heap is settled. Returns what was done, for the log.
 */
async function warmUpAll(
  { config }: ServePlan,
  recorded: TraceRouter,
  path: Pick<GatewayOptions, "identity" | "tokenizer">,
): Promise<object> {
  const { warmUpMillis: budgetMillis } = config.listen;
  if (budgetMillis === 0) {
    settle();
    return { requests: 0 };
  }
  const { admission: _, ...settings } = recorded;
  const { blockTokens } = settings;
  const profiles = Object.keys(settings.profiles);
  const decisions = await warmUp({ intake: new Intake(newRouter(settings)), profiles, blockTokens, budgetMillis });
  // Kind vllm would ask the engines about made-up prompts.
  if (config.tokenizer.kind === "vllm") {
    settle();
    return decisions;
  }
  const { clients, picker } = config;
  const shared = { ...path, stages: { clients }, budgetMillis };
  const intake = (): Intake => new Intake(newRouter(settings));
  if (picker.port === undefined)
    return { ...decisions, requests: await warmUpPath({ ...shared, intake: intake(), whileUnderWay: settle }) };
  const { warmUpPicker } = await import("#picker/warm-up-picker.ts");
  let picked = 0;
  // Last of all, and settled while requests of both are under way, since what is compiled for neither would be dropped.
  const whileUnderWay = async (): Promise<void> => {
    picked = await warmUpPicker({ ...shared, tls: !picker.plaintext, intake: intake(), whileUnderWay: settle });
  };
  const requests = await warmUpPath({ ...shared, intake: intake(), whileUnderWay });
  return { ...decisions, requests, picked };
}

interface Needed extends Pick<GatewayContext, "plan" | "log"> {
  readonly settings: TraceRouter;
  readonly identity: GatewayOptions["identity"];
  readonly tokenizers: { readonly of: GatewayOptions["tokenizer"] };
  /** Whatever has to be there before others wait for the warm-up. */
  readonly listening: unknown;
  readonly picker: unknown;
}

/** Runs made-up requests, so that the first real ones meet compiled code. */
export const warmUpPart = part({
  name: "warmUp",
  needs: ["plan", "log", "settings", "identity", "tokenizers", "listening", "picker"],
  start: async ({ plan, log, settings, identity, tokenizers }: Needed) => {
    log.debug(await warmUpAll(plan, settings, { identity, tokenizer: tokenizers.of }), "warmed up");
  },
});
