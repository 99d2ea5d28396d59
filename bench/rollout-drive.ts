/**
 * Rollouts driven on a live gateway over sockets, before emulated engines: a worse profile is taken back, and a gateway
 * that is killed with -9 in mid-rollout goes on where it was; what is predicted narrows what is found, and a
 * result that contradicts its prediction pauses the rollout. Ends with exit code 1 where something is not as it must
 * be.
 *
 *     npx node bench/rollout-drive.ts [--part harm|restart|replicas|adjusted] [--profiles always-busiest,gnomon] [--clients 150]
 *
 * Two real vLLM with different flags as arms by a label (nothing else is run then): PROGRAM PORT [OPTIONS] serves one.
 *
 *     npx node bench/rollout-drive.ts --vllm PROGRAM [--flags "--no-enable-prefix-caching"] [--seconds 300] [--rate 1]
 */
import { parseArgs } from "node:util";
import { endAll } from "./children.ts";
import { adjusted } from "./rollout-drive/adjusted.ts";
import { harm } from "./rollout-drive/harm.ts";
import { realEngines } from "./rollout-drive/real-engines.ts";
import { replicas } from "./rollout-drive/replicas.ts";
import { restart } from "./rollout-drive/restart.ts";

const { values } = parseArgs({
  options: {
    part: { type: "string" },
    profiles: { type: "string", default: "always-busiest,gnomon" },
    clients: { type: "string", default: "150" },
    kills: { type: "string", default: "3" },
    vllm: { type: "string" },
    flags: { type: "string", default: "--no-enable-prefix-caching" },
    seconds: { type: "string", default: "300" },
    rate: { type: "string", default: "1" },
  },
});
const clients = Number(values.clients);
let isWell = true;
const isAsked = (part: string) => values.vllm === undefined && (values.part ?? part) === part;
if (values.vllm !== undefined) {
  const [seconds, perSecond] = [Number(values.seconds), Number(values.rate)];
  isWell = await realEngines({ serve: values.vllm, flags: values.flags.split(" "), seconds, perSecond });
}
if (isAsked("harm")) isWell = await harm(values.profiles.split(","), clients);
if (isAsked("restart")) isWell = (await restart(Number(values.kills), clients)) && isWell;
if (isAsked("replicas")) isWell = (await replicas()) && isWell;
if (isAsked("adjusted")) isWell = (await adjusted()) && isWell;
endAll();
process.exitCode = isWell ? 0 : 1;
