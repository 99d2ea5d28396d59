import { readFileSync } from "node:fs";
import { nameHash, randomFor } from "#core/base/random.ts";
import { type DrawnRequest, drawOf } from "./outcome-traffic.ts";

const TENANTS = 30;
const PART_SECONDS = 300;

interface Row {
  readonly timestamp: number;
  readonly input_length: number;
  readonly output_length: number;
  readonly hash_ids: readonly number[];
}

/**
 * Recorded traffic (Mooncake's conversations), resampled: parts of five minutes drawn with replacement. Conversations are
 * those whose prompts begin alike after the block that all share, arrivals and lengths are the trace's.
 */
export function traceTraffic(path: string): (seed: number, seconds: number) => DrawnRequest[] {
  const lines = readFileSync(path, "utf8").trimEnd().split("\n");
  const rows = lines.map((line) => JSON.parse(line) as Row);
  const parts: Row[][] = [];
  for (const row of rows) (parts[Math.floor(row.timestamp / 1000 / PART_SECONDS)] ??= []).push(row);
  const whole = parts.slice(0, -1);
  return (seed, seconds) => {
    const random = randomFor(seed, nameHash("trace traffic"));
    const drawn: DrawnRequest[] = [];
    for (let start = 0; start < seconds; start += PART_SECONDS) {
      const part = random.below(whole.length);
      for (const { timestamp, input_length, output_length, hash_ids } of whole[part]!) {
        const session = `${start} ${hash_ids[1] ?? hash_ids[0]}`;
        const place = drawOf(session, 3);
        // The trace's clock has steps of three seconds.
        const at = start + ((timestamp / 1000) % PART_SECONDS) + 3 * random.next();
        const [fault, tail] = [random.next(), random.next()];
        drawn.push({
          at,
          session,
          tenant: `t${Math.floor(TENANTS * place * place)}`,
          turn: hash_ids.length,
          promptTokens: Math.round(input_length / 4),
          outputTokens: Math.max(2, output_length),
          luck: 1,
          fault,
          tail,
        });
      }
    }
    return drawn.filter(({ at }) => at < seconds).sort((one, other) => one.at - other.at);
  };
}
