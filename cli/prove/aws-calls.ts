/** Requests of a run to AWS and to its cluster. */

import type { IncomingMessage } from 'node:http';
import {
  DeleteFunctionConcurrencyCommand,
  InvokeCommand,
  LambdaClient,
  LambdaServiceException,
  PutFunctionConcurrencyCommand,
} from '@aws-sdk/client-lambda';
import type { AwsCredentials } from '../../shared/aws/connection.ts';
import { endpointOf } from '../../shared/aws/connection.ts';
import { postClient, requestSigner, type SignedPost, signedPost } from '../../shared/aws/signed-post.ts';
import { defined } from '../../shared/defined.ts';
import { bytesOf } from '../../shared/host/http-body.ts';
import { exchange } from '../../shared/host/http-exchange.ts';
import type { CommandIo } from '../command.ts';
import { clientOptions } from '../doctor/aws.ts';
import type { AwsJson, Calls, HttpRequest, HttpStream } from './calls.ts';

export interface ProveAccount {
  readonly region: string;
  /** Asked before each call: a session may be renewed meanwhile. */
  readonly credentials: () => Promise<AwsCredentials>;
  readonly environment: CommandIo['environment'];
  /** Of a local replacement of AWS. Absent: the authorities of the system. */
  readonly ca?: string | undefined;
}

const TIMEOUT_MS = 30_000;
const BODY_BYTES_MAX = 12_000_000;
const EC2_VERSION = '2016-11-15';
const SOCKETS_MAX = 8;

const JSON_SERVICES = {
  dynamodb: { version: '1.0', prefix: 'DynamoDB_20120810', variable: 'DYNAMODB' },
  sqs: { version: '1.0', prefix: 'AmazonSQS', variable: 'SQS' },
  logs: { version: '1.1', prefix: 'Logs_20140328', variable: 'CLOUDWATCH_LOGS' },
} as const;

/** An action of a service with JSON protocol, without retries. */
export function jsonCalls({ region, credentials, environment }: ProveAccount) {
  const posts = new Map<string, SignedPost>();
  return async (service: keyof typeof JSON_SERVICES, action: string, input: AwsJson) => {
    const { version, prefix, variable } = JSON_SERVICES[service];
    const current = await credentials();
    const endpoint = environment[`AWS_ENDPOINT_URL_${variable}`] ?? environment['AWS_ENDPOINT_URL'];
    const name = `${service} ${action} ${current.accessKeyId}`;
    const post =
      posts.get(name) ??
      signedPost(
        { region, credentials: current, ...defined({ endpoint }) },
        { service, target: `${prefix}.${action}`, timeoutMs: TIMEOUT_MS, version },
      );
    posts.set(name, post);
    const { status, body } = await post(JSON.stringify(input), Date.now());
    return { status, body: (body === '' ? {} : JSON.parse(body)) as AwsJson };
  };
}

function ec2Calls({ region, credentials, environment }: ProveAccount): Calls['ec2'] {
  const endpoint = endpointOf(
    { region, endpoint: environment['AWS_ENDPOINT_URL_EC2'] ?? environment['AWS_ENDPOINT_URL'] },
    'ec2',
  );
  const client = postClient({ endpoint, socketsMax: SOCKETS_MAX, timeoutMs: TIMEOUT_MS, nowMs: Date.now });
  return async (action, parameters) => {
    const sign = requestSigner({
      region,
      credentials: await credentials(),
      host: endpoint.host,
      service: 'ec2',
      contentType: 'application/x-www-form-urlencoded; charset=utf-8',
    });
    const body = new URLSearchParams({ Action: action, Version: EC2_VERSION, ...parameters }).toString();
    const { status, body: text } = await client.post(sign({ body, nowMs: Date.now() }), body);
    return { status, text };
  };
}

/** @returns the error of Lambda, if it refused */
async function lambdaRefusal(
  account: ProveAccount,
  send: (client: LambdaClient) => Promise<unknown>,
): Promise<string | undefined> {
  const client = new LambdaClient(clientOptions({ ...account, credentials: await account.credentials() }, 'LAMBDA'));
  try {
    await send(client);
    return undefined;
  } catch (error) {
    if (error instanceof LambdaServiceException) return `${error.name}: ${error.message}`;
    throw error;
  } finally {
    client.destroy();
  }
}

const lambdaCalls = (account: ProveAccount): Pick<Calls, 'reserve' | 'invoke'> => ({
  reserve: (FunctionName, executions) =>
    lambdaRefusal(account, (client) =>
      executions === undefined
        ? client.send(new DeleteFunctionConcurrencyCommand({ FunctionName }))
        : client.send(new PutFunctionConcurrencyCommand({ FunctionName, ReservedConcurrentExecutions: executions })),
    ),
  invoke: (FunctionName) =>
    lambdaRefusal(account, (client) => client.send(new InvokeCommand({ FunctionName, InvocationType: 'Event' }))),
});

/** @param pause rejects when the run is interrupted */
export function awsCalls(
  account: ProveAccount,
  { endpoint, token, pause }: { readonly endpoint: string; readonly token: string; readonly pause: Calls['pause'] },
): Calls {
  const send = ({ method, url, isAnonymous, headers = {}, body }: HttpRequest): Promise<IncomingMessage> =>
    exchange(new URL(url, endpoint), {
      method,
      headers: { accept: 'application/json', 'user-agent': 'nodekeeper-prove', ...headers },
      quietMs: TIMEOUT_MS,
      body,
      ...defined({ token: isAnonymous ? undefined : token, ca: account.ca }),
      ...(method === 'PATCH' ? { contentType: 'application/merge-patch+json' } : {}),
    });
  return {
    endpoint,
    json: jsonCalls(account),
    ec2: ec2Calls(account),
    ...lambdaCalls(account),
    async http(request) {
      const startedMs = performance.now();
      const answer = await send(request);
      const bytes = await bytesOf(answer, BODY_BYTES_MAX);
      return {
        status: answer.statusCode ?? 0,
        headers: answer.headers,
        text: bytes?.toString('utf8') ?? '',
        durationMs: performance.now() - startedMs,
      };
    },
    async stream(request) {
      const answer = await send(request);
      const { location } = answer.headers;
      if (answer.statusCode !== 307 || location === undefined) return streamOf(answer);
      answer.resume();
      return streamOf(await send({ ...request, url: location }));
    },
    nowMs: Date.now,
    pause,
  };
}

function streamOf(answer: IncomingMessage): HttpStream {
  let text = '';
  const arrivals = new Map<string, (atMs: number) => void>();
  answer.setEncoding('utf8').on('data', (part: string) => {
    const { length } = text;
    text += part;
    for (const [wanted, found] of arrivals) {
      // What came before has been looked through.
      if (text.indexOf(wanted, Math.max(0, length - wanted.length)) >= 0) found(Date.now());
    }
  });
  // The waiting of `arrival` ends with its time.
  answer.on('error', () => {});
  return {
    status: answer.statusCode ?? 0,
    headers: answer.headers,
    arrival: (wanted, withinMs) =>
      new Promise((resolve, reject) => {
        if (text.includes(wanted)) return resolve(Date.now());
        const timer = setTimeout(() => reject(new Error(`no ${wanted} within ${withinMs / 1_000} s`)), withinMs);
        arrivals.set(wanted, (atMs) => {
          arrivals.delete(wanted);
          clearTimeout(timer);
          resolve(atMs);
        });
      }),
    abandon: () => void answer.destroy(),
  };
}
