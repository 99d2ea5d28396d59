import { createWriteStream } from "node:fs";
import { once } from "node:events";
import { MICROS_PER_SECOND } from "#core/base/units.ts";
import { workloadFileHeader, workloadLine } from "#trace/export/workload-file.ts";
import { WorkloadFit } from "#trace/import/fit-workload.ts";
import { IMPORT_DEFAULTS } from "#trace/import/import-options.ts";
import { openWorkload } from "#trace/import/open-workload.ts";
import { clustersOf, waits } from "#shadow/job/clusters.ts";
import type { WorkloadRequest } from "#trace/workload-request.ts";
import { copiesOf } from "./session-copies.ts";
import type { ClosedLoopCase } from "./case.ts";

/**
 * Writes what a case sends as a workload file, so that every run sends the same requests; returns their number. Sessions
 * share their tool and system prompts.
 */
export async function prepareWorkload(one: ClosedLoopCase, path: string, file: string, seed: number): Promise<number> {
  const { copies, turns, sessionsPerSecond, rateScale, requests: wanted } = one;
  const options = { ...IMPORT_DEFAULTS, seed, sessionsPerSecond, sharedPrefix: 1 };
  const { requests } = await openWorkload(path, options);
  const fit = new WorkloadFit({
    tokenScale: one.tokenScale,
    outputScale: one.outputScale,
    inputTokensMax: one.inputTokensMax,
    outputTokensMax: one.outputTokensMax,
    oversize: "truncate",
    thinkMicrosMax: one.thinkSecondsMax * MICROS_PER_SECOND,
  });
  const kept: WorkloadRequest[] = [];
  for await (const request of requests) {
    if (copies === 1 && kept.length === wanted) break;
    if (request.turn >= turns) continue;
    const fitted = fit.fit(request);
    if (fitted !== undefined) kept.push({ ...fitted, arrivalMicros: Math.round(fitted.arrivalMicros / rateScale) });
  }
  // Sub-agents of turns that are left out would wait for them.
  const gapMicros = MICROS_PER_SECOND / sessionsPerSecond;
  const sent =
    one.inHalves === true
      ? halvesOf(rooted(kept), copies, gapMicros, wanted)
      : copiesOf(rooted(kept), copies, gapMicros).slice(0, wanted);
  const out = createWriteStream(file);
  out.write(workloadFileHeader([`closed-loop bench, ${one.workload} at ${one.load} load`]));
  for (const request of sent) if (!out.write(workloadLine(request))) await once(out, "drain");
  out.end();
  await once(out, "finish");
  return sent.length;
}

/** The sessions that begin first so many times over, then the others: whoever looks at one half has not seen the other. */
function halvesOf(
  requests: readonly WorkloadRequest[],
  copies: number,
  gapMicros: number,
  wanted: number,
): WorkloadRequest[] {
  const numbered = requests.map((request, index) => ({ ...request, index }));
  const { ofRow, startMicros } = clustersOf(numbered);
  const middle = Math.floor(startMicros.length / 2);
  const [first, other] = [true, false].map((isFirst) =>
    copiesOf(
      numbered.filter(({ index }) => ofRow[index]! < middle === isFirst),
      copies,
      gapMicros,
    ).slice(0, Math.floor(wanted / 2)),
  ) as [WorkloadRequest[], WorkloadRequest[]];
  const starts = (part: readonly WorkloadRequest[]) => part.flatMap((one) => (waits(one) ? [] : [one.arrivalMicros]));
  const laterMicros = Math.max(...starts(first)) + gapMicros - Math.min(...starts(other));
  return [...first, ...other.map((one) => ({ ...one, arrivalMicros: one.arrivalMicros + laterMicros }))];
}

/** Without sessions whose parent's turn is not there, and those that they spawned. */
function rooted(requests: readonly WorkloadRequest[]): WorkloadRequest[] {
  const last = new Map<string, number>();
  return requests.filter(({ session, turn, parent }) => {
    if (parent !== undefined && (last.get(parent.session) ?? -1) < parent.turn) return false;
    if (session !== "") last.set(session, turn);
    return true;
  });
}
