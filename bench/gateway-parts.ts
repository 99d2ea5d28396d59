import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { once } from "node:events";
import type { GatewayProcess } from "./gateway-process.ts";

/** What V8's profiler writes, of that what is read. */
interface CpuProfile {
  readonly nodes: readonly { readonly id: number; readonly callFrame: CallFrame }[];
  readonly startTime: number;
  readonly samples: readonly number[];
  readonly timeDeltas: readonly number[];
}

interface CallFrame {
  readonly functionName: string;
  readonly url: string;
}

/** The first whose pattern is found in a function's file decides. */
const BY_FILE: readonly (readonly [part: string, pattern: RegExp])[] = [
  ["to engines", /node_modules\/undici|src\/live\/upstream/],
  ["tokens", /tokenizer|tokens\/|parse-request|core\/prompt/],
  ["scoring", /src\/core\/(scorer|latency|.*breakdown)/],
  ["router", /src\/core/],
  ["gateway", /src\//],
  ["Node", /^node:/],
];
const BY_NAME: readonly (readonly [part: string, pattern: RegExp])[] = [
  ["writes", /write|shutdown/],
  ["collection", /garbage/],
  ["waiting", /idle/],
];
const ELSE = "other";
export const PARTS = [...BY_FILE, ...BY_NAME].map(([part]) => part).concat(ELSE);
/** Microseconds between samples. */
const INTERVAL_MICROS = 400;

/** Where a gateway's main thread spends its time: a profile is taken from its start and read for one span of it. */
export class PartsProfile {
  readonly #folder: string;

  constructor(scratch: string) {
    this.#folder = mkdtempSync(join(scratch, "profile-"));
  }

  get nodeFlags(): string[] {
    return ["--cpu-prof", `--cpu-prof-dir=${this.#folder}`, `--cpu-prof-interval=${INTERVAL_MICROS}`];
  }

  /** Ends the gateway. Microseconds of each part between two times of `monotonicMicros`. */
  async end(gateway: GatewayProcess, from: number, until: number): Promise<Map<string, number>> {
    const ended = once(gateway.process, "exit");
    gateway.process.kill("SIGTERM");
    await ended;
    const name = readdirSync(this.#folder).find((file) => file.endsWith(".cpuprofile"));
    if (name === undefined) throw new Error(`the gateway wrote no profile into ${this.#folder}`);
    const profile = JSON.parse(readFileSync(join(this.#folder, name), "utf8")) as CpuProfile;
    rmSync(this.#folder, { recursive: true });
    return microsByPart(profile, from, until);
  }
}

/** The clock that V8's profiler reads. */
export function monotonicMicros(): number {
  return Number(process.hrtime.bigint() / 1_000n);
}

function microsByPart(profile: CpuProfile, from: number, until: number): Map<string, number> {
  const { nodes, samples, timeDeltas } = profile;
  const frames = new Map(nodes.map(({ id, callFrame }) => [id, callFrame]));
  const micros = new Map(PARTS.map((part) => [part, 0]));
  let at = profile.startTime;
  for (const [i, sample] of samples.entries()) {
    at += timeDeltas[i]!;
    if (at < from || at >= until) continue;
    const part = partOf(frames.get(sample)!);
    micros.set(part, micros.get(part)! + (timeDeltas[i + 1] ?? 0));
  }
  return micros;
}

function partOf({ functionName, url }: CallFrame): string {
  const [table, text] = url === "" ? [BY_NAME, functionName] : [BY_FILE, url];
  return table.find(([, pattern]) => pattern.test(text))?.[0] ?? ELSE;
}
