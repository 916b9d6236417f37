/**
 * What a cluster answers after it has moved: 421 Misdirected Request (RFC 9110, 15.5.20) with a Status that names its
 * new address. Agents follow it (agent/app/follow-move.ts); kubectl prints the message.
 */
export const MOVED_CODE = 421;

export interface ClusterAddress {
  /** Base URL of the API, https. */
  readonly endpoint: string;
  /** PEM of the authorities of its certificate. Absent: those of the system of the client. */
  readonly certificateAuthority?: string;
}

const REASON = 'ClusterMoved';
const ENDPOINT = 'Endpoint';
const AUTHORITY = 'CertificateAuthority';

export function movedStatus({ endpoint, certificateAuthority }: ClusterAddress): object {
  const cause = (reason: string, message: string) => ({ reason, message });
  return {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    message: `this cluster has moved to ${endpoint}`,
    reason: REASON,
    details: {
      causes: [
        cause(ENDPOINT, endpoint),
        ...(certificateAuthority === undefined ? [] : [cause(AUTHORITY, certificateAuthority)]),
      ],
    },
    code: MOVED_CODE,
  };
}

/** The address in the body of a 421; undefined: it has none. */
export function movedAddressIn(body: unknown): ClusterAddress | undefined {
  const { reason, details } = (body ?? {}) as { readonly reason?: unknown; readonly details?: { causes?: unknown } };
  if (reason !== REASON || !Array.isArray(details?.causes)) return undefined;
  const causes = details.causes as readonly { readonly reason?: unknown; readonly message?: unknown }[];
  const of = (wanted: string): string | undefined => {
    const found = causes.find((cause) => cause?.reason === wanted)?.message;
    return typeof found === 'string' ? found : undefined;
  };
  return clusterAddress(of(ENDPOINT), of(AUTHORITY));
}

/** Undefined for an endpoint that is no https URL. */
export function clusterAddress(endpoint: unknown, certificateAuthority: unknown): ClusterAddress | undefined {
  if (typeof endpoint !== 'string' || !URL.canParse(endpoint) || new URL(endpoint).protocol !== 'https:') {
    return undefined;
  }
  return {
    endpoint: endpoint.replace(/\/+$/, ''),
    ...(typeof certificateAuthority === 'string' && { certificateAuthority }),
  };
}
