import { join } from "node:path";
import { IMPORT_DEFAULTS, type ImportOptions } from "#trace/import/import-options.ts";
import type { ImportReport } from "#trace/import/import-report.ts";
import { openWorkload } from "#trace/import/open-workload.ts";
import type { WorkloadRequest } from "#trace/workload-request.ts";

const GOLDEN = join(import.meta.dirname, "../../golden/traces");

export function golden(name: string): string {
  return join(GOLDEN, name);
}

/** Every request of a workload, and what was reported about it. */
export async function readAll(
  path: string,
  options: Partial<ImportOptions> = {},
): Promise<{ readonly requests: WorkloadRequest[]; readonly report: ImportReport }> {
  const { requests, report } = await openWorkload(path, { ...IMPORT_DEFAULTS, ...options });
  const all: WorkloadRequest[] = [];
  for await (const request of requests) all.push(request);
  return { requests: all, report };
}

export function ids(request: WorkloadRequest | undefined): number[] {
  return [...(request?.blockIds ?? [])];
}
