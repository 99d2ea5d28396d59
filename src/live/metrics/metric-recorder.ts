import { MICROS_PER_SECOND } from "#core/base/units.ts";
import type { RecorderStatus } from "../recorder/recorder.ts";
import type { MetricFamily } from "./metric-family.ts";
import type { Family, Row } from "./metric-state.ts";

/** The trace's recorder; undefined when nothing is recorded. */
export function registerRecorder(recorder: () => RecorderStatus | undefined, family: Family, row: Row): void {
  const figures: readonly (readonly [MetricFamily["type"], string, string, (status: RecorderStatus) => number])[] = [
    ["counter", "recorder_records_total", "Trace records written.", (status) => status.recorded],
    ["counter", "recorder_dropped_total", "Trace records lost to a full buffer or disk.", (status) => status.dropped],
    [
      "gauge",
      "recorder_buffered_bytes",
      "Trace records waiting in memory to be written.",
      (status) => status.bufferedBytes,
    ],
    ["counter", "recorder_written_bytes_total", "Compressed bytes written.", (status) => status.writtenBytes],
    [
      "counter",
      "recorder_removed_segments_total",
      "Trace segments removed because of age or total size.",
      (status) => status.removedSegments,
    ],
    [
      "counter",
      "recorder_removed_bytes_total",
      "Compressed bytes of the trace segments removed.",
      (status) => status.removedBytes,
    ],
    [
      "counter",
      "recorder_encode_seconds_total",
      "Event loop time spent on encoding trace records.",
      (status) => status.encodeMicros / MICROS_PER_SECOND,
    ],
  ];
  for (const [type, name, help, of] of figures) {
    family(type, name, help, () => {
      const status = recorder();
      return status === undefined ? [] : [row(of(status))];
    });
  }
}
