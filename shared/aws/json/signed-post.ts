/**
 * One signed POST to an AWS service with JSON protocol, without the SDK's client, which adds 200 KB to a bundle, and
 * without fetch: its first call needs 10 to 20 ms of CPU in each new execution environment.
 */
import { type AwsConnection, endpointOf } from '../connection/connection.ts';
import { type PostAnswer, postClient } from '../connection/post-client.ts';
import { requestSigner } from '../connection/signature.ts';

/** Rejects if there is no response in time. */
export type SignedPost = (body: string, nowMs: number) => Promise<PostAnswer>;

/** Maximum number of connections of one caller. */
const SOCKETS_MAX = 8;
/** Shorter than servers keep an idle connection: those of Node.js, in local mode, for 5 s. Each call is tried twice only. */
const IDLE_MS_MAX = 4_000;

export function signedPost(
  connection: AwsConnection,
  call: {
    /** The name in the host name: logs, events. */
    readonly service: string;
    /** X-Amz-Target. */
    readonly target: string;
    readonly timeoutMs: number;
    /** The version of the JSON protocol. @default '1.1' */
    readonly version?: '1.0' | '1.1';
  },
  /** For the age of connections. The time of a call may be that of its tick. */
  clockMs: () => number = Date.now,
): SignedPost {
  const { service, target, timeoutMs, version = '1.1' } = call;
  const endpoint = endpointOf(connection, service);
  const client = postClient({ endpoint, socketsMax: SOCKETS_MAX, timeoutMs, nowMs: clockMs, idleMsMax: IDLE_MS_MAX });
  const sign = requestSigner({
    ...connection,
    host: endpoint.host,
    service,
    contentType: `application/x-amz-json-${version}`,
  });
  return (body, nowMs) => client.post(sign({ target, body, nowMs }), body);
}
