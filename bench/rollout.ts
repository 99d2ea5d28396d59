/**
 * Rollouts of one routing policy against another in the simulator: how often a profile is found to differ from itself, how
 * soon a known difference is found, what each design gets wrong, and how soon harm is taken back.
 *
 *     npx node bench/rollout.ts [--part NAME] [--runs N] [--seconds N] [--design NAME] [--case NAME]
 *         [--control PROFILE] [--other PROFILE] [--traffic own|resampled] [--predicts]
 *
 * aa, aa-trace, ab, bias and harm simulate whole fleets; live has sockets. aa-outcomes, ab-outcomes and harm-outcomes draw
 * the requests' outcomes alone, with sessions of 1 to 300 turns, 30 tenants, drift and bursts, so that many rollouts are
 * judged in little time; --traffic resampled takes parts of Mooncake's trace instead (aa and harm), and --predicts gives the
 * judge what a simulator would predict of each request. --case names a harm, or a difference ("+30 %").
 * With --keep FILE they go on where they were,
 * and with --piece SECONDS they begin no other run after so long; what there is is shown.
 *
 * engines compares engines by label under one policy, of which one side is 0, 3 and 10 % slower.
 *
 * plans holds plans of one half of five kinds of traffic against rollouts on the other half. predictions counts how many
 * requests are predicted at some rates, or at the one that --case names.
 *
 * --design leaves out the designs whose names do not begin with it. aa-trace, plans and bias need BENCH_TRACES, a folder with
 * mooncake/conversation_trace.jsonl and weka/*.json; bias goes through mooncake-moderate, mooncake-high, weka-light and
 * weka-moderate, or the one case that is named. live runs rollouts over sockets, each for a minute or two, keeps them
 * in --out and reports them; --case then names some of its runs, or all that are there: "report". --port is the
 * gateway's, with eight engines behind it, so that several may run at a time.
 */
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { MICROS_PER_SECOND } from "#core/base/units.ts";
import { spanOf } from "#shadow/candidate/candidate.ts";
import { bias } from "./rollout/bias.ts";
import { detection } from "./rollout/detection.ts";
import { engineCanary } from "./rollout/engine-canary.ts";
import { falseAlarms } from "./rollout/false-alarms.ts";
import { harm } from "./rollout/harm.ts";
import { KeptRuns } from "./rollout/kept-runs.ts";
import { live } from "./rollout/live.ts";
import { predictionsMade } from "./rollout/predictions-made.ts";
import { planCoverage } from "./rollout/plan-coverage.ts";
import { traceTraffic } from "./rollout/trace-traffic.ts";
import { trustPower } from "./rollout/trust-power.ts";
import { trustHarm } from "./rollout/trust-harm.ts";
import { trustFalseAlarms, type TrustQuestion } from "./rollout/trust.ts";
import { madeSetting, traceSetting } from "./rollout/study-setting.ts";

const { values } = parseArgs({
  options: {
    part: { type: "string" },
    runs: { type: "string" },
    seconds: { type: "string" },
    design: { type: "string" },
    case: { type: "string" },
    out: { type: "string", default: join(tmpdir(), "gnomon-rollout-live") },
    port: { type: "string", default: "19700" },
    keep: { type: "string" },
    piece: { type: "string" },
    predicts: { type: "boolean", default: false },
    traffic: { type: "string", default: "own" },
    control: { type: "string", default: "gnomon" },
    other: { type: "string", default: "round-robin" },
  },
});

/** Conversations a second of made-up traffic, about three requests each. */
const CONVERSATIONS_PER_SECOND = 6;
const WINDOW_SECONDS = 6;

const [runs, seconds] = [values.runs, values.seconds].map((text) => (text === undefined ? undefined : Number(text)));
const { design } = values;
const kept = new KeptRuns(values.keep, values.piece === undefined ? undefined : Number(values.piece));
const traces = process.env["BENCH_TRACES"] ?? "../shared/traces";

/** What rollouts on drawn outcomes have in common. */
function trust(): Pick<TrustQuestion, "design" | "kept" | "predicts" | "about" | "trafficOf"> {
  const { traffic, predicts } = values;
  if (traffic === "own") return { design, kept, predicts };
  if (traffic !== "resampled") throw new RangeError(`--traffic: expected own or resampled, got ${traffic}`);
  const trafficOf = traceTraffic(join(traces, "mooncake/conversation_trace.jsonl"));
  return { design, kept, predicts, about: "trace", trafficOf };
}

/** Of the trace's requests on four engines. */
const TRACE_REQUESTS = 2_000;
const TRACE_WINDOW_SECONDS = 30;

const PARTS: Readonly<Record<string, () => void | Promise<void>>> = {
  aa: () => {
    const spanSeconds = seconds ?? 240;
    const settingOf = (run: number) => madeSetting(CONVERSATIONS_PER_SECOND, spanSeconds, run);
    const about = "made-up conversations";
    falseAlarms({ about, settingOf, spanSeconds, windowSeconds: WINDOW_SECONDS, runs: runs ?? 200, design });
  },
  "aa-trace": async () => {
    const path = join(traces, "mooncake/conversation_trace.jsonl");
    const setting = await traceSetting(path, { endpoints: 4, engine: "emulated-default", limit: TRACE_REQUESTS });
    const spanSeconds = Math.round(spanOf(setting) / MICROS_PER_SECOND);
    const about = `the first ${TRACE_REQUESTS} requests of Mooncake's trace`;
    const windowSeconds = TRACE_WINDOW_SECONDS;
    falseAlarms({ about, settingOf: () => setting, spanSeconds, windowSeconds, runs: runs ?? 200, design });
  },
  "aa-outcomes": () => trustFalseAlarms({ runs: runs ?? 200, seconds: seconds ?? 1800, ...trust() }),
  "ab-outcomes": () => trustPower({ runs: runs ?? 100, seconds: seconds ?? 7200, only: values.case, ...trust() }),
  "harm-outcomes": () => trustHarm({ runs: runs ?? 100, seconds: seconds ?? 3600, only: values.case, ...trust() }),
  ab: () => detection(values.control, values.other, runs ?? 40, design),
  bias: () => bias(traces, values.case),
  plans: () => planCoverage(traces, values.case, kept),
  live: () => live(traces, values.out, values.case, Number(values.port)),
  engines: () => engineCanary(runs ?? 20, seconds ?? 900),
  predictions: () => predictionsMade(seconds ?? 120, values.case),
  harm: () => harm(runs ?? 10, seconds ?? 100, design),
};

const chosen = values.part === undefined ? ["aa", "ab", "harm"] : [values.part];
for (const name of chosen) {
  const part = PARTS[name];
  if (part === undefined) throw new RangeError(`--part: expected ${Object.keys(PARTS).join(", ")}, got ${name}`);
  await part();
  process.stdout.write("\n");
}
