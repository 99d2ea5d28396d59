/**
 * What happens under faults and overload, on endpoints in processes of their own, over sockets. Prints what holds; exits
 * with 1 where something does not.
 *
 *     npm run faults -- [--part engines,mixed,overload,streams,rolling,rolling-gateways,hostile,replicas,pauses] [--seed 1] [--mixed 100000] [--seconds 20]
 *         [--streams 10000] [--hold-seconds 60] [--hostile-seconds 180] [--rolling-requests 5000]
 *         [--vllm "COMMAND PORT"] [--cases only,one,all,gateway,drain] [--pause-engines 3] [--pause-streams 20] [--pause-tokens 400] [--stop-seconds 20]
 *
 * The part pauses stops engines and the gateway under answers, on engines of the command of --vllm (PORT stands for the
 * port), else on emulated ones. The part quotas is the middle of replicas alone, and the part replaced its end: a used-up quota of a day, and every
 * gateway replaced in turn or killed at once.
 */
import { parseArgs } from "node:util";
import { endAll } from "./children.ts";
import { enginesPart, mixedPart } from "./faults/engines.ts";
import { hostilePart } from "./faults/hostile.ts";
import { overloadPart } from "./faults/overload.ts";
import { quotaRows, replacedRows } from "./faults/quota.ts";
import { replicasPart } from "./faults/replicas.ts";
import { pausesPart } from "./faults/pauses.ts";
import { printRows, type Row } from "./faults/report.ts";
import { rollingGatewaysPart } from "./faults/rolling-gateways.ts";
import { rollingPart } from "./faults/rolling.ts";
import { streamsPart } from "./faults/streams.ts";

const { values: flags } = parseArgs({
  options: {
    part: {
      type: "string",
      default: "engines,mixed,overload,streams,rolling,rolling-gateways,hostile,replicas,pauses",
    },
    seed: { type: "string", default: "1" },
    mixed: { type: "string", default: "100000" },
    seconds: { type: "string", default: "20" },
    streams: { type: "string", default: "10000" },
    "hold-seconds": { type: "string", default: "60" },
    "hostile-seconds": { type: "string", default: "180" },
    vllm: { type: "string" },
    cases: { type: "string", default: "only,one,all,gateway,drain" },
    "pause-engines": { type: "string", default: "3" },
    "pause-streams": { type: "string", default: "20" },
    "pause-tokens": { type: "string", default: "400" },
    "stop-seconds": { type: "string", default: "20" },
    "rolling-requests": { type: "string", default: "5000" },
  },
});
const seed = Number(flags.seed);
const PARTS: Readonly<Record<string, () => Promise<Row[]>>> = {
  engines: () => enginesPart(seed),
  mixed: () => mixedPart(seed, Number(flags.mixed)),
  overload: () => overloadPart(seed, Number(flags.seconds)),
  streams: () => streamsPart(seed, Number(flags.streams), Number(flags["hold-seconds"])),
  rolling: () => rollingPart(seed),
  "rolling-gateways": () =>
    rollingGatewaysPart(seed, { requests: Number(flags["rolling-requests"]), clients: 48, lasting: 16 }),
  pauses: () =>
    pausesPart({
      command: flags.vllm,
      engines: Number(flags["pause-engines"]),
      streams: Number(flags["pause-streams"]),
      tokens: Number(flags["pause-tokens"]),
      stopSeconds: Number(flags["stop-seconds"]),
      cases: flags.cases.split(","),
    }),
  replicas: () => replicasPart(seed),
  quotas: () => quotaRows(seed),
  replaced: () => replacedRows(seed),
  hostile: () => hostilePart(seed, Number(flags["hostile-seconds"])),
};
let holds = true;
for (const name of flags.part.split(",")) {
  const part = PARTS[name];
  if (part === undefined) throw new Error(`--part: expected some of ${Object.keys(PARTS).join(", ")}, got ${name}`);
  const rows = await part();
  printRows(`${name}, seed ${seed}`, rows);
  holds &&= rows.every((row) => row.holds);
}
endAll();
process.exit(holds ? 0 : 1);
