import type { WorkloadRequest } from "../workload-request.ts";
import type { Tally } from "./tally.ts";

interface Turn {
  readonly turn: number;
  readonly arrivalMicros: number;
  readonly ordinal: number;
}

/**
 * The first turns of each conversation: turns are sorted by (turn, arrival), the first `turnsMax` are kept, and the rest
 * of the workload stays in its order (the `capped` control). Requests of no conversation stay.
 *
 * It reads the workload twice: `add` every request, then give the same requests to `cap`. Between the two it holds
 * `turnsMax` turns a conversation, and no request.
 */
export class TurnCap {
  readonly #turnsMax: number;
  readonly #first = new Map<string, Turn[]>();
  #ordinal = 0;

  constructor(turnsMax: number) {
    this.#turnsMax = turnsMax;
  }

  add({ session, turn, arrivalMicros }: WorkloadRequest): void {
    const added = { turn, arrivalMicros, ordinal: this.#ordinal++ };
    if (session === "") return;
    const turns = this.#first.get(session);
    if (turns === undefined) {
      this.#first.set(session, [added]);
      return;
    }
    let place = turns.length;
    while (place > 0 && isBefore(added, turns[place - 1]!)) place--;
    if (place >= this.#turnsMax) return;
    turns.splice(place, 0, added);
    if (turns.length > this.#turnsMax) turns.pop();
  }

  /** Requests that stay, numbered anew. A conversation that a turn started which is left out goes with it. */
  async *cap(requests: AsyncIterable<WorkloadRequest>, left: Tally): AsyncGenerator<WorkloadRequest> {
    const orphaned = new Set<string>();
    let ordinal = 0;
    let index = 0;
    for await (const request of requests) {
      const { session, parent } = request;
      const own = ordinal++;
      if (parent !== undefined && (orphaned.has(parent.session) || !this.#keepsTurn(parent.session, parent.turn)))
        orphaned.add(session);
      if (orphaned.has(session)) left.count("its conversation was started by a turn that is left out");
      else if (session === "" || this.#first.get(session)?.some((turn) => turn.ordinal === own) === true)
        yield { ...request, index: index++ };
      else left.count(`turn after the first ${this.#turnsMax} of its conversation`);
    }
  }

  #keepsTurn(session: string, turn: number): boolean {
    return this.#first.get(session)?.some((kept) => kept.turn === turn) ?? false;
  }
}

function isBefore(a: Turn, b: Turn): boolean {
  return a.turn !== b.turn ? a.turn < b.turn : a.arrivalMicros < b.arrivalMicros;
}
