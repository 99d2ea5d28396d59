import type { Endpoint, EndpointId } from "#core/endpoint/endpoint.ts";
import type { HangReason } from "#core/endpoint/hang-reason.ts";
import { bookAfter, EMPTY_BOOK, isRolloutUnderWay, type RolloutBook } from "#core/rollout/rollout-book.ts";
import type { RolloutSpec } from "#core/rollout/rollout-input.ts";
import type { Micros } from "#core/base/units.ts";
import type { FleetEvent } from "#sim/setting/simulation-options.ts";
import type { TraceHeader } from "#trace/codec/record.ts";
import { routerAfter } from "#trace/transform/router-after.ts";
import { shiftedEvent } from "./shifted-event.ts";

type RolloutEvent = Extract<FleetEvent, { readonly kind: `rollout-${string}` }>;
type PolicyEvent = FleetEvent & { readonly kind: "profile-changed" | "policy-changed" };

/** A fleet as it stood at a time, and what became of it since. */
export class FleetHistory {
  /** As they stood. */
  readonly endpoints = new Map<string, Endpoint>();
  /** Changes that there was no room for: they count as having happened before. */
  merged = 0;
  readonly #cordoned = new Set<string>();
  readonly #suspended = new Map<string, HangReason>();
  readonly #unhealthy = new Set<string>();
  readonly #asleep = new Set<string>();
  /** What led from the header's policy to the one that stood: the last whole one, and single profiles after it. */
  #policy: readonly PolicyEvent[] = [];
  /** Rollouts as they stood, and what those under way are made of. */
  #rollouts: RolloutBook = EMPTY_BOOK;
  readonly #rolloutSpecs = new Map<string, Omit<RolloutSpec, "plan">>();
  /** As the header states while it is undefined. */
  #blockTokens: number | undefined;
  readonly #events: FleetEvent[] = [];
  readonly #eventsMax: number;

  constructor(eventsMax: number) {
    this.#eventsMax = eventsMax;
  }

  /** Something that happens after the time at which the fleet stands. */
  add(event: FleetEvent): void {
    // A scrape that learnt an endpoint's size changes nothing in a simulation that has its engine's.
    if (event.kind === "endpoint-changed") return;
    this.#events.push(event);
    if (this.#events.length <= this.#eventsMax) return;
    const merged = Math.ceil(this.#events.length / 4);
    this.#pass(merged);
    this.merged += merged;
  }

  /** Something that happened before it. */
  stand(event: FleetEvent): void {
    switch (event.kind) {
      case "endpoint-joined":
        this.#leave(event.endpoint.id);
        this.endpoints.set(event.endpoint.id, event.endpoint);
        break;
      case "endpoint-changed":
        this.endpoints.set(event.endpoint.id, event.endpoint);
        break;
      case "endpoint-left":
        this.#leave(event.endpoint);
        break;
      case "endpoint-slept":
        if (event.asleep) this.#asleep.add(event.endpoint);
        else this.#asleep.delete(event.endpoint);
        break;
      case "endpoint-checked":
        if (event.healthy) this.#unhealthy.delete(event.endpoint);
        else this.#unhealthy.add(event.endpoint);
        break;
      case "endpoint-suspended":
        this.#suspended.set(event.endpoint, event.reason);
        break;
      case "endpoint-resumed":
        this.#suspended.delete(event.endpoint);
        break;
      case "endpoint-cordoned":
        this.#cordoned.add(event.endpoint);
        break;
      case "endpoint-uncordoned":
        this.#cordoned.delete(event.endpoint);
        break;
      case "profile-changed":
        this.#policy = [...this.#policy.filter((one) => one.kind !== event.kind || one.name !== event.name), event];
        break;
      case "policy-changed":
        this.#policy = [event];
        break;
      case "rollout-planned":
      case "rollout-restored":
      case "rollout-step":
      case "rollout-removed":
        this.#standRollout(event);
        break;
      // Conversations that began before are not asked about.
      case "sessions-restored":
        break;
    }
  }

  #leave(id: EndpointId): void {
    this.endpoints.delete(id);
    this.#cordoned.delete(id);
    this.#suspended.delete(id);
    this.#unhealthy.delete(id);
    this.#asleep.delete(id);
  }

  #standRollout(event: RolloutEvent): void {
    const next = bookAfter(this.#rollouts, event);
    if (typeof next === "string") return;
    this.#rollouts = next;
    if (event.kind === "rollout-removed") this.#rolloutSpecs.delete(event.rollout);
    else if (event.kind !== "rollout-step") {
      const { rules, profiles } = event;
      const { name } = event.kind === "rollout-planned" ? event.plan : event.state.plan;
      this.#rolloutSpecs.set(name, { rules, profiles });
    }
  }

  /** A simulation cuts all prompts alike, into blocks of the size that was found last. */
  resizeBlocks(blockTokens: number): void {
    this.#blockTokens = blockTokens;
  }

  /** The fleet stands as it was at that time, and what led there is let go. */
  advanceTo(at: Micros): void {
    const later = this.#events.findIndex((event) => event.at > at);
    this.#pass(later < 0 ? this.#events.length : later);
  }

  /** What a simulation that begins at `start` is to do: what stands comes before its time. */
  eventsFrom(start: Micros): FleetEvent[] {
    const cordons = [...this.#cordoned].map((endpoint): FleetEvent => ({
      kind: "endpoint-cordoned",
      at: -1,
      endpoint,
    }));
    const suspensions = [...this.#suspended].map(([endpoint, reason]): FleetEvent => ({
      kind: "endpoint-suspended",
      at: -1,
      endpoint,
      reason,
    }));
    const unhealthy = [...this.#unhealthy].map((endpoint): FleetEvent => ({
      kind: "endpoint-checked",
      at: -1,
      endpoint,
      healthy: false,
    }));
    const asleep = [...this.#asleep].map((endpoint): FleetEvent => ({
      kind: "endpoint-slept",
      at: -1,
      endpoint,
      asleep: true,
    }));
    const rollouts = this.#rollouts.filter(isRolloutUnderWay).map((state): FleetEvent => {
      const standing = {
        kind: "rollout-restored",
        at: -1,
        state,
        ...this.#rolloutSpecs.get(state.plan.name)!,
      } as const;
      return { ...shiftedEvent(standing, start), at: -1 };
    });
    return [
      ...cordons,
      ...suspensions,
      ...unhealthy,
      ...asleep,
      ...rollouts,
      ...this.#consistentEvents().map((event) => shiftedEvent(event, start)),
    ];
  }

  /**
   * Where the recorder dropped that an endpoint left, its next join shows that it did; where a join was dropped, it is
   * not there to leave.
   */
  #consistentEvents(): FleetEvent[] {
    const there = new Set(this.endpoints.keys());
    return this.#events.flatMap((event): FleetEvent[] => {
      if (event.kind === "endpoint-left") return there.delete(event.endpoint) ? [event] : [];
      if (event.kind !== "endpoint-joined") return [event];
      const { id } = event.endpoint;
      if (there.has(id)) return [{ kind: "endpoint-left", at: event.at, endpoint: id }, event];
      there.add(id);
      return [event];
    });
  }

  /** The header with the profiles as they stood, and the last block size. */
  header({ router, ...rest }: TraceHeader): TraceHeader {
    const stood = this.#policy.reduce(routerAfter, router);
    return { ...rest, router: { ...stood, blockTokens: this.#blockTokens ?? router.blockTokens } };
  }

  #pass(count: number): void {
    for (const event of this.#events.splice(0, count)) this.stand(event);
  }
}
