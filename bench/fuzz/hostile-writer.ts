/**
 * Child process: writes reports into the stream that gateways share: what a gateway wrote, of another name and mutated, and
 * reports that are made to be dear.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { Redis } from "ioredis";
import { READERS } from "../parsers/readers.ts";
import { Mutator } from "./mutator.ts";

/** The gateway's own name, and those of others, of the same length. */
const REPLICA = "gateway-a";
const OTHERS = ["gateway-b", "gateway-c", "gateway-d"];
const REPORTS_KEPT = 200;
const ENTRIES_MAX = 500;
const REPORT_BYTES_MAX = 5_000_000;
const PAUSE_MILLIS = 5;
/** Version, kind, fingerprint 1, and the name "r" as a new text of one byte. */
const DEAR_HEAD_BYTES = 6;

const mutator = new Mutator(Number(process.argv[2]));
const redis = new Redis(Number(process.argv[3]), "127.0.0.1");
const shapes = Object.values(READERS["Redis reports"]!.shapes);
let writes = false;
let written = 0;
let real: Buffer[] = [];

process.on("message", (order: boolean) => (writes = order));
process.on("disconnect", () => process.exit(0));
process.send!({ ready: true });

for (;;) {
  await sleep(PAUSE_MILLIS);
  const stream = await streamName();
  if (stream === undefined) continue;
  if (written % 50 === 0 || !writes) await learn(stream);
  if (!writes || real.length === 0) continue;
  written++;
  await redis.xadd(stream, "MAXLEN", "~", ENTRIES_MAX, "*", "r", drawn());
}

async function streamName(): Promise<string | undefined> {
  for (const name of await redis.keys("*")) if ((await redis.type(name)) === "stream") return name;
  return undefined;
}

/** What the gateway wrote last. */
async function learn(stream: string): Promise<void> {
  const entries = await redis.xrevrangeBuffer(stream, "+", "-", "COUNT", REPORTS_KEPT);
  const own = entries.flatMap(([, fields]) => (fields[1]?.includes(REPLICA) === true ? [fields[1]] : []));
  if (own.length > 0) real = own;
}

function drawn(): Buffer {
  const own = mutator.of(real);
  const named = Buffer.from(own);
  named.write(mutator.of(OTHERS), named.indexOf(REPLICA), "latin1");
  const kind = mutator.below(20);
  if (kind < 4) return named;
  if (kind < 18) return mutator.mutated(named, mutator.of(real)).subarray(0, REPORT_BYTES_MAX);
  // Behind a head of this fleet's: what a report that is made to be dear has behind its own.
  const dear = mutator.of(shapes)(mutator.of([2_000, 60_000, 1_000_000, REPORT_BYTES_MAX / 2]));
  const head = named.subarray(0, named.indexOf("gateway-") + REPLICA.length);
  return Buffer.concat([head, dear.subarray(Math.min(dear.length, DEAR_HEAD_BYTES))]);
}
