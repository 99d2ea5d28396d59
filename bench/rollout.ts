/**
 * Rollouts of one routing policy against another in the simulator: how often a profile is found to differ from itself, how
 * soon a known difference is found, what each design gets wrong, and how soon harm is taken back.
 *
 *     npx node bench/rollout.ts [--part aa|ab|bias|harm] [--runs N] [--seconds N]
 */
import { parseArgs } from "node:util";
import { bias } from "./rollout/bias.ts";
import { detection } from "./rollout/detection.ts";
import { falseAlarms } from "./rollout/false-alarms.ts";
import { harm } from "./rollout/harm.ts";

const { values } = parseArgs({
  options: { part: { type: "string" }, runs: { type: "string" }, seconds: { type: "string" } },
});
const PARTS: Readonly<Record<string, (runs: number | undefined, seconds: number | undefined) => void>> = {
  aa: (runs = 200, seconds = 240) => falseAlarms(runs, seconds),
  ab: (runs = 40, seconds = 240) => detection("gnomon", "round-robin", runs, seconds),
  bias: (runs = 3, seconds = 160) => bias(runs, seconds),
  harm: (runs = 10, seconds = 100) => harm(runs, seconds),
};
const given = (text: string | undefined) => (text === undefined ? undefined : Number(text));
const chosen = values.part === undefined ? Object.values(PARTS) : [PARTS[values.part]];
for (const part of chosen) {
  if (part === undefined) throw new RangeError(`--part: expected ${Object.keys(PARTS).join(", ")}, got ${values.part}`);
  part(given(values.runs), given(values.seconds));
  process.stdout.write("\n");
}
