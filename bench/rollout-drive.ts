/**
 * Rollouts driven on a live gateway over sockets, before emulated engines: a worse profile is taken back, and a gateway
 * that is killed with -9 in mid-rollout goes on where it was. Ends with exit code 1 where something is not as it must be.
 *
 *     npx node bench/rollout-drive.ts [--part harm|restart] [--profiles always-busiest,gnomon] [--clients 150]
 */
import { parseArgs } from "node:util";
import { endAll } from "./children.ts";
import { harm } from "./rollout-drive/harm.ts";
import { restart } from "./rollout-drive/restart.ts";

const { values } = parseArgs({
  options: {
    part: { type: "string" },
    profiles: { type: "string", default: "always-busiest,gnomon" },
    clients: { type: "string", default: "150" },
    kills: { type: "string", default: "3" },
  },
});
const clients = Number(values.clients);
let isWell = true;
if (values.part !== "restart") isWell = await harm(values.profiles.split(","), clients);
if (values.part !== "harm") isWell = (await restart(Number(values.kills), clients)) && isWell;
endAll();
process.exitCode = isWell ? 0 : 1;
