/** What a cloud says about an instance. */
export type InstanceState = 'pending' | 'running' | 'stopping' | 'stopped' | 'shutting-down' | 'terminated';

export type CloudAnswer =
  | { readonly kind: 'found'; readonly state: InstanceState; readonly launchedAtMs: number | undefined }
  /** EC2 answered, and the instance was not in the answer. */
  | { readonly kind: 'notFound' }
  | { readonly kind: 'failed'; readonly cause: 'error' | 'throttled' | 'timeout'; readonly message: string }
  /** Not to be seen with our account or region; see instanceScope. */
  | { readonly kind: 'foreign'; readonly reason: string }
  /** Nothing to ask for: no providerID, or one that is no EC2 instance. */
  | { readonly kind: 'notEc2'; readonly reason: string };

/** One address, or one of each family with a comma and no blank between. */
export const PROVIDED_NODE_IP_ANNOTATION = 'alpha.kubernetes.io/provided-node-ip';

export interface NodeAddress {
  readonly type: string;
  readonly address: string;
}

/** What the provider knows of an instance. Empty strings mean it does not say. */
export interface InstanceMetadata {
  readonly instanceType: string;
  readonly zone: string;
  readonly region: string;
  readonly addresses: readonly NodeAddress[];
  readonly additionalLabels: Readonly<Record<string, string>>;
}
