/** A service of AWS on loopback that speaks the JSON protocol, as far as its calls are used. */

import { createServer } from 'node:http';
import { bytesOf } from '../../shared/host/http-body.ts';
import { listenOnLoopback } from '../../shared/host/loopback.ts';

export interface AwsJsonServer {
  /** `http://127.0.0.1:port`. */
  readonly endpoint: string;
  stop(): Promise<void>;
}

export type AwsJsonAnswer =
  | { readonly kind: 'answer'; readonly body: unknown }
  /** 400 with this exception. */
  | { readonly kind: 'refused'; readonly type: string };

export interface AwsJsonService {
  /** The name of the service in signatures. */
  readonly service: string;
  /** The calls that are known, by their X-Amz-Target. */
  readonly calls: Readonly<
    Record<string, (body: unknown, traceHeader?: string) => AwsJsonAnswer | Promise<AwsJsonAnswer>>
  >;
  /** Exception for a body that cannot be read. */
  readonly malformed: string;
}

const BODY_BYTES_MAX = 1_048_576;

export async function startAwsJsonServer({ service, calls, malformed }: AwsJsonService): Promise<AwsJsonServer> {
  const signature = new RegExp(`^AWS4-HMAC-SHA256 Credential=[^/]+/\\d{8}/[^/]+/${service}/`);
  const server = createServer(async (request, response) => {
    const answer = (status: number, body: unknown): void => {
      response.writeHead(status, { 'content-type': 'application/x-amz-json-1.1' }).end(JSON.stringify(body));
    };
    const refuse = (type: string): void => answer(400, { __type: type });
    try {
      const bytes = await bytesOf(request, BODY_BYTES_MAX);
      if (bytes === undefined) return refuse(malformed);
      if (!signature.test(request.headers.authorization ?? '')) return refuse('MissingAuthenticationTokenException');
      const handle = calls[String(request.headers['x-amz-target'])];
      if (handle === undefined) return refuse('UnknownOperationException');
      const traceHeader = request.headers['x-amzn-trace-id'];
      const body = JSON.parse(bytes.toString('utf8'));
      const outcome = await handle(body, traceHeader === undefined ? undefined : String(traceHeader));
      if (outcome.kind === 'refused') refuse(outcome.type);
      else answer(200, outcome.body);
    } catch (error) {
      answer(500, { __type: 'InternalFailure', message: String(error) });
    }
  });
  const port = await listenOnLoopback(server);
  return {
    endpoint: `http://127.0.0.1:${port}`,
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
