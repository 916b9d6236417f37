/**
 * AWS Lambda on loopback, as far as functions use it: Invoke with the invocation type Event.
 * Source: AWS Lambda API Reference, Invoke.
 */

import { createServer } from 'node:http';
import { bytesOf } from '../../shared/host/http-body.ts';
import { listenOnLoopback } from '../../shared/host/loopback.ts';

export interface InvokeServer {
  /** `http://127.0.0.1:port`. */
  readonly endpoint: string;
  stop(): Promise<void>;
}

export interface InvokeServerOptions {
  /** Accepts an event for a function, by its name or ARN; false: there is no such function. */
  put(functionName: string, event: unknown, traceHeader: string | undefined): boolean;
}

const PATH = /^\/2015-03-31\/functions\/([^/]+)\/invocations$/;
const SIGNATURE = /^AWS4-HMAC-SHA256 Credential=[^/]+\/\d{8}\/[^/]+\/lambda\//;
/** The limit for the body of an asynchronous invocation. */
const BODY_BYTES_MAX = 1_048_576;

/** The function that a request invokes; undefined for another request. */
export const invokedFunction = (url: string): string | undefined => {
  const name = PATH.exec(url.split('?')[0] ?? '')?.[1];
  return name === undefined ? undefined : decodeURIComponent(name);
};

export async function startInvokeServer({ put }: InvokeServerOptions): Promise<InvokeServer> {
  const server = createServer(async (request, response) => {
    const answer = (status: number, type?: string): void => {
      const headers = {
        'content-type': 'application/json',
        ...(type === undefined ? {} : { 'x-amzn-errortype': type }),
      };
      response.writeHead(status, headers).end(type === undefined ? '' : JSON.stringify({ Type: 'User' }));
    };
    try {
      const bytes = await bytesOf(request, BODY_BYTES_MAX);
      if (bytes === undefined) return answer(413, 'RequestTooLargeException');
      const name = invokedFunction(request.url ?? '');
      if (!SIGNATURE.test(request.headers.authorization ?? ''))
        return answer(403, 'MissingAuthenticationTokenException');
      if (name === undefined || request.method !== 'POST') return answer(404, 'UnknownOperationException');
      // A synchronous invocation is not used, and would hide what a wake-up must tolerate.
      if (request.headers['x-amz-invocation-type'] !== 'Event') return answer(400, 'InvalidParameterValueException');
      const body = bytes.toString('utf8');
      const traceHeader = request.headers['x-amzn-trace-id'];
      const event = body === '' ? {} : JSON.parse(body);
      if (put(name, event, traceHeader === undefined ? undefined : String(traceHeader))) answer(202);
      else answer(404, 'ResourceNotFoundException');
    } catch {
      answer(400, 'InvalidRequestContentException');
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
