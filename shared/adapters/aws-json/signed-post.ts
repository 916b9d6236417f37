/**
 * One signed POST to an AWS service with JSON protocol, without the SDK's client, which adds 200 KB to a bundle.
 */
import { type AwsConnection, endpointOf } from '../aws-connection/connection.ts';
import { requestSigner } from '../aws-connection/signature.ts';

export interface AwsAnswer {
  readonly status: number;
  readonly text: string;
}

/** Rejects if there is no response in time. */
export type SignedPost = (body: string, nowMs: number) => Promise<AwsAnswer>;

export function signedPost(
  connection: AwsConnection,
  call: {
    /** As in the host name: logs, events. */
    readonly service: string;
    /** X-Amz-Target. */
    readonly target: string;
    readonly timeoutMs: number;
    /** Of the JSON protocol. @default '1.1' */
    readonly version?: '1.0' | '1.1';
  },
): SignedPost {
  const { service, target, timeoutMs, version = '1.1' } = call;
  const endpoint = endpointOf(connection, service);
  const sign = requestSigner({
    ...connection,
    host: endpoint.host,
    service,
    contentType: `application/x-amz-json-${version}`,
  });
  return async (body, nowMs) => {
    // fetch sends the host of the address itself.
    const { host: _host, ...headers } = sign({ target, body, nowMs });
    const signal = AbortSignal.timeout(timeoutMs);
    const answer = await fetch(endpoint, { method: 'POST', headers, body, signal });
    return { status: answer.status, text: await answer.text() };
  };
}
