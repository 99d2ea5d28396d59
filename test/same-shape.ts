import { setFlagsFromString } from "node:v8";
import { Script } from "node:vm";

/**
 * Whether V8 has one hidden class for both objects, so that code which it optimized for one serves the other: the same
 * fields in the same order are not enough, as an object that is put together field by field has another one.
 */
export function sameShape(one: object, other: object): boolean {
  setFlagsFromString("--allow-natives-syntax");
  const ask = new Script("((one, other) => %HaveSameMap(one, other))").runInThisContext() as typeof sameShape;
  const same = ask(one, other);
  setFlagsFromString("--no-allow-natives-syntax");
  return same;
}
