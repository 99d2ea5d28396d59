import type { WorkloadRequest } from "../workload-request.ts";
import { blisRequests } from "./blis-spec.ts";
import { BLIS_SPEC, type BlisSpec } from "./blis-spec-schema.ts";
import type { ImportOptions } from "./import-options.ts";
import type { ImportReport } from "./import-report.ts";
import { parseSpec, readSpecText } from "./synthetic-spec.ts";

/** Requests of a BLIS WorkloadSpec file; throws ImportError with every problem. */
export async function* readBlisSpec(
  path: string,
  options: ImportOptions,
  report: ImportReport,
): AsyncGenerator<WorkloadRequest> {
  yield* blisRequests(await loadBlisSpec(path), options.seed, report);
}

async function loadBlisSpec(path: string): Promise<BlisSpec> {
  return parseSpec(BLIS_SPEC, path, await readSpecText(path));
}
