import { mix32, nameHash } from "../base/random.ts";
import type { Micros } from "../base/units.ts";

/**
 * Judges from its probes whether a server is lost: nobody accepted a connection for `lostAfterMicros`. A failed page or a
 * missing answer is no evidence of that. Has no clock.
 */
export class LostJudge {
  readonly #lostAfterMicros: Micros;
  #since: Micros | undefined;

  constructor(lostAfterMicros: Micros) {
    this.#lostAfterMicros = lostAfterMicros;
  }

  /** No connection could be made; true when it counts as lost now. */
  unreachable(at: Micros): boolean {
    this.#since ??= at;
    return at - this.#since >= this.#lostAfterMicros;
  }

  /** A connection was made; true when none could be before. */
  reached(): boolean {
    const again = this.#since !== undefined;
    this.#since = undefined;
    return again;
  }
}

export interface ReturnPauses {
  readonly retryMicros: Micros;
  readonly retryMicrosMax: Micros;
}

/**
 * Pause after question number `attempt` (from 0) to a server that is not ready: doubles up to its maximum, and differs by
 * a fifth between servers, so that they are not asked together.
 */
export function returnPause(server: string, attempt: number, { retryMicros, retryMicrosMax }: ReturnPauses): Micros {
  const pause = Math.min(retryMicrosMax, retryMicros * 2 ** Math.min(attempt, 20));
  return pause * (0.8 + 0.4 * (mix32(nameHash(server) + attempt) / 2 ** 32));
}
