import { type EngineConfig, engineDefaults } from "#engine/config.ts";
import { ROLES_DEFAULT } from "#core/profile/profile-stages.ts";
import type { ProfileSpec } from "#core/plugin/spec.ts";
import { PATH_RULES, type PathRules } from "#core/path/path-rules.ts";
import { MICROS_PER_SECOND } from "#core/base/units.ts";

/** Equals go by id, so that a script says where a request goes. */
const PROFILE: ProfileSpec = {
  filters: [],
  scorers: [{ plugin: "queue-depth", weight: 1, parameters: {} }],
  picker: { plugin: "max-score", parameters: {} },
};
export const ROUTER = {
  seed: 1,
  profiles: { default: PROFILE },
  defaultProfile: "default",
  blockTokens: 16,
  staleAfterMicros: 3 * MICROS_PER_SECOND,
};
/** The same where prompts are computed at endpoints of their own, however short they are. */
export const SHARING_ROUTER = {
  ...ROUTER,
  profiles: {
    default: {
      ...PROFILE,
      disaggregation: {
        prefill: PROFILE,
        colocateBelowTokens: 0,
        promptTokensMin: 0,
        handoff: "prefill-first" as const,
        roles: ROLES_DEFAULT,
      },
    },
  },
};
export const SCRAPE_MICROS = MICROS_PER_SECOND;
/** A budget that a script can spend; answers that break are cut. */
export const RULES: PathRules = {
  ...PATH_RULES,
  settings: { attemptsMax: 3, continuationsMax: 0, retryRatio: 0.1, retryBurst: 6 },
  waits: { ...PATH_RULES.waits, cutMicrosMax: 10 * MICROS_PER_SECOND },
};
/** The same where answers go on elsewhere. */
export const GOING_ON: PathRules = { ...RULES, settings: { ...RULES.settings, continuationsMax: 3, retryBurst: 200 } };
/** The same where a late first token is asked for at a second endpoint. */
export const HEDGING: PathRules = {
  ...RULES,
  settings: { ...RULES.settings, retryBurst: 200, hedgeMillis: 500, hedgeShareMax: 0.1, hedgeBurst: 3 },
};
/** Every step takes 20 ms where a script does not say otherwise. */
export const ENGINE: EngineConfig = engineDefaults({
  check: true,
  coalesce: false,
  kvBlocks: 4096,
  stepTime: { kind: "coefficients", baseMicros: 20_000, perPrefillTokenMicros: 0, perDecodeMicros: 0 },
});
