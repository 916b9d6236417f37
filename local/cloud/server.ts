/**
 * An EC2 on loopback: the query protocol of the real one, for the real SDK, over a CloudWorld that is kept in a file.
 * It can misbehave on demand: throttle by a token bucket, answer an error to everything, say nothing, cut answers short,
 * and answer with what was true some time ago.
 *
 * Signatures are not verified, only that there is one for this service and region.
 */
import { randomUUID } from 'node:crypto';
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import {
  CloudWorld,
  type CloudWorldOptions,
  type CloudWorldState,
  type InstanceStateChange,
} from '../../shared/adapters/memory/cloud-world.ts';
import { StartError } from '../start-error.ts';
import { ACTIONS, Parameters } from './actions.ts';
import { Ec2ApiError } from './ec2-error.ts';
import { xmlElement } from './xml.ts';

export interface LocalCloudOptions extends CloudWorldOptions {
  readonly region: string;
  /** 0, the default, is any free port. */
  readonly port?: number;
  /** Where the world is kept. Undefined: nowhere. */
  readonly file?: string | undefined;
  readonly answerDelayMs?: number;
  /** Of each action; absent: no limit. */
  readonly bucket?: TokenBucket;
  /** Results on one page at most, for tests of paging. */
  readonly pageSizeMax?: number;
}

export interface TokenBucket {
  readonly burst: number;
  readonly refillPerSecond: number;
}

export interface LocalCloud {
  /** `http://127.0.0.1:port`. */
  readonly endpoint: string;
  readonly world: CloudWorld;
  /** Requests so far, by action; refused ones count. */
  readonly requests: ReadonlyMap<string, number>;
  /** Calls the listener for every change of state, at its time. */
  subscribe(listener: (change: InstanceStateChange) => void): void;
  /** After every change of the world: stores it and reports state changes. */
  changed(): void;
  /**
   * Every answer is this error from now on, or the next `calls` of them, once `after` more are well; null ends it. Besides
   * EC2's codes: `timeout` (no answer at all) and `cut` (half an answer).
   */
  fail(trouble: string | null, options?: { readonly calls?: number; readonly after?: number }): void;
  readonly trouble: string | null;
  setAnswerDelay(answerDelayMs: number): void;
  setBucket(bucket: TokenBucket | undefined): void;
  stop(): Promise<void>;
}

const NAMESPACE = 'http://ec2.amazonaws.com/doc/2016-11-15/';
const BODY_BYTES_MAX = 1_000_000;
/** Errors of the server's own, of throttling and of credentials; every other one is 400. */
const STATUS: Readonly<Record<string, number>> = {
  RequestLimitExceeded: 503,
  InternalError: 500,
  InternalFailure: 500,
  Unavailable: 503,
  ServiceUnavailable: 503,
  UnauthorizedOperation: 403,
  AuthFailure: 401,
};

/** @throws StartError when the file of the world cannot be read */
export async function startLocalCloud(options: LocalCloudOptions): Promise<LocalCloud> {
  const { accountId, clock, file, region, pageSizeMax = Number.POSITIVE_INFINITY } = options;
  const world = new CloudWorld(options);
  if (file !== undefined && existsSync(file)) world.restore(readWorld(file));
  const requests = new Map<string, number>();
  const listeners: ((change: InstanceStateChange) => void)[] = [];
  const levels = new Map<string, { tokens: number; atMs: number }>();
  let answerDelayMs = options.answerDelayMs ?? 0;
  let bucket = options.bucket;
  let trouble: string | null = null;
  let troubledCalls = Number.POSITIVE_INFINITY;
  let sparedCalls = 0;
  let timer: NodeJS.Timeout | undefined;

  function changed(): void {
    if (file !== undefined) {
      writeFileSync(`${file}.new`, JSON.stringify(world.state()), { mode: 0o600 });
      renameSync(`${file}.new`, file);
    }
    tell();
  }

  function tell(): void {
    for (const change of world.takeStateChanges()) for (const listener of listeners) listener(change);
    clearTimeout(timer);
    const nextMs = world.nextChangeAtMs();
    if (nextMs === undefined) return;
    timer = setTimeout(tell, Math.max(1, nextMs - clock.nowMs()));
    timer.unref();
  }

  function takeToken(action: string): boolean {
    if (bucket === undefined) return true;
    const nowMs = clock.nowMs();
    const level = levels.get(action) ?? { tokens: bucket.burst, atMs: nowMs };
    const refilled = level.tokens + (Math.max(0, nowMs - level.atMs) / 1_000) * bucket.refillPerSecond;
    const tokens = Math.min(bucket.burst, refilled);
    levels.set(action, { tokens: tokens >= 1 ? tokens - 1 : tokens, atMs: nowMs });
    return tokens >= 1;
  }

  function answer(action: string, parameters: Parameters): string {
    if (!takeToken(action)) throw new Ec2ApiError('RequestLimitExceeded', 'Request limit exceeded.');
    const act = ACTIONS[action];
    if (act === undefined) {
      throw new Ec2ApiError('InvalidAction', `The action ${action} is not valid for this web service.`);
    }
    const momentMs = clock.nowMs() - answerDelayMs;
    const content = act(parameters, { world, accountId, region, momentMs, pageSizeMax });
    if (!action.startsWith('Describe')) changed();
    return xmlElement(`${action}Response`, { requestId: randomUUID(), ...content }, NAMESPACE);
  }

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await readBody(request);
    const parameters = new Parameters(body);
    const action = parameters.text('Action') ?? '';
    requests.set(action, (requests.get(action) ?? 0) + 1);
    const spared = sparedCalls > 0;
    if (spared) sparedCalls -= 1;
    const befallen = !spared && trouble !== null && troubledCalls > 0 ? trouble : null;
    if (befallen !== null) troubledCalls -= 1;
    if (befallen === 'timeout') return;
    try {
      if (!isSigned(request, region)) {
        throw new Ec2ApiError('AuthFailure', 'AWS was not able to validate the provided access credentials');
      }
      if (befallen !== null && befallen !== 'cut') throw new Ec2ApiError(befallen, `${befallen}, as ordered`);
      const text = answer(action, parameters);
      response.setHeader('content-type', 'text/xml;charset=UTF-8');
      // A whole answer of half a document: what a broken proxy makes of it.
      response.end(befallen === 'cut' ? text.slice(0, text.length / 2) : text);
    } catch (error) {
      if (!(error instanceof Ec2ApiError)) throw error;
      const content = { Errors: { Error: { Code: error.code, Message: error.message } }, RequestID: randomUUID() };
      response.writeHead(STATUS[error.code] ?? 400, { 'content-type': 'text/xml;charset=UTF-8' });
      response.end(xmlElement('Response', content));
    }
  }

  const server = createServer((request, response) => {
    serve(request, response).catch((error: unknown) => {
      response.destroy(error instanceof Error ? error : new Error(String(error)));
    });
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', (cause) => reject(new StartError(`the local EC2 cannot listen: ${cause.message}`, { cause })));
    server.listen(options.port ?? 0, '127.0.0.1', resolve);
  });
  if (world.nextChangeAtMs() !== undefined) tell();

  return {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    world,
    requests,
    subscribe: (listener) => void listeners.push(listener),
    changed,
    fail(next, { calls = Number.POSITIVE_INFINITY, after = 0 } = {}) {
      trouble = next;
      troubledCalls = calls;
      sparedCalls = after;
    },
    get trouble() {
      return troubledCalls > 0 ? trouble : null;
    },
    setAnswerDelay(delayMs) {
      answerDelayMs = delayMs;
    },
    setBucket(next) {
      bucket = next;
      levels.clear();
    },
    async stop() {
      clearTimeout(timer);
      await new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      });
    },
  };
}

function readWorld(file: string): CloudWorldState {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as CloudWorldState;
  } catch (cause) {
    throw new StartError(`${file} is not readable: delete it to begin with an empty EC2`, { cause });
  }
}

async function readBody(request: IncomingMessage): Promise<string> {
  const parts: Buffer[] = [];
  let bytes = 0;
  for await (const part of request as AsyncIterable<Buffer>) {
    bytes += part.length;
    if (bytes > BODY_BYTES_MAX) throw new Error('the request is too long');
    parts.push(part);
  }
  return Buffer.concat(parts).toString('utf8');
}

const isSigned = (request: IncomingMessage, region: string): boolean =>
  (request.headers.authorization ?? '').includes(`/${region}/ec2/aws4_request`);
