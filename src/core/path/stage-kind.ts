/** A number that a stage is set by: a key of the configuration's `limits`. */
export interface StageSetting {
  readonly kind: "millis" | "share" | "count";
  readonly min: number;
  readonly max: number;
  /** Undefined where it is not set unless somebody sets it. */
  readonly usual: number | undefined;
  readonly meaning: string;
  /** A simulation has no such thing. */
  readonly isOfGateway?: true;
  /** The flag by which `simulate` and `what-if` set it; none where there is no such flag. */
  readonly flag?: StageFlag;
}

export interface StageFlag {
  /** As `--name <value>`. */
  readonly flags: string;
  readonly meaning: string;
  /** Of the one flag that switches the stage on: what `what-if` calls a candidate with it, before and after the value. */
  readonly asks?: readonly [before: string, after: string];
}

/**
 * What a stage counts: a metric of the gateway, and a part of a simulation's path counts where it has a row there; one
 * without a label has its sum alone there (`total`).
 */
export interface StageCount {
  /** Of its values; a count without is one number. */
  readonly label?: string;
  /** The metric's name behind `gnomon_`. */
  readonly metric: string;
  readonly meaning: string;
  /** The row of a simulation's table that has it, and what stands before the labels' values there. */
  readonly row?: string;
  readonly before?: string;
  /** A simulation has its sum alone, which stands among the faults: what stands behind it there. */
  readonly total?: string;
}

export type StageSettings = Readonly<Record<string, number | undefined>>;

/** What of a stage costs more than a request may ask for: every request that is sent earns a share of one. */
export interface StageBudget {
  readonly share: number;
  /** Saved up at most, and there at the start. */
  readonly burst: number;
}

/** What the requests of one router share of a stage as it is set now, and how much of its budget is there. */
export interface StageTerms {
  readonly settings: StageSettings;
  readonly allows: boolean;
  spend(): void;
  /** What was spent cost nothing after all. */
  refund(): void;
}

/** A stage as hosts, configuration, metrics and commands know it; the catalogue of stages lists those there are. */
export interface StageKind<Shared extends object = object> {
  readonly name: string;
  readonly settings: Readonly<Record<string, StageSetting>>;
  readonly counts: Readonly<Record<string, StageCount>>;
  /** Of a stage that is paid for. */
  readonly budget?: (settings: StageSettings) => StageBudget;
  /** What requests ask of it. */
  open(terms: StageTerms): Shared;
}
