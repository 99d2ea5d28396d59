/** Who may ask, as far as the gateway knows it from the key alone. */
export interface Client {
  /** By name, which headers cannot change; undefined where the key is bound to none. */
  readonly tenant: string | undefined;
  /** Digest of a key that is bound to no tenant, which then stands for one; "" where there is none. */
  readonly key: string;
  /** Service class of its requests; "" for none. */
  readonly sloClass: string;
  /** Other classes that its requests may name; undefined for any. */
  readonly sloClasses: readonly string[] | undefined;
}

/** Of whom nothing is known: headers and bodies name who asks. */
export const ANYBODY: Client = { tenant: undefined, key: "", sloClass: "", sloClasses: undefined };
