/**
 * The token of a person with AWS credentials: a GetCallerIdentity request, signed but not sent. The same bytes that
 * `aws eks get-token` makes, so that its users and tools feel at home; the cluster's id is part of what is signed.
 */
import { SignatureV4 } from '@smithy/signature-v4';
import { type AwsCredentials, awsHost } from '../shared/adapters/aws-connection/connection.ts';
import { Sha256 } from '../shared/adapters/aws-connection/sha256.ts';
import {
  CALLER_IDENTITY_PREFIX,
  CALLER_IDENTITY_SECONDS,
  CLUSTER_HEADER,
} from '../shared/domain/access/caller-identity-token.ts';

export interface CallerIdentityRequest {
  readonly credentials: AwsCredentials;
  readonly clusterId: string;
  /** Of the STS endpoint that is to be asked, such as eu-west-1. */
  readonly region: string;
  readonly nowMs: number;
}

export interface PresignedToken {
  readonly token: string;
  /** When kubectl should make another. */
  readonly expiresAtMs: number;
}

/** As signed; STS itself holds such a request good for 15 minutes. Seconds. */
const EXPIRES_SECONDS = 60;
/** Taken off the end, so that no request is sent with a token about to end. Seconds. */
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
