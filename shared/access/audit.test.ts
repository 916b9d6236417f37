import { describe, expect, it } from 'vitest';
import { apiInMemory, MERGE, NODES, node } from '../../test/support/api-in-memory.ts';
import type { HttpRequest, HttpResponse } from '../kubernetes/http.ts';
import type { Log } from '../observability/log.ts';
import { type AuditedCall, type AuditLine, audit } from './audit.ts';
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

describe('the line of a request', () => {
  const ada = { username: 'ada', groups: ['nodekeeper:admins'] };
  const pods = { group: '', version: 'v1', resource: 'pods', subresource: '', namespace: 'a', name: 'p' };
  const call: AuditedCall = { user: ada, actingAs: ada, verb: 'update', target: pods, nowMs: 0 };
  const request = (query = '', headers: Record<string, string> = { 'user-agent': 'kubectl' }): HttpRequest => ({
    ...{ method: 'PUT', path: '', query: new URLSearchParams(query), headers, body: new Uint8Array() },
    sourceIp: '192.0.2.9',
  });
  const response = (status: number, body: HttpResponse['body'] = ''): HttpResponse => ({ status, headers: {}, body });
  const log = {} as Log;

  /** Absent: nothing is recorded. */
  async function lineOf(more: Partial<AuditedCall>, sent = request(), answered = response(200)) {
    const lines: AuditLine[] = [];
    const auditTrail = { record: async (line: AuditLine) => void lines.push(line) };
    await audit({ auditTrail, log }, { ...call, ...more }, sent, answered);
    return lines[0];
  }
  const target = (more: object) => ({ target: { ...pods, ...more } });

  it('has what the request has, and nothing empty', async () => {
    const line = {
      ...{ time: '1970-01-01T00:00:00Z', user: 'ada', groups: ada.groups, verb: 'update', group: '' },
      ...{ resource: 'pods', namespace: 'a', name: 'p', sourceIp: '192.0.2.9', userAgent: 'kubectl', code: 200 },
    };
    expect(await lineOf({})).toEqual(line);
    const user = { ...ada, extra: { arn: ['x'] } };
    expect(await lineOf({ user, actingAs: user, ...target({ subresource: 'status' }) }, request('dryRun=All'))).toEqual(
      {
        ...line,
        extra: { arn: ['x'] },
        subresource: 'status',
        dryRun: true,
      },
    );
    const bare = await lineOf(target({ namespace: '', name: '' }), request('', {}), response(403));
    expect(bare).toEqual({ ...line, userAgent: '', code: 403, namespace: undefined, name: undefined });
    expect(Object.keys(bare!)).not.toContain('namespace');
    expect(Object.keys(bare!)).not.toContain('name');
  });

  it.each([
    ['of the response of a creation', 201, '', '{"metadata":{"name":"made"}}', 'made'],
    ['of the path, if it has one', 201, 'p', '{"metadata":{"name":"made"}}', 'p'],
    ['of no refusal', 403, '', '{"metadata":{"name":"made"}}', undefined],
    ['of no response without a name', 201, '', '{"metadata":{}}', undefined],
    ['of no response with another one', 201, '', '{"metadata":{"name":7}}', undefined],
    ['of no response without metadata', 201, '', '{}', undefined],
    ['of no response that is no JSON', 201, '', '{', undefined],
    ['of no response that is bytes', 201, '', new Uint8Array([123, 125]), undefined],
  ])('has the name %s', async (_, status, name, body, expected) => {
    expect((await lineOf(target({ name }), request(), response(status, body)))?.name).toBe(expected);
  });

  it.each([
    [{ verb: 'get' }, false],
    [{ verb: 'list' }, false],
    [{ verb: 'watch' }, false],
    [{ verb: 'delete' }, true],
    [{ verb: 'create', ...target({ resource: 'selfsubjectaccessreviews' }) }, false],
    [{ verb: 'create', ...target({ resource: 'selfsubjectrulesreviews' }) }, false],
    [{ verb: 'create', ...target({ resource: 'selfsubjectreviews' }) }, false],
    [{ verb: 'create', ...target({ resource: 'subjectaccessreviews' }) }, true],
    [{ user: { username: 'm', groups: ['x', 'system:nodes'] } }, false],
    [{ user: { username: 'm', groups: ['nodekeeper:probes'] } }, false],
    [{ user: { username: 'm', groups: ['nodekeeper:simulated-fleet'] } }, false],
    [{ user: { username: 'm', groups: [] } }, true],
    [{ actingAs: { username: 'm', groups: ['system:nodes'] } }, true],
  ] as [Partial<AuditedCall>, boolean][])('of %j is written: %s', async (more, isWritten) => {
    expect((await lineOf(more)) !== undefined).toBe(isWritten);
  });

  it('is logged with its fault when it could not be written; without a trail or a call there is none', async () => {
    const logged: unknown[][] = [];
    const failing = { error: (...line: unknown[]) => void logged.push(line) } as unknown as Log;
    const fault = new Error('the log is away');
    const auditTrail = { record: () => Promise.reject(fault) };
    await audit({ auditTrail, log: failing }, call, request(), response(200));
    expect(logged).toEqual([[expect.any(String), expect.objectContaining({ user: 'ada', name: 'p', error: fault })]]);
    await audit({ log: failing }, call, request(), response(200));
    await audit({ auditTrail, log: failing }, undefined, request(), response(200));
    expect(logged).toHaveLength(1);
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
