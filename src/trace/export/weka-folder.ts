import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { TRACE_FILE_MODE, TRACE_FOLDER_MODE } from "../segment-writer.ts";
import { conversations } from "../conversations.ts";
import { Tally } from "../transform/tally.ts";
import type { TrafficRequest } from "../transform/traffic.ts";
import type { WorkloadRequest } from "../workload-request.ts";
import { WekaBlockIds, wekaSessions } from "./weka-session.ts";

/** What of it WEKA's files have no place for. */
export const WEKA_LOSSES =
  "when sessions arrive is not written, nor tenants, classes and answers' blocks: the format has no place for them";

/**
 * Writes conversations as WEKA's session files, one each, into a folder that is not there yet; requests of no
 * conversation are counted and left out. Holds the workload. Where it fails, or nothing is left to write, there is no
 * folder afterwards.
 */
export async function writeWekaFolder(
  folder: string,
  traffic: AsyncIterable<TrafficRequest>,
): Promise<{ readonly written: number; readonly sessions: number; readonly refused: Tally }> {
  const refused = new Tally();
  const byRequest = new Map<WorkloadRequest, TrafficRequest>();
  for await (const one of traffic) {
    if (one.request.session === "") refused.count("of no conversation");
    else byRequest.set(one.request, one);
  }
  const ids = new WekaBlockIds();
  let sessions = 0;
  await mkdir(folder, { recursive: true, mode: TRACE_FOLDER_MODE });
  try {
    for (const group of conversations([...byRequest.keys()])) {
      const members = group.map((request) => byRequest.get(request)!);
      for (const session of wekaSessions(members, ids)) {
        const name = `session_${String(++sessions).padStart(5, "0")}.json`;
        await writeFile(join(folder, name), `${JSON.stringify(session)}\n`, { mode: TRACE_FILE_MODE });
      }
    }
  } catch (error) {
    await rm(folder, { recursive: true, force: true });
    throw error;
  }
  if (sessions === 0) await rm(folder, { recursive: true, force: true });
  return { written: byRequest.size, sessions, refused };
}
