import type { RouteRequest } from "../request/request.ts";
import type { LimitUse } from "./limit-use.ts";
import { InFlightCount } from "./in-flight-count.ts";

export interface ModelCapOptions {
  /** Requests in flight at most, for each model and role. */
  readonly requestsMax: number;
  /** Others for named models; as "model/role" for one role of it. */
  readonly byModel: Readonly<Record<string, number>>;
  /** Label of an endpoint that holds its role; an endpoint without it has the role "". */
  readonly roleLabel: string;
}

/** What a request holds from its first placing to its end. */
export interface ModelPermit {
  readonly model: string;
  readonly role: string;
}

/**
 * At most so many requests in flight for each model and role of endpoints. It is asked after an endpoint was chosen, since
 * the role is the endpoint's, and never lets wait: a hard cap on concurrency, not a buffer.
 */
export class ModelCap {
  readonly continues: boolean;
  readonly #options: ModelCapOptions;
  readonly #inFlight: InFlightCount;

  /** With `previous` it goes on counting where that one was, if roles are the same. */
  constructor(options: ModelCapOptions, previous?: ModelCap) {
    this.#options = options;
    const same = previous !== undefined && previous.#options.roleLabel === options.roleLabel;
    this.continues = same;
    this.#inFlight = same ? previous.#inFlight : new InFlightCount();
  }

  /** What the request would hold at an endpoint with such labels. */
  permitFor({ model }: RouteRequest, labels: Readonly<Record<string, string>>): ModelPermit {
    const { roleLabel } = this.#options;
    return { model, role: Object.hasOwn(labels, roleLabel) ? labels[roleLabel]! : "" };
  }

  allows(permit: ModelPermit): boolean {
    return this.#inFlight.of(keyOf(permit)) < this.#most(permit);
  }

  /** By "model", or "model/role". */
  uses(): LimitUse[] {
    return Array.from(this.#inFlight.entries(), ([key, used]) => {
      const [role = "", model = ""] = key.split("\n", 2);
      const subject = role === "" ? model : `${model}/${role}`;
      return { subject, of: "requests", used, max: this.#most({ model, role }) } as const;
    });
  }

  #most({ model, role }: ModelPermit): number {
    const { requestsMax, byModel } = this.#options;
    const name = [`${model}/${role}`, model].find((one) => Object.hasOwn(byModel, one));
    return name === undefined ? requestsMax : byModel[name]!;
  }

  take(permit: ModelPermit): void {
    this.#inFlight.add(keyOf(permit));
  }

  release(permit: ModelPermit): void {
    this.#inFlight.remove(keyOf(permit));
  }
}

function keyOf({ model, role }: ModelPermit): string {
  return `${role}\n${model}`;
}
