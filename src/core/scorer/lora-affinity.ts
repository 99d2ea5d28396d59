import type { Snapshot } from "../endpoint/snapshot.ts";
import { scorerPlugin } from "./scorer.ts";

/**
 * Prefers endpoints that have the adapter loaded, then those with room for it.
 *
 *     1 running there, 0.8 room for one more, 0.6 waiting there, 0 none of these or no adapters
 */
export const loraAffinity = scorerPlugin({
  summary: "whether the endpoint runs the LoRA adapter or has room for it",
  reads: ["scrape:lora"],
  source: "llm-d lora-affinity-scorer",
  parameters: {},
  create: (name) => ({
    name,
    score(request, candidates, scores) {
      for (let i = 0; i < candidates.length; i++) scores[i] = affinity(candidates[i]!, request.model);
    },
  }),
});

function affinity({ load }: Snapshot, adapter: string): number {
  const running = load?.adaptersRunning ?? [];
  const waiting = load?.adaptersWaiting ?? [];
  if (running.includes(adapter)) return 1;
  if (running.length + waiting.length < (load?.adaptersMax ?? 0)) return 0.8;
  return waiting.includes(adapter) ? 0.6 : 0;
}
