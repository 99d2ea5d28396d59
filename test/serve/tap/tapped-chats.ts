import type { TraceItem } from "#trace/codec/record.ts";
import { TraceReader } from "#trace/reader.ts";
import { engineDefaults } from "#engine/config.ts";

const STEP_TIME = { kind: "coefficients", baseMicros: 1_000, perPrefillTokenMicros: 1, perDecodeMicros: 10 } as const;
/** Of engines that another router decides for. */
export const ENGINE = engineDefaults({
  blockTokens: 16,
  kvBlocks: 1_001,
  modelTokensMax: 4_096,
  stepTime: STEP_TIME,
});

/** Their prompts share a beginning, and none is another one's. */
export const chat = (i: number, stream: boolean) => ({
  model: "tiny",
  stream,
  max_tokens: 4 + (i % 7),
  ...(stream && { stream_options: { include_usage: true } }),
  messages: [{ role: "user", content: `Chat ${i}: ${"the same words ".repeat(10 + i)}` }],
});

export async function itemsOf(directory: string): Promise<TraceItem[]> {
  const all: TraceItem[] = [];
  for await (const item of new TraceReader(directory).items()) all.push(item);
  return all;
}
