/**
 * AWS Lambda on loopback, as far as functions and `nodekeeper prove` use it: Invoke with the invocation type Event,
 * PutFunctionConcurrency and DeleteFunctionConcurrency. Source: AWS Lambda API Reference.
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
  /** Reserves executions; undefined: none. Absent: the account has no limit. */
  reserve?(functionName: string, executions: number | undefined): 'reserved' | 'refused' | 'notFound';
}

const PATH = /^\/2015-03-31\/functions\/([^/]+)\/invocations$/;
const SIGNATURE = /^AWS4-HMAC-SHA256 Credential=[^/]+\/\d{8}\/[^/]+\/lambda\//;
const CONCURRENCY_PATH = /^\/2017-10-31\/functions\/([^/]+)\/concurrency$/;
/** The limit for the body of an asynchronous invocation. */
const BODY_BYTES_MAX = 1_048_576;

/** The function that a request invokes; undefined for another request. */
export const invokedFunction = (url: string): string | undefined => {
  const name = PATH.exec(url.split('?')[0] ?? '')?.[1];
  return name === undefined ? undefined : decodeURIComponent(name);
};

const isWholeNumber = (value: unknown): value is number => Number.isInteger(value) && Number(value) >= 0;

export async function startInvokeServer({ put, reserve }: InvokeServerOptions): Promise<InvokeServer> {
  const server = createServer(async (request, response) => {
    const reservation = (functionName: string, body: string): void => {
      const isRelease = request.method === 'DELETE';
      const { ReservedConcurrentExecutions: executions } = (isRelease || body === '' ? {} : JSON.parse(body)) as {
        readonly ReservedConcurrentExecutions?: unknown;
      };
      if (!isRelease && !isWholeNumber(executions)) {
        answer(400, 'InvalidParameterValueException');
        return;
      }
      const outcome = reserve?.(functionName, isWholeNumber(executions) ? executions : undefined) ?? 'reserved';
      if (outcome === 'notFound') answer(404, 'ResourceNotFoundException');
      else if (outcome === 'refused') answer(400, 'InvalidParameterValueException');
      else if (isRelease) answer(204);
      else {
        const answered = JSON.stringify({ ReservedConcurrentExecutions: executions });
        response.writeHead(200, { 'content-type': 'application/json' }).end(answered);
      }
    };
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
      const reserved = CONCURRENCY_PATH.exec(request.url ?? '')?.[1];
      if (reserved !== undefined && ['PUT', 'DELETE'].includes(request.method ?? '')) {
        return reservation(decodeURIComponent(reserved), bytes.toString('utf8'));
      }
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
