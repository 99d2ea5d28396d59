import { Ledger } from "../endpoint/ledger.ts";
import type { Fleet } from "../fleet/fleet.ts";
import type { PrefixIndex } from "../prefix/prefix-index.ts";
import type { Micros } from "../base/units.ts";
import type { PeerCharged } from "../request/peer-news.ts";
import type { PeerRequest } from "./peer.ts";

/** Prompts of peers' requests that are computed at other endpoints than those that answer. */
export class PeerPrefills {
  readonly #fleet: Fleet;
  readonly #index: PrefixIndex;
  readonly #ledger = new Ledger();

  constructor(fleet: Fleet, index: PrefixIndex) {
    this.#fleet = fleet;
    this.#index = index;
  }

  get open(): number {
    return this.#ledger.open;
  }

  /** Charges the endpoint that computes the prompt, where there is one and it is here. */
  charge(request: PeerRequest, { prefill, promptTokens, promptTokensExact, blocks }: PeerCharged): void {
    const state = prefill && this.#fleet.get(prefill.endpoint);
    if (prefill === undefined || state === undefined) return;
    this.#ledger.charge(request.route.id, state, { sequences: 1, promptTokens, newTokens: prefill.newTokens });
    state.peerRequestsInFlight++;
    const insertion = blocks.length > 0 ? this.#index.insert(state.slot, blocks, promptTokensExact) : undefined;
    request.prefill = { state, insertion };
  }

  /** The phase is over, if it was under way; with `withdraw` its prompt is not there. */
  release(at: Micros, request: PeerRequest, withdraw: boolean): void {
    const { prefill, route } = request;
    if (prefill === undefined) return;
    request.prefill = undefined;
    this.#ledger.release(route.id);
    prefill.state.peerRequestsInFlight--;
    if (prefill.insertion === undefined) return;
    if (withdraw) this.#index.withdraw(prefill.insertion);
    else this.#index.computed?.(prefill.insertion, at);
  }
}
