/** What is read of any object of an API server. */
export interface KubernetesObject {
  readonly metadata?: {
    readonly name?: string;
    readonly namespace?: string;
    readonly uid?: string;
    readonly labels?: Readonly<Record<string, string>>;
    readonly resourceVersion?: string;
    /** RFC 3339, as the server writes it. */
    readonly creationTimestamp?: string;
    readonly deletionTimestamp?: string;
  };
}

/** What is read of a Service. */
export interface KubernetesService extends KubernetesObject {
  readonly spec?: {
    readonly selector?: Readonly<Record<string, string>>;
    /** "IPv4", "IPv6". */
    readonly ipFamilies?: readonly string[];
  };
}

/** What is read of a Pod. */
export interface Pod extends KubernetesObject {
  readonly spec?: {
    readonly nodeName?: string;
    readonly containers?: readonly {
      readonly ports?: readonly { readonly name?: string; readonly containerPort: number }[];
    }[];
  };
  readonly status?: {
    readonly phase?: string;
    readonly podIP?: string;
    readonly podIPs?: readonly { readonly ip: string }[];
    readonly conditions?: readonly { readonly type: string; readonly status: string }[];
  };
}

/** What is read of an EndpointSlice. */
export interface EndpointSlice extends KubernetesObject {
  readonly ports?: readonly { readonly name?: string; readonly port?: number; readonly appProtocol?: string }[];
  readonly endpoints?: readonly {
    readonly addresses: readonly string[];
    readonly conditions?: { readonly ready?: boolean; readonly terminating?: boolean };
    readonly targetRef?: { readonly kind?: string; readonly name?: string; readonly uid?: string };
    readonly nodeName?: string;
    readonly zone?: string;
  }[];
}
