/**
 * Who gets what while a fleet changes: an engine joins with an empty cache, one is slow and not known to be, one is killed
 * and comes back as a new process. Shares of traffic over time, by policy.
 *
 *     BENCH_TRACES=FOLDER npx node bench/joining.ts [--cases "conversations, high;..."] [--profiles gnomon,...]
 *         [--engines 8] [--requests 1500] [--seeds 0,1,2] [--picture FILE.svg]
 *
 * FOLDER as of default-choice.ts, the choosing half. Simulated engines in virtual time, each policy under the gauges that it
 * states. --picture draws the shares of the first profile, case and seed.
 *
 * Columns: of a newcomer its largest share of the first turns of any 5 s (%), of the tokens to compute from 15 s on (%), and
 * the TTFT of first turns of its first 15 s, there and elsewhere (ms); the slow one's share of tokens (%); TTFT and E2E of
 * all (ms). The mean over seeds, and the largest of one.
 */
import { writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { loadProfile } from "#config/profile-file.ts";
import { MICROS_PER_MILLI, MICROS_PER_SECOND } from "#core/base/units.ts";
import { CHOICE_CASES } from "./default-choice/case.ts";
import { choiceWorkload } from "./default-choice/choice-workload.ts";
import { joiningRun, type JoiningRun } from "./joining/joining-run.ts";
import { NEWCOMER, RETURNING, SLOW } from "./joining/changing-fleet.ts";
import { sharePicture } from "./joining/share-picture.ts";

const { values: flags } = parseArgs({
  options: {
    cases: {
      type: "string",
      default: "conversations, moderate;conversations, high;unshared chat, high;long answers, high",
    },
    profiles: { type: "string", default: "gnomon,gnomon-added,llm-d,lmetric,unified,dynamo,least-loaded" },
    engines: { type: "string", default: "8" },
    requests: { type: "string", default: "1500" },
    seeds: { type: "string", default: "0,1,2" },
    picture: { type: "string" },
  },
});
/** A share of fewer first turns is mostly chance. */
const REQUESTS_MIN = 10;
const WINDOW_MICROS = 5 * MICROS_PER_SECOND;
const SOON_MICROS = 15 * MICROS_PER_SECOND;
const traces = process.env["BENCH_TRACES"] ?? "../shared/traces";
const seeds = flags.seeds.split(",").map(Number);
const engines = Number(flags.engines);
const profiles = flags.profiles.split(",").map(loadProfile);

type Column = readonly [head: string, of: (run: JoiningRun) => number, unit: "share" | "millis"];

/** Of a newcomer, whether it joins or comes back. */
function newcomer(who: string, id: string, from: (run: JoiningRun) => number): Column[] {
  return [
    [
      `${who}: most in 5 s`,
      (run) => run.shares.mostFirstTurns(id, from(run), from(run) + SOON_MICROS, WINDOW_MICROS, REQUESTS_MIN).share,
      "share",
    ],
    [`later`, (run) => run.shares.tokenShare(id, from(run) + SOON_MICROS, untilOf(run, from)), "share"],
    [`TTFT there`, (run) => run.shares.firstTurnMicros(from(run), from(run) + SOON_MICROS, id, true), "millis"],
    [`elsewhere`, (run) => run.shares.firstTurnMicros(from(run), from(run) + SOON_MICROS, id, false), "millis"],
  ];
}

function untilOf({ fleet, lastsMicros }: JoiningRun, from: (run: JoiningRun) => number): number {
  return from === joins ? fleet.killedAt : lastsMicros;
}

const joins = ({ fleet }: JoiningRun): number => fleet.joinsAt;
const back = ({ fleet }: JoiningRun): number => fleet.backAt;
const COLUMNS: readonly Column[] = [
  ...newcomer("joins", NEWCOMER, joins),
  ...newcomer("back", RETURNING, back),
  ["slow", (run) => run.shares.tokenShare(SLOW, SOON_MICROS, run.lastsMicros), "share"],
  ["all: TTFT", ({ ttftMicros }) => ttftMicros, "millis"],
  ["E2E", ({ e2eMicros }) => e2eMicros, "millis"],
];

for (const [c, name] of flags.cases.split(";").entries()) {
  const one = CHOICE_CASES.find((each) => each.name === name);
  if (one === undefined) throw new RangeError(`joining: --cases: expected names of default-choice's, got ${name}`);
  const requests = Number(flags.requests);
  const workloads = await Promise.all(seeds.map((seed) => choiceWorkload(one, "choosing", seed, requests, traces)));
  const line = (cells: readonly string[]): string => `| ${cells.join(" | ")} |`;
  console.log(`\n### ${name}: ${workloads.map((all) => all.length).join(", ")} requests, ${engines} engines\n`);
  console.log(line(["profile", ...COLUMNS.map(([head]) => head)]));
  console.log(line(["---", ...COLUMNS.map(() => "---")]));
  profiles.forEach((profile, p) => {
    const runs = workloads.map((all, i) => joiningRun(all, profile, engines, seeds[i]!));
    console.log(line([profile.name, ...COLUMNS.map(([, of, unit]) => cell(runs.map(of), unit))]));
    if (flags.picture !== undefined && c === 0 && p === 0) {
      writeFileSync(flags.picture, sharePicture(`${profile.name}, ${name}`, runs[0]!));
    }
  });
}

/** Shares as % of the traffic: the mean, and the largest of any seed where they differ. */
function cell(values: readonly number[], unit: "share" | "millis"): string {
  const known = values.filter((value) => Number.isFinite(value));
  if (known.length === 0) return "–";
  const scale = unit === "share" ? 100 : 1 / MICROS_PER_MILLI;
  const mean = (scale * known.reduce((sum, value) => sum + value, 0)) / known.length;
  const most = scale * Math.max(...known);
  return unit === "millis" || seeds.length === 1 ? mean.toFixed(0) : `${mean.toFixed(0)} (${most.toFixed(0)})`;
}
