import { randomBytes } from "node:crypto";
import { WALL_START_MICROS } from "#live/base/clock.ts";
import type { FaultLog } from "#live/log/fault-log.ts";
import type { Run } from "#live/recorder/run-lines.ts";
import type { RouterTap } from "#live/base/router-tap.ts";
import type { TraceRouter } from "#trace/codec/record.ts";
import { liveAutopilot } from "../autopilot/live-autopilot.ts";
import { emulatedEngines } from "../endpoints/emulated-engines.ts";
import { openRecorder } from "./live-recorder.ts";
import type { Scraped } from "../policy/live-scrape.ts";
import { startShadow } from "./live-shadow.ts";
import { machineDigest } from "../process/machine-digest.ts";
import type { ServePlan } from "../plan/serve-plan.ts";

/** What sees every input beside the gateway, and what is made of it. */
export async function observers(
  plan: ServePlan,
  settings: TraceRouter,
  tap: RouterTap,
  faults: FaultLog,
  { scrapeMillis }: Scraped,
) {
  const { config } = plan;
  const run = runOf(plan, settings);
  const recorder = await openRecorder(config.record, run, faults);
  const search = liveAutopilot(config, faults);
  const shadow = startShadow({ ...config, scrapeMillis }, run, tap, faults, search);
  return { recorder, shadow, search, shadowStatus: shadow === undefined ? {} : { shadow: shadow.status } };
}

function runOf(plan: ServePlan, router: TraceRouter): Run {
  const { prefix, tokenizer } = plan.config;
  const emulated = emulatedEngines(plan.config);
  return {
    id: randomBytes(RUN_ID_BYTES).toString("hex"),
    startWallMicros: WALL_START_MICROS,
    router,
    hash: { algorithm: prefix.blockHash, blockTokens: router.blockTokens, tokenizer: tokenizer.kind },
    endpoints: [],
    ...(emulated && { emulated }),
    machine: { digest: machineDigest() },
  };
}

const RUN_ID_BYTES = 4;
