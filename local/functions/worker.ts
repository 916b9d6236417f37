/**
 * One execution environment: loads a function's bundle in a thread of its own and runs one event at a time, as the
 * Node.js runtime of Lambda does. Started by environment.ts, never imported.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { setDefaultCACertificates } from 'node:tls';
import { pathToFileURL } from 'node:url';
import { parentPort, workerData } from 'node:worker_threads';
import type { FunctionError, InvokeMessage, WorkerMessage, WorkerSetup } from './protocol.ts';

type Handler = (event: unknown, context: object) => unknown;

const setup = workerData as WorkerSetup;
const port = parentPort!;
const send = (message: WorkerMessage) => port.postMessage(message);

/** `awslambda.streamifyResponse` marks a handler that writes a response stream; such events do not come here yet. */
const STREAMING = Symbol.for('nodekeeper.local.streaming');
Object.assign(globalThis, {
  awslambda: {
    streamifyResponse: (handler: Handler) => Object.assign(handler, { [STREAMING]: true }),
    HttpResponseStream: { from: (stream: unknown) => stream },
  },
});

if (setup.caPem !== undefined) setDefaultCACertificates([setup.caPem]);

try {
  const handler = await loadHandler();
  port.on('message', (message: InvokeMessage) => void run(handler, message));
  send({ kind: 'ready' });
} catch (error) {
  send({ kind: 'initFailed', error: describe(error) });
}

async function loadHandler(): Promise<Handler> {
  const dot = setup.handler.lastIndexOf('.');
  const [file, exportName] = [setup.handler.slice(0, dot), setup.handler.slice(dot + 1)];
  const path = ['.mjs', '.js', '.cjs'].map((extension) => join(setup.codePath, file + extension)).find(existsSync);
  if (path === undefined) throw new Error(`Cannot find module '${file}' in ${setup.codePath}`);
  const module = (await import(pathToFileURL(path).href)) as Record<string, unknown>;
  const exported = module[exportName] ?? (module['default'] as Record<string, unknown> | undefined)?.[exportName];
  if (typeof exported !== 'function') throw new Error(`${setup.handler} is undefined or not exported`);
  return exported as Handler;
}

async function run(handler: Handler, { requestId, deadlineMs, event }: InvokeMessage): Promise<void> {
  const context = {
    functionName: setup.functionName,
    functionVersion: '$LATEST',
    invokedFunctionArn: setup.functionArn,
    memoryLimitInMB: String(setup.memoryMegabytes),
    awsRequestId: requestId,
    logGroupName: `/aws/lambda/${setup.functionName}`,
    logStreamName: 'local',
    callbackWaitsForEmptyEventLoop: true,
    getRemainingTimeInMillis: () => Math.max(0, deadlineMs - Date.now()),
  };
  try {
    const returned = await handler(JSON.parse(event), context);
    send({ kind: 'result', requestId, payload: JSON.stringify(returned) ?? 'null' });
  } catch (error) {
    send({ kind: 'failed', requestId, error: describe(error) });
  }
}

function describe(error: unknown): FunctionError {
  if (!(error instanceof Error)) return { errorType: typeof error, errorMessage: String(error), stack: '' };
  const causes: string[] = [];
  for (let cause = error.cause; cause instanceof Error && causes.length < 5; cause = cause.cause) {
    causes.push(`caused by ${cause.stack ?? cause.message}`);
  }
  return {
    errorType: error.name,
    errorMessage: error.message,
    stack: [error.stack ?? error.message, ...causes].join('\n'),
  };
}
