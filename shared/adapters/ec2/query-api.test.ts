import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { codeOf } from './errors.ts';
import { ec2ConnectionFrom, queryEc2Api } from './query-api.ts';

const EMPTY = '<DescribeInstancesResponse><reservationSet/></DescribeInstancesResponse>';
const ERROR = (code: string) =>
  `<Response><Errors><Error><Code>${code}</Code><Message>m</Message></Error></Errors></Response>`;
const QUESTION = { filter: { name: 'instance-id', values: ['i-1', 'i-2'] } } as const;

describe("EC2's query protocol", () => {
  const opened: (() => void)[] = [];
  afterEach(() => {
    for (const close of opened.splice(0)) close();
  });

  async function against(answer: (response: ServerResponse, request: IncomingMessage, body: string) => void) {
    let requests = 0;
    const server: Server = createServer((request, response) => {
      let body = '';
      request.on('data', (part) => {
        body += part;
      });
      request.on('end', () => {
        requests += 1;
        answer(response, request, body);
      });
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    const api = queryEc2Api(
      {
        region: 'us-east-1',
        endpoint: `http://127.0.0.1:${port}`,
        credentials: { accessKeyId: 'AKIDEXAMPLE', secretAccessKey: 'secret', sessionToken: 'session' },
        requestTimeoutMs: 200,
      },
      { nowMs: () => Date.UTC(2026, 10, 20) },
    );
    opened.push(() => {
      api.close();
      server.closeAllConnections();
      server.close();
    });
    return { api, requests: () => requests };
  }
  const codeFrom = (attempt: Promise<unknown>) =>
    attempt.then(
      () => undefined,
      (error: unknown) => codeOf(error),
    );

  it('asks in the form EC2 reads, signed for the region and the day', async () => {
    let seen = '';
    let headers: IncomingMessage['headers'] = {};
    const { api } = await against((response, request, body) => {
      [seen, headers] = [body, request.headers];
      response.end(EMPTY);
    });
    expect(await api.describeInstances({ ...QUESTION, nextToken: 'a+b' })).toEqual({ Reservations: [] });
    expect(Object.fromEntries(new URLSearchParams(seen))).toEqual({
      Action: 'DescribeInstances',
      Version: '2016-11-15',
      'Filter.1.Name': 'instance-id',
      'Filter.1.Value.1': 'i-1',
      'Filter.1.Value.2': 'i-2',
      MaxResults: '1000',
      NextToken: 'a+b',
    });
    expect(headers.authorization).toMatch(
      /^AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE\/20261120\/us-east-1\/ec2\/aws4_request, SignedHeaders=.*x-amz-security-token.*, Signature=[0-9a-f]{64}$/,
    );
    expect(headers['x-amz-date']).toBe('20261120T000000Z');
  });

  it('asks about one instance by its id, without what EC2 refuses beside an id', async () => {
    let seen = '';
    const { api } = await against((response, _, body) => {
      seen = body;
      response.writeHead(400).end(ERROR('InvalidInstanceID.NotFound'));
    });
    expect(await codeFrom(api.describeInstances({ instanceId: 'i-1' }))).toBe('InvalidInstanceID.NotFound');
    expect(Object.fromEntries(new URLSearchParams(seen))).toEqual({
      Action: 'DescribeInstances',
      Version: '2016-11-15',
      'InstanceId.1': 'i-1',
    });
  });

  it.each<[string, (response: ServerResponse) => void, string, number]>([
    ['an error', (response) => response.writeHead(400).end(ERROR('InvalidParameterValue')), 'InvalidParameterValue', 1],
    ['a throttle', (response) => response.writeHead(503).end(ERROR('RequestLimitExceeded')), 'RequestLimitExceeded', 1],
    ["a server's error", (response) => response.writeHead(500).end(ERROR('InternalError')), 'InternalError', 2],
    ["a proxy's page", (response) => response.writeHead(502).end('<html>bad gateway'), 'ServiceUnavailable', 2],
    ['half an answer', (response) => response.end(EMPTY.slice(0, 40)), 'MalformedAnswer', 2],
    ['an answer to something else', (response) => response.end('<html></html>'), 'MalformedAnswer', 2],
    [
      'a broken connection',
      (response) => {
        response.writeHead(200, { 'content-length': '1000' });
        response.write(EMPTY);
        setImmediate(() => response.destroy());
      },
      'MalformedAnswer',
      2,
    ],
    ['silence', () => {}, 'TimeoutError', 2],
  ])('names %s, and asks again where that may help', async (_, answer, code, times) => {
    const { api, requests } = await against(answer);
    expect(await codeFrom(api.describeInstances(QUESTION))).toBe(code);
    expect(requests()).toBe(times);
  });

  it('sends a detach once, whatever comes of it', async () => {
    const { api, requests } = await against((response) => response.writeHead(500).end(ERROR('InternalError')));
    const detach = api.detachVolume({ volumeId: 'vol-1', instanceId: 'i-1', force: true });
    expect(await codeFrom(detach)).toBe('InternalError');
    expect(requests()).toBe(1);
  });

  it('takes its connection from the environment, and names what is missing', () => {
    const environment = { AWS_REGION: 'eu-west-1', AWS_ACCESS_KEY_ID: 'a', AWS_SECRET_ACCESS_KEY: 'b' };
    expect(ec2ConnectionFrom({ ...environment, AWS_SESSION_TOKEN: 'c', AWS_ENDPOINT_URL_EC2: 'http://e' })).toEqual({
      region: 'eu-west-1',
      endpoint: 'http://e',
      credentials: { accessKeyId: 'a', secretAccessKey: 'b', sessionToken: 'c' },
    });
    expect(() => ec2ConnectionFrom({ AWS_REGION: 'x' })).toThrow(/AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY$/);
  });
});
