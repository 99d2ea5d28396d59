import { createHash } from "node:crypto";
import { stat } from "node:fs/promises";
import type { WorkloadRequest } from "../workload-request.ts";
import type { ImportOptions } from "./import-options.ts";
import { ImportError, type ImportReport } from "./import-report.ts";
import { parseRecord, textField, tokenCount } from "./json-record.ts";
import { unreadable } from "./unreadable.ts";
import { sessionStarts } from "./session-starts.ts";
import { WekaReplay } from "./weka-session.ts";
import { unmarkedText } from "./unmarked-text.ts";

/** A session file is parsed whole; a larger one is refused. */
const SESSION_BYTES_MAX = 268_435_456;
/** Ids of traces whose `hash_id_scope` is "global" share one namespace; sessions have their own from 2. */
const GLOBAL_NAMESPACE = 1;

/**
 * WEKA's recorded agent sessions (kv-cache-tester), one JSON file each: block ids of 64 tokens local to the session,
 * think times, sub-agents. Ids are namespaced by session; a session with the same requests as an earlier one is left
 * out. One file is in memory at a time.
 */
export async function* readWeka(
  files: readonly string[],
  options: ImportOptions,
  report: ImportReport,
): AsyncGenerator<WorkloadRequest> {
  const nextStart = sessionStarts(options.seed, options.sessionsPerSecond);
  const seen = new Set<string>();
  const ids = new Set<string>();
  for (const [i, file] of files.entries()) {
    const text = await readSession(file);
    const record = text === undefined ? "session file too large" : parseRecord(text);
    if (typeof record === "string") {
      report.records++;
      report.refuse(file, record);
      continue;
    }
    const requests: unknown = record["requests"];
    const blockTokens = tokenCount(record, "block_size");
    if (!Array.isArray(requests) || blockTokens === undefined || blockTokens === 0) {
      report.records++;
      report.refuse(file, Array.isArray(requests) ? "block_size is not a whole number >= 1" : "requests is not a list");
      continue;
    }
    const content = createHash("sha256")
      .update((text ?? "").slice(text?.indexOf('"requests"')))
      .digest("base64");
    if (seen.has(content)) {
      report.adjust("session equal to an earlier one, left out");
      continue;
    }
    seen.add(content);
    const id = textField(record, "id") ?? `session-${i}`;
    const session = {
      place: file,
      id: ids.has(id) ? `${id}#${i}` : id,
      blockTokens,
      namespace: record["hash_id_scope"] === "global" ? GLOBAL_NAMESPACE : i + 2,
      toolTokens: tokenCount(record, "tool_tokens") ?? 0,
      systemTokens: tokenCount(record, "system_tokens") ?? 0,
      startMicros: nextStart(),
      requests,
    };
    ids.add(id);
    yield* new WekaReplay(session, options.sharedPrefix, report).requestsOf();
  }
}

async function readSession(file: string): Promise<string | undefined> {
  try {
    return (await stat(file)).size > SESSION_BYTES_MAX ? undefined : await unmarkedText(file);
  } catch (error) {
    throw new ImportError(`${file}: ${unreadable(error)}`);
  }
}
