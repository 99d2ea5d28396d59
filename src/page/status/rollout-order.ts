/** A step of a rollout that a person may ask for here. */
export type OrderStep = "start" | "pause" | "resume" | "promote" | "rollback";

export interface RolloutOrder {
  readonly rollout: string;
  readonly step: OrderStep;
  /** Of a promotion. */
  readonly arm?: string;
  /** Also an arm of which nothing good is known. */
  readonly evenSo?: boolean;
  /** Of a start: what is compared with the policy, and how. */
  readonly profile?: string;
  readonly design?: string;
}

/** What became of the last order. */
export interface OrderState {
  readonly order: RolloutOrder;
  /** sure: it was asked for once, and is made when it is asked for again. */
  readonly kind: "sure" | "asking" | "done" | "refused" | "locked";
  readonly message: string;
}
