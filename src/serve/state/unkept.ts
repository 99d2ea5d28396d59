import type { StateFolder } from "./state-folder.ts";

/** An order is answered by then, whatever the disk and Redis do. */
export const ORDER_ANSWER_MILLIS = 1_000;

/**
 * Why what was ordered until now may be lost, a line each; none once it is on the disk, and with the others by `shared`,
 * which resolve with "" or what is wrong.
 */
export async function unkeptOf(
  folder: StateFolder | undefined,
  shared: readonly Promise<string>[],
): Promise<readonly string[]> {
  const disk = folder?.orders.settled(ORDER_ANSWER_MILLIS);
  const [onDisk = "", ...withOthers] = await Promise.all([disk, ...shared]);
  return [
    ...(onDisk === "" ? [] : [`not on the disk, so a restart would not know of it: ${onDisk}`]),
    ...withOthers.filter((one) => one !== "").map((one) => `other gateways may not know of it: ${one}`),
  ];
}

/** What a promise resolves with by then; else `late`. */
export async function byThen<T>(promise: Promise<T>, late: T): Promise<T> {
  const { promise: over, resolve } = Promise.withResolvers<T>();
  const timer = setTimeout(() => resolve(late), ORDER_ANSWER_MILLIS);
  try {
    return await Promise.race([promise, over]);
  } finally {
    clearTimeout(timer);
  }
}
