import type { RouteRequest } from "../request/request.ts";

/** Whose requests a limit counts together. A request that names no user counts as its tenant's. */
export type Subject = "all" | "tenant" | "user" | "model" | "tenant-and-model";

export const SUBJECTS = ["all", "tenant", "user", "model", "tenant-and-model"] as const satisfies readonly Subject[];

/** The name under which a request is counted; "" for all together. */
export function subjectOf(per: Subject, request: RouteRequest): string {
  switch (per) {
    case "all":
      return "";
    case "tenant":
      return request.tenant;
    case "user":
      return request.user === undefined ? request.tenant : `${request.tenant}\n${request.user}`;
    case "model":
      return request.model;
    case "tenant-and-model":
      return `${request.tenant}\n${request.model}`;
  }
}
