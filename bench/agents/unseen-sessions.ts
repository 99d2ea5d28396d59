import { createHash } from "node:crypto";
import { mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { randomFor } from "#core/base/random.ts";
import { IMPORT_DEFAULTS } from "#trace/import/import-options.ts";
import { openWorkload } from "#trace/import/open-workload.ts";
import type { WorkloadRequest } from "#trace/workload-request.ts";
import type { ChoiceCase } from "../default-choice/case.ts";
import { fittedTo } from "../default-choice/choice-workload.ts";
import { evenly, startedSessions } from "../default-choice/sessions.ts";

/** Of the draw of all seeds. */
const DRAW_SEED = 29;

/**
 * Files of a folder of WEKA's sessions, none of whose content is among `known` or comes twice, in an order of their own in
 * which nothing of time or size is left.
 */
export function unseenFiles(folder: string, known: readonly string[]): string[] {
  const seen = new Set(known.flatMap((one) => sessionFiles(one).map(contentOf)));
  const unseen = sessionFiles(folder).filter((file) => {
    const content = contentOf(file);
    const isNew = !seen.has(content);
    seen.add(content);
    return isNew;
  });
  const random = randomFor(DRAW_SEED, 0);
  return unseen
    .map((file) => [random.next(), file] as const)
    .toSorted(([a], [b]) => a - b)
    .map(([, file]) => file);
}

/** What these sessions ask for, in a closed loop, with the pauses of a case and starts of the seed. */
export async function sessionWorkload(
  one: ChoiceCase,
  files: readonly string[],
  seed: number,
  requestsMax: number,
): Promise<WorkloadRequest[]> {
  const folder = mkdtempSync(join(tmpdir(), "gnomon-sessions-"));
  try {
    for (const [i, file] of files.entries()) symlinkSync(file, join(folder, `${i}.json`));
    const { requests } = await openWorkload(folder, { ...IMPORT_DEFAULTS, seed: 1, sharedPrefix: 1 });
    const all = await Array.fromAsync(requests);
    const started = startedSessions(all, () => true, seed, one.sessionsPerSecond);
    return fittedTo(one, evenly(started, requestsMax)).map((request, index) => ({ ...request, index }));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function sessionFiles(folder: string): string[] {
  const names = readdirSync(folder).filter((name) => name.endsWith(".json"));
  return names.toSorted().map((name) => resolve(folder, name));
}

/** Of its requests: some sessions are there under two names. */
function contentOf(file: string): string {
  const text = readFileSync(file, "utf8");
  return createHash("sha256")
    .update(text.slice(text.indexOf('"requests"')))
    .digest("hex");
}
