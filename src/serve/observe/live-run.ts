import { randomBytes } from "node:crypto";
import { otherDecides } from "#config/tap-section.ts";
import { WALL_START_MICROS } from "#live/base/clock.ts";
import type { RunHeader } from "#live/recorder/run-lines.ts";
import type { TraceRouter } from "#trace/codec/record.ts";
import { part } from "../assembly/part.ts";
import { emulatedEngines } from "../endpoints/emulated-engines.ts";
import type { GatewayContext } from "../plan/gateway-context.ts";
import type { ServePlan } from "../plan/serve-plan.ts";
import { machineDigest } from "../process/machine-digest.ts";

/** This life of the gateway, as its trace names it. */
export const runPart = part({
  name: "run",
  needs: ["plan", "settings"],
  start: ({ plan, settings }: Pick<GatewayContext, "plan"> & { readonly settings: TraceRouter }) =>
    runOf(plan, settings),
});

function runOf(plan: ServePlan, router: TraceRouter): RunHeader {
  const { prefix, tokenizer, tap } = plan.config;
  const emulated = emulatedEngines(plan.config);
  return {
    id: randomBytes(RUN_ID_BYTES).toString("hex"),
    startWallMicros: WALL_START_MICROS,
    router,
    hash: { algorithm: prefix.blockHash, blockTokens: router.blockTokens, tokenizer: tokenizer.kind },
    endpoints: [],
    ...(emulated && { emulated }),
    machine: { digest: machineDigest() },
    ...(otherDecides(tap) && { observed: { router: tap.name } }),
  };
}

const RUN_ID_BYTES = 4;
