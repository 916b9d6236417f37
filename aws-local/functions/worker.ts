/**
 * One execution environment: loads a function's bundle in a thread of its own and runs one event at a time, as the
 * Node.js runtime of Lambda does. Started by environment.ts, never imported.
 */
import { existsSync } from 'node:fs';
import { flushCompileCache } from 'node:module';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { finished } from 'node:stream/promises';
import { setDefaultCACertificates } from 'node:tls';
import { pathToFileURL } from 'node:url';
import { parentPort, workerData } from 'node:worker_threads';
import {
  type ChunkTakenMessage,
  COMPILE_CACHE_VARIABLE,
  FROZEN,
  type FunctionError,
  type InvokeMessage,
  type StreamHead,
  type WorkerMessage,
  type WorkerSetup,
} from './protocol.ts';

type BufferedHandler = (event: unknown, context: object) => unknown;
type StreamingHandler = (event: unknown, stream: ResponseStream, context: object) => unknown;
type Handler = (BufferedHandler | StreamingHandler) & { readonly [STREAMING]?: true };

const STREAMING = Symbol('streaming');
const setup = workerData as WorkerSetup;
const port = parentPort!;
const send = (message: WorkerMessage) => port.postMessage(message);
const freezer = setup.freezer === undefined ? undefined : new Int32Array(setup.freezer);

/**
 * The last message of an event. Then the thread stops until the next event: no timer, no promise and no socket
 * proceeds. Lambda freezes an environment likewise. Source: AWS Lambda Developer Guide, "Lambda execution environment".
 */
function sendAndFreeze(message: WorkerMessage): void {
  if (freezer !== undefined) Atomics.store(freezer, 0, FROZEN);
  send(message);
  if (freezer !== undefined) Atomics.wait(freezer, 0, FROZEN);
}

/**
 * Node writes the output of a thread in turns of its loop. A frozen thread has none, so each write is sent by itself.
 */
for (const stream of ['stdout', 'stderr'] as const) {
  process[stream].write = (chunk: string | Uint8Array, encoding?: unknown, done?: unknown): boolean => {
    send({ kind: 'output', stream, text: typeof chunk === 'string' ? chunk : Buffer.from(chunk).toString('utf8') });
    const settled = typeof encoding === 'function' ? encoding : done;
    if (typeof settled === 'function') process.nextTick(settled);
    return true;
  };
}

/** The response of a streaming handler: each write is sent by itself, after the previous one. */
class ResponseStream extends Writable {
  #requestId: string;
  #head: StreamHead | undefined = { headers: { 'content-type': 'application/octet-stream' } };

  constructor(requestId: string) {
    super();
    this.#requestId = requestId;
  }

  setHead(head: StreamHead): void {
    this.#head = head;
  }

  setContentType(type: string): void {
    this.#head = { headers: { 'content-type': type } };
  }

  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    this.#sendHead();
    chunkTaken = done;
    send({ kind: 'streamChunk', requestId: this.#requestId, chunk: new Uint8Array(chunk) });
  }

  override _final(done: () => void): void {
    this.#sendHead();
    done();
  }

  /** Before the first byte, as the runtime does: until a handler writes, the client sees nothing. */
  #sendHead(): void {
    if (this.#head !== undefined) send({ kind: 'streamHead', requestId: this.#requestId, head: this.#head });
    this.#head = undefined;
  }
}

let chunkTaken: (() => void) | undefined;

/** What the Lambda runtime offers to handlers that stream their response. */
Object.assign(globalThis, {
  awslambda: {
    streamifyResponse: (handler: StreamingHandler) => Object.assign(handler, { [STREAMING]: true }),
    HttpResponseStream: {
      from: (stream: ResponseStream, head: StreamHead) => {
        stream.setHead(head);
        return stream;
      },
    },
  },
});

delete process.env[COMPILE_CACHE_VARIABLE];
if (setup.caPem !== undefined) setDefaultCACertificates([setup.caPem]);

try {
  const handler = await loadHandler();
  port.on('message', (message: InvokeMessage | ChunkTakenMessage) => {
    if (message.kind === 'invoke') void run(handler, message);
    else chunkTaken?.();
  });
  // The next environment then needs neither the compiler of TypeScript, which occupies 10 MB, nor to compile the
  // bundle.
  flushCompileCache();
  sendAndFreeze({ kind: 'ready' });
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

async function run(handler: Handler, { requestId, deadlineMs, traceHeader, event }: InvokeMessage): Promise<void> {
  process.env['_X_AMZN_TRACE_ID'] = traceHeader;
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
    if (handler[STREAMING] === true) {
      await runStreaming(handler as StreamingHandler, JSON.parse(event), context, requestId);
      sendAndFreeze({ kind: 'result', requestId, payload: 'null' });
      return;
    }
    const returned = await (handler as BufferedHandler)(JSON.parse(event), context);
    sendAndFreeze({ kind: 'result', requestId, payload: JSON.stringify(returned) ?? 'null' });
  } catch (error) {
    sendAndFreeze({ kind: 'failed', requestId, error: describe(error) });
  }
}

/** Over when the handler has returned and the stream has ended, whichever is later. */
async function runStreaming(
  handler: StreamingHandler,
  event: unknown,
  context: object,
  requestId: string,
): Promise<void> {
  const stream = new ResponseStream(requestId);
  const ended = finished(stream);
  await Promise.all([handler(event, stream, context), ended]);
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
