import { loadCalibratedEngine } from "#config/engine-file.ts";
import type { Candidate, Scenario } from "#shadow/candidate/candidate.ts";
import { doubtedResiduals, type EngineDoubt } from "#shadow/tune/engine-doubt.ts";
import type { Topology } from "#shadow/tune/topology.ts";
import { equalEndpoints } from "../flag/equal-endpoints.ts";
import { colocatedSpec, pdSpec, withRoles } from "../flag/architecture-flags.ts";

interface Fleets {
  readonly engines: readonly number[];
  /** Other kinds of engines, by name or path. */
  readonly kinds: readonly string[];
  /** The kind of the trace, as people know it. */
  readonly kind: string;
  readonly pd: boolean;
  readonly doubt: EngineDoubt;
}

/** Every number of engines of every kind, under each policy; with `pd` also with the prompts computed apart. */
export function topologiesOf(policies: readonly Candidate[], fleets: Fleets): Topology[] {
  const { engines, kinds, kind, pd, doubt } = fleets;
  const others = kinds.map((name) => {
    const { engine, residuals } = loadCalibratedEngine(name);
    return { name, scenario: { engine, residuals: doubtedResiduals(residuals, doubt) } };
  });
  return [{ name: kind, scenario: {} }, ...others].flatMap(({ name, scenario }) =>
    engines.flatMap((count) => [
      ...policies.map((one): Topology => {
        const fleet = `${count} x ${name}`;
        const spec = colocatedSpec(one.spec);
        return topology(fleet, { ...one, spec }, { ...scenario, label: fleet, endpoints: equalEndpoints(count) });
      }),
      ...(pd && count >= 2 ? policies.flatMap((one) => divided(one, name, count, scenario)) : []),
    ]),
  );
}

/** Half of the engines compute prompts, or a quarter of them. */
function divided(one: Candidate, kind: string, count: number, scenario: object): Topology[] {
  const parts = new Set([Math.max(1, Math.floor(count / 4)), Math.floor(count / 2)]);
  return [...parts].map((prefill) => {
    const fleet = `${prefill} prefill + ${count - prefill} decode x ${kind}`;
    const spec = pdSpec(one.spec, {});
    return topology(
      fleet,
      { ...one, spec },
      { ...scenario, label: fleet, endpoints: withRoles(equalEndpoints(count), prefill) },
    );
  });
}

function topology(fleet: string, one: Candidate, scenario: Scenario): Topology {
  const engines = scenario.endpoints?.length ?? 0;
  const candidate = { name: `${one.name}, ${fleet}`, spec: one.spec, scenario };
  return { fleet, engines, profile: one.name, candidate };
}
