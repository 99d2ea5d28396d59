/** What is read of resources, as the API server shows them. */
export interface Resource {
  readonly metadata: {
    readonly name: string;
    readonly namespace: string;
    readonly uid: string;
    readonly generation?: number;
    readonly labels?: Readonly<Record<string, string>>;
    readonly deletionTimestamp?: string;
  };
}

export interface Pod extends Resource {
  readonly spec: {
    readonly containers: readonly {
      readonly args?: readonly string[];
      readonly ports?: readonly { readonly containerPort: number }[];
      readonly env?: readonly { readonly name: string; readonly value?: string }[];
    }[];
  };
}

export interface Service extends Resource {
  readonly spec: { readonly selector?: Readonly<Record<string, string>> };
}

export interface Gateway extends Resource {
  readonly spec: {
    readonly listeners: readonly { readonly name: string; readonly port: number; readonly hostname?: string }[];
  };
}

export interface Pool extends Resource {
  readonly spec: {
    readonly selector: { readonly matchLabels: Readonly<Record<string, string>> };
    readonly targetPorts: readonly { readonly number: number }[];
    readonly appProtocol?: string;
    readonly endpointPickerRef?: {
      readonly name: string;
      readonly failureMode?: string;
      readonly port?: { readonly number: number };
    };
  };
}

export interface ParentRef {
  readonly group?: string;
  readonly kind?: string;
  readonly name: string;
  readonly namespace?: string;
  readonly sectionName?: string;
}

export interface Rule {
  readonly matches?: readonly { readonly path?: { readonly value?: string } }[];
  readonly backendRefs?: readonly { readonly name: string; readonly weight?: number }[];
}

export interface Route extends Resource {
  readonly spec: {
    readonly parentRefs: readonly ParentRef[];
    readonly hostnames?: readonly string[];
    readonly rules: readonly Rule[];
  };
}

/** The pool that a backend of the route names, in the route's namespace. */
export function poolOf(route: Route, name: string, pools: readonly Pool[]): Pool | undefined {
  return pools.find(({ metadata }) => metadata.name === name && metadata.namespace === route.metadata.namespace);
}

/** The route's references to this gateway. */
export function parentsAt({ spec, metadata }: Route, gateway: Gateway): readonly ParentRef[] {
  return spec.parentRefs.filter(
    ({ name, namespace }) =>
      name === gateway.metadata.name && (namespace ?? metadata.namespace) === gateway.metadata.namespace,
  );
}

export function hasLabels({ metadata: { labels = {} } }: Resource, wanted: Readonly<Record<string, string>>): boolean {
  return Object.entries(wanted).every(([key, value]) => labels[key] === value);
}
