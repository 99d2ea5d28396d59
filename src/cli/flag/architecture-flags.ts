import { InvalidArgumentError, Option } from "commander";
import { RARE } from "#drive/rare-option.ts";
import { ConfigError } from "#config/config-error.ts";
import { COLOCATE_BELOW_TOKENS, divided, divisionOf, ROLES_DEFAULT } from "#core/profile/profile-stages.ts";
import type { Endpoint } from "#core/endpoint/endpoint.ts";
import type { ProfileSpec } from "#core/plugin/spec.ts";
import { MICROS_PER_MILLI } from "#core/base/units.ts";
import { TRANSFER_DEFAULTS, type TransferOptions } from "#sim/setting/transfer-options.ts";
import { whole } from "./flag-number.ts";

export const ARCHITECTURES = ["colocated", "pd"] as const;
export type Architecture = (typeof ARCHITECTURES)[number];

/** Who computes prompts, and what lies between them and who answers. */
export interface ArchitectureFlags {
  readonly architecture?: Architecture;
  readonly prefillReplicas?: number;
  readonly decodeReplicas?: number;
  readonly colocateBelowTokens?: number;
  /** Microseconds. */
  readonly pdTransferLatency: number;
  /** Bytes per second. */
  readonly pdTransferBandwidth: number;
  readonly pdTransferContention: boolean;
}

const REPLICAS_MAX = 10_000;

export function architectureOptions(meaning: string): readonly Option[] {
  const option = (flags: string, text: string) => new Option(flags, text).helpGroup(RARE);
  return [
    new Option("--architecture <kind>", meaning).choices([...ARCHITECTURES]),
    option("--prefill-replicas <count>", "with --architecture pd: engines that compute prompts").argParser(
      whole(1, REPLICAS_MAX),
    ),
    option("--decode-replicas <count>", "with --architecture pd: engines that answer").argParser(
      whole(1, REPLICAS_MAX),
    ),
    option(
      "--colocate-below-tokens <tokens>",
      `uncached prompt tokens below which one engine does both (default: the profile's, else ${COLOCATE_BELOW_TOKENS})`,
    ).argParser(whole(0, 1e9)),
    option("--pd-transfer-latency <time>", "latency of a transfer: 50us, 1ms; milliseconds without a unit")
      .argParser(latency)
      .default(TRANSFER_DEFAULTS.latencyMicros, "50us"),
    option(
      "--pd-transfer-bandwidth <rate>",
      "bandwidth of a transfer: 25GB/s, 800MB/s; bytes per second without a unit",
    )
      .argParser(bandwidth)
      .default(TRANSFER_DEFAULTS.bytesPerSecond, "25GB/s"),
    option("--pd-transfer-contention", "concurrent transfers share the bandwidth").default(false),
  ];
}

/** The usual transfers where a command has no flags for them. */
export function transfersOf(flags: Partial<ArchitectureFlags>): TransferOptions {
  const { pdTransferLatency, pdTransferBandwidth, pdTransferContention } = flags;
  const { latencyMicros, bytesPerSecond, contention } = TRANSFER_DEFAULTS;
  return {
    ...TRANSFER_DEFAULTS,
    latencyMicros: pdTransferLatency ?? latencyMicros,
    bytesPerSecond: pdTransferBandwidth ?? bytesPerSecond,
    contention: pdTransferContention ?? contention,
  };
}

/**
 * Engines of each kind; of `count`, what the other kind leaves, or halves. Throws ConfigError where a kind has none, and
 * for what goes with pd alone.
 */
export function replicasOf(
  { architecture, prefillReplicas, decodeReplicas }: ArchitectureFlags,
  count: number,
): { readonly prefill: number; readonly decode: number } {
  const given = prefillReplicas === undefined ? "--decode-replicas" : "--prefill-replicas";
  if (architecture !== "pd" && (prefillReplicas ?? decodeReplicas) !== undefined)
    throw new ConfigError([`${given}: expected together with --architecture pd, got it alone`]);
  if (architecture !== "pd") return { prefill: 0, decode: count };
  const prefill = prefillReplicas ?? (decodeReplicas === undefined ? Math.floor(count / 2) : count - decodeReplicas);
  const decode = decodeReplicas ?? count - prefill;
  if (prefill >= 1 && decode >= 1) return { prefill, decode };
  const parts = `${prefill} that compute prompts and ${decode} that answer`;
  throw new ConfigError([`--architecture pd: expected at least one engine of each kind, got ${count}: ${parts}`]);
}

/** Endpoints with roles, those that compute prompts first. */
export function withRoles<E extends Endpoint>(endpoints: readonly E[], prefill: number): E[] {
  return endpoints.map((endpoint, i) => ({
    ...endpoint,
    labels: { ...endpoint.labels, [ROLES_DEFAULT.label]: i < prefill ? "prefill" : "decode" },
  }));
}

/** A profile for such a fleet: its own stage chooses in both, unless it has two. */
export function pdSpec(spec: ProfileSpec, { colocateBelowTokens }: Partial<ArchitectureFlags>): ProfileSpec {
  const { filters, scorers, picker } = spec;
  const before = divisionOf(spec) ?? { prefill: { filters, scorers, picker } };
  return divided(spec, colocateBelowTokens === undefined ? before : { ...before, colocateBelowTokens });
}

/** The same policy where every engine does both. */
export function colocatedSpec(spec: ProfileSpec): ProfileSpec {
  return divided(spec, undefined);
}

const LATENCY_UNITS: Readonly<Record<string, number>> = { us: 1, ms: MICROS_PER_MILLI, s: 1_000_000 };
const BANDWIDTH_UNITS: Readonly<Record<string, number>> = {
  "B/s": 1,
  "KB/s": 1e3,
  "MB/s": 1e6,
  "GB/s": 1e9,
  "TB/s": 1e12,
};

function latency(text: string): number {
  const micros = quantity(text, LATENCY_UNITS, "ms");
  if (!(micros >= 0 && micros <= 1e9))
    throw new InvalidArgumentError("expected a time such as 50us, 1ms or 2s, to 1000s");
  return micros;
}

function bandwidth(text: string): number {
  const rate = quantity(text, BANDWIDTH_UNITS, "B/s");
  if (!(rate > 0 && rate <= 1e15))
    throw new InvalidArgumentError("expected a rate such as 25GB/s or 800MB/s, to 1000TB/s");
  return rate;
}

/** NaN for what is none. */
function quantity(text: string, units: Readonly<Record<string, number>>, usual: string): number {
  const [, number = "", unit = usual] = /^\s*(\d+(?:\.\d+)?(?:e\d+)?)\s*([A-Za-z/]+)?\s*$/.exec(text) ?? [];
  const factor = Object.hasOwn(units, unit) ? units[unit]! : NaN;
  return number === "" ? NaN : Number(number) * factor;
}
