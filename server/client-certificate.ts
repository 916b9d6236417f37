/**
 * Users by their client certificates, as upstream: the common name is the user, each organization a group. TLS has proved
 * that the client has the key. The certificate must be signed by a configured authority itself, for clients, and be none of
 * an authority. The time is checked with every request, because a connection may outlive its certificate.
 * Source: kubernetes.io, "Authenticating", "X509 client certificates"; k8s.io/apiserver pkg/authentication/request/x509.
 */
import type { X509Certificate } from 'node:crypto';
import type { Authentication, Authenticator } from '../shared/access/authenticator.ts';

/** No client can send it: a name with a colon is no header. */
const CERTIFICATE_HEADER = ':client-certificate';

/** RFC 5280 4.2.1.12: id-kp-clientAuth. */
const CLIENT_AUTH = '1.3.6.1.5.5.7.3.2';

interface Client {
  readonly username: string;
  readonly groups: readonly string[];
  readonly fromMs: number;
  readonly throughMs: number;
}

/** The header for the requests of a connection. undefined: the certificate names no user. */
export function certificateHeader(
  certificate: X509Certificate,
  authorities: readonly X509Certificate[],
): string | undefined {
  const isForClients = !certificate.ca && (certificate.keyUsage ?? []).includes(CLIENT_AUTH);
  if (!isForClients || !authorities.some((authority) => isSignedBy(certificate, authority))) return undefined;
  const { CN: username, O: organizations = [] } = certificate.toLegacyObject().subject as unknown as Subject;
  if (typeof username !== 'string' || username === '') return undefined;
  const client: Client = {
    username,
    groups: [organizations].flat(),
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

/** A certificate comes before other credentials. One that has expired leaves the request to them. */
export const clientCertificates = (otherwise: Authenticator): Authenticator => ({
  async authenticate(headers, nowMs, audiences): Promise<Authentication> {
    const header = headers[CERTIFICATE_HEADER];
    if (header === undefined) return otherwise.authenticate(headers, nowMs, audiences);
    const { username, groups, fromMs, throughMs } = JSON.parse(header) as Client;
    if (nowMs >= fromMs && nowMs <= throughMs) {
      return { kind: 'authenticated', user: { username, groups: [...groups, 'system:authenticated'] } };
    }
    const authentication = await otherwise.authenticate(headers, nowMs, audiences);
    return authentication.kind === 'anonymous'
      ? { kind: 'refused', reason: 'client certificate: not valid at this time' }
      : authentication;
  },
});
