/**
 * Numbers and times at the edge of what the API's types hold, odd names, and half characters: what upstream's decoder
 * refuses is refused with its text, what it accepts is stored in a form that every client can read, and nothing that a
 * client counts becomes a time that cannot be written.
 */
import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { serveHeartbeat } from '../../functions/heartbeat/work.ts';
import { staticTokenAuthenticator } from '../../shared/access/bearer.ts';
import { memoryItemStore } from '../../shared/store/memory/item-store.ts';
import { apiInMemory, eventsOf, MERGE, NODES, node, pod, podsIn } from '../support/api-in-memory.ts';

const PODS = podsIn('default');
const EVENTS = '/api/v1/namespaces/default/events';
const LEASES = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases';
/** The largest int64, as written in a body. */
const INT64_MAX_TEXT = '9223372036854775807';
const LAST_SECOND = '9999-12-31T23:59:59Z';

/** A pod on a node, its spec with members as text. */
const podText = (name: string, ...members: readonly string[]): string =>
  JSON.stringify(pod(name, { spec: { nodeName: 'n1' } })).replace(
    '"spec":{',
    `"spec":{${members.map((each) => `${each},`).join('')}`,
  );

describe('numbers', () => {
  it.each(['1e300', '1e19', '9223372036854777856', '-1e19', '1.5', '1e400', '"5"'])(
    'a grace of %s is refused where it comes in',
    async (grace) => {
      const api = apiInMemory();
      const created = await api.send('POST', PODS, { body: podText('p', `"terminationGracePeriodSeconds":${grace}`) });
      expect(created).toMatchObject({ code: 400, body: { reason: 'BadRequest' } });
      expect(created.body.message).toContain('of type int64');
      await api.send('POST', PODS, { body: podText('p') });
      const options = `{"kind":"DeleteOptions","apiVersion":"v1","gracePeriodSeconds":${grace}}`;
      expect((await api.send('DELETE', `${PODS}/p`, { body: options })).code).toBe(400);
      const eviction = `{"kind":"Eviction","apiVersion":"policy/v1","metadata":{"name":"p"},"deleteOptions":${options}}`;
      expect((await api.send('POST', `${PODS}/p/eviction`, { body: eviction })).code).toBe(400);
      expect(api.faults).toEqual([]);
    },
  );

  it.each(['1000000000000', '10000000000000', '9007199254740993', INT64_MAX_TEXT])(
    'a pod with a grace of %s seconds is deleted by the last second of the calendar',
    async (grace) => {
      const api = apiInMemory();
      await api.send('POST', PODS, { body: podText('own', `"terminationGracePeriodSeconds":${grace}`) });
      for (const name of ['query', 'body', 'evicted']) await api.send('POST', PODS, { body: podText(name) });
      const options = `{"gracePeriodSeconds":${grace}}`;
      await api.send('DELETE', `${PODS}/own`);
      await api.send('DELETE', `${PODS}/query?gracePeriodSeconds=${grace}`);
      await api.send('DELETE', `${PODS}/body`, { body: options });
      const eviction = `{"kind":"Eviction","metadata":{"name":"evicted"},"deleteOptions":${options}}`;
      expect((await api.send('POST', `${PODS}/evicted/eviction`, { body: eviction })).code).toBe(201);
      for (const name of ['own', 'query', 'body', 'evicted']) {
        const { text, body } = await api.send('GET', `${PODS}/${name}`);
        expect(body.metadata.deletionTimestamp, name).toBe(LAST_SECOND);
        const [, kept = ''] = /"deletionGracePeriodSeconds":(\d+)[,}]/.exec(text) ?? [];
        expect(BigInt(kept) < 2n ** 63n, `${name} ${kept}`).toBe(true);
      }
      expect((await api.send('DELETE', `${PODS}/own?gracePeriodSeconds=0`)).code).toBe(200);
      expect((await api.send('GET', `${PODS}/own`)).code).toBe(404);
      expect(api.faults).toEqual([]);
    },
  );

  it.each([
    ['abc', 'invalid syntax'],
    ['1.5', 'invalid syntax'],
    ['1e3', 'invalid syntax'],
    ['NaN', 'invalid syntax'],
    ['', 'invalid syntax'],
    ['9223372036854775808', 'value out of range'],
    ['9'.repeat(400), 'value out of range'],
  ])('%s as a number in the query is refused as Go words it', async (text, why) => {
    const api = apiInMemory();
    await api.send('POST', PODS, { body: podText('p') });
    const message = `strconv.ParseInt: parsing "${text}": ${why}`;
    for (const [method, path] of [
      ['GET', `${NODES}?limit=${text}`],
      ['GET', `${NODES}?watch=1&timeoutSeconds=${text}`],
      ['DELETE', `${PODS}/p?gracePeriodSeconds=${text}`],
      ['DELETE', `${PODS}?limit=${text}`],
    ] as const) {
      expect(await api.send(method, path), path).toMatchObject({ code: 400, body: { message } });
    }
  });

  it.each(['0', '-1', '-9223372036854775808', INT64_MAX_TEXT])('limit=%s is no limit', async (limit) => {
    const api = apiInMemory();
    for (const name of ['n1', 'n2']) await api.send('POST', NODES, { body: node(name) });
    expect((await api.send('GET', `${NODES}?limit=${limit}`)).body.items).toHaveLength(2);
  });

  it.each(['-9223372036854775808', '0', INT64_MAX_TEXT])(
    'a watch of %s seconds ends when the server likes',
    async (seconds) => {
      const api = apiInMemory();
      const startedMs = api.nowMs();
      expect((await api.send('GET', `${NODES}?watch=1&timeoutSeconds=${seconds}`)).code).toBe(200);
      expect(api.nowMs() - startedMs).toBeLessThanOrEqual(20_000);
    },
  );

  it('a watch from a version of the future waits, from none is refused', async () => {
    const api = apiInMemory();
    const from = (version: string) => api.send('GET', `${NODES}?watch=1&timeoutSeconds=1&resourceVersion=${version}`);
    expect(await from('18446744073709551615')).toMatchObject({ code: 200, text: '' });
    expect(await from('18446744073709551616')).toMatchObject({
      code: 400,
      body: {
        message:
          'resourceVersion: Invalid value: "18446744073709551616": strconv.ParseUint: parsing "18446744073709551616": value out of range',
      },
    });
  });

  it.each(['1e400', '"1e999999"', '"NaN"', `"${'9'.repeat(400)}"`])('a capacity of %s is refused', async (cpu) => {
    const api = apiInMemory();
    await api.send('POST', NODES, { body: node('n1') });
    const body = `{"status":{"capacity":{"cpu":${cpu}}}}`;
    expect((await api.send('PATCH', `${NODES}/n1/status`, { body, contentType: MERGE })).code).toBe(422);
  });
});

describe('times', () => {
  it.each(['0000-01-01T00:00:00+23:59', '9999-12-31T23:59:59-23:59'])(
    '%s, which lies outside the years of four digits, is refused',
    async (time) => {
      const api = apiInMemory();
      const condition = { type: 'Ready', status: 'True', lastHeartbeatTime: time };
      const answer = await api.send('POST', NODES, { body: node('n1', { status: { conditions: [condition] } }) });
      expect(answer).toMatchObject({
        code: 400,
        body: {
          message: `Node in version "v1" cannot be handled as a Node: parsing time "${time}": year outside of range [0,9999]`,
        },
      });
    },
  );

  it('the first and the last second of the calendar are kept', async () => {
    const api = apiInMemory();
    const conditions = ['0000-01-01T00:00:00Z', LAST_SECOND].map((lastHeartbeatTime, index) => ({
      type: `T${index}`,
      status: 'True',
      lastHeartbeatTime,
    }));
    const created = await api.send('POST', NODES, { body: node('n1', { status: { conditions } }) });
    expect(created.body.status.conditions).toMatchObject(conditions);
  });

  it.each([LAST_SECOND, '0001-01-01T00:00:01Z'])(
    'an event with the time %s is kept for an hour, like any',
    async (time) => {
      const items = memoryItemStore();
      const api = apiInMemory({ items });
      const event = {
        metadata: { name: 'e', namespace: 'default' },
        involvedObject: { kind: 'Node', name: 'n1' },
        reason: 'R',
        lastTimestamp: time,
      };
      expect((await api.send('POST', EVENTS, { body: event })).code).toBe(201);
      const codeAfter = async (seconds: number) => {
        items.expire('objects', api.nowMs() / 1_000 + seconds);
        return (await api.send('GET', `${EVENTS}/e`)).code;
      };
      expect(await codeAfter(3_500)).toBe(200);
      expect(await codeAfter(3_700)).toBe(404);
    },
  );
});

describe('boolean options', () => {
  it.each(['True', 'TRUE', 'yes', ''])('watch=%s is a watch', async (value) => {
    const api = apiInMemory();
    await api.send('POST', NODES, { body: node('n1') });
    const answer = await api.send('GET', `${NODES}?watch=${value}&timeoutSeconds=1&allowWatchBookmarks=${value}`);
    expect(eventsOf(answer).map(({ type }) => type)).toEqual(['ADDED', 'BOOKMARK']);
  });

  it.each(['0', 'False', 'FALSE'])('watch=%s is a list', async (value) => {
    const api = apiInMemory();
    expect((await api.send('GET', `${NODES}?watch=${value}`)).body.kind).toBe('NodeList');
  });
});

describe('names and texts', () => {
  it.each(['__proto__', 'constructor', 'hasOwnProperty', 'toString'])(
    '%s as a name in a beat is like any other',
    async (name) => {
      const { api, beat } = await machine();
      const answer = await beat(`{"spec":{${JSON.stringify(name)}:1,"leaseDurationSeconds":41}}`);
      expect(answer.status).toBe(200);
      const lease = (await api.send('GET', `${LEASES}/n1`)).body;
      expect(lease.spec).toEqual({ holderIdentity: 'n1', leaseDurationSeconds: 41 });
    },
  );

  it('half a character becomes the replacement character, as in Go', async () => {
    const { api, beat } = await machine();
    expect((await beat('{"spec":{"holderIdentity":"\\ud800x"}}')).status).toBe(200);
    expect((await api.send('GET', `${LEASES}/n1`)).body.spec.holderIdentity).toBe('\ufffdx');
    const body = '{"metadata":{"annotations":{"a":"\\udfff","b":"\\ud83d\\ude00"}}}';
    const patched = await api.send('PATCH', `${NODES}/n1`, { body, contentType: MERGE });
    expect(patched.body.metadata.annotations).toEqual({ a: '\ufffd', b: '😀' });
  });
});

/** A node with its lease, and the heartbeat function beside the API. */
async function machine() {
  const items = memoryItemStore();
  const api = apiInMemory({ items });
  await api.send('POST', NODES, { body: node('n1') });
  await api.send('POST', LEASES, {
    body: { metadata: { name: 'n1' }, spec: { holderIdentity: 'n1', leaseDurationSeconds: 40 } },
  });
  const faults: unknown[] = [];
  const note = (...line: unknown[]) => void faults.push(line);
  const serve = serveHeartbeat({
    items,
    authenticator: staticTokenAuthenticator([
      {
        sha256: createHash('sha256').update('machine').digest('hex'),
        user: 'system:node:n1',
        groups: ['system:nodes'],
      },
    ]),
    clock: { nowMs: api.nowMs },
    random: { uuid: () => 'u', fraction: () => 0.5 },
    log: { debug: note, info: note, warn: note, error: note },
  });
  const beat = async (body: string, contentType = MERGE, query = '') => {
    const answer = await serve({
      method: 'PATCH',
      path: `${LEASES}/n1`,
      query: new URLSearchParams(query),
      headers: { authorization: 'Bearer machine', 'content-type': contentType },
      body: Buffer.from(body),
      sourceIp: '192.0.2.9',
    });
    expect(faults).toEqual([]);
    return answer;
  };
  return { api, beat };
}
