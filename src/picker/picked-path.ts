import { RequestTargets } from "#live/request/request-target.ts";
import type { Route, Routes } from "#live/request/route.ts";

/** What a request's target means to the picker. */
export interface PickedPath {
  readonly route: Route;
  /** Its body names a model and, mostly, a prompt. */
  readonly takesBody: boolean;
}

/** Anything that is no route of inference goes to some endpoint, unread: lists of models, probes, what engines add. */
const BESIDE: PickedPath = {
  route: { pattern: "(other)", dialect: "other", countsOnly: false },
  takesBody: false,
};

export function pathReader(routes: Routes): (target: string) => PickedPath {
  const targets = new RequestTargets(routes);
  return (target) => {
    const known = targets.of(target);
    return known === undefined ? BESIDE : { route: known.route, takesBody: true };
  };
}
