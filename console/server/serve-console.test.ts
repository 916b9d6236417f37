/** Attacks on the server of the console, and what it forwards, against a stand-in for the API. */
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import { type AddressInfo, connect, type Server } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ConsoleError } from './console-access.ts';
import { type Console, serveConsole } from './serve-console.ts';

type Answer = (request: IncomingMessage, response: ServerResponse, body: string) => void;

interface Received {
  readonly line: string;
  readonly authorization: string | undefined;
  readonly body: string;
}

let received: Received[];
let answer: Answer;
let api: Server;
let running: Console;
let credential: string;
let renewals: number;
let adviceReads: number;
/** `http://127.0.0.1:PORT` of the console. */
let base: string;
let token: string;

beforeEach(async () => {
  received = [];
  renewals = 0;
  adviceReads = 0;
  credential = 'secret-of-the-kubeconfig';
  answer = (_request, response) => json(response, 200, { items: [] });
  api = createServer((incoming, response) => {
    let body = '';
    incoming.on('data', (chunk) => {
      body += chunk;
    });
    incoming.on('end', () => {
      received.push({
        line: `${incoming.method} ${incoming.url}`,
        authorization: incoming.headers.authorization,
        body,
      });
      answer(incoming, response, body);
    });
  }).listen(0, '127.0.0.1');
  await new Promise((resolve) => api.once('listening', resolve));
  running = await serveConsole({
    access: { url: urlOf(api), token: credential },
    renewAccess: () => {
      renewals += 1;
      return { url: urlOf(api), token: credential };
    },
    port: 0,
    cluster: 'test',
    explain: async (args) => [`explained ${args.join(' ')}`],
    advise: async ({ token: current }) => {
      adviceReads += 1;
      if (current !== credential) throw new ConsoleError(502, 'the API refused');
      return { limitPer1000NodeDays: 1, profiles: [] };
    },
  });
  const address = new URL(running.address);
  base = address.origin;
  token = address.hash.slice('#token='.length);
});
afterEach(async () => {
  await running.stop();
  (api as ReturnType<typeof createServer>).closeAllConnections();
  api.close();
});

const urlOf = (server: Server): string => `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
const json = (response: ServerResponse, status: number, body: unknown): void => {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
};

interface Answered {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  readonly text: string;
}

/** A request as any program could send it: with headers that a browser would not allow a page to set. */
function send(
  path: string,
  options: {
    readonly method?: string;
    readonly headers?: Readonly<Record<string, string>>;
    readonly body?: string;
  } = {},
): Promise<Answered> {
  const { port } = new URL(base);
  return new Promise((resolve, reject) => {
    const outgoing = request({
      host: '127.0.0.1',
      port,
      path,
      method: options.method ?? 'GET',
      headers: options.headers,
    });
    outgoing.on('error', reject);
    outgoing.on('response', (incoming) => {
      const chunks: Buffer[] = [];
      incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
      incoming.on('error', reject);
      incoming.on('end', () =>
        resolve({
          status: incoming.statusCode ?? 0,
          headers: incoming.headers,
          text: Buffer.concat(chunks).toString('utf8'),
        }),
      );
    });
    outgoing.end(options.body);
  });
}

const JSON_TYPE = { 'content-type': 'application/json' };
const own = (): Record<string, string> => ({ origin: base, ...JSON_TYPE });

async function signIn(): Promise<Record<string, string>> {
  const { status, headers } = await send('/session', {
    method: 'POST',
    headers: own(),
    body: JSON.stringify({ token }),
  });
  expect(status).toBe(204);
  const [cookie = ''] = headers['set-cookie'] as readonly string[];
  expect(cookie).toMatch(/; Path=\/; HttpOnly; SameSite=Strict$/);
  return { cookie: cookie.slice(0, cookie.indexOf(';')) };
}

describe('who is refused', () => {
  it('a foreign Host, whatever else the request has', async () => {
    const cookie = await signIn();
    for (const host of ['evil.example', `evil.example:${new URL(base).port}`, '127.0.0.1', '[::1]:80']) {
      const answered = await send('/forward/api/v1/nodes', { headers: { ...cookie, host } });
      expect([host, answered.status]).toEqual([host, 403]);
      expect((await send('/', { headers: { host } })).status).toBe(403);
    }
    expect(received).toEqual([]);
  });

  it('a second Host header, in either order', async () => {
    const { host, port } = new URL(base);
    for (const hosts of [
      [host, 'evil.example'],
      ['evil.example', host],
      [host, host],
    ]) {
      const head = ['GET / HTTP/1.1', ...hosts.map((each) => `Host: ${each}`), 'Connection: close', '', ''].join(
        '\r\n',
      );
      const socket = connect(Number(port), '127.0.0.1', () => socket.write(head));
      expect(await text(socket), hosts.join()).toMatch(/^HTTP\/1\.1 400 /);
    }
  });

  it('a request without the cookie, or with another one', async () => {
    const cookie = await signIn();
    const forged = `${cookie['cookie']!.slice(0, -1)}${cookie['cookie']!.endsWith('A') ? 'B' : 'A'}`;
    for (const headers of [{}, { cookie: forged }, { cookie: `${forged.split('=')[0]}=` }]) {
      for (const path of ['/forward/api/v1/nodes', '/cluster', '/explain/node/n1']) {
        expect((await send(path, { headers })).status).toBe(401);
      }
    }
    expect(received).toEqual([]);
  });

  it('a wrong token', async () => {
    for (const wrong of ['', token.slice(1), `${token}x`, null, { token }]) {
      const body = JSON.stringify({ token: wrong });
      const answered = await send('/session', { method: 'POST', headers: own(), body });
      expect([answered.status, answered.headers['set-cookie']]).toEqual([401, undefined]);
    }
  });

  it('the cookie from a page of another port of this machine, which is the same site', async () => {
    const cookie = await signIn();
    for (const site of ['same-site', 'cross-site', 'none']) {
      const answered = await send('/forward/api/v1/nodes', { headers: { ...cookie, 'sec-fetch-site': site } });
      expect([site, answered.status]).toEqual([site, 403]);
    }
    const answered = await send('/forward/api/v1/nodes', { headers: { ...cookie, origin: 'http://127.0.0.1:1' } });
    expect(answered.status).toBe(403);
    expect(received).toEqual([]);
  });

  it('a write without our Origin, or with a form content type', async () => {
    const cookie = await signIn();
    const body = JSON.stringify({ action: 'cordon', node: 'n1' });
    for (const headers of [
      JSON_TYPE,
      { ...JSON_TYPE, origin: 'https://evil.example' },
      { ...JSON_TYPE, origin: 'null' },
      { ...own(), 'content-type': 'text/plain' },
      { ...own(), 'content-type': 'application/x-www-form-urlencoded' },
      { ...own(), 'sec-fetch-site': 'cross-site' },
    ]) {
      expect((await send('/actions', { method: 'POST', headers: { ...cookie, ...headers }, body })).status).toBe(403);
    }
    expect(received).toEqual([]);
  });

  it('methods other than GET and POST', async () => {
    const headers = { ...(await signIn()), ...own() };
    for (const method of ['PUT', 'PATCH', 'DELETE', 'OPTIONS', 'HEAD']) {
      expect((await send('/forward/api/v1/nodes/n1', { method, headers })).status).toBe(403);
    }
    expect((await send('/forward/api/v1/nodes/n1', { method: 'POST', headers, body: '{}' })).status).toBe(404);
    expect(received).toEqual([]);
  });
});

describe('what is forwarded', () => {
  it.each([
    '/api/v1/nodes',
    '/api/v1/nodes?limit=500&continue=abc',
    '/api/v1/nodes/edge-a-0',
    '/api/v1/pods?fieldSelector=spec.nodeName%3Dn1',
    '/api/v1/namespaces/default/pods/web-0',
    '/api/v1/events',
    '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n1',
    '/apis/apps/v1/deployments',
    '/apis/batch/v1/cronjobs',
    '/api/v1/namespaces/default/pods/web-0/log?container=c&tailLines=500&previous=true',
    '/apis/nodekeeper.dev/v1alpha1/decisions?fieldSelector=node%3Dn1',
    '/apis/nodekeeper.dev/v1alpha1/clusterstatuses/cluster',
    '/metrics?scope=controller',
  ])('%s, with the credential', async (path) => {
    const answered = await send(`/forward${path}`, { headers: await signIn() });
    expect([answered.status, answered.text]).toEqual([200, '{"items":[]}']);
    expect(received).toMatchObject([{ line: `GET ${path}`, authorization: 'Bearer secret-of-the-kubeconfig' }]);
  });

  it.each([
    '/api/v1/secrets',
    '/api/v1/namespaces/default/secrets/s',
    '/api/v1/namespaces/kube-system/configmaps',
    '/api/v1/nodes/n1/proxy/metrics',
    '/api/v1/nodes/../secrets',
    '/api/v1/nodes/%2e%2e/secrets',
    '/api/v1/nodes/..%2Fsecrets',
    '/api/v1/nodes//',
    '/api/v1/nodes/n1#x',
    '/api/v1/nodes?watch=true',
    '/api/v1/nodes?follow=true',
    '/api/v1/namespaces/default/pods/web-0/log?insecureSkipTLSVerifyBackend=true',
    '/api/v1/namespaces/default/pods/web-0/exec?command=sh',
    '/apis/apps/v1/namespaces/default/deployments/web/scale',
    '/api/v1/nodes?limit=1&limit=2',
    '/api/v1/nodes?impersonate=admin',
    '//evil.example/api/v1/nodes',
    '@evil.example/api/v1/nodes',
    '/apis/nodekeeper.dev/v1alpha1/bootstraptokens',
    '/apis/nodekeeper.dev/v1alpha1/nodeidentities',
    '/metrics',
    '/metrics?scope=all',
    '/',
    '',
  ])('not %j', async (path) => {
    const { status } = await send(`/forward${path}`, { headers: await signIn() });
    expect([403, 404]).toContain(status);
    expect(received).toEqual([]);
  });

  it('passes the status and the message of the API, and none of its other headers', async () => {
    answer = (_request, response) => {
      response.setHeader('set-cookie', 'a=b');
      response.setHeader('retry-after', '3');
      json(response, 429, { message: 'too many' });
    };
    const { status, headers, text } = await send('/forward/api/v1/nodes', { headers: await signIn() });
    expect([status, text, headers['retry-after']]).toEqual([429, '{"message":"too many"}', '3']);
    expect(headers['set-cookie']).toBeUndefined();
  });

  it('refuses a response that is too large, and serves the next', async () => {
    const cookie = await signIn();
    let sentBytes = 0;
    const write = (response: ServerResponse): boolean => {
      sentBytes += 1_000_000;
      return response.write(Buffer.alloc(1_000_000, 'x'));
    };
    answer = (_request, response) => {
      response.writeHead(200);
      const more = (): void => {
        while (write(response));
        response.once('drain', more);
      };
      more();
    };
    const { status, text } = await send('/forward/api/v1/nodes', { headers: cookie });
    expect([status, text]).toEqual([502, 'the response of the API has more than 12000000 bytes']);
    // What is in the buffers of the connection was sent too.
    expect(sentBytes).toBeLessThan(40_000_000);
    answer = (_request, response) => json(response, 200, {});
    expect((await send('/forward/api/v1/nodes', { headers: cookie })).status).toBe(200);
  });

  it('refuses bodies and addresses that are too long', async () => {
    const headers = { ...(await signIn()), ...own() };
    expect((await send('/actions', { method: 'POST', headers, body: 'x'.repeat(5_000) })).status).toBe(413);
    expect((await send('/session', { method: 'POST', headers: own(), body: 'x'.repeat(5_000) })).status).toBe(413);
    expect((await send(`/forward/api/v1/nodes?continue=${'x'.repeat(9_000)}`, { headers })).status).toBe(414);
    expect((await send('/actions', { method: 'POST', headers, body: '{' })).status).toBe(400);
  });

  it('renews the credential after a 401', async () => {
    answer = (incoming, response) =>
      json(response, incoming.headers.authorization === 'Bearer renewed' ? 200 : 401, { message: 'expired' });
    const cookie = await signIn();
    credential = 'renewed';
    expect((await send('/forward/api/v1/nodes', { headers: cookie })).status).toBe(200);
    expect((await send('/forward/api/v1/nodes', { headers: cookie })).status).toBe(200);
    expect([received.length, renewals]).toEqual([3, 1]);
  });

  it('does not run the plugin of a credential again and again that stays refused', async () => {
    answer = (_request, response) => json(response, 401, { message: 'Unauthorized' });
    const cookie = await signIn();
    for (let attempt = 0; attempt < 3; attempt += 1) {
      expect((await send('/forward/api/v1/nodes', { headers: cookie })).status).toBe(401);
    }
    expect(renewals).toBe(1);
  });

  it('answers 502 without the API', async () => {
    const cookie = await signIn();
    (api as ReturnType<typeof createServer>).closeAllConnections();
    await new Promise((resolve) => api.close(resolve));
    expect((await send('/forward/api/v1/nodes', { headers: cookie })).status).toBe(502);
  });
});

describe('a watch', () => {
  let function_: Server;
  let streamed: Received[];
  beforeEach(async () => {
    streamed = [];
    function_ = createServer((incoming, response) => {
      const { method, url, headers } = incoming;
      streamed.push({ line: `${method} ${url}`, authorization: headers.authorization, body: '' });
      response.writeHead(200, { 'content-type': 'application/json' });
      response.write('{"type":"ADDED"}\n');
      if (url?.includes('ends')) response.end('{"type":"DELETED"}\n');
    }).listen(0, '127.0.0.1');
    await new Promise((resolve) => function_.once('listening', resolve));
  });
  afterEach(() => {
    (function_ as ReturnType<typeof createServer>).closeAllConnections();
    function_.close();
  });

  it('follows the redirect with its ticket and without the credential', async () => {
    answer = (_request, response) => {
      response.writeHead(307, { location: `${urlOf(function_)}/api/v1/nodes?ends=1&nodekeeper-ticket=t` }).end();
    };
    const { status, text, headers } = await send('/forward/api/v1/nodes?watch=1', { headers: await signIn() });
    expect([status, text]).toEqual([200, '{"type":"ADDED"}\n{"type":"DELETED"}\n']);
    expect(headers['location']).toBeUndefined();
    expect(streamed).toEqual([
      { line: 'GET /api/v1/nodes?ends=1&nodekeeper-ticket=t', authorization: undefined, body: '' },
    ]);
  });

  it('does not follow a redirect to another scheme, nor a second one', async () => {
    const cookie = await signIn();
    answer = (_request, response) => void response.writeHead(307, { location: 'file:///etc/passwd' }).end();
    expect((await send('/forward/api/v1/nodes?watch=1', { headers: cookie })).status).toBe(502);
    answer = (_request, response) => void response.writeHead(307, { location: '/again' }).end();
    const { status, headers } = await send('/forward/api/v1/nodes?watch=1', { headers: cookie });
    expect([status, headers['location'], received.length]).toEqual([307, undefined, 3]);
  });

  it('is one of twelve at most, and is closed when the page leaves', async () => {
    const cookie = await signIn();
    let closed = 0;
    answer = (_request, response) => {
      response.once('close', () => {
        closed += 1;
      });
      response.writeHead(200, { 'content-type': 'application/json' });
      response.write('{"type":"ADDED"}\n');
    };
    const leaving = new AbortController();
    const open = () =>
      fetch(`${base}/forward/api/v1/nodes?watch=1`, { headers: cookie, signal: leaving.signal }).then(
        ({ status }) => status,
      );
    expect(await Promise.all(Array.from({ length: 12 }, open))).toEqual(Array.from({ length: 12 }, () => 200));
    expect(await open()).toBe(429);
    leaving.abort();
    await expect.poll(() => closed, { timeout: 20_000 }).toBe(12);
    answer = (_request, response) => void response.writeHead(200).end();
    expect(await fetch(`${base}/forward/api/v1/nodes?watch=1`, { headers: cookie })).toMatchObject({ status: 200 });
  });
});

describe('the writes', () => {
  async function act(body: unknown): Promise<Answered> {
    const headers = { ...(await signIn()), ...own() };
    return await send('/actions', { method: 'POST', headers, body: JSON.stringify(body) });
  }

  it('cordon and uncordon', async () => {
    await act({ action: 'cordon', node: 'n1' });
    await act({ action: 'uncordon', node: 'n1' });
    expect(received.map(({ line, body }) => `${line} ${body}`)).toEqual([
      'PATCH /api/v1/nodes/n1 {"spec":{"unschedulable":true}}',
      'PATCH /api/v1/nodes/n1 {"spec":{"unschedulable":null}}',
    ]);
  });

  it('announce the silence of a node, and end it', async () => {
    const before = Date.now();
    await act({ action: 'announceSilence', node: 'n1', seconds: 7_200, reason: 'new disk' });
    await act({ action: 'announceSilence', node: 'n1', seconds: 60 });
    await act({ action: 'endSilence', node: 'n1' });
    expect(received.map(({ line }) => line)).toEqual(Array.from({ length: 3 }, () => 'PATCH /api/v1/nodes/n1'));
    const [first, second, last] = received.map(({ body }) => JSON.parse(body).metadata.annotations);
    const [until, reason] = ['nodekeeper.dev/planned-silence-until', 'nodekeeper.dev/planned-silence-reason'] as const;
    expect(first[reason]).toBe('new disk');
    const aheadMs = Date.parse(first[until]) - before;
    expect(aheadMs).toBeGreaterThan(7_198_000);
    expect(aheadMs).toBeLessThan(7_230_000);
    expect(second[reason]).toBeNull();
    expect(last).toEqual({ [until]: null, [reason]: null });
  });

  it('announce no silence without a length, or a longer one than the API accepts', async () => {
    for (const seconds of [undefined, '60', 0, -1, 1.5, 30 * 86_400 + 1, null]) {
      expect((await act({ action: 'announceSilence', node: 'n1', seconds })).status).toBe(400);
    }
    expect(received).toEqual([]);
  });

  it('taint out-of-service, on the version that was read and beside the other taints', async () => {
    const taints = [{ key: 'gpu', effect: 'NoSchedule' }];
    answer = (_request, response) => json(response, 200, { metadata: { resourceVersion: '7' }, spec: { taints } });
    expect((await act({ action: 'outOfService', node: 'n1', confirmation: 'n1' })).status).toBe(200);
    expect(JSON.parse(received[1]!.body)).toEqual({
      metadata: { resourceVersion: '7' },
      spec: {
        taints: [...taints, { key: 'node.kubernetes.io/out-of-service', value: 'nodeshutdown', effect: 'NoExecute' }],
      },
    });
  });

  it('not out-of-service without the name of the node as confirmation', async () => {
    for (const confirmation of [undefined, '', 'n2', true]) {
      expect((await act({ action: 'outOfService', node: 'n1', confirmation })).status).toBe(400);
    }
    expect(received).toEqual([]);
  });

  it('nothing else, and no other path through the name', async () => {
    for (const body of [
      { action: 'delete', node: 'n1' },
      { action: 'cordon', node: 'n1/status' },
      { action: 'cordon', node: '../pods' },
      { action: 'cordon', node: 'n1?dryRun=All' },
      { action: 'cordon' },
      [],
      null,
    ]) {
      expect((await act(body)).status).toBe(400);
    }
    expect(received).toEqual([]);
  });

  it('drain: cordon, then evict what a controller creates again; a dry run changes nothing', async () => {
    const pod = (name: string, kind: string | undefined, more: object = {}) => ({
      metadata: {
        namespace: 'd',
        name,
        ...(kind === undefined ? {} : { ownerReferences: [{ kind, controller: true }] }),
      },
      spec: {},
      ...more,
    });
    const items = [
      pod('web', 'ReplicaSet'),
      pod('blocked', 'ReplicaSet'),
      pod('agent', 'DaemonSet'),
      pod('solo', undefined),
      pod('cache', 'StatefulSet', { spec: { volumes: [{ name: 'v', emptyDir: {} }] } }),
      pod('over', 'Job', { status: { phase: 'Succeeded' } }),
    ];
    answer = ({ method, url = '' }, response) => {
      if (url.includes('/blocked/')) json(response, 429, { message: 'Cannot evict pod' });
      else json(response, method === 'POST' ? 201 : 200, method === 'GET' ? { items } : {});
    };
    const { status, text: body } = await act({ action: 'drain', node: 'n1', dryRun: true });
    expect([status, JSON.parse(body)]).toEqual([
      200,
      {
        evicted: 1,
        refused: [
          'd/blocked: Cannot evict pod',
          'd/solo: no controller would create it again',
          'd/cache: it has data in an emptyDir volume',
        ],
      },
    ]);
    const lines = received.map(({ line }) => line);
    expect(lines).toEqual([
      'PATCH /api/v1/nodes/n1?dryRun=All',
      'GET /api/v1/pods?fieldSelector=spec.nodeName%3Dn1&limit=500',
      'POST /api/v1/namespaces/d/pods/web/eviction?dryRun=All',
      'POST /api/v1/namespaces/d/pods/blocked/eviction?dryRun=All',
    ]);
    await act({ action: 'drain', node: 'n1' });
    expect(received.slice(lines.length).map(({ line }) => line)).toEqual(
      lines.map((line) => line.replace('?dryRun=All', '')),
    );
  });

  it('drain: says that there are more pods than one drain evicts', async () => {
    answer = (_request, response) => json(response, 200, { items: [], metadata: { continue: 'more' } });
    expect(JSON.parse((await act({ action: 'drain', node: 'n1' })).text)).toEqual({
      evicted: 0,
      refused: ['pods beyond the first 500: drain the node again'],
    });
  });

  it('passes a refusal of the API', async () => {
    answer = (_request, response) => json(response, 403, { message: 'nodes is forbidden' });
    expect(await act({ action: 'cordon', node: 'n1' })).toMatchObject({
      status: 403,
      text: '{"message":"nodes is forbidden"}',
    });
  });
});

describe('the page', () => {
  it('is served without the cookie, under a policy that permits its own files alone', async () => {
    for (const [path, type] of [
      ['/', 'text/html'],
      ['/console.js', 'text/javascript'],
      ['/console.css', 'text/css'],
    ] as const) {
      const { status, headers } = await send(path, { headers: { 'sec-fetch-site': 'cross-site' } });
      expect([status, headers['content-type']]).toEqual([200, `${type}; charset=utf-8`]);
      expect(headers['content-security-policy']).toMatch(/^default-src 'none'; script-src 'self';.*frame-ancestors/);
      expect(headers['x-content-type-options']).toBe('nosniff');
    }
  });

  it('has the advice, read once for many requests, and the refusal of the API', async () => {
    expect((await send('/advice')).status).toBe(401);
    const headers = await signIn();
    const valid = credential;
    credential = 'another';
    expect(await send('/advice', { headers })).toMatchObject({ status: 502, text: 'the API refused' });
    credential = valid;
    for (let read = 0; read < 2; read += 1) {
      expect(JSON.parse((await send('/advice', { headers })).text)).toEqual({ limitPer1000NodeDays: 1, profiles: [] });
    }
    // The failure and one success.
    expect(adviceReads).toBe(2);
    expect((await send('/advice?zone=a', { headers })).status).toBe(404);
  });

  it('explains nodes and pods by name alone', async () => {
    const headers = await signIn();
    expect((await send('/explain/node/n1', { headers })).text).toBe('explained node n1');
    expect((await send('/explain/pod/default/web-0', { headers })).text).toBe('explained pod default/web-0');
    for (const path of [
      '/explain/node/--server',
      '/explain/node/a/b',
      '/explain/pod/x',
      '/explain/secret/d/x',
      '/explain/',
      '/explain/node/%2e',
    ]) {
      expect((await send(path, { headers })).status).toBe(404);
    }
  });
});
