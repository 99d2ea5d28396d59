import { loadProfile } from "#config/profile-file.ts";
import type { Endpoint } from "#core/endpoint/endpoint.ts";
import type { StepTimes } from "#core/endpoint/step-times.ts";
import { DualIndex } from "#core/prefix/dual-index.ts";
import { Router } from "#core/router.ts";
import { MICROS_PER_SECOND } from "#core/base/units.ts";
import { ENDPOINT, type RecordedInputs } from "./recorded-inputs.ts";
import type { Sample } from "./sample.ts";
import { SampleBook } from "./sample-book.ts";

const PROFILE = "gnomon-predicted";

/** What gnomon-predicted expects of each request of a recorded run, its engine's step times known or to be learned. */
export function decided({ engine, inputs }: RecordedInputs, stepTimes: StepTimes | undefined): readonly Sample[] {
  const router = new Router({
    seed: 1,
    profiles: { [PROFILE]: loadProfile(PROFILE).spec },
    defaultProfile: PROFILE,
    index: new DualIndex(),
    blockTokens: engine.blockTokens,
    staleAfterMicros: 5 * MICROS_PER_SECOND,
  });
  const endpoint: Endpoint = {
    id: ENDPOINT,
    models: [],
    labels: {},
    kvCapacityTokens: (engine.kvBlocks - 1) * engine.blockTokens,
    concurrencyMax: engine.sequencesMax,
    ...(stepTimes && { stepTimes }),
  };
  const book = new SampleBook();
  router.accept({ kind: "endpoint-joined", at: 0, endpoint });
  for (const input of inputs) book.take(input, router.accept(input));
  return book.samples;
}
