import { stat } from "node:fs/promises";
import * as z from "zod";
import { LENGTHS_ONLY, type WorkloadRequest } from "../workload-request.ts";
import { contentBlockIds } from "./block-id.ts";
import type { ImportOptions } from "./import-options.ts";
import { ImportError, type ImportReport } from "./import-report.ts";
import { unreadable } from "./unreadable.ts";
import { sessionStarts } from "./session-starts.ts";
import { unmarkedText } from "./unmarked-text.ts";

/** ShareGPT's published file has 640 MB. */
const BYTES_MAX = 1_000_000_000;
const BLOCK_TOKENS = 16;

const CONVERSATION = z.object({
  id: z.string().optional(),
  conversations: z.array(z.object({ from: z.string(), value: z.string() })),
});

/**
 * Conversations with their text, and no times: a list of `{"conversations": [{"from": "human", "value"}, {"from":
 * "gpt", "value"}]}` as vLLM's benchmarks read it. Each answer is a turn whose prompt is all before it; lengths are
 * estimated from characters. Conversations start as the options say, and go on as soon as an answer is there.
 */
export async function* readShareGpt(
  path: string,
  options: ImportOptions,
  report: ImportReport,
): AsyncGenerator<WorkloadRequest> {
  const nextStart = sessionStarts(options.seed, options.sessionsPerSecond);
  const blockChars = Math.max(1, Math.round(BLOCK_TOKENS * options.charsPerToken));
  const tokensOf = (chars: number) => Math.max(1, Math.round(chars / options.charsPerToken));
  for (const [place, item] of (await readList(path)).entries()) {
    report.records++;
    const parsed = CONVERSATION.safeParse(item);
    if (!parsed.success) {
      report.refuse(`${path}:[${place}]`, "not a conversation with turns from and value");
      continue;
    }
    const arrivalMicros = nextStart();
    let text = "";
    let turn = 0;
    for (const { from, value } of parsed.data.conversations) {
      const isAnswer = from === "gpt" || from === "assistant" || from === "chatgpt";
      if (isAnswer && text !== "") {
        const prompt = text;
        yield {
          ...LENGTHS_ONLY,
          index: report.accept(),
          arrivalMicros,
          session: `conversation-${place}`,
          turn,
          thinkMicros: turn === 0 ? undefined : 0,
          promptTokens: tokensOf(prompt.length),
          outputTokens: tokensOf(value.length),
          blockIds: contentBlockIds(prompt.length, blockChars, (i) => prompt.charCodeAt(i)),
          blockTokens: BLOCK_TOKENS,
          text: prompt,
        };
        turn++;
      }
      text += value;
    }
    if (turn === 0) report.refuse(`${path}:[${place}]`, "no answer in the conversation");
  }
}

async function readList(path: string): Promise<unknown[]> {
  let text: string;
  try {
    const { size } = await stat(path);
    if (size > BYTES_MAX) throw new ImportError(`${path}: expected at most ${BYTES_MAX} bytes, got ${size}`);
    text = await unmarkedText(path);
  } catch (error) {
    throw error instanceof ImportError ? error : new ImportError(`${path}: ${unreadable(error)}`);
  }
  const list = parseList(text);
  if (list === undefined) throw new ImportError(`${path}: expected a JSON list of conversations`);
  return list;
}

function parseList(text: string): unknown[] | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return Array.isArray(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
