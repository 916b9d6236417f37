/**
 * The token of a user with AWS credentials: a GetCallerIdentity request that is signed and not sent. It has the format
 * of `aws eks get-token`, which the tools for those tokens expect. The signature covers the id of the cluster.
 */
import { SignatureV4 } from '@smithy/signature-v4';
import {
  CALLER_IDENTITY_PREFIX,
  CALLER_IDENTITY_SECONDS,
  CLUSTER_HEADER,
} from '../shared/access/caller-identity-token.ts';
import { type AwsCredentials, awsHost } from '../shared/aws/connection.ts';
import { Sha256 } from './sha256.ts';

export interface CallerIdentityRequest {
  readonly credentials: AwsCredentials;
  readonly clusterId: string;
  /** Region of the STS endpoint, such as eu-west-1. */
  readonly region: string;
  readonly nowMs: number;
}

export interface PresignedToken {
  readonly token: string;
  /** When kubectl should request another token. */
  readonly expiresAtMs: number;
}

/** The signed expiry. STS accepts such a request for 15 minutes in any case. Seconds. */
const EXPIRES_SECONDS = 60;
/** A new token is requested this long before expiry: no request carries an expired one. Seconds. */
const MARGIN_SECONDS = 60;

export async function callerIdentityToken(request: CallerIdentityRequest): Promise<PresignedToken> {
  const { credentials, clusterId, region, nowMs } = request;
  const host = awsHost('sts', region);
  const signer = new SignatureV4({ credentials, region, service: 'sts', sha256: Sha256 });
  const signed = await signer.presign(
    {
      method: 'GET',
      protocol: 'https:',
      hostname: host,
      path: '/',
      query: { Action: 'GetCallerIdentity', Version: '2011-06-15' },
      headers: { host, [CLUSTER_HEADER]: clusterId },
    },
    { expiresIn: EXPIRES_SECONDS, signingDate: new Date(nowMs), unhoistableHeaders: new Set([CLUSTER_HEADER]) },
  );
  const query = Object.entries(signed.query ?? {})
    .map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(String(value))}`)
    .join('&');
  return {
    token: `${CALLER_IDENTITY_PREFIX}${Buffer.from(`https://${host}/?${query}`).toString('base64url')}`,
    expiresAtMs: nowMs + (CALLER_IDENTITY_SECONDS - MARGIN_SECONDS) * 1_000,
  };
}
