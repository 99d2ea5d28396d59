import { loadProfile } from "#config/profile-file.ts";
import { isAsking } from "#core/input.ts";
import { DualIndex } from "#core/prefix/dual-index.ts";
import { Router } from "#core/router.ts";
import { TraceReader } from "#trace/reader.ts";
import type { TraceHeader } from "#trace/record.ts";
import type { Sample } from "./sample.ts";
import { SampleBook } from "./sample-book.ts";

const PROFILE = "gnomon-predicted";

/**
 * The decisions of a recorded gateway: with the forecasts that were recorded with them, or, with `again`, with those that
 * gnomon-predicted makes now of the same inputs, each request sent where it was sent.
 */
export async function traceSamples(path: string, again: boolean): Promise<readonly Sample[]> {
  const book = new SampleBook();
  let router: Router | undefined;
  for await (const item of new TraceReader(path).items()) {
    if (item.kind === "run") router = again ? routerFor(item.header) : undefined;
    if (item.kind !== "record") continue;
    const { input, decision } = item;
    if (router === undefined) {
      book.take(input, decision);
      continue;
    }
    // Profiles of the trace are not this router's.
    if (input.kind === "policy-changed" || input.kind === "profile-changed") continue;
    const forced = decision?.kind === "routed" ? decision.endpoint : undefined;
    book.take(input, isAsking(input) ? router.accept(plain(input), forced) : router.accept(input));
  }
  return book.samples;
}

/** By the router's own profile, whichever it was. */
function plain<T extends object>(input: T): T {
  return "request" in input ? { ...input, request: { ...(input.request as object), profile: "" } } : input;
}

function routerFor({ router, endpoints }: TraceHeader): Router {
  const { seed, blockTokens, staleAfterMicros } = router;
  const made = new Router({
    seed,
    profiles: { [PROFILE]: loadProfile(PROFILE).spec },
    defaultProfile: PROFILE,
    index: new DualIndex(),
    blockTokens,
    staleAfterMicros,
  });
  for (const endpoint of endpoints) made.accept({ kind: "endpoint-joined", at: 0, endpoint });
  return made;
}
