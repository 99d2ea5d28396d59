export interface TimeFigures {
  readonly mean: number;
  readonly p50: number;
  readonly p99: number;
}
