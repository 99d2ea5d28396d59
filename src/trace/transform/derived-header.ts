import type { TraceHeader } from "../codec/record.ts";

/** The header of a trace that was made from another by `step`, the command in words. */
export function derivedHeader(header: TraceHeader, step: string, replayable: boolean): TraceHeader {
  const before = header.derived ?? { steps: [], replayable: true };
  return {
    ...header,
    derived: { steps: [...before.steps, step], replayable: before.replayable && replayable },
  };
}
