import type { EndpointId } from "#core/endpoint/endpoint.ts";
import type { GatewayCounters } from "../base/gateway-counters.ts";
import type { EndpointDirectory } from "../endpoints/endpoint-directory.ts";

const MILLIS_MAX = 2_000;
/** Releases under way at once; beyond them the engines' own timeouts free the blocks. */
const UNDER_WAY_MAX = 64;

/** Who is asked, and how many are. */
export interface ReleaseParts {
  readonly directory: Pick<EndpointDirectory, "get">;
  readonly counters: GatewayCounters;
  /** Questions under way that free blocks which nobody fetched. */
  releasesUnderWay: number;
}

export interface StrandedTransfer {
  readonly model: string;
  /** What the prefill endpoint returned. */
  readonly transfer: unknown;
  /** An endpoint that could have fetched the blocks. */
  readonly through: EndpointId;
}

/**
 * Has an engine free the blocks that it keeps for another one which never came for them. vLLM has no call for that: an
 * engine that turns down a request for them notifies it, and here it is asked for an answer of no tokens, which it turns
 * down. Best effort: where nobody is left to ask, the engine's own timeout frees them.
 */
export function releaseTransfer(shared: ReleaseParts, { model, transfer, through }: StrandedTransfer): void {
  const { directory, counters } = shared;
  const entry = directory.get(through);
  if (entry?.state !== "ready" || shared.releasesUnderWay >= UNDER_WAY_MAX) {
    counters.transfersStranded++;
    return;
  }
  shared.releasesUnderWay++;
  const body = JSON.stringify({ model, prompt: [0], max_tokens: 0, kv_transfer_params: transfer });
  fetch(`${entry.url}/v1/completions`, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      ...(entry.apiKey !== undefined && { authorization: `Bearer ${entry.apiKey}` }),
    },
    body,
    signal: AbortSignal.timeout(MILLIS_MAX),
  })
    .then(async (answer) => {
      await answer.body?.cancel();
      counters.transfersReleased++;
    })
    .catch(() => {
      counters.transfersStranded++;
    })
    .finally(() => {
      shared.releasesUnderWay--;
    });
}
