import { loadCalibratedEngine } from "#config/engine-file.ts";
import { numberedIds } from "#core/endpoint/numbered-ids.ts";
import { MICROS_PER_SECOND } from "#core/base/units.ts";
import type { Candidate, Setting } from "#shadow/candidate/candidate.ts";
import { PackedWorkload, WorkloadPacker } from "#shadow/recorded/packed-workload.ts";
import { scrapedEvery } from "#sim/signal/scraped-every.ts";
import { openWorkload } from "#trace/import/open-workload.ts";
import { IMPORT_DEFAULTS } from "#trace/import/import-options.ts";
import type { WorkloadRequest } from "#trace/workload-request.ts";
import { mix32, nameHash } from "#core/base/random.ts";
import { ENGINE, ENGINES, profileNamed, TRAFFICS, workloadOf } from "./fleet.ts";

/** Tenants of made-up traffic, the larger ones first: a sixth of all conversations are the largest one's. */
const TENANTS = 40;

export function candidateNamed(name: string): Candidate {
  return { name, spec: profileNamed(name) };
}

/** Made-up conversations on four engines, with sessions and tenants. */
export function madeSetting(conversationsPerSecond: number, seconds: number, seed: number): Setting {
  const workload = workloadOf(TRAFFICS[0]!, conversationsPerSecond, seconds, seed);
  return settingWith(
    workload.map((request) => ({ ...request, tenant: tenantOf(request) })),
    ENGINES,
    seed,
  );
}

/** A workload's first requests on so many engines. */
export async function traceSetting(
  path: string,
  { endpoints, engine: name, limit }: { readonly endpoints: number; readonly engine: string; readonly limit: number },
): Promise<Setting> {
  const { requests } = await openWorkload(path, { ...IMPORT_DEFAULTS, seed: 0 });
  const kept: WorkloadRequest[] = [];
  for await (const request of requests) {
    if (kept.length < limit) kept.push(request);
  }
  return requestsSetting(kept, { endpoints, engine: name });
}

/** Requests in the order of their arrival on so many engines. */
export function requestsSetting(
  requests: readonly WorkloadRequest[],
  { endpoints, engine: name }: { readonly endpoints: number; readonly engine: string },
): Setting {
  const packer = new WorkloadPacker();
  for (const request of requests) packer.push(request);
  const { engine } = loadCalibratedEngine(name);
  return {
    ...settingWith(new PackedWorkload(packer.columns()), endpoints, 0),
    engine,
    blockTokens: engine.blockTokens,
  };
}

function settingWith(workload: Setting["workload"], endpoints: number, seed: number): Setting {
  return {
    seed,
    workload,
    endpoints: numberedIds("endpoint", endpoints).map((id) => ({
      id,
      models: [],
      labels: {},
      kvCapacityTokens: undefined,
      concurrencyMax: undefined,
    })),
    fleetEvents: [],
    engine: ENGINE,
    signals: scrapedEvery(MICROS_PER_SECOND),
    blockTokens: ENGINE.blockTokens,
    staleAfterMicros: 3 * MICROS_PER_SECOND,
    requestMicros: 0,
    answerMicros: 0,
    rateScale: 1,
  };
}

/** A conversation's tenant: the square of an even draw, so that some have many and many have few. */
function tenantOf({ session }: WorkloadRequest): string {
  const draw = mix32(nameHash(session)) / 0x1_0000_0000;
  return `tenant_${Math.floor(TENANTS * draw * draw)}`;
}
