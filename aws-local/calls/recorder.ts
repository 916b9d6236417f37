/**
 * Stands between the functions and the services of local mode and notes what each function asks for: the credentials
 * of a request say who asks. Only there when somebody wants the record; without it functions talk to the services.
 */

import { writeFileSync } from 'node:fs';
import { Agent, createServer, request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http';
import { bytesOf } from '../../shared/host/http-body.ts';
import { listenOnLoopback } from '../../shared/host/loopback.ts';
import { invokedFunction } from '../functions/invoke-server.ts';
import {
  type AwsCall,
  type AwsPlace,
  dynamoDbCalls,
  ec2Calls,
  eventsCalls,
  lambdaCalls,
  logsCalls,
  otherCalls,
  sqsCalls,
  type TagsOf,
} from './aws-call.ts';

export interface RecordedCall extends AwsCall {
  /** The function that called: its role authorizes the call. */
  readonly functionName: string;
  /** The function itself, or Lambda on its behalf: event sources, and the function's own log. */
  readonly by: 'function' | 'lambda';
}

export interface CountedCall extends RecordedCall {
  readonly count: number;
}

/** What a record was made of, its first line in the file. */
export interface RecordHead extends AwsPlace {
  /** Folder of the synthesised template that ran. */
  readonly assembly: string;
  /** False when more was asked than is kept. */
  readonly complete: boolean;
}

export interface CallRecorder {
  /** Where functions reach every service. */
  readonly endpoint: string;
  /** The access key id of a function: how its requests are known. */
  accessKeyId(functionName: string): string;
  /** A call that Lambda makes for a function. */
  note(functionName: string, call: AwsCall): void;
  readonly calls: readonly CountedCall[];
  /** Writes the record and closes. */
  stop(): Promise<void>;
}

export interface RecorderOptions extends AwsPlace {
  readonly assembly: string;
  /** JSON lines: the head, then a line a distinct call. */
  readonly file: string;
  /** Where requests are passed on to, by the service their signature is for. Others are noted and cut off. */
  readonly services: Readonly<Record<string, string>>;
  readonly tagsOf: TagsOf;
}

const KEY_PREFIX = 'local-';
/** The one key id that engines are known with: some keep tables apart by it. */
const PASSED_ON_KEY = 'local';
const CREDENTIAL = /Credential=([^/,\s]+)\/\d{8}\/[^/]+\/([^/]+)\/aws4_request/;
/** Distinct calls kept: with more the record says that it is not complete. */
const DISTINCT_CALLS_MAX = 100_000;
const BODY_BYTES_MAX = 20_000_000;

export async function startCallRecorder(options: RecorderOptions): Promise<CallRecorder> {
  const record = new CallRecord();
  const forwarder = new Forwarder(options, record);
  const server = createServer((incoming, outgoing) => {
    forwarder.serve(incoming, outgoing).catch(() => {
      // What cannot be read must not look like a call that was not made.
      record.complete = false;
      outgoing.destroy();
    });
  });
  // Longer than any client keeps a connection: none is closed under a request.
  server.keepAliveTimeout = 60_000;
  const port = await listenOnLoopback(server);
  return {
    endpoint: `http://127.0.0.1:${port}`,
    accessKeyId: (functionName) => `${KEY_PREFIX}${functionName}`,
    note: (functionName, call) => record.add({ functionName, by: 'lambda', ...call }),
    get calls() {
      return record.calls();
    },
    async stop() {
      forwarder.close();
      server.closeAllConnections();
      await new Promise<void>((resolve) => server.close(() => resolve()));
      const { region, accountId, assembly } = options;
      const head: RecordHead = { region, accountId, assembly, complete: record.complete };
      writeFileSync(options.file, [head, ...record.calls()].map((line) => `${JSON.stringify(line)}\n`).join(''), {
        mode: 0o600,
      });
    },
  };
}

/** Distinct calls and how often each was made. */
class CallRecord {
  complete = true;
  readonly #counted = new Map<string, { call: RecordedCall; count: number }>();

  add(call: RecordedCall): void {
    const key = JSON.stringify([call.functionName, call.by, call.action, call.resource, call.context]);
    const known = this.#counted.get(key);
    if (known !== undefined) known.count += 1;
    else if (this.#counted.size < DISTINCT_CALLS_MAX) this.#counted.set(key, { call, count: 1 });
    else this.complete = false;
  }

  calls(): CountedCall[] {
    return [...this.#counted.values()].map(({ call, count }) => ({ ...call, count }));
  }
}

/** Records each request and sends it on to its service. */
class Forwarder {
  readonly #options: RecorderOptions;
  readonly #record: CallRecord;
  readonly #agent = new Agent({ keepAlive: true });

  constructor(options: RecorderOptions, record: CallRecord) {
    this.#options = options;
    this.#record = record;
  }

  close(): void {
    this.#agent.destroy();
  }

  async serve(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const body = await readBody(incoming);
    // The client left before it had sent its request.
    if (body === undefined) return;
    const authorization = incoming.headers.authorization ?? '';
    const [, keyId = '', service = 'unsigned'] = CREDENTIAL.exec(authorization) ?? [];
    const target = incoming.headers['x-amz-target'];
    const functionName = keyId.startsWith(KEY_PREFIX) ? keyId.slice(KEY_PREFIX.length) : keyId;
    const operation = (typeof target === 'string' ? target : '').split('.').at(-1) ?? '';
    for (const call of callsOf(this.#options, {
      ...{ service, operation, url: incoming.url ?? '' },
      body: body.toString('utf8'),
    })) {
      this.#record.add({ functionName, by: 'function', ...call });
    }
    const upstream = this.#options.services[service];
    if (upstream === undefined) {
      outgoing.destroy();
      return;
    }
    const passedOn = authorization.replace(`Credential=${keyId}/`, `Credential=${PASSED_ON_KEY}/`);
    this.#forward(new URL(upstream), passedOn, { incoming, body, outgoing });
  }

  #forward(
    { hostname, port, host }: URL,
    authorization: string,
    {
      incoming,
      body,
      outgoing,
    }: { readonly incoming: IncomingMessage; readonly body: Buffer; readonly outgoing: ServerResponse },
  ): void {
    const { method, url: path } = incoming;
    const headers = { ...incoming.headers, host, authorization };
    const onward = httpRequest({ agent: this.#agent, hostname, port, method, path, headers }, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.on('error', () => outgoing.destroy());
      answer.pipe(outgoing);
    });
    onward.on('error', () => outgoing.destroy());
    outgoing.on('close', () => {
      if (!outgoing.writableFinished) onward.destroy();
    });
    onward.end(body);
  }
}

function callsOf(
  options: RecorderOptions,
  {
    service,
    operation,
    url,
    body,
  }: { readonly service: string; readonly operation: string; readonly url: string; readonly body: string },
): AwsCall[] {
  switch (service) {
    case 'dynamodb':
      return dynamoDbCalls(operation, JSON.parse(body), options);
    case 'ec2':
      return ec2Calls(new URLSearchParams(body), options, options.tagsOf);
    case 'logs':
      return logsCalls(operation, JSON.parse(body), options);
    case 'events':
      return eventsCalls(operation, JSON.parse(body), options);
    case 'sqs':
      return sqsCalls(operation, JSON.parse(body), options);
    case 'lambda':
      return lambdaCalls(invokedFunction(url), options);
    default:
      return otherCalls(service, operation);
  }
}

/** undefined: the client left. */
async function readBody(incoming: IncomingMessage): Promise<Buffer | undefined> {
  let body: Buffer | undefined;
  try {
    body = await bytesOf(incoming, BODY_BYTES_MAX);
  } catch {
    return undefined;
  }
  if (body === undefined) throw new Error('the request is too long to be recorded');
  return body;
}
