import { loadProfile } from "#config/profile-file.ts";
import type { StepTimes } from "#core/endpoint/step-times.ts";
import { type Input, isAsking } from "#core/input/input.ts";
import { DualIndex } from "#core/prefix/dual-index.ts";
import { Router } from "#core/router.ts";
import { TraceReader } from "#trace/reader.ts";
import type { TraceHeader } from "#trace/codec/record.ts";
import type { Sample } from "./sample.ts";
import { SampleBook } from "./sample-book.ts";

const PROFILE = "gnomon-predicted";

/** Of a router that decides anew. */
export interface Again {
  /** Of all endpoints, known from the start; without them they are learned. */
  readonly stepTimes?: StepTimes | undefined;
}

/**
 * The decisions of a recorded gateway: with the forecasts that were recorded with them, or, with `again`, with those that
 * gnomon-predicted makes now of the same inputs, each request sent where it was sent.
 */
export async function traceSamples(path: string, again?: Again): Promise<readonly Sample[]> {
  const book = new SampleBook();
  let router: Router | undefined;
  for await (const item of new TraceReader(path).items()) {
    if (item.kind === "run") router = again && routerFor(item.header, again);
    if (item.kind !== "record") continue;
    const { input, decision } = item;
    if (router === undefined) {
      book.take(input, decision);
      continue;
    }
    // Profiles of the trace are not this router's.
    if (input.kind === "policy-changed" || input.kind === "profile-changed") continue;
    const forced = decision?.kind === "routed" ? decision.endpoint : undefined;
    book.take(input, isAsking(input) ? router.accept(plain(input), forced) : router.accept(knowing(input, again)));
  }
  return book.samples;
}

/** By the router's own profile, whichever it was. */
function plain<T extends object>(input: T): T {
  return "request" in input ? { ...input, request: { ...(input.request as object), profile: "" } } : input;
}

function knowing(input: Input, again: Again | undefined): Input {
  const stepTimes = again?.stepTimes;
  if (stepTimes === undefined || (input.kind !== "endpoint-joined" && input.kind !== "endpoint-changed")) return input;
  return { ...input, endpoint: { ...input.endpoint, stepTimes } };
}

function routerFor({ router, endpoints }: TraceHeader, again: Again): Router {
  const { seed, blockTokens, staleAfterMicros } = router;
  const made = new Router({
    seed,
    profiles: { [PROFILE]: loadProfile(PROFILE).spec },
    defaultProfile: PROFILE,
    index: new DualIndex(),
    blockTokens,
    staleAfterMicros,
  });
  for (const endpoint of endpoints) made.accept(knowing({ kind: "endpoint-joined", at: 0, endpoint }, again));
  return made;
}
