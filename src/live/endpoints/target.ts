import type { EndpointId } from "#core/endpoint/endpoint.ts";
import type { StepTimes } from "#core/endpoint/step-times.ts";

/** One engine as a source of endpoints names it, before anybody has asked it. */
export interface Target {
  readonly id: EndpointId;
  /** Origin, without a trailing slash. Targets with one URL are ranks of one server and share its scrapes. */
  readonly url: string;
  /** Data-parallel rank that it addresses; undefined where the server balances its ranks itself. */
  readonly dataParallelRank: number | undefined;
  readonly apiKey: string | undefined;
  /** Name that its certificate is held against, where the URL has an address. */
  readonly serverName?: string;
  readonly labels: Readonly<Record<string, string>>;
  /** Models that it serves by its source's account, instead of what its engine lists. */
  readonly models?: readonly string[];
  /** Takes no new requests, as a pod that is going away. */
  readonly cordoned: boolean;
  /** What the source knows where the engine itself does not say. */
  readonly kvCapacityTokens: number | undefined;
  readonly concurrencyMax: number | undefined;
  /** What its steps take, where its engine file is named. */
  readonly stepTimes?: StepTimes;
}
