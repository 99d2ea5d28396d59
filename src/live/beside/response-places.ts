import { hash } from "node:crypto";

import { LRUCache } from "lru-cache";

import type { GatewayCounters } from "../base/gateway-counters.ts";

type PlaceCounters = Pick<GatewayCounters, "responsePlacesForgotten">;

/** Of one more, the one that was asked for the longest time ago is forgotten, and searched for when it is asked for again. */
const PLACES_MAX = 10_000;

/** At which server each answer of /v1/responses is stored, by a digest of its id. Nobody else has it. */
export class ResponsePlaces {
  readonly #urls = new LRUCache<string, string>({ max: PLACES_MAX });
  readonly #counters: PlaceCounters;

  constructor(counters: PlaceCounters) {
    this.#counters = counters;
  }

  note(id: string, url: string): void {
    const key = keyOf(id);
    if (!this.#urls.has(key) && this.#urls.size === PLACES_MAX) this.#counters.responsePlacesForgotten++;
    this.#urls.set(key, url);
  }

  of(id: string): string | undefined {
    return this.#urls.get(keyOf(id));
  }
}

function keyOf(id: string): string {
  return hash("sha256", id, "base64url").slice(0, KEY_LENGTH);
}

/** Of six bits each. */
const KEY_LENGTH = 22;
