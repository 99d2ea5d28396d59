import type { EndpointId } from "#core/endpoint/endpoint.ts";
import { MICROS_PER_MILLI, MICROS_PER_SECOND, type Micros } from "#core/base/units.ts";
import type { DecidedInput } from "./decided-run.ts";

/** How a router may have read the gauges that a trace has. */
export interface GaugeReading {
  readonly name: string;
  /** Each is known that much later than the trace has it. */
  readonly lateMicros: Micros;
  /** Of each endpoint at most one in that time; 0 for all. */
  readonly everyMicros: Micros;
  /** False: none is ever read. */
  readonly isRead: boolean;
}

export const AS_RECORDED: GaugeReading = { name: "as recorded", lateMicros: 0, everyMicros: 0, isRead: true };

const late = (millis: number): GaugeReading => ({
  ...AS_RECORDED,
  name: `${millis} ms later`,
  lateMicros: millis * MICROS_PER_MILLI,
});
const every = (seconds: number): GaugeReading => ({
  ...AS_RECORDED,
  name: `every ${seconds} s`,
  everyMicros: seconds * MICROS_PER_SECOND,
});

/** Readings that are tried, the likeliest first. */
export const GAUGE_READINGS: readonly GaugeReading[] = [
  AS_RECORDED,
  { ...AS_RECORDED, name: "never", isRead: false },
  late(50),
  late(200),
  every(1),
  every(5),
  every(15),
];

/** The inputs as a router with that reading gets them, in order of time. */
export function readSo(inputs: readonly DecidedInput[], reading: GaugeReading): readonly DecidedInput[] {
  const { lateMicros, everyMicros, isRead } = reading;
  if (isRead && lateMicros === 0 && everyMicros === 0) return inputs;
  const read = new Map<EndpointId, Micros>();
  const kept = inputs.filter(({ input }) => {
    if (input.kind !== "load-observed") return true;
    if (!isRead || input.at - (read.get(input.endpoint) ?? -Infinity) < everyMicros) return false;
    read.set(input.endpoint, input.at);
    return true;
  });
  if (lateMicros === 0) return kept;
  const at = ({ input }: DecidedInput): Micros => input.at;
  return kept
    .map((one) =>
      one.input.kind === "load-observed" ? { ...one, input: { ...one.input, at: one.input.at + lateMicros } } : one,
    )
    .sort((a, b) => at(a) - at(b));
}
