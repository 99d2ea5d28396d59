/** A family of metrics that a stage brings, read of what the gateway's requests share of it. */
export interface StageFamily<Shared> {
  readonly type: "counter" | "gauge";
  /** Behind `gnomon_`. */
  readonly name: string;
  readonly help: string;
  readonly rows: (
    shared: Shared,
  ) => readonly { readonly value: number; readonly labels?: Readonly<Record<string, string>> }[];
}
