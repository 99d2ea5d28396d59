import { readExposition } from "./exposition.ts";

export interface DcgmPage {
  readonly devices: readonly DeviceReading[];
  /** Wanted lines that could not be read. */
  readonly malformed: number;
}

/** One GPU as a DCGM exporter reports it; undefined where the page does not. */
export interface DeviceReading {
  readonly labels: ReadonlyMap<string, string>;
  watts: number | undefined;
  /** Streaming-multiprocessor activity in [0, 1]: the profiled one where there is one, else the coarser utilization. */
  smUtilization: number | undefined;
}

const WATTS = "DCGM_FI_DEV_POWER_USAGE";
const UTILIZATION_PERCENT = "DCGM_FI_DEV_GPU_UTIL";
const SM_ACTIVE = "DCGM_FI_PROF_SM_ACTIVE";
const WANTED: ReadonlySet<string> = new Set([WATTS, UTILIZATION_PERCENT, SM_ACTIVE]);

/** No GPU draws more, and the utilization is a percentage; a larger figure is a broken page. */
const WATTS_MAX = 1_000_000;
/** GPUs in one page; the rest of it is not read. */
const DEVICES_MAX = 1024;

/**
 * Reads a page of dcgm-exporter, and pauses after each slice. A GPU is distinguished by its UUID, else by host, number and
 * MIG instance.
 */
export function* dcgmPage(text: string): Generator<void, DcgmPage> {
  const devices = new Map<string, DeviceReading & { profiled: boolean }>();
  const malformed = yield* readExposition(text, WANTED, (name, labels, value) => {
    if (!(value >= 0 && value <= WATTS_MAX)) return;
    const key = `${labels.get("UUID") ?? `${labels.get("Hostname") ?? ""}/${labels.get("gpu") ?? ""}`}/${labels.get("GPU_I_ID") ?? ""}`;
    let device = devices.get(key);
    if (device === undefined) {
      if (devices.size >= DEVICES_MAX) return;
      devices.set(key, (device = { labels, watts: undefined, smUtilization: undefined, profiled: false }));
    }
    if (name === WATTS) device.watts = value;
    else if (name === SM_ACTIVE) {
      device.smUtilization = Math.min(1, value);
      device.profiled = true;
    } else if (!device.profiled) device.smUtilization = Math.min(1, value / 100);
  });
  return { devices: [...devices.values()], malformed };
}
