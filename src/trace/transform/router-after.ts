import type { Input } from "#core/input/input.ts";
import type { TraceRouter } from "../codec/record.ts";

/**
 * The options of the recorded router, as a header behind this input has to state them; the same object where it changes
 * none.
 */
export function routerAfter(router: TraceRouter, input: Input): TraceRouter {
  if (input.kind === "profile-changed") {
    return { ...router, profiles: { ...router.profiles, [input.name]: input.profile } };
  }
  if (input.kind === "policy-changed") {
    const { profiles, defaultProfile, version: policyVersion, admission } = input;
    const { admission: _before, ...rest } = router;
    return { ...rest, profiles, defaultProfile, policyVersion, ...(admission && { admission }) };
  }
  return input.kind === "block-size-changed" ? { ...router, blockTokens: input.blockTokens } : router;
}
