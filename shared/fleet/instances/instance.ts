/** Instance state names of EC2. */
export type InstanceState = 'pending' | 'running' | 'stopping' | 'stopped' | 'shutting-down' | 'terminated';

/** The result of a request for one instance. */
export type CloudAnswer =
  | { readonly kind: 'found'; readonly state: InstanceState; readonly launchedAtMs: number | undefined }
  /** EC2 responded, and the response did not contain the instance. */
  | { readonly kind: 'notFound' }
  | { readonly kind: 'failed'; readonly cause: 'error' | 'throttled' | 'timeout'; readonly message: string }
  /** The instance is in another account or region; see instanceScope. */
  | { readonly kind: 'foreign'; readonly reason: string }
  /** The node has no providerID, or its providerID is not an EC2 instance. */
  | { readonly kind: 'notEc2'; readonly reason: string };

/** Value: one IP address, or an IPv4 and an IPv6 address separated by a comma. */
export const PROVIDED_NODE_IP_ANNOTATION = 'alpha.kubernetes.io/provided-node-ip';

export interface NodeAddress {
  readonly type: string;
  readonly address: string;
}

/** Properties of an instance in EC2. An empty string means unknown. */
export interface InstanceMetadata {
  readonly instanceType: string;
  readonly zone: string;
  readonly region: string;
  readonly addresses: readonly NodeAddress[];
  readonly additionalLabels: Readonly<Record<string, string>>;
}
