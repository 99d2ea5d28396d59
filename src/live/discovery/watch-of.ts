import type { KubernetesObject } from "./kubernetes-objects.ts";
import type { KeeperEvent } from "../endpoints/keeper-event.ts";
import type { Collection, KubernetesApi } from "./kubernetes-api.ts";
import { ResourceWatch, type WatchTimes } from "./kubernetes-watch.ts";
import type { SourceBoard } from "../endpoints/source-board.ts";
import { SourceStatus } from "../endpoints/source-status.ts";

/** What every watch of a source needs. */
export interface PodSourceContext {
  readonly api: KubernetesApi;
  readonly times: WatchTimes;
  readonly board: SourceBoard;
  readonly report: (event: KeeperEvent) => void;
}

/** Follows something of the cluster until it is stopped. */
export interface PodSource {
  stop(): Promise<void>;
}

/** A watch with its row in the metrics and its lines in the log, both under "RESOURCE NAMESPACE/NAME". */
export function watchOf<T extends KubernetesObject>(
  { api, times, board, report }: PodSourceContext,
  collection: Collection,
  name: string,
  changed: (objects: ReadonlyMap<string, T>) => void,
): PodSource {
  const subject = `${collection.resource} ${collection.namespace}/${name}`;
  const status = new SourceStatus(subject);
  board.add(status);
  const trouble = (detail: string): void =>
    report({ kind: detail === "" ? "source-recovered" : "source-failed", subject, detail });
  const watch = new ResourceWatch<T>({ api, collection, changed, trouble, status, ...times });
  return {
    stop: () => {
      board.remove(status);
      return watch.stop();
    },
  };
}
