/**
 * Rollouts of one routing policy against another in the simulator: how often a profile is found to differ from itself, how
 * soon a known difference is found, what each design gets wrong, and how soon harm is taken back.
 *
 *     npx node bench/rollout.ts [--part aa|aa-trace|ab|bias|harm] [--runs N] [--seconds N] [--design NAME]
 *         [--trace FILE --endpoints N --rate-scale N,N --limit N --window SECONDS]
 *
 * aa-trace and bias are about a trace; --design leaves out the designs whose names do not begin with it.
 */
import { parseArgs } from "node:util";
import { MICROS_PER_SECOND } from "#core/units.ts";
import { spanOf } from "#shadow/question/candidate.ts";
import { bias } from "./rollout/bias.ts";
import { detection } from "./rollout/detection.ts";
import { falseAlarms } from "./rollout/false-alarms.ts";
import { harm } from "./rollout/harm.ts";
import { madeSetting, traceSetting } from "./rollout/study-setting.ts";

const { values } = parseArgs({
  options: {
    part: { type: "string" },
    runs: { type: "string" },
    seconds: { type: "string" },
    design: { type: "string" },
    trace: { type: "string", default: "" },
    endpoints: { type: "string", default: "8" },
    "rate-scale": { type: "string", default: "1" },
    limit: { type: "string", default: "4000" },
    window: { type: "string", default: "60" },
  },
});

/** Conversations a second of made-up traffic, about three requests each. */
const CONVERSATIONS_PER_SECOND = 6;
const WINDOW_SECONDS = 6;

const [runs, seconds] = [values.runs, values.seconds].map((text) => (text === undefined ? undefined : Number(text)));
const { design, trace } = values;
const rates = values["rate-scale"].split(",").map(Number);
const windowSeconds = Number(values.window);

function settingAt(rateScale: number) {
  if (trace === "") throw new RangeError("--trace: expected a recorded workload");
  return traceSetting(trace, { endpoints: Number(values.endpoints), rateScale, limit: Number(values.limit) });
}

const PARTS: Readonly<Record<string, () => void | Promise<void>>> = {
  aa: () => {
    const spanSeconds = seconds ?? 240;
    const settingOf = (run: number) => madeSetting(CONVERSATIONS_PER_SECOND, spanSeconds, run);
    const about = "made-up conversations";
    falseAlarms({ about, settingOf, spanSeconds, windowSeconds: WINDOW_SECONDS, runs: runs ?? 200, design });
  },
  "aa-trace": async () => {
    const setting = await settingAt(rates[0]!);
    const spanSeconds = Math.round(spanOf(setting) / MICROS_PER_SECOND);
    falseAlarms({ about: trace, settingOf: () => setting, spanSeconds, windowSeconds, runs: runs ?? 200, design });
  },
  ab: () => detection("gnomon", "round-robin", runs ?? 40, design),
  bias: async () => {
    const settings = rates.map(async (rate) => ({ name: `rate x ${rate}`, setting: await settingAt(rate) }));
    await bias(await Promise.all(settings), runs ?? 4, windowSeconds);
  },
  harm: () => harm(runs ?? 10, seconds ?? 100),
};

const chosen = values.part === undefined ? ["aa", "ab", "harm"] : [values.part];
for (const name of chosen) {
  const part = PARTS[name];
  if (part === undefined) throw new RangeError(`--part: expected ${Object.keys(PARTS).join(", ")}, got ${name}`);
  await part();
  process.stdout.write("\n");
}
