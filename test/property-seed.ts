/**
 * Properties are tried on the same cases in every run, so that a change is judged by what it changed. Others are tried
 * with TEST_PROPERTY_SEED=<integer>, which `npm run explore` draws. Threads that tests start import this too, and try no properties.
 */
import { isMainThread } from "node:worker_threads";

const seed = Number(process.env["TEST_PROPERTY_SEED"] ?? 20_261_122);
if (!Number.isSafeInteger(seed)) {
  throw new RangeError(`TEST_PROPERTY_SEED is ${process.env["TEST_PROPERTY_SEED"]}: expected an integer`);
}
if (isMainThread) {
  const { default: fc } = await import("fast-check");
  fc.configureGlobal({ ...fc.readConfigureGlobal(), seed });
}
