/**
 * A function under AWS's own runtime client for Node.js, aws-lambda-ric: a process that loads the bundle, and the
 * Runtime API that it reads events from. It loads handlers, streams, and reports errors as the managed runtime does.
 * Source: AWS Lambda Developer Guide, "Using the Lambda runtime API for custom runtimes".
 */

import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import type { LocalFunction } from '../../../aws-local/functions/local-function.ts';
import { listenOnLoopback } from '../../../shared/host/loopback.ts';
import { until } from '../until.ts';

const CLIENT = fileURLToPath(new URL('../../../node_modules/aws-lambda-ric/index.mjs', import.meta.url));
const REPLACED_NATIVE_PART = new URL('./replace-native-part.mjs', import.meta.url).href;
const INVOCATION = /^\/2018-06-01\/runtime\/invocation\/([^/]+)\/(response|error)$/;
/** Generous: only a fault reaches it, also on a busy machine. Milliseconds. */
const WITHIN_MS = 60_000;

/** .ci/run installs it. It is no dependency: npm would compile its native part. */
export const hasRuntimeClient = (): boolean => existsSync(CLIENT);

export type RuntimeAnswer =
  | { readonly kind: 'response'; readonly payload: unknown }
  /** `head` is the metadata before eight null bytes. `errorType` is a trailer: the handler failed during the stream. */
  | {
      readonly kind: 'streamed';
      readonly head: { readonly statusCode: number; readonly headers: Readonly<Record<string, string>> };
      readonly body: string;
      readonly errorType: string | undefined;
    }
  | { readonly kind: 'error'; readonly errorType: string; readonly errorMessage: string }
  | { readonly kind: 'exited'; readonly output: string };

interface Invocation {
  readonly id: string;
  /** Whether the answer is read. */
  readonly isRead: boolean;
  settle(answer: RuntimeAnswer): void;
}

/** Source: AWS Lambda Developer Guide, "Response streaming": metadata, eight null bytes, body. */
function streamedAnswer(bytes: Buffer, trailers: IncomingMessage['trailers']): RuntimeAnswer {
  const end = bytes.indexOf(Buffer.alloc(8));
  const head = JSON.parse(bytes.subarray(0, end).toString('utf8')) as never;
  const errorType = trailers['lambda-runtime-function-error-type'];
  return { kind: 'streamed', head, body: bytes.subarray(end + 8).toString('utf8'), errorType };
}

export class RuntimeClient {
  readonly #fn: Pick<LocalFunction, 'plan' | 'variables'>;
  readonly #server: Server;
  #process: ChildProcess | undefined;
  #output = '';
  /** The client waits for an event. */
  #next: ServerResponse | undefined;
  #running: Invocation | undefined;
  #initError: RuntimeAnswer | undefined;

  /** @param preload modules that the process loads first, as URLs */
  static async start(
    fn: Pick<LocalFunction, 'plan' | 'variables'>,
    preload: readonly string[] = [],
  ): Promise<RuntimeClient> {
    const client = new RuntimeClient(fn);
    await listenOnLoopback(client.#server);
    client.#spawn(preload);
    return client;
  }

  private constructor(fn: Pick<LocalFunction, 'plan' | 'variables'>) {
    this.#fn = fn;
    this.#server = createServer((request, response) => void this.#serve(request, response));
    // The client holds its connection while it waits for an event.
    this.#server.requestTimeout = 0;
  }

  /** Standard output and error. */
  get output(): string {
    return this.#output;
  }

  get hasExited(): boolean {
    return this.#process === undefined || this.#process.exitCode !== null || this.#process.signalCode !== null;
  }

  /** Until it is ready for an event. @throws Error when it exits instead */
  async waiting(): Promise<void> {
    await until(() => this.#next !== undefined || this.#initError !== undefined || this.hasExited, {
      withinMs: WITHIN_MS,
      what: 'a request for the next event',
    });
    if (this.#next === undefined) throw new Error(`${this.#fn.plan.name}: ${this.#output.slice(-4_000)}`);
  }

  async invoke(event: unknown): Promise<RuntimeAnswer> {
    await this.waiting();
    return new Promise((settle) => this.#deliver(event, { isRead: true, settle }));
  }

  /** An event with an answer that is never read. */
  async invokeWithoutReading(event: unknown): Promise<void> {
    await this.waiting();
    this.#deliver(event, { isRead: false, settle: () => {} });
  }

  async stop(): Promise<void> {
    this.#process?.kill('SIGKILL');
    this.#server.closeAllConnections();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }

  #spawn(preload: readonly string[]): void {
    const { port } = this.#server.address() as AddressInfo;
    const modules = [REPLACED_NATIVE_PART, ...preload].flatMap((url) => ['--import', url]);
    this.#process = spawn(process.execPath, [...modules, CLIENT], {
      env: {
        ...this.#fn.variables,
        AWS_LAMBDA_RUNTIME_API: `127.0.0.1:${port}`,
        AWS_LAMBDA_NODEJS_USE_ALTERNATIVE_CLIENT_1: 'true',
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    for (const stream of [this.#process.stdout, this.#process.stderr]) {
      stream?.setEncoding('utf8').on('data', (text: string) => {
        this.#output += text;
      });
    }
    this.#process.once('close', () => this.#running?.settle({ kind: 'exited', output: this.#output }));
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (request.url === '/2018-06-01/runtime/invocation/next') {
      this.#next = response;
      return;
    }
    const [, id, what] = INVOCATION.exec(request.url ?? '') ?? [];
    if (id !== undefined && this.#running?.isRead === false) return;
    const parts: Buffer[] = [];
    try {
      for await (const part of request as AsyncIterable<Buffer>) parts.push(part);
    } catch {
      // The process exited, which settles the invocation.
      return;
    }
    const bytes = Buffer.concat(parts);
    response.writeHead(202, { 'content-type': 'application/json' }).end('{"status":"OK"}');
    const invocation = this.#running;
    if (id === undefined) this.#initError = JSON.parse(bytes.toString('utf8')) as never;
    if (invocation === undefined || invocation.id !== id) return;
    this.#running = undefined;
    if (what === 'error')
      invocation.settle({ kind: 'error', ...(JSON.parse(bytes.toString('utf8')) as object) } as never);
    else if (request.headers['lambda-runtime-function-response-mode'] === 'streaming') {
      invocation.settle(streamedAnswer(bytes, request.trailers));
    } else invocation.settle({ kind: 'response', payload: JSON.parse(bytes.toString('utf8')) });
  }

  #deliver(event: unknown, invocation: Omit<Invocation, 'id'>): void {
    const { arn, timeoutSeconds } = this.#fn.plan;
    const id = randomUUID();
    this.#running = { id, ...invocation };
    this.#next?.writeHead(200, {
      'content-type': 'application/json',
      'lambda-runtime-aws-request-id': id,
      'lambda-runtime-deadline-ms': String(Date.now() + timeoutSeconds * 1_000),
      'lambda-runtime-invoked-function-arn': arn,
      'lambda-runtime-trace-id': 'Root=1-5bef4de7-ad49b0e87f6ef6c87fc2e700;Parent=9a9197af755a6419;Sampled=0',
    });
    this.#next?.end(JSON.stringify(event));
    this.#next = undefined;
  }
}
