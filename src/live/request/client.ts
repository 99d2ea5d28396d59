/** Who may ask, as far as the gateway knows it from the key alone. */
export interface Client {
  /** By name, which headers cannot change; undefined where the key is bound to none. */
  readonly tenant: string | undefined;
  /** Service class of its requests; "" for none. */
  readonly sloClass: string;
  /** Other classes that its requests may name. */
  readonly sloClasses: readonly string[];
}

/** Of whom nothing is known: headers and bodies name who asks. */
export const ANYBODY: Client = { tenant: undefined, sloClass: "", sloClasses: [] };
