import fc from "fast-check";
import { randomFor } from "#core/base/random.ts";
import { LENGTHS_ONLY, type WorkloadRequest } from "#trace/workload-request.ts";

interface Shape {
  readonly arrivalMicros: number;
  /** Think time before each further turn; undefined for a turn with an arrival of its own. */
  readonly thinks: readonly (number | undefined)[];
  readonly named: boolean;
  /** Place among the earlier conversations of the one that starts this, if any, and whether its next turn awaits it. */
  readonly parent: number | undefined;
  readonly joined: boolean;
}

const shape: fc.Arbitrary<Shape> = fc.record({
  arrivalMicros: fc.integer({ min: 0, max: 40 }).map((n) => n * 5_000),
  thinks: fc.array(fc.option(fc.integer({ min: 0, max: 60_000 }), { nil: undefined, freq: 6 }), { maxLength: 4 }),
  named: fc.integer({ min: 0, max: 3 }).map((n) => n > 0),
  parent: fc.option(fc.nat(20), { nil: undefined, freq: 2 }),
  joined: fc.boolean(),
});

/** Conversations of several turns, some started or awaited by others, some requests of none, as a client would send. */
export const linkedWorkload: fc.Arbitrary<WorkloadRequest[]> = fc
  .array(shape, { minLength: 1, maxLength: 14 })
  .map((shapes) => {
    const requests: WorkloadRequest[] = [];
    const awaited = new Map<string, string[]>();
    shapes.forEach(({ arrivalMicros, thinks, named, parent, joined }, i) => {
      const session = named ? `s${i}` : "";
      const starter = parent === undefined || i === 0 ? undefined : `s${parent % i}`;
      const starters = requests.filter((one) => one.session === starter);
      const linked = named && starters.length > 0;
      const turns = named ? [undefined, ...thinks] : [undefined];
      turns.forEach((think, turn) => {
        const spawned = linked && turn === 0;
        requests.push({
          ...LENGTHS_ONLY,
          index: requests.length,
          arrivalMicros: arrivalMicros + 7_000 * turn,
          session,
          turn,
          parent: spawned ? { session: starter!, turn: starters[0]!.turn } : undefined,
          thinkMicros: spawned ? 2_000 : think,
          promptTokens: 20 + 60 * turn + 3 * i,
          outputTokens: 1 + ((5 * i + turn) % 17),
          blockIds: Float64Array.from({ length: Math.ceil((20 + 60 * turn + 3 * i) / 16) }, (_, k) => 1000 * i + k),
        });
      });
      if (linked && joined) awaited.set(starter!, [...(awaited.get(starter!) ?? []), session]);
    });
    return requests.map((one) =>
      one.turn === 1 && awaited.has(one.session) ? { ...one, joins: awaited.get(one.session)! } : one,
    );
  });

/** The same requests in another order. */
export function shuffled<T>(items: readonly T[], seed: number): T[] {
  const random = randomFor(seed, 1);
  const all = [...items];
  for (let i = all.length - 1; i > 0; i--) {
    const j = random.below(i + 1);
    [all[i], all[j]] = [all[j]!, all[i]!];
  }
  return all;
}
