import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { afterEach, describe, expect, it } from 'vitest';
import { listenOnLoopback } from '../../host/loopback.ts';
import { ec2Cloud } from './cloud.ts';
import { failureOf } from './errors.ts';
import { sdkEc2Api } from './sdk-api.ts';

const EMPTY = '<DescribeInstancesResponse><reservationSet/></DescribeInstancesResponse>';
const ERROR = (code: string) =>
  `<Response><Errors><Error><Code>${code}</Code><Message>m</Message></Error></Errors></Response>`;
const FILTERED = { filter: { name: 'instance-id', values: ['i-1', 'i-2'] } } as const;

describe('the calls to EC2', () => {
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
    const port = await listenOnLoopback(server);
    const api = sdkEc2Api({
      region: 'us-east-1',
      endpoint: `http://127.0.0.1:${port}`,
      credentials: { accessKeyId: 'AKIDEXAMPLE', secretAccessKey: 'secret', sessionToken: 'session' },
      requestTimeoutMs: 200,
    });
    opened.push(() => {
      api.close();
      server.closeAllConnections();
      server.close();
    });
    return { api, requests: () => requests };
  }

  it('are signed for EC2 in the region, with the session token', async () => {
    let headers: IncomingMessage['headers'] = {};
    const { api } = await against((response, request) => {
      headers = request.headers;
      response.end(EMPTY);
    });
    expect((await api.describeInstances({ ...FILTERED, nextToken: 'a+b' })).Reservations).toEqual([]);
    expect(headers.authorization).toMatch(
      /^AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE\/\d{8}\/us-east-1\/ec2\/aws4_request, .*x-amz-security-token/,
    );
  });

  it('request one instance by its id without MaxResults, which EC2 refuses with an id', async () => {
    let seen = '';
    const { api } = await against((response, _, body) => {
      seen = body;
      response.writeHead(400).end(ERROR('InvalidInstanceID.NotFound'));
    });
    await expect(api.describeInstances({ instanceId: 'i-1' })).rejects.toMatchObject({
      name: 'InvalidInstanceID.NotFound',
    });
    const parameters = new URLSearchParams(seen);
    expect(parameters.get('InstanceId.1')).toBe('i-1');
    expect(parameters.has('MaxResults')).toBe(false);
  });

  it.each<[string, (response: ServerResponse) => void, string, number]>([
    ['a refusal', (response) => response.writeHead(400).end(ERROR('InvalidParameterValue')), 'error', 1],
    ['a throttle', (response) => response.writeHead(503).end(ERROR('RequestLimitExceeded')), 'throttled', 2],
    ['a server error', (response) => response.writeHead(500).end(ERROR('InternalError')), 'error', 2],
    ['an error page of a proxy', (response) => response.writeHead(502).end('<html>bad gateway'), 'error', 2],
    ['a truncated response', (response) => response.end(EMPTY.slice(0, 40)), 'error', 1],
    ['a timeout', () => {}, 'timeout', 2],
  ])('fail after %s with its cause, and are repeated if that may help', async (_, answer, cause, times) => {
    const { api, requests } = await against(answer);
    const failure = await api.describeInstances(FILTERED).then(
      () => undefined,
      (error: unknown) => failureOf(error),
    );
    expect(failure?.cause).toBe(cause);
    expect(requests()).toBe(times);
  });

  it('return failed, not notFound, for a response of another kind', async () => {
    const { api } = await against((response) => response.end('<html></html>'));
    const cloud = ec2Cloud({ api, region: 'us-east-1', accountId: '123456789012', clusterId: 'one' });
    const instanceId = 'i-0123456789abcdef0';
    const answers = await cloud.describeInstances([{ instanceId, zone: 'us-east-1a', region: 'us-east-1' }]);
    expect(answers.get(instanceId)?.answer).toMatchObject({ kind: 'failed' });
  });

  it('send a detach once, whatever the response', async () => {
    const { api, requests } = await against((response) => response.writeHead(500).end(ERROR('InternalError')));
    const detach = api.detachVolume({ volumeId: 'vol-1', instanceId: 'i-1', force: true });
    await expect(detach).rejects.toMatchObject({ name: 'InternalError' });
    expect(requests()).toBe(1);
  });
});
