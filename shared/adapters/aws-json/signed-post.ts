/**
 * One signed POST to a service of AWS that speaks its JSON protocol 1.1, without the SDK's client: 200 KB of bundle for one
 * call. Signed by the SDK's signer.
 */
import { createHash, createHmac, type Hash } from 'node:crypto';
import { SignatureV4 } from '@smithy/signature-v4';

export interface AwsConnection {
  readonly region: string;
  readonly credentials: {
    readonly accessKeyId: string;
    readonly secretAccessKey: string;
    readonly sessionToken?: string;
  };
  /** Only for a service of our own, in local mode and tests. */
  readonly endpoint?: string;
}

/**
 * The connection a Lambda's environment holds.
 *
 * @param endpointVariable names the endpoint of a service of our own
 * @throws RangeError that names every missing variable
 */
export function awsConnectionFrom(
  environment: Readonly<Record<string, string | undefined>>,
  endpointVariable: string,
): AwsConnection {
  const names = ['AWS_REGION', 'AWS_ACCESS_KEY_ID', 'AWS_SECRET_ACCESS_KEY'] as const;
  const missing = names.filter((name) => !environment[name]);
  if (missing.length > 0) throw new RangeError(`missing from the environment: ${missing.join(', ')}`);
  const sessionToken = environment['AWS_SESSION_TOKEN'];
  const endpoint = environment[endpointVariable];
  return {
    region: environment['AWS_REGION'] as string,
    credentials: {
      accessKeyId: environment['AWS_ACCESS_KEY_ID'] as string,
      secretAccessKey: environment['AWS_SECRET_ACCESS_KEY'] as string,
      ...(sessionToken ? { sessionToken } : {}),
    },
    ...(endpoint ? { endpoint } : {}),
  };
}

export interface AwsAnswer {
  readonly status: number;
  readonly text: string;
}

/** Rejects when no answer came in time. */
export type SignedPost = (body: string, nowMs: number) => Promise<AwsAnswer>;

export function signedPost(
  { region, credentials, endpoint: own }: AwsConnection,
  call: {
    /** As in the host name: logs, events. */
    readonly service: string;
    /** X-Amz-Target. */
    readonly target: string;
    readonly timeoutMs: number;
  },
): SignedPost {
  const domain = region.startsWith('cn-') ? 'amazonaws.com.cn' : 'amazonaws.com';
  const endpoint = new URL(own ?? `https://${call.service}.${region}.${domain}`);
  const signer = new SignatureV4({ service: call.service, region, credentials, sha256: Sha256 });
  return async (body, nowMs) => {
    const { headers } = await signer.sign(
      {
        method: 'POST',
        protocol: endpoint.protocol,
        hostname: endpoint.hostname,
        path: '/',
        query: {},
        headers: { host: endpoint.host, 'content-type': 'application/x-amz-json-1.1', 'x-amz-target': call.target },
        body,
      },
      { signingDate: new Date(nowMs) },
    );
    const { host: _host, ...sent } = headers;
    const signal = AbortSignal.timeout(call.timeoutMs);
    const answer = await fetch(endpoint, { method: 'POST', headers: sent, body, signal });
    return { status: answer.status, text: await answer.text() };
  };
}

/** In the form that the signer wants it. */
class Sha256 {
  readonly #hash: Hash;
  constructor(secret?: unknown) {
    this.#hash = (secret === undefined ? createHash('sha256') : createHmac('sha256', secret as Uint8Array)) as Hash;
  }
  update(data: unknown): void {
    this.#hash.update(data as Uint8Array);
  }
  digest(): Promise<Uint8Array> {
    return Promise.resolve(this.#hash.digest());
  }
  reset(): void {}
}
