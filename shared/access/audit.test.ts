import { describe, expect, it } from 'vitest';
import { apiInMemory, MERGE, NODES, node } from '../../test/support/api-in-memory.ts';
import type { AuditLine } from './audit-trail.ts';
import { refusalMinuteOf, refusalsOf } from './refusal-store.ts';
import { API_LIMITS } from './request-throttle.ts';

const USERS = {
  ada: { name: 'ada', groups: ['nodekeeper:admins'] },
  vera: { name: 'vera', groups: ['nodekeeper:viewers'] },
  machine: { name: 'system:node:n1', groups: ['system:nodes'] },
};
const by = (token: string) => ({ authorization: `Bearer ${token}` });

function audited(fails = false) {
  const lines: AuditLine[] = [];
  const api = apiInMemory({
    users: USERS,
    auditTrail: {
      record: async (line) => {
        if (fails) throw new Error('the log is away');
        lines.push(line);
      },
    },
  });
  return { api, lines };
}

describe('the audit trail', () => {
  it('says who did what, when, from where, and how it ended', async () => {
    const { api, lines } = audited();
    await api.send('POST', NODES, { body: node('n1'), headers: by('ada') });
    await api.send('PATCH', `${NODES}/n1?dryRun=All`, {
      body: { spec: { unschedulable: true } },
      contentType: MERGE,
      headers: { ...by('ada'), 'user-agent': 'kubectl/v1.32.0' },
    });
    expect(lines).toEqual([
      {
        time: '2026-01-01T00:00:00Z',
        user: 'ada',
        groups: ['nodekeeper:admins', 'system:authenticated'],
        verb: 'create',
        group: '',
        resource: 'nodes',
        name: 'n1',
        sourceIp: '192.0.2.9',
        userAgent: 'tester/1',
        code: 201,
      },
      expect.objectContaining({ verb: 'patch', name: 'n1', dryRun: true, userAgent: 'kubectl/v1.32.0', code: 200 }),
    ]);
  });

  it('names the user that authenticated and the one that the request acts as', async () => {
    const { api, lines } = audited();
    const acting = { ...by('ada'), 'impersonate-user': 'system:node:n1', 'impersonate-group': 'system:nodes' };
    await api.send('DELETE', `${NODES}/n2`, { headers: acting });
    // A node's own writes are not recorded, but this one is by a person.
    expect(lines).toEqual([
      expect.objectContaining({
        user: 'ada',
        groups: ['nodekeeper:admins', 'system:authenticated'],
        impersonatedUser: { username: 'system:node:n1', groups: ['system:nodes', 'system:authenticated'] },
        verb: 'delete',
        code: 403,
      }),
    ]);
  });

  it('has refusals, and mistakes, too', async () => {
    const { api, lines } = audited();
    await api.send('DELETE', `${NODES}/n1`, { headers: by('vera') });
    await api.send('DELETE', `${NODES}/n1`, { headers: by('ada') });
    expect(lines.map(({ user, verb, name, code }) => [user, verb, name, code])).toEqual([
      ['vera', 'delete', 'n1', 403],
      ['ada', 'delete', 'n1', 404],
    ]);
  });

  it('has no reading, no self review, and nothing that machines do', async () => {
    const { api, lines } = audited();
    await api.send('POST', NODES, { body: node('n1'), headers: by('machine') });
    await api.send('GET', NODES, { headers: by('ada') });
    await api.send('POST', '/apis/authentication.k8s.io/v1/selfsubjectreviews', { body: {}, headers: by('ada') });
    expect(lines).toEqual([]);
  });

  it('never holds a body or a token, and cuts what a client says of itself', async () => {
    const { api, lines } = audited();
    const secret = { metadata: { annotations: { note: 'hush-hush' } } };
    await api.send('POST', NODES, {
      body: node('n1', secret as never),
      headers: { ...by('ada'), 'user-agent': 'x'.repeat(10_000) },
    });
    expect(JSON.stringify(lines)).not.toMatch(/hush-hush|Bearer/);
    expect(lines[0]?.userAgent).toHaveLength(200);
  });

  it('does not fail a request when a line cannot be written, and logs the line', async () => {
    const { api } = audited(true);
    expect((await api.send('POST', NODES, { body: node('n1'), headers: by('ada') })).code).toBe(201);
    expect(api.faults[0]).toMatch(/^a request could not be written to the audit log .*the log is away/s);
  });
});

describe('the throttle', () => {
  const { node, person, probe } = API_LIMITS;
  const limits = {
    node: { ...node, rate: { ratePerSecond: 1, burst: 3 } },
    person: { ...person, rate: { ratePerSecond: 2, burst: 5 } },
    probe,
  };

  it('slows down one identity and no other', async () => {
    const api = apiInMemory({ users: USERS, limits });
    const codes = async (token: string, times: number) => {
      const answers = [];
      for (let time = 0; time < times; time += 1) {
        answers.push(await api.send('GET', `${NODES}?fieldSelector=metadata.name%3Dn1`, { headers: by(token) }));
      }
      return answers;
    };
    const noisy = await codes('machine', 5);
    expect(noisy.map(({ code }) => code)).toEqual([200, 200, 200, 429, 429]);
    expect(noisy[3]).toMatchObject({ headers: { 'retry-after': '1' }, body: { reason: 'TooManyRequests' } });
    expect((await codes('vera', 5)).map(({ code }) => code)).toEqual([200, 200, 200, 200, 200]);
    api.advance(1_000);
    expect((await codes('machine', 2)).map(({ code }) => code)).toEqual([200, 429]);
  });

  it('refuses an identity over its share of the time before its body is read, and stores that it did', async () => {
    let busyMs = 0;
    const api = apiInMemory({
      users: USERS,
      limits: API_LIMITS,
      // Each look at the clock of the thread is three seconds later: so long does a request compute.
      busyMs: () => (busyMs += 3_000),
    });
    const send = (token: string) =>
      api.send('POST', '/api/v1/namespaces/default/configmaps', {
        body: 'a: "\\q',
        contentType: 'application/yaml',
        headers: by(token),
      });
    const codes = [];
    for (let time = 0; time < 4; time += 1) codes.push((await send('machine')).code);
    expect(codes.slice(2)).toEqual([429, 429]);
    expect(codes).not.toContain(500);
    expect((await send('vera')).code).not.toBe(429);
    const minuteMs = refusalMinuteOf(api.nowMs());
    expect(await refusalsOf(api.items, minuteMs)).toEqual([
      { kind: 'node', username: 'system:node:n1', over: 'time', count: 1 },
    ]);
  });

  it('lets the emergency token through always', async () => {
    const api = apiInMemory({ limits });
    for (let time = 0; time < 20; time += 1) expect((await api.send('GET', NODES)).code).toBe(200);
  });
});
