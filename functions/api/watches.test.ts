import { describe, expect, it } from 'vitest';
import {
  type ApiInMemory,
  apiInMemory,
  eventsOf,
  MERGE,
  NODES,
  node,
  pod,
  podsIn,
  READY,
  TABLE,
} from '../../test/support/api-in-memory.ts';

const LEASES = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases';
const told = (answer: Parameters<typeof eventsOf>[0]) =>
  eventsOf(answer).map(({ type, object }) => `${type} ${object.metadata.name ?? ''}`.trim());
const label = (api: ApiInMemory, name: string, labels: Record<string, string | null>) =>
  api.send('PATCH', `${NODES}/${name}`, { body: { metadata: { labels } }, contentType: MERGE });
const versionNow = async (api: ApiInMemory): Promise<string> =>
  (await api.send('GET', NODES)).body.metadata.resourceVersion;

describe('a long poll', () => {
  it('ends at the first news, with all that came since it last looked', async () => {
    const api = apiInMemory();
    const from = await versionNow(api);
    const startMs = api.nowMs();
    api.at(2_100, () => api.send('POST', NODES, { body: node('a') }));
    api.at(2_900, () => api.send('POST', NODES, { body: node('b') }));
    const answer = await api.send('GET', `${NODES}?watch=true&resourceVersion=${from}`);
    expect(told(answer)).toEqual(['ADDED a', 'ADDED b']);
    expect(api.nowMs() - startMs).toBeLessThan(5_000);
  });

  it.each([
    ['', 20],
    ['&timeoutSeconds=7', 7],
    ['&timeoutSeconds=600', 20],
    ['&fieldSelector=metadata.name%3Da&timeoutSeconds=300', 2],
    ['&fieldSelector=metadata.name%3Da', 20],
  ])('without changes is held and then empty: %s lasts %i s', async (query, seconds) => {
    const api = apiInMemory();
    const from = await versionNow(api);
    const startMs = api.nowMs();
    const answer = await api.send('GET', `${NODES}?watch=1&resourceVersion=${from}${query}`);
    expect(answer).toMatchObject({ code: 200, text: '' });
    expect(Math.round((api.nowMs() - startMs) / 1_000)).toBe(seconds);
  });

  it('ends with a bookmark for those who asked, and for the client that cannot ask', async () => {
    const api = apiInMemory();
    const from = await versionNow(api);
    const path = `${NODES}?watch=1&timeoutSeconds=1&resourceVersion=${from}`;
    const bookmark = {
      type: 'BOOKMARK',
      object: { kind: 'Node', apiVersion: 'v1', metadata: { creationTimestamp: null } },
    };
    for (const answer of [
      await api.send('GET', `${path}&allowWatchBookmarks=true`),
      await api.send('GET', path, { accept: '*/*', headers: { 'user-agent': 'undici' } }),
    ]) {
      const [event, ...more] = eventsOf(answer);
      expect(event).toMatchObject(bookmark);
      expect(Number(event?.object.metadata.resourceVersion)).toBeGreaterThanOrEqual(Number(from));
      expect(more).toEqual([]);
    }
  });

  it('from nothing begins with the state, which does not end it', async () => {
    const api = apiInMemory();
    await api.send('POST', NODES, { body: node('a') });
    api.at(4_000, () => api.send('DELETE', `${NODES}/a`));
    const answer = await api.send('GET', `${NODES}?watch=1&resourceVersion=0&fieldSelector=metadata.name%3Da`);
    expect(told(answer)).toEqual(['ADDED a', 'DELETED a']);
  });

  it('that is to send the state says where it ends and closes', async () => {
    const api = apiInMemory();
    await api.send('POST', NODES, { body: node('a') });
    const query = 'watch=1&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan';
    const events = eventsOf(await api.send('GET', `${NODES}?${query}`));
    expect(events.map(({ type }) => type)).toEqual(['ADDED', 'BOOKMARK']);
    expect(events[1]?.object.metadata.annotations).toEqual({ 'k8s.io/initial-events-end': 'true' });
  });

  it('in table form sends the columns once', async () => {
    const api = apiInMemory();
    const from = await versionNow(api);
    await api.send('POST', NODES, { body: node('a') });
    await api.send('POST', NODES, { body: node('b') });
    const answer = await api.send('GET', `${NODES}?watch=1&resourceVersion=${from}`, { accept: TABLE });
    // biome-ignore lint/suspicious/noExplicitAny: a Table is no KubeObject.
    const tables = eventsOf(answer).map(({ object }) => object as any);
    expect(tables.map((table) => table.kind)).toEqual(['Table', 'Table']);
    expect(tables[0].columnDefinitions).not.toBeNull();
    expect(tables[1].columnDefinitions).toBeNull();
    expect(tables[1].rows[0].cells[0]).toBe('b');
  });

  it('from a version older than the log is 410', async () => {
    const api = apiInMemory();
    const from = await versionNow(api);
    api.advance(3_601_000);
    await api.send('POST', NODES, { body: node('a') });
    expect(await api.send('GET', `${NODES}?watch=1&resourceVersion=${from}`)).toMatchObject({
      code: 410,
      body: { reason: 'Expired' },
    });
    expect((await api.send('GET', `${NODES}?watch=1&resourceVersion=soon`)).code).toBe(400);
  });

  it('of more state than an answer holds sends the client to the list', async () => {
    const api = apiInMemory();
    for (let index = 0; index < 30; index += 1) {
      const metadata = { annotations: { filling: 'x'.repeat(95_000) } };
      await api.send('POST', NODES, { body: node(`n${index}`, { metadata }) });
    }
    expect((await api.send('GET', `${NODES}?watch=1&resourceVersion=0`)).code).toBe(410);
    expect(
      await api.send('GET', `${NODES}?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan`),
    ).toMatchObject({
      code: 422,
      body: { details: { causes: [{ field: 'sendInitialEvents' }] } },
    });
  });

  it('of more changes than one response holds continues where it ended', async () => {
    const api = apiInMemory();
    let from = await versionNow(api);
    const names = Array.from({ length: 45 }, (_, index) => `n${String(index).padStart(2, '0')}`);
    for (const name of names) {
      await api.send('POST', NODES, {
        body: node(name, { metadata: { annotations: { filling: 'x'.repeat(95_000) } } }),
      });
    }
    const seen: string[] = [];
    for (let poll = 0; poll < 10 && seen.length < names.length; poll += 1) {
      const events = eventsOf(await api.send('GET', `${NODES}?watch=1&timeoutSeconds=1&resourceVersion=${from}`));
      seen.push(...events.map(({ object }) => object.metadata.name ?? ''));
      from = events.at(-1)?.object.metadata.resourceVersion ?? from;
    }
    expect(seen).toEqual(names);
  });
});

describe('a watch through a selector', () => {
  it('adds what enters and deletes what leaves, as it looked before it left', async () => {
    const api = apiInMemory();
    await api.send('POST', NODES, { body: node('a', { metadata: { labels: { zone: 'x' } } }) });
    await api.send('POST', NODES, { body: node('b') });
    const from = await versionNow(api);
    await label(api, 'a', { zone: 'y' });
    await label(api, 'b', { zone: 'x' });
    await label(api, 'b', { colour: 'red' });
    await label(api, 'a', { colour: 'blue' });
    const answer = await api.send('GET', `${NODES}?watch=1&resourceVersion=${from}&labelSelector=zone%3Dx`);
    expect(told(answer)).toEqual(['DELETED a', 'ADDED b', 'MODIFIED b']);
    const [left] = eventsOf(answer);
    expect(left?.object.metadata.labels).toMatchObject({ zone: 'x' });
    expect(Number(left?.object.metadata.resourceVersion)).toBeGreaterThan(Number(from));
  });

  it('sees pods leave a phase', async () => {
    const api = apiInMemory();
    await api.send('POST', podsIn('default'), { body: pod('p') });
    const from = (await api.send('GET', podsIn('default'))).body.metadata.resourceVersion;
    await api.send('PATCH', `${podsIn('default')}/p/status`, { body: { status: READY }, contentType: MERGE });
    const query = `watch=1&resourceVersion=${from}&fieldSelector=status.phase%3DPending`;
    const events = eventsOf(await api.send('GET', `/api/v1/pods?${query}`));
    expect(events).toMatchObject([{ type: 'DELETED', object: { status: { phase: 'Pending' } } }]);
  });

  it('sends events with their newer names to watches of the newer group', async () => {
    const api = apiInMemory();
    const path = '/apis/events.k8s.io/v1/events';
    const from = (await api.send('GET', path)).body.metadata.resourceVersion;
    const event = { metadata: { name: 'e' }, involvedObject: { kind: 'Node', name: 'a' }, reason: 'X' };
    expect((await api.send('POST', '/api/v1/namespaces/default/events', { body: event })).code).toBe(201);
    const answer = await api.send('GET', `${path}?watch=1&resourceVersion=${from}&fieldSelector=regarding.name%3Da`);
    expect(eventsOf(answer)).toMatchObject([
      { type: 'ADDED', object: { apiVersion: 'events.k8s.io/v1', regarding: { name: 'a' } } },
    ]);
  });
});

describe('a watch of node leases', () => {
  const lease = (name: string) => ({ metadata: { name }, spec: { holderIdentity: name, leaseDurationSeconds: 40 } });
  const renew = (api: ApiInMemory, name: string) =>
    api.send('PATCH', `${LEASES}/${name}`, {
      body: { spec: { renewTime: new Date(api.nowMs()).toISOString().replace('Z', '000Z') } },
      contentType: MERGE,
    });

  it('compares what it reads: new, renewed and deleted leases', async () => {
    const api = apiInMemory();
    await api.send('POST', LEASES, { body: lease('a') });
    await api.send('POST', LEASES, { body: lease('b') });
    const state = `${LEASES}?watch=1&resourceVersion=0`;
    api.at(3_000, () => renew(api, 'a'));
    expect(told(await api.send('GET', state))).toEqual(['ADDED a', 'ADDED b', 'MODIFIED a']);
    api.at(3_000, () => api.send('DELETE', `${LEASES}/b`));
    api.at(3_000, () => api.send('POST', LEASES, { body: lease('c') }));
    expect(told(await api.send('GET', state))).toEqual(['ADDED a', 'ADDED b', 'ADDED c', 'DELETED b']);
    expect(api.faults).toEqual([]);
  });

  it('resumed sends every lease written since, even if the client knows it already', async () => {
    const api = apiInMemory();
    await api.send('POST', LEASES, { body: lease('a') });
    await api.send('POST', LEASES, { body: lease('b') });
    api.advance(60_000);
    const from = (await api.send('GET', `${LEASES}?watch=1&resourceVersion=0&allowWatchBookmarks=1&timeoutSeconds=1`))
      .text;
    const bookmark = JSON.parse(from.trim().split('\n').at(-1) ?? '{}').object.metadata.resourceVersion;
    api.advance(10_000);
    await renew(api, 'b');
    const answer = await api.send('GET', `${LEASES}?watch=1&resourceVersion=${bookmark}&timeoutSeconds=1`);
    expect(told(answer)).toEqual(['MODIFIED b']);
  });

  it('of one lease reads that one', async () => {
    const api = apiInMemory();
    await api.send('POST', LEASES, { body: lease('a') });
    await api.send('POST', LEASES, { body: lease('b') });
    api.at(2_000, () => renew(api, 'b'));
    api.at(4_000, () => renew(api, 'a'));
    const answer = await api.send('GET', `${LEASES}?watch=1&resourceVersion=0&fieldSelector=metadata.name%3Da`);
    expect(told(answer)).toEqual(['ADDED a', 'MODIFIED a']);
  });
});
