import { ConfigError } from "#config/config-error.ts";
import type { OfferPolicy, PolicyGround, PolicyProposal, PolicySource } from "./policy-source.ts";
import type { Policy } from "./policy.ts";
import { RepeatedLook } from "./repeated-look.ts";

export interface RedisSourceOptions {
  /** Name of the key that holds the policy. */
  readonly key: string;
  /** What it holds; undefined where there is none. Rejects where it cannot be read. */
  readonly read: (key: string) => Promise<string | undefined>;
  /** The policy of a document, laid over the configuration; throws ConfigError. */
  readonly policyOf: (text: string, ground: PolicyGround) => Policy;
  /** The policy in force with what differs between two of them; throws ConfigError. */
  readonly over: NonNullable<PolicyProposal["over"]>;
  readonly bytesMax: number;
  /** Time between two looks. */
  readonly watchMillis: number;
}

/**
 * A key in Redis that holds a policy as admin calls take it, for all gateways of a fleet. One that is gone, or that cannot
 * be read, changes nothing: the policy in force stays.
 */
export class RedisSource implements PolicySource {
  readonly name = "redis";
  readonly #options: RedisSourceOptions;
  #looks: RepeatedLook | undefined;
  #offered: string | undefined;
  #refused = false;

  constructor(options: RedisSourceOptions) {
    this.#options = options;
  }

  start(offer: OfferPolicy): void {
    this.#looks = new RepeatedLook(() => this.#looked(offer), this.#options.watchMillis);
    this.#looks.start();
  }

  retry(): void {
    if (this.#refused) this.#offered = undefined;
  }

  async stop(): Promise<void> {
    await this.#looks?.stop();
  }

  async #looked(offer: OfferPolicy): Promise<void> {
    const { key, read, policyOf, over, bytesMax } = this.#options;
    const text = await read(key).catch(() => undefined);
    if (this.#looks?.isStopped === true || text === undefined || text === this.#offered) return;
    this.#offered = text;
    const { outcome } = offer({
      source: this.name,
      by: key,
      note: "",
      read: (ground) => {
        const bytes = Buffer.byteLength(text);
        if (bytes > bytesMax) throw new ConfigError([`${key}: expected at most ${bytesMax} bytes, got ${bytes}`]);
        return policyOf(text, ground);
      },
      over,
    });
    this.#refused = outcome === "refused";
  }
}
