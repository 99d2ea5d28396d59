import type { Endpoint, EndpointId } from "../endpoint/endpoint.ts";
import type { StepTimes } from "../endpoint/step-times.ts";
import { LatencyModel } from "./latency-model.ts";

/** An endpoint's, by what was last known of it. */
interface Member {
  readonly stepTimes: StepTimes;
  readonly key: string;
}

interface Group {
  readonly model: LatencyModel;
  members: number;
}

/**
 * One LatencyModel for the endpoints that begin with the same step times, so that they learn from each other and a board
 * of another kind does not; one more, with the defaults, for those whose step times nobody knows.
 */
export class ModelSet {
  readonly #unknown: LatencyModel;
  readonly #groups = new Map<string, Group>();
  readonly #members = new Map<EndpointId, Member>();
  /** Grows as soon as an endpoint may have another model, or other speeds, than before. */
  changes = 0;

  constructor(defaults: StepTimes) {
    this.#unknown = new LatencyModel(defaults);
  }

  /** By what is known of the endpoint now, so that it is right for one that was here before its profile was. */
  of({ id, stepTimes }: Pick<Endpoint, "id" | "stepTimes">): LatencyModel {
    if (stepTimes !== this.#members.get(id)?.stepTimes) this.#describe(id, stepTimes);
    return this.lastOf(id);
  }

  /** The same for one that a decision has looked at. */
  lastOf(id: EndpointId): LatencyModel {
    const member = this.#members.get(id);
    return member === undefined ? this.#unknown : this.#groups.get(member.key)!.model;
  }

  #describe(id: EndpointId, stepTimes: StepTimes | undefined): void {
    this.changes++;
    const known = this.#members.get(id);
    const key = stepTimes && keyOf(stepTimes);
    if (key !== known?.key) this.forget(id);
    if (stepTimes === undefined || key === undefined) return;
    this.#members.set(id, { stepTimes, key });
    if (key === known?.key) return;
    let group = this.#groups.get(key);
    if (group === undefined) this.#groups.set(key, (group = { model: new LatencyModel(stepTimes), members: 0 }));
    group.members++;
  }

  /** A group without members is forgotten, so that there are never more of them than endpoints. */
  forget(id: EndpointId): void {
    this.changes++;
    this.lastOf(id).forget(id);
    const member = this.#members.get(id);
    if (member === undefined) return;
    this.#members.delete(id);
    const group = this.#groups.get(member.key)!;
    group.members--;
    if (group.members === 0) this.#groups.delete(member.key);
  }
}

function keyOf(times: StepTimes): string {
  const { stepMicros, prefillTokenMicros, sequenceMicros, contextTokenMicros, stepTokensMax } = times;
  return [stepMicros, prefillTokenMicros, sequenceMicros, contextTokenMicros, stepTokensMax].join(" ");
}
