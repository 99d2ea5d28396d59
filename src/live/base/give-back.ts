/** Smaller memory is pooled, or costs more to give back than to collect. */
const GIVEN_BACK_BYTES_MIN = 4_096;

/**
 * Gives back the memory of bytes that nobody reads any more, now. Else V8 collects the whole heap, 20 to 60 ms of CPU, after
 * every 64 MiB that bytes took: four large answers, or bodies of clients that leave. Memory that other bytes are in stays.
 */
export function giveBack({ buffer, byteLength }: Buffer): void {
  const isAll = buffer.byteLength === byteLength && byteLength >= GIVEN_BACK_BYTES_MIN;
  if (isAll && buffer instanceof ArrayBuffer) buffer.transfer(0);
}
