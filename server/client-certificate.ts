/**
 * Users by their client certificates, as upstream: the common name is the user, each organization a group. TLS has
 * proved that the client has the key. The certificate must be signed by a configured authority itself, for clients, and
 * be none of an authority. The time is checked with every request, because a connection may outlive its certificate.
 *
 * The authority of the data directory signs certificates of machines (certificates/signing-requests.ts). Such a machine
 * is known by its key, as with its tokens: the key must be one of its NodeIdentity, which may be deleted. It signs for
 * no group that may do everything, so no user has such a certificate of it. Source: kubernetes.io, "Authenticating",
 * "X509 client certificates"; k8s.io/apiserver pkg/authentication/request/x509.
 */
import type { X509Certificate } from 'node:crypto';
import type { Authentication, Authenticator } from '../shared/access/authenticator.ts';
import { ADMIN_GROUPS, nodeIdentity } from '../shared/access/authorize.ts';
import { KEY_ID_EXTRA } from '../shared/access/node-identity.ts';
import { readPublicKey } from '../shared/access/public-keys.ts';
import { defined } from '../shared/defined.ts';

/** No client can send it: a name with a colon is no header. */
const CERTIFICATE_HEADER = ':client-certificate';

/** RFC 5280 4.2.1.12: id-kp-clientAuth. */
const CLIENT_AUTH = '1.3.6.1.5.5.7.3.2';

interface Client {
  readonly username: string;
  readonly groups: readonly string[];
  readonly fromMs: number;
  readonly throughMs: number;
  /** The machine that our own authority has certified. */
  readonly machine?: { readonly nodeName: string; readonly keyId: string };
}

export interface ClientAuthority {
  readonly certificate: X509Certificate;
  /** That of the data directory. */
  readonly isOwn: boolean;
}

/** The header for the requests of a connection. undefined: the certificate names no user. */
export function certificateHeader(
  certificate: X509Certificate,
  authorities: readonly ClientAuthority[],
): string | undefined {
  const isForClients = !certificate.ca && (certificate.keyUsage ?? []).includes(CLIENT_AUTH);
  const authority = isForClients ? authorities.find((each) => isSignedBy(certificate, each.certificate)) : undefined;
  if (authority === undefined) return undefined;
  const { CN: username, O: organizations = [] } = certificate.toLegacyObject().subject as unknown as Subject;
  if (typeof username !== 'string' || username === '') return undefined;
  const groups = [organizations].flat();
  if (authority.isOwn && groups.some((group) => ADMIN_GROUPS.has(group))) return undefined;
  const identity = authority.isOwn ? nodeIdentity({ name: username, groups }) : undefined;
  const key = identity?.kind === 'node' ? keyOf(certificate) : undefined;
  if (identity !== undefined && identity.kind !== 'notANode' && key === undefined) return undefined;
  const client: Client = {
    username,
    groups,
    ...(identity?.kind === 'node' && key !== undefined && { machine: { nodeName: identity.nodeName, keyId: key } }),
    fromMs: certificate.validFromDate.getTime(),
    throughMs: certificate.validToDate.getTime(),
  };
  return JSON.stringify(client);
}

type Subject = Readonly<Record<string, string | readonly string[] | undefined>>;

const isSignedBy = (certificate: X509Certificate, authority: X509Certificate): boolean =>
  authority.ca && certificate.checkIssued(authority) && certificate.verify(authority.publicKey);

/** Headers of a request with the certificate of its connection. */
export const withCertificate = (
  headers: Readonly<Record<string, string>>,
  header: string | undefined,
): Readonly<Record<string, string>> => (header === undefined ? headers : { ...headers, [CERTIFICATE_HEADER]: header });

/** undefined: no machine has such a key. */
function keyOf({ publicKey }: X509Certificate): string | undefined {
  const key = readPublicKey(publicKey.export({ format: 'jwk' }) as Record<string, unknown>);
  return key.kind === 'key' ? key.keyId : undefined;
}

/** Whether a machine has a key. */
export type HasKey = (
  machine: { readonly username: string; readonly nodeName: string; readonly keyId: string },
  nowMs: number,
) => Promise<boolean>;

/** A certificate comes before other credentials. One that has expired leaves the request to them. */
export const clientCertificates = (otherwise: Authenticator, hasKey: HasKey): Authenticator => ({
  async authenticate(headers, nowMs, audiences): Promise<Authentication> {
    const header = headers[CERTIFICATE_HEADER];
    if (header === undefined) return otherwise.authenticate(headers, nowMs, audiences);
    const { username, groups, fromMs, throughMs, machine } = JSON.parse(header) as Client;
    const isInTime = nowMs >= fromMs && nowMs <= throughMs;
    const isKnown = machine === undefined || !isInTime || (await hasKey({ username, ...machine }, nowMs));
    const fault = isInTime ? (isKnown ? undefined : 'the machine has no such key') : 'not valid at this time';
    if (fault === undefined) {
      const user = { username, groups: [...groups, 'system:authenticated'] };
      const extra = machine && { [KEY_ID_EXTRA]: [machine.keyId] };
      return { kind: 'authenticated', user: { ...user, ...defined({ extra }) } };
    }
    const authentication = await otherwise.authenticate(headers, nowMs, audiences);
    return authentication.kind === 'anonymous'
      ? { kind: 'refused', reason: `client certificate: ${fault}` }
      : authentication;
  },
});
