import type { Micros } from "#core/base/units.ts";
import type { BlockFetch } from "#engine/block-fetch.ts";
import { askProducer } from "./side-channel.ts";
import type { DecodeRequest } from "./transfer-request.ts";

/** A prompt's blocks on their way from the engine that computed them. */
export class RemoteFetch implements BlockFetch {
  readonly #from: DecodeRequest;
  readonly #microsOf: (tokens: number) => Micros;
  readonly #fails: boolean;
  readonly #ended: (fetched: boolean) => void;
  #over = false;

  /** `ended` is called once: with true where they came, with false where they failed or were not wanted any more. */
  constructor(
    from: DecodeRequest,
    microsOf: (tokens: number) => Micros,
    fails: boolean,
    ended: (fetched: boolean) => void,
  ) {
    this.#from = from;
    this.#microsOf = microsOf;
    this.#fails = fails;
    this.#ended = ended;
  }

  /** Whether they are held where they are to come from; keeps them there meanwhile. */
  async held(): Promise<boolean> {
    return !this.#fails && (await this.#ask("renew"));
  }

  /** It still waits for room. */
  renew(): void {
    void this.#ask("renew");
  }

  begins(_at: Micros, tokens: number): Micros {
    return this.#microsOf(tokens);
  }

  arrived(): boolean {
    this.end(true);
    return true;
  }

  /** The other engine need not hold them any longer. */
  end(fetched = false): void {
    if (this.#over) return;
    this.#over = true;
    void this.#ask("take");
    this.#ended(fetched);
  }

  #ask(ask: "renew" | "take"): Promise<boolean> {
    const { engineId, requestId } = this.#from;
    return askProducer(this.#from, engineId, requestId, ask);
  }
}
