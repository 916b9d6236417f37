/**
 * An EC2 on loopback: the query protocol of the real one, for the real SDK, over a CloudWorld that is kept in a file.
 * It can misbehave on demand: throttle by a token bucket, answer an error to everything, say nothing, cut answers
 * short, and answer with what was true some time ago.
 *
 * Signatures are not verified, only that there is one for this service and region.
 */

import { randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { CloudWorld, CloudWorldOptions, InstanceStateChange } from '../../demo/ec2/cloud-world.ts';
import { KeptWorld } from '../../demo/ec2/kept-world.ts';
import { bytesOf } from '../../shared/host/http-body.ts';
import { listenOnLoopback } from '../../shared/host/loopback.ts';
import { StartError } from '../../shared/host/start-error.ts';
import { ACTIONS, Parameters } from './actions.ts';
import { Ec2ApiError } from './ec2-error.ts';
import { OrderedFailures, RequestBuckets, type TokenBucket } from './misbehaviour.ts';
import { xmlElement } from './xml.ts';

export interface LocalCloudOptions extends CloudWorldOptions {
  readonly region: string;
  /** 0, the default, is any free port. */
  readonly port?: number;
  /** Where the world is kept. Undefined: nowhere. */
  readonly file?: string | undefined;
  /** Receives faults of that file. */
  onTrouble?(message: string): void;
  readonly answerDelayMs?: number;
  /** The bucket of each action; absent: no limit. */
  readonly bucket?: TokenBucket;
  /** Results on one page at most, for tests of paging. */
  readonly pageSizeMax?: number;
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
   * Every answer is this error from now on, or the next `calls` of them, once `after` more are well; null ends it.
   * Besides EC2's codes: `timeout` (no answer at all) and `cut` (half an answer).
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
  const kept = new KeptWorld(options);
  const ec2 = new QueryProtocol(options, kept);
  const server = createServer((request, response) => {
    ec2.serve(request, response).catch((error: unknown) => {
      response.destroy(error instanceof Error ? error : new Error(String(error)));
    });
  });
  const port = await listenOnLoopback(server, options.port).catch((cause: Error) => {
    throw new StartError(`the local EC2 cannot listen: ${cause.message}`, { cause });
  });
  if (kept.world.nextChangeAtMs() !== undefined) kept.report();
  return {
    endpoint: `http://127.0.0.1:${port}`,
    world: kept.world,
    requests: ec2.requests,
    subscribe: (listener) => kept.subscribe(listener),
    changed: () => kept.changed(),
    fail: (trouble, { calls, after } = {}) => ec2.failures.order(trouble, calls, after),
    get trouble() {
      return ec2.failures.trouble;
    },
    setAnswerDelay(delayMs) {
      ec2.answerDelayMs = delayMs;
    },
    setBucket: (bucket) => ec2.buckets.set(bucket),
    async stop() {
      kept.stop();
      await new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      });
    },
  };
}

/** Requests and answers of EC2's query protocol. */
class QueryProtocol {
  readonly requests = new Map<string, number>();
  readonly failures = new OrderedFailures();
  readonly buckets: RequestBuckets;
  answerDelayMs: number;
  readonly #options: LocalCloudOptions;
  readonly #kept: KeptWorld;

  constructor(options: LocalCloudOptions, kept: KeptWorld) {
    this.#options = options;
    this.#kept = kept;
    this.buckets = new RequestBuckets(options.bucket);
    this.answerDelayMs = options.answerDelayMs ?? 0;
  }

  async serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const parameters = new Parameters(await readBody(request));
    const action = parameters.text('Action') ?? '';
    this.requests.set(action, (this.requests.get(action) ?? 0) + 1);
    const failure = this.failures.ofNextCall();
    if (failure === 'timeout') return;
    try {
      if (!isSigned(request, this.#options.region)) {
        throw new Ec2ApiError('AuthFailure', 'AWS was not able to validate the provided access credentials');
      }
      if (failure !== null && failure !== 'cut') throw new Ec2ApiError(failure, `${failure}, as ordered`);
      const text = this.#answer(action, parameters);
      response.setHeader('content-type', 'text/xml;charset=UTF-8');
      // A complete response with half a document, as a broken proxy sends it.
      response.end(failure === 'cut' ? text.slice(0, text.length / 2) : text);
    } catch (error) {
      if (!(error instanceof Ec2ApiError)) throw error;
      const content = { Errors: { Error: { Code: error.code, Message: error.message } }, RequestID: randomUUID() };
      response.writeHead(STATUS[error.code] ?? 400, { 'content-type': 'text/xml;charset=UTF-8' });
      response.end(xmlElement('Response', content));
    }
  }

  #answer(action: string, parameters: Parameters): string {
    const { accountId, clock, region, pageSizeMax = Number.POSITIVE_INFINITY } = this.#options;
    if (!this.buckets.acquire(action, clock.nowMs())) {
      throw new Ec2ApiError('RequestLimitExceeded', 'Request limit exceeded.');
    }
    const act = ACTIONS[action];
    if (act === undefined) {
      throw new Ec2ApiError('InvalidAction', `The action ${action} is not valid for this web service.`);
    }
    const momentMs = clock.nowMs() - this.answerDelayMs;
    const content = act(parameters, { world: this.#kept.world, accountId, region, momentMs, pageSizeMax });
    if (!action.startsWith('Describe')) this.#kept.changed();
    return xmlElement(`${action}Response`, { requestId: randomUUID(), ...content }, NAMESPACE);
  }
}

async function readBody(request: IncomingMessage): Promise<string> {
  const body = await bytesOf(request, BODY_BYTES_MAX);
  if (body === undefined) throw new Error('the request is too long');
  return body.toString('utf8');
}

const isSigned = (request: IncomingMessage, region: string): boolean =>
  (request.headers.authorization ?? '').includes(`/${region}/ec2/aws4_request`);
