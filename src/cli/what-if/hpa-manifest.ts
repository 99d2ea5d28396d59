import { stringify } from "yaml";
import { MICROS_PER_SECOND } from "#core/base/units.ts";
import type { Scenario } from "#shadow/candidate/candidate.ts";
import type { CandidateAnswer } from "#shadow/question/what-if.ts";
import { percentOf } from "../output/figure-text.ts";

/** An autoscaled candidate, as it was asked about and what it came to. */
export interface Autoscaled {
  readonly scenario: Scenario;
  readonly answer: CandidateAnswer;
}

/** Goodput that a cheaper one may lack against the best. */
const NEARLY_AS_GOOD = 0.01;

/**
 * The cheapest of those whose goodput is within a point of the best; of those whose policy a HorizontalPodAutoscaler can
 * follow with the gateway's metrics: so many requests in flight per replica. Undefined where there is none.
 */
export function chosenForHpa(asked: readonly Autoscaled[]): Autoscaled | undefined {
  const fit = asked.filter(({ scenario }) => scenario.scaling?.autoscaler.policy.type === "queue-depth");
  const best = Math.max(...fit.map(({ answer }) => answer.goodput ?? 0));
  return fit
    .filter(({ answer }) => (answer.goodput ?? 0) >= best - NEARLY_AS_GOOD)
    .toSorted((a, b) => a.answer.replicaHours - b.answer.replicaHours)[0];
}

/**
 * A HorizontalPodAutoscaler (autoscaling/v2) of the engines' Deployment by requests in flight as the gateway counts them,
 * which Prometheus' adapter or KEDA serves as an external metric: waiting and running ones, without the age of a scrape.
 */
export function hpaManifest({ scenario, answer }: Autoscaled, deployment: string): string {
  const { autoscaler } = scenario.scaling!;
  const { min, max, policy, cooldownMicros, downStabilizationMicros, stepMax } = autoscaler;
  const target = policy.type === "queue-depth" ? policy.target : NaN;
  const periodSeconds = Math.max(1, Math.round(cooldownMicros / MICROS_PER_SECOND));
  const rule = { policies: [{ type: "Pods", value: stepMax, periodSeconds }] };
  const manifest = {
    apiVersion: "autoscaling/v2",
    kind: "HorizontalPodAutoscaler",
    metadata: { name: deployment },
    spec: {
      scaleTargetRef: { apiVersion: "apps/v1", kind: "Deployment", name: deployment },
      minReplicas: min,
      maxReplicas: max,
      metrics: [
        {
          type: "External",
          external: {
            metric: { name: "gnomon_endpoint_requests_in_flight" },
            target: { type: "AverageValue", averageValue: String(target) },
          },
        },
      ],
      behavior: {
        scaleUp: rule,
        scaleDown: { ...rule, stabilizationWindowSeconds: Math.round(downStabilizationMicros / MICROS_PER_SECOND) },
      },
    },
  };
  const { replicaHours, goodput, scaling } = answer;
  const figures =
    `${replicaHours.toFixed(2)} replica-hours, ${percentOf(goodput ?? 0)} of requests within their targets, ` +
    `${scaling?.ups ?? 0} up and ${scaling?.downs ?? 0} down`;
  return `# Simulated on the traffic that was asked about: ${figures}.\n${stringify(manifest, { aliasDuplicateObjects: false })}`;
}
