import assert from "node:assert/strict";
import { test } from "node:test";
import { pathRules } from "#cli/simulate/simulated-rules.ts";
import { CONFIG_SCHEMA } from "#config/schema.ts";
import { PATH_RULES } from "#core/path/path-rules.ts";
import { STAGE_LIMITS } from "#core/stages.ts";

test("a gateway that is not configured and a simulation go by the same rules about faults", () => {
  assert.deepEqual(pathRules(CONFIG_SCHEMA.parse({})), { ...PATH_RULES, settings: STAGE_LIMITS });
});
