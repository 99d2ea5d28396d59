import type { Column } from "../default-choice/cell.ts";
import type { Machine } from "./measured-cell.ts";

/** One policy on one seed of a case; times in milliseconds of the engines' clock, goodput as a share of the requests. */
export interface LiveCell {
  readonly name: string;
  readonly seed: number;
  readonly policy: string;
  /** That were asked for, and that were sent and counted. */
  readonly requestsMax: number;
  readonly requests: number;
  readonly timeScale: number;
  readonly predicted: Readonly<Record<Column, number>>;
  readonly measured: Readonly<Record<Column, number>>;
  readonly machine: Machine;
}
