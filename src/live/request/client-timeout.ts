import { MICROS_PER_MILLI, MICROS_PER_SECOND, type Micros } from "#core/base/units.ts";
import type { RequestHeaders } from "../http/request-headers.ts";

/** As gRPC writes a timeout: at most eight digits and a unit. */
const GRPC = /^(\d{1,8})([HMSmun])$/;
const MILLIS = /^\d{1,12}$/;
const UNIT_MICROS: Readonly<Record<string, number>> = {
  H: 3_600 * MICROS_PER_SECOND,
  M: 60 * MICROS_PER_SECOND,
  S: MICROS_PER_SECOND,
  m: MICROS_PER_MILLI,
  u: 1,
  n: 0.001,
};

/**
 * How long a client waits for the whole of its answer, by the first of these headers that it sent; undefined where it sent
 * none, or 0, which is no limit. `grpc-timeout` has gRPC's form, every other one milliseconds. Returns what is wrong where
 * one has neither.
 */
export function clientTimeout(headers: RequestHeaders, names: readonly string[]): Micros | undefined | string {
  for (const name of names) {
    const text = headers.get(name).trim();
    if (text === "") continue;
    const micros =
      name === "grpc-timeout" ? grpcMicros(text) : MILLIS.test(text) ? Number(text) * MICROS_PER_MILLI : NaN;
    if (Number.isNaN(micros)) return `${name}: expected ${FORMS[name] ?? "milliseconds, a whole number"}`;
    return micros === 0 ? undefined : micros;
  }
  return undefined;
}

const FORMS: Readonly<Record<string, string>> = {
  "grpc-timeout": "at most eight digits and one of H, M, S, m, u, n, such as 10S",
};

function grpcMicros(text: string): number {
  const [, digits, unit] = GRPC.exec(text) ?? [];
  return digits === undefined ? NaN : Math.ceil(Number(digits) * UNIT_MICROS[unit!]!);
}
