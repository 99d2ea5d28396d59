import fc from "fast-check";
import { LENGTHS_ONLY, type WorkloadRequest } from "#trace/workload-request.ts";

/** A conversation's turn before it has a place. */
interface Draft {
  readonly session: number;
  readonly gapMicros: number;
  readonly promptTokens: number;
  readonly outputTokens: number;
  readonly thinkMicros: number;
}

/** Workloads of conversations and single requests, in sending order, as the readers give them. */
export const workloads: fc.Arbitrary<WorkloadRequest[]> = fc
  .array(
    fc.record({
      session: fc.nat(6),
      gapMicros: fc.nat(3_000_000),
      promptTokens: fc.integer({ min: 1, max: 2_000 }),
      outputTokens: fc.integer({ min: 1, max: 300 }),
      thinkMicros: fc.nat(1_000_000),
    }),
    { maxLength: 60 },
  )
  .map((drafts: readonly Draft[]) => {
    const turns = new Map<number, number>();
    let arrivalMicros = 0;
    return drafts.map((draft, index) => {
      arrivalMicros += draft.gapMicros;
      const turn = draft.session === 0 ? 0 : (turns.get(draft.session) ?? 0);
      turns.set(draft.session, turn + 1);
      return {
        ...LENGTHS_ONLY,
        index,
        arrivalMicros,
        session: draft.session === 0 ? "" : `s${draft.session}`,
        turn,
        thinkMicros: turn === 0 ? undefined : draft.thinkMicros,
        promptTokens: draft.promptTokens,
        outputTokens: draft.outputTokens,
        blockIds: Float64Array.from(
          { length: Math.floor(draft.promptTokens / 16) },
          (_, block) => draft.session * 1e6 + block,
        ),
        model: "m",
      };
    });
  });

export async function* streamed<T>(items: readonly T[]): AsyncGenerator<T> {
  for (const item of items) yield await Promise.resolve(item);
}

export async function collected<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const item of items) all.push(item);
  return all;
}
