/** `kubectl logs` between API, streaming function and agent: the path that runs, in virtual time. */
import { beforeEach, describe, expect, it } from 'vitest';
import { gzip } from '../../shared/gzip.ts';
import { KUBERNETES_VERSION } from '../../shared/kinds/generated/version.ts';
import { timedOut } from '../support/agent-api.ts';
import { logCluster, NODE_LOGS, STREAM_URL } from '../support/log-cluster.ts';

let cluster: ReturnType<typeof logCluster>;

beforeEach(async () => {
  cluster = logCluster();
  await cluster.addNode('n1');
  await cluster.addPod('web', 'n1');
});

const idOf = (location: string): string => new URL(location).searchParams.get('nodekeeper-log') ?? '';

/** The id of a request that ann made, and that its client has opened. */
async function openedRequest(query = ''): Promise<string> {
  const { headers } = await cluster.request('ann', query);
  cluster.follow(headers['location'] ?? '');
  await cluster.time.pass(0);
  return idOf(headers['location'] ?? '');
}

const put = (user: string, node: string, id: string, body: object) =>
  cluster.send(user, 'PUT', `${NODE_LOGS}/${node}/${id}`, Array.isArray(body) ? body : { sender: 's', ...body });

describe('the log of a container', () => {
  it('arrives complete and in order, and nothing of it stays stored', async () => {
    const lines = Array.from({ length: 40_000 }, (_, index) => `line ${index} ${'x'.repeat(20)}\n`);
    for (let at = 0; at < lines.length; at += 1_000) cluster.output.write(lines.slice(at, at + 1_000).join(''));
    const log = await cluster.read('ann');
    cluster.agent('n1').requested();
    await cluster.time.pass(5_000);
    expect(log.status()).toBe(200);
    expect(log.text() === lines.join('')).toBe(true);
    expect(log.hasEnded()).toBe(true);
    expect(cluster.stored()).toEqual([]);
  });

  it('is followed with 1 MB per second, and no faster, also by an agent far from the API', async () => {
    const log = await cluster.read('ann', '?follow=true');
    cluster.agent('n1', undefined, { answerMs: 200 }).requested();
    await cluster.time.pass(2_000);
    for (let piece = 0; piece < 400; piece += 1) cluster.output.write(Buffer.alloc(65_536, 'x'));
    await cluster.time.pass(10_000);
    const perSecond = log.text().length / 10;
    expect(perSecond).toBeGreaterThan(950_000);
    expect(perSecond).toBeLessThanOrEqual(1_049_000);
  });

  it('is requested from the node with the options of the client', async () => {
    await cluster.read(
      'ann',
      '?tailLines=5&timestamps=true&sinceSeconds=60&previous=false&limitBytes=100&container=main',
    );
    cluster.agent('n1').requested();
    await cluster.time.pass(1_000);
    expect(cluster.output.queries).toEqual([
      {
        podUid: expect.any(String),
        container: 'main',
        follow: false,
        previous: false,
        timestamps: true,
        tailLines: 5,
        sinceMs: expect.any(Number),
        limitBytes: 100,
      },
    ]);
  });

  it('is empty when the container wrote nothing', async () => {
    const log = await cluster.read('ann');
    cluster.agent('n1').requested();
    await cluster.time.pass(2_000);
    expect([log.status(), log.text(), log.hasEnded()]).toEqual([200, '', true]);
  });

  it('of an agent that requests the list before the client has connected arrives', async () => {
    for (let piece = 0; piece < 8; piece += 1) cluster.output.write(Buffer.alloc(65_536, `${piece}`));
    const { headers } = await cluster.request('ann');
    cluster.agent('n1').requested();
    await cluster.time.pass(2_000);
    expect(cluster.stored().filter(({ pk }) => pk !== 'log-requests')).toHaveLength(1);
    const log = cluster.follow(headers['location'] ?? '');
    await cluster.time.pass(3_000);
    expect(log.text()).toHaveLength(8 * 65_536);
    expect(log.hasEnded()).toBe(true);
  });

  it('arrives once, although the answer to a chunk was lost', async () => {
    let lost = 0;
    cluster.output.write('one\n');
    const log = await cluster.read('ann', '?follow=true');
    const agent = cluster.agent('n1', (method) => {
      if (method !== 'PUT' || lost > 1) return undefined;
      lost += 1;
      return timedOut;
    });
    agent.requested();
    await cluster.time.pass(3_000);
    cluster.output.write('two\n');
    cluster.output.close();
    await cluster.time.pass(5_000);
    expect(lost).toBe(2);
    expect(log.text()).toBe('one\ntwo\n');
  });

  it('is sent once, although its request is still listed when it has been answered', async () => {
    cluster.output.write('one\n');
    const log = await cluster.read('ann');
    const agent = cluster.agent('n1');
    agent.requested();
    await cluster.time.pass(200);
    agent.requested();
    await cluster.time.pass(1_000);
    expect(log.text()).toBe('one\n');
    expect(cluster.output.queries).toHaveLength(1);
  });

  it('that the node cannot read is a 400 with its reason', async () => {
    cluster.output.failure = 'previous terminated container "main" in pod "web" not found';
    const log = await cluster.read('ann');
    cluster.agent('n1').requested();
    await cluster.time.pass(1_000);
    expect(log.status()).toBe(400);
    expect(JSON.parse(log.text())).toMatchObject({ kind: 'Status', message: cluster.output.failure });
    expect(cluster.stored()).toEqual([]);
  });

  it('of a node that does not answer is a 504 after 20 s', async () => {
    const log = await cluster.read('ann');
    await cluster.time.pass(19_900);
    expect(log.hasEnded()).toBe(false);
    await cluster.time.pass(500);
    expect(log.status()).toBe(504);
    expect(JSON.parse(log.text())).toMatchObject({ reason: 'Timeout', message: 'node n1 did not answer within 20s' });
    expect(cluster.faults).toEqual([]);
    expect(cluster.stored()).toEqual([]);
  });
});

describe('a followed log', () => {
  it('begins when the agent has answered, is less than 1 s late, and ends with its container', async () => {
    const log = await cluster.read('ann', '?follow=true');
    cluster.agent('n1').requested();
    await cluster.time.pass(1_000);
    expect([log.status(), log.text()]).toEqual([200, '']);
    let expected = '';
    for (let second = 0; second < 30; second += 1) {
      cluster.output.write(`line ${second}\n`);
      expected += `line ${second}\n`;
      await cluster.time.pass(1_000);
      expect(log.text()).toBe(expected);
    }
    cluster.output.close();
    await cluster.time.pass(1_000);
    expect(log.hasEnded()).toBe(true);
    expect(cluster.stored()).toEqual([]);
  });

  it('of a container that writes nothing stays open', async () => {
    const log = await cluster.read('ann', '?follow=true');
    cluster.agent('n1').requested();
    await cluster.time.pass(300_000);
    expect(log.hasEnded()).toBe(false);
    cluster.output.write('late\n');
    await cluster.time.pass(1_000);
    expect(log.text()).toBe('late\n');
  });

  it('ends 20 s after the last sign of its node, and says so', async () => {
    cluster.output.write('begun');
    const log = await cluster.read('ann', '?follow=true');
    const agent = cluster.agent('n1');
    agent.requested();
    await cluster.time.pass(2_000);
    agent.stop();
    await cluster.time.pass(30_000);
    expect(log.text()).toBe('begun\nnodekeeper: node n1 has sent nothing for 20 s; the log may be incomplete\n');
    expect(cluster.stored()).toEqual([]);
  });

  it('is not begun again in its middle when the agent restarts', async () => {
    cluster.output.write('one\n');
    const log = await cluster.read('ann', '?follow=true');
    const first = cluster.agent('n1');
    first.requested();
    await cluster.time.pass(2_000);
    cluster.output.write('two\n');
    await cluster.time.pass(2_000);
    first.stop();
    cluster.agent('n1').requested();
    await cluster.time.pass(1_000);
    cluster.output.write('three\n');
    await cluster.time.pass(30_000);
    expect(log.text()).toMatch(/^one\ntwo\nnodekeeper: node n1 has sent nothing for 20 s; .*\n$/);
    expect(cluster.stored()).toEqual([]);
  });

  it('ends after 15 minutes, and the agent stops sending', async () => {
    const log = await cluster.read('ann', '?follow=true');
    cluster.agent('n1').requested();
    await cluster.time.pass(900_000);
    expect(log.text()).toMatch(/^nodekeeper: the stream has reached its time limit; .*\n$/);
    cluster.output.write('more\n');
    await cluster.time.pass(10_000);
    expect(cluster.stored()).toEqual([]);
  });

  it('of two that the same user requests at the same time, one stays', async () => {
    const answers = await Promise.all([cluster.request('ann', '?follow=true'), cluster.request('ann', '?follow=true')]);
    const logs = answers.map(({ headers }) => cluster.follow(headers['location'] ?? ''));
    await cluster.time.pass(0);
    cluster.agent('n1').requested();
    await cluster.time.pass(2_000);
    expect(logs.map((log) => log.status()).sort()).toEqual([200, 410]);
  });

  it('is replaced when its user follows the container again, and other followers stay', async () => {
    const agent = cluster.agent('n1');
    const follow = async (user: string) => {
      const log = await cluster.read(user, '?follow=true');
      agent.requested();
      await cluster.time.pass(1_000);
      return log;
    };
    const [first, other, second] = [await follow('ann'), await follow('bob'), await follow('ann')];
    await cluster.time.pass(6_000);
    expect(first.text()).toBe('nodekeeper: "ann" follows this container by a newer command\n');
    expect([first.hasEnded(), other.hasEnded(), second.hasEnded()]).toEqual([true, false, false]);
  });
});

describe('a log of a service account', () => {
  it('ends within 5 seconds after the account was deleted', async () => {
    const token = await cluster.addAccount('bot');
    const log = await cluster.read(token, '?follow=true');
    cluster.agent('n1').requested();
    cluster.output.write('before\n');
    await cluster.time.pass(70_000);
    expect([log.status(), log.hasEnded()]).toEqual([200, false]);
    await cluster.send('admin', 'DELETE', '/api/v1/namespaces/default/serviceaccounts/bot');
    await cluster.time.pass(5_000);
    cluster.output.write('after\n');
    await cluster.time.pass(2_000);
    expect(log.hasEnded()).toBe(true);
    expect(log.text()).toBe('before\nnodekeeper: the identity that reads this log was deleted\n');
  });

  it('that acts as another user ends, too, when the account is deleted', async () => {
    const token = await cluster.addAccount('bot');
    const rules = [{ apiGroups: [''], resources: ['users', 'groups'], verbs: ['impersonate'] }];
    const rbac = '/apis/rbac.authorization.k8s.io/v1';
    await cluster.send('admin', 'POST', `${rbac}/clusterroles`, { metadata: { name: 'acts' }, rules });
    await cluster.send('admin', 'POST', `${rbac}/clusterrolebindings`, {
      metadata: { name: 'acts' },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'acts' },
      subjects: [{ kind: 'ServiceAccount', name: 'bot', namespace: 'default' }],
    });
    await cluster.time.pass(2_000);
    const as = { 'impersonate-user': 'ann', 'impersonate-group': 'nodekeeper:viewers' };
    const log = await cluster.read(token, '?follow=true', 'web', as);
    cluster.agent('n1').requested();
    cluster.output.write('before\n');
    await cluster.time.pass(70_000);
    expect([log.status(), log.hasEnded()]).toEqual([200, false]);
    await cluster.send('admin', 'DELETE', '/api/v1/namespaces/default/serviceaccounts/bot');
    await cluster.time.pass(5_000);
    expect(log.text()).toBe('before\nnodekeeper: the identity that reads this log was deleted\n');
  });

  it('does not begin with a ticket from before the deletion', async () => {
    const { headers } = await cluster.request(await cluster.addAccount('bot'));
    await cluster.send('admin', 'DELETE', '/api/v1/namespaces/default/serviceaccounts/bot');
    cluster.output.write('secret\n');
    cluster.agent('n1').requested();
    const log = cluster.follow(headers['location'] ?? '');
    await cluster.time.pass(2_000);
    expect([log.status(), log.text().includes('secret')]).toEqual([401, false]);
  });
});

it('removes the requests that no client opened when the next log is requested', async () => {
  for (let count = 0; count < 5; count += 1) await cluster.request('ann');
  await cluster.time.pass(130_000);
  await cluster.request('ann');
  expect(cluster.stored()).toHaveLength(1);
});

it('begins when a place at the agent is free again, although ten logs were sent when it was requested', async () => {
  const names = Array.from({ length: 10 }, (_, index) => `c${index}`);
  await cluster.addPod('many', 'n1', names);
  const agent = cluster.agent('n1');
  const query = (name: string) => `?follow=true&container=${name}`;
  for (const [index, name] of names.entries()) await cluster.read(index % 2 === 0 ? 'ann' : 'bob', query(name), 'many');
  agent.requested();
  await cluster.time.pass(2_000);
  // It replaces the log of the same container, which the agent does not know yet.
  const again = await cluster.read('ann', query('c0'), 'many');
  agent.requested();
  await cluster.time.pass(15_000);
  expect(again.status()).toBe(200);
});

describe('the limits of a log', () => {
  const MEGABYTE = 1_048_576;
  const writeMegabytes = (count: number): void => {
    for (let piece = 0; piece < count * 16; piece += 1) cluster.output.write(Buffer.alloc(65_536, 'x'));
  };

  it('cut it off after 10 MB, with a last line that says so', async () => {
    writeMegabytes(11);
    const log = await cluster.read('ann');
    cluster.agent('n1').requested();
    await cluster.time.pass(30_000);
    expect(log.text().slice(10 * MEGABYTE)).toBe(
      '\nnodekeeper: the log is cut off after 10 MB; select a part with --tail, --since or --limit-bytes\n',
    );
    expect(cluster.stored()).toEqual([]);
  });

  it('that the client chose cut it off without a line, even if the node sends more', async () => {
    writeMegabytes(1);
    const log = await cluster.read('ann', '?limitBytes=100');
    cluster.agent('n1').requested();
    await cluster.time.pass(2_000);
    expect(log.text()).toBe('x'.repeat(100));
    expect(log.hasEnded()).toBe(true);
  });

  it('allow ten logs of a node at once, and the eleventh when one has ended', async () => {
    const opened = [];
    for (let count = 0; count < 10; count += 1) opened.push(await cluster.read(count % 2 === 0 ? 'ann' : 'bob'));
    const refused = await cluster.request('admin');
    expect([refused.status, refused.headers['retry-after']]).toEqual([429, '5']);
    expect(refused.body.message).toBe('10 logs of node "n1" are read, the most at once; try again later');
    await cluster.time.pass(21_000);
    expect(opened.map((log) => log.status())).toEqual(opened.map(() => 504));
    expect((await cluster.request('bob')).status).toBe(307);
  });

  it('allow one user half of the logs of a node, also of those that no client opens', async () => {
    const statuses = [];
    for (let count = 0; count < 10; count += 1) statuses.push((await cluster.request('ann')).status);
    expect(statuses).toEqual([307, 307, 307, 307, 307, 429, 429, 429, 429, 429]);
    const { body } = await cluster.request('ann');
    expect(body.message).toBe(
      '"ann" reads 5 logs of node "n1", the most that one user may read at once; try again later',
    );
    const log = await cluster.read('bob');
    cluster.output.write('hello\n');
    cluster.output.close();
    cluster.agent('n1').requested();
    await cluster.time.pass(10_000);
    expect(log.text()).toBe('hello\n');
  });

  it('allow one user five of a node however many start at once', async () => {
    const answers = await Promise.all(Array.from({ length: 12 }, () => cluster.request('ann')));
    expect(answers.filter(({ status }) => status === 307).length).toBeLessThanOrEqual(5);
    expect(cluster.stored().length).toBeLessThanOrEqual(5);
  });

  it('allow a hundred logs of the cluster at once, and one user fifty', async () => {
    for (let node = 2; node <= 11; node += 1) {
      await cluster.addNode(`n${node}`);
      await cluster.addPod(`web-${node}`, `n${node}`);
    }
    const readFifty = async (user: string): Promise<void> => {
      for (let count = 0; count < 50; count += 1) {
        expect((await cluster.request(user, '', `web-${2 + (count % 10)}`)).status).toBe(307);
      }
    };
    await readFifty('ann');
    expect((await cluster.request('ann')).body.message).toBe(
      '"ann" reads 50 logs, the most that one user may read at once; try again later',
    );
    await readFifty('bob');
    const refused = await cluster.request('admin');
    expect([refused.status, refused.body.message]).toEqual([
      429,
      '100 logs of this cluster are read, the most at once; try again later',
    ]);
  });
});

describe('the log of a pod', () => {
  it('that does not exist is 404, and without a node is 204', async () => {
    await cluster.addPod('unbound', undefined);
    expect((await cluster.request('ann', '', 'absent')).status).toBe(404);
    expect(await cluster.request('ann', '', 'unbound')).toMatchObject({ status: 204, body: undefined });
  });

  it('on a node without Node is 404, and on one with a kubelet a sentence that says why', async () => {
    await cluster.addPod('lost', 'n9');
    await cluster.addNode('k1', 'v1.32.1');
    await cluster.addPod('real', 'k1');
    expect((await cluster.request('ann', '', 'lost')).body.message).toBe('nodes "n9" not found');
    expect((await cluster.request('ann', '', 'real')).body).toMatchObject({
      code: 405,
      message: expect.stringMatching(/^node "k1" runs a kubelet \(v1\.32\.1\), which serves logs only on its own port/),
    });
  });

  it('with two containers names them when none is chosen', async () => {
    await cluster.addPod('lp', 'n1', ['a', 'c']);
    expect((await cluster.request('ann', '', 'lp')).body).toMatchObject({
      code: 400,
      message: 'a container name must be specified for pod lp, choose one of: [a c]',
    });
    expect((await cluster.request('ann', '?container=zz', 'lp')).body.message).toBe(
      'container zz is not valid for pod lp',
    );
  });

  it('is refused to a user without rights, and stores nothing', async () => {
    const { status, body } = await cluster.request('eve');
    expect([status, body.message]).toEqual([
      403,
      expect.stringContaining('cannot get resource "pods/log" in API group "" in the namespace "default"'),
    ]);
    expect(cluster.stored()).toEqual([]);
  });
});

describe('a connection to a container', () => {
  it.each(['exec', 'attach', 'portforward', 'proxy'])('%s ends with one sentence', async (subresource) => {
    await cluster.addPod('unbound', undefined);
    const path = (pod: string) => `/api/v1/namespaces/default/pods/${pod}/${subresource}`;
    const isProxy = subresource === 'proxy';
    for (const method of ['GET', 'POST']) {
      const { status, body } = await cluster.send('admin', method, path('web'));
      expect([status, body.reason]).toEqual([405, 'MethodNotAllowed']);
      expect(body.message).toContain(isProxy ? 'pods/proxy is not served' : 'it is served by "nodekeeper serve"');
    }
    expect((await cluster.send('admin', 'PUT', path('unbound'))).status).toBe(isProxy ? 400 : 405);
    expect((await cluster.send('admin', 'POST', path('absent'))).status).toBe(404);
    expect((await cluster.send('admin', 'POST', path('unbound'))).body.message).toBe(
      'pod unbound does not have a host assigned',
    );
    expect((await cluster.send('ann', 'POST', path('web'))).status).toBe(403);
  });

  it('the proxies of nodes and services end in the same way', async () => {
    expect((await cluster.send('admin', 'GET', '/api/v1/nodes/n1/proxy')).status).toBe(405);
    expect((await cluster.send('admin', 'GET', '/api/v1/namespaces/default/services/s/proxy')).status).toBe(404);
  });
});

describe('an attacker', () => {
  it('with the token of another node can neither list nor answer a request', async () => {
    const id = await openedRequest();
    expect((await cluster.send('system:node:n2', 'GET', `${NODE_LOGS}/n1`)).status).toBe(403);
    expect((await put('system:node:n2', 'n1', id, { sequence: 0, data: 'eA==' })).status).toBe(403);
    // Its own path with the id of the other node's request is another key.
    expect((await put('system:node:n2', 'n2', id, { sequence: 0, data: 'eA==' })).body.outcome).toBe('ended');
    expect(cluster.stored().filter(({ pk }) => pk !== 'log-requests')).toEqual([]);
  });

  it('who may read objects does not see who reads logs, and a bare user sees nothing', async () => {
    for (const user of ['ann', 'eve']) {
      expect((await cluster.send(user, 'GET', `${NODE_LOGS}/n1`)).status).toBe(403);
      expect((await put(user, 'n1', 'x', { sequence: 0 })).status).toBe(403);
    }
  });

  it('who is an administrator and answers in place of a node is in the audit log, and the node is not', async () => {
    const id = await openedRequest();
    cluster.auditLines.length = 0;
    await put('system:node:n1', 'n1', id, { sequence: 0, data: 'eA==' });
    await put('admin', 'n1', id, { sequence: 1, data: 'eA==' });
    await put('eve', 'n1', id, { sequence: 1, data: 'eA==' });
    const lines = cluster.auditLines.map(({ user, verb, resource, name, code }) => [user, verb, resource, name, code]);
    expect(lines).toEqual([
      ['admin', 'update', 'nodelogs', 'n1', 200],
      ['eve', 'update', 'nodelogs', 'n1', 403],
    ]);
  });

  it('cannot use the ticket of another user for a request of its own', async () => {
    const [ann, bob] = [await cluster.request('ann'), await cluster.request('bob')];
    const stolen = new URL(bob.headers['location'] ?? '');
    stolen.searchParams.set('nodekeeper-log', idOf(ann.headers['location'] ?? ''));
    const log = cluster.follow(String(stolen));
    await cluster.time.pass(100);
    expect(log.status()).toBe(401);
  });

  it('cannot read the log of another user with credentials in place of a ticket', async () => {
    const location = new URL((await cluster.request('ann')).headers['location'] ?? '');
    location.searchParams.delete('nodekeeper-ticket');
    const log = cluster.follow(String(location), 'bob');
    cluster.agent('n1').requested();
    cluster.output.write('secret\n');
    await cluster.time.pass(2_000);
    expect([log.status(), log.text().includes('secret')]).toEqual([410, false]);
  });

  it('cannot read a log a second time with a recorded redirect', async () => {
    const { headers } = await cluster.request('ann');
    cluster.follow(headers['location'] ?? '');
    await cluster.time.pass(0);
    const again = cluster.follow(headers['location'] ?? '');
    await cluster.time.pass(100);
    expect([again.status(), JSON.parse(again.text()).message]).toEqual([
      410,
      'the request for this log expired or has been answered',
    ]);
  });

  it('on a node is redirected to nowhere: the address of the answer is our own', async () => {
    await cluster.send('admin', 'PUT', '/api/v1/nodes/n1/status', {
      apiVersion: 'v1',
      kind: 'Node',
      metadata: { name: 'n1' },
      status: {
        nodeInfo: { kubeletVersion: `${KUBERNETES_VERSION}-nodekeeper.0.1.0` },
        addresses: [{ type: 'Hostname', address: 'evil.example' }],
        daemonEndpoints: { kubeletEndpoint: { Port: 443 } },
      },
    });
    const { headers } = await cluster.request('ann');
    expect(new URL(headers['location'] ?? '').origin).toBe(STREAM_URL);
  });

  it.each([
    [{ sequence: 0, data: Buffer.alloc(263_169).toString('base64') }, 413],
    [{ sequence: 0, sender: '' }, 400],
    [{ sequence: 0, sender: 'x'.repeat(65) }, 400],
    [{ sequence: -1 }, 400],
    [{ sequence: 0.5 }, 400],
    [{ data: 'eA==' }, 400],
    [{ sequence: 0, data: 5 }, 400],
    [{ sequence: 0, end: 'x' }, 400],
    [{ sequence: 0, end: { message: {} } }, 400],
    [[], 400],
  ])('on a node cannot store a chunk that is none (%#)', async (body, status) => {
    const id = await openedRequest();
    expect((await put('system:node:n1', 'n1', id, body)).status).toBe(status);
    expect(cluster.stored().filter(({ pk }) => pk !== 'log-requests')).toEqual([]);
  });

  it.each([
    ['is not compressed', new TextEncoder().encode('plain text')],
    ['expands to more than a chunk', gzip(Buffer.alloc(300_000))],
  ])('on a node can only end its own log, with a chunk that %s', async (_what, data) => {
    const { headers } = await cluster.request('ann');
    const log = cluster.follow(headers['location'] ?? '');
    await cluster.time.pass(0);
    const chunk = { sequence: 0, data: Buffer.from(data).toString('base64') };
    expect((await put('system:node:n1', 'n1', idOf(headers['location'] ?? ''), chunk)).status).toBe(200);
    await cluster.time.pass(1_000);
    expect(log.text()).toBe('nodekeeper: the node sent a malformed chunk\n');
    expect(log.hasEnded()).toBe(true);
  });

  it('on a node causes no fault with an id that is longer than a key of the store', async () => {
    expect((await put('system:node:n1', 'n1', 'x'.repeat(2_000), { sequence: 0 })).status).toBe(404);
    expect(cluster.faults).toEqual([]);
  });

  it('on a node stores at most one chunk for a reader who never comes', async () => {
    const { headers } = await cluster.request('ann');
    const id = idOf(headers['location'] ?? '');
    for (let sequence = 0; sequence < 5; sequence += 1) {
      const { body } = await put('system:node:n1', 'n1', id, { sequence, data: 'eA==' });
      expect(body.outcome).toBe(sequence === 0 ? 'stored' : 'notOpened');
    }
    await cluster.time.pass(61_000);
    expect((await put('system:node:n1', 'n1', id, { sequence: 0, data: 'eA==' })).body.outcome).toBe('ended');
  });
});
