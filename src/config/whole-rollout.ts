/**
 * A rollout's document with its short forms written out; whatever is neither is left for the schema to name.
 *
 * - `design: canary` is `design: {kind: canary}`.
 * - `arms: {control: gnomon, other: lmetric}` are arms by name, the control first, each with its profile; nothing for
 *   what the policy has.
 * - `arms: {by: version, control: a, other: b}` are pools of endpoints by that label (`version=a` against `version=b`):
 *   the same policy on other engines.
 */
export function wholeRollout(document: unknown): unknown {
  if (!isMapping(document)) return document;
  const { arms, design, ...rest } = document;
  const label = isMapping(arms) ? arms["by"] : undefined;
  const pools = typeof label === "string" ? { kind: "pools", label } : undefined;
  const designed = typeof design === "string" ? { kind: design } : design;
  const whole = isMapping(designed) ? { ...pools, ...designed } : (designed ?? pools);
  return {
    ...rest,
    ...("arms" in document && { arms: wholeArms(arms, label) }),
    ...(whole !== undefined && { design: whole }),
  };
}

/** A configuration in which the rollouts that it starts are written out. */
export function withWholeRollouts(config: unknown): unknown {
  if (!isMapping(config) || !isMapping(config["rollout"])) return config;
  const { start, ...rest } = config["rollout"];
  return Array.isArray(start) ? { ...config, rollout: { ...rest, start: start.map(wholeRollout) } } : config;
}

function wholeArms(arms: unknown, label: unknown): unknown {
  if (!isMapping(arms)) return arms;
  const named = Object.entries(arms).filter(([name]) => name !== "by" || typeof label !== "string");
  return named.map(([name, value]) => {
    if (isMapping(value)) return { name, ...value };
    if (value === null) return { name };
    if (typeof label === "string") return { name, pool: typeof value === "number" ? String(value) : value };
    return { name, profile: value };
  });
}

function isMapping(value: unknown): value is Record<string, unknown> {
  return value !== null && typeof value === "object" && !Array.isArray(value);
}
