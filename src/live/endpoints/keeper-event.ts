/** What happened to a server or an endpoint, for the log. Details hold no keys. */
export interface KeeperEvent {
  readonly kind:
    | "waiting"
    | "ready"
    | "lost"
    | "removed"
    | "refused"
    | "cordoned"
    | "uncordoned"
    | "asleep"
    | "awake"
    | "unhealthy"
    | "healthy"
    | "adapter-failed"
    | "source-failed"
    | "source-missing"
    | "source-recovered";
  /** URL of the server or id of the endpoint; of a source, its name. */
  readonly subject: string;
  readonly detail: string;
}
