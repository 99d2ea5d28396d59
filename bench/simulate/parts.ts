import { type Profiler } from "node:inspector";
import { Session } from "node:inspector/promises";

/** Share of the time, in [0, 1], that was spent in the code of one part; calls into other parts are theirs. */
export interface PartShare {
  readonly part: string;
  readonly share: number;
}

/** Parts by the beginning of a file's path below src, the first that fits. */
const PARTS: readonly (readonly [prefix: RegExp, part: string])[] = [
  [/^engine\/(kv-|extent-|block-)/, "engines: KV cache"],
  [/^engine\//, "engines: scheduler and steps"],
  [/^core\/prefix\//, "router: prefix index"],
  [/^core\//, "router: the rest"],
  [/^(trace|sim\/source)\//, "workload and its hashes"],
  [/^sim\/signal\//, "scrapes"],
  [/^sim\/result\//, "results"],
  [/^sim\//, "events and outcomes"],
];

/** Runs it under V8's sampling profiler. Sampling slows it down by a few per cent. */
export async function profiled<T>(run: () => T): Promise<{ readonly value: T; readonly parts: readonly PartShare[] }> {
  const session = new Session();
  session.connect();
  await session.post("Profiler.enable");
  await session.post("Profiler.start");
  const value = run();
  const { profile } = await session.post("Profiler.stop");
  session.disconnect();
  return { value, parts: shares(profile) };
}

function shares({ nodes, samples = [], timeDeltas = [] }: Profiler.Profile): PartShare[] {
  const partOf = new Map(nodes.map(({ id, callFrame }) => [id, part(callFrame)]));
  const micros = new Map<string, number>();
  let total = 0;
  for (const [i, sample] of samples.entries()) {
    const name = partOf.get(sample) ?? "node";
    const delta = timeDeltas[i] ?? 0;
    micros.set(name, (micros.get(name) ?? 0) + delta);
    total += delta;
  }
  return [...micros].map(([name, time]) => ({ part: name, share: time / total })).sort((a, b) => b.share - a.share);
}

function part({ functionName, url }: Profiler.Profile["nodes"][number]["callFrame"]): string {
  if (functionName === "(garbage collector)") return "garbage collection";
  const file = url.split("/src/").at(1) ?? "";
  return PARTS.find(([prefix]) => prefix.test(file))?.[1] ?? "node";
}
