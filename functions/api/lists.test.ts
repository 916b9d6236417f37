import { randomBytes } from 'node:crypto';
import { gunzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { CONTINUE_SECONDS_MAX, listObjects, type ResourceStorage } from '../../shared/api/resource-storage.ts';
import { RESPONSE_BYTES_MAX } from '../../shared/api/response-body.ts';
import { nodes } from '../../shared/kinds/nodes/serve.ts';
import type { FieldSelector, LabelSelector } from '../../shared/kubernetes/selectors.ts';
import { memoryItemStore } from '../../shared/store/memory/item-store.ts';
import {
  type ApiInMemory,
  apiInMemory,
  NODES,
  node,
  pod,
  podsIn,
  READY,
  TABLE,
} from '../../test/support/api-in-memory.ts';
import { jsonList } from './verbs/read-calls.ts';

const namesIn = (body: { items: { metadata: { name: string } }[] }) => body.items.map((each) => each.metadata.name);

async function withNodes(names: readonly string[]): Promise<ApiInMemory> {
  const api = apiInMemory();
  for (const [index, name] of names.entries()) {
    const labels = { zone: index % 2 === 0 ? 'even' : 'odd' };
    await api.send('POST', NODES, { body: node(name, { metadata: { labels }, spec: { unschedulable: index === 0 } }) });
  }
  return api;
}

describe('a list of leases in all namespaces', () => {
  it.each([1, 2, 3, 10])('ends with every Lease in pages of %i, among nodes that have none', async (limit) => {
    const api = await withNodes(['a', 'b', 'c', 'd', 'e', 'f', 'g']);
    const lease = (namespace: string, name: string) =>
      api.send('POST', `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases`, {
        body: { metadata: { name }, spec: { holderIdentity: name, leaseDurationSeconds: 40 } },
      });
    for (const [namespace, name] of [
      ['default', 'leader'],
      ['kube-node-lease', 'd'],
      ['kube-node-lease', 'g'],
      ['kube-system', 'other'],
    ] as const) {
      expect((await lease(namespace, name)).code).toBe(201);
    }
    const found: string[] = [];
    let token = '';
    for (let page = 0; page < 20; page += 1) {
      const { code, body } = await api.send(
        'GET',
        `/apis/coordination.k8s.io/v1/leases?limit=${limit}&continue=${encodeURIComponent(token)}`,
      );
      expect(code).toBe(200);
      found.push(...namesIn(body));
      token = body.metadata.continue ?? '';
      if (token === '') break;
    }
    expect(found).toEqual(['leader', 'd', 'g', 'other']);
  });
});

describe('a list', () => {
  it('is in order of names, whatever shard they live in, with kind, version and bare items', async () => {
    const api = await withNodes(['c', 'a', 'e', 'b', 'd']);
    const { body } = await api.send('GET', NODES);
    expect(body).toMatchObject({
      kind: 'NodeList',
      apiVersion: 'v1',
      metadata: { resourceVersion: expect.any(String) },
    });
    expect(namesIn(body)).toEqual(['a', 'b', 'c', 'd', 'e']);
    expect(body.items[0].kind).toBeUndefined();
    expect(body.metadata.continue).toBeUndefined();
  });

  it.each([
    ['labelSelector=zone%3Deven', ['a', 'c']],
    ['labelSelector=zone%20in%20(odd),!gone', ['b', 'd']],
    ['fieldSelector=metadata.name!%3Da', ['b', 'c', 'd']],
    ['fieldSelector=spec.unschedulable%3Dtrue', ['a']],
    ['fieldSelector=spec.unschedulable%3Dtrue&labelSelector=zone%3Dodd', []],
  ])('holds only what %s selects', async (query, names) => {
    const api = await withNodes(['a', 'b', 'c', 'd']);
    expect(namesIn((await api.send('GET', `${NODES}?${query}`)).body)).toEqual(names);
  });

  it('of one name reads that object alone, not its namespace', async () => {
    let readUnits = 0;
    const items = memoryItemStore({
      onConsumed: (units) => {
        readUnits += units.readUnits;
      },
    });
    const api = apiInMemory({ items });
    const configMaps = '/api/v1/namespaces/default/configmaps';
    for (const name of Array.from({ length: 40 }, (_, index) => `c${index}`)) {
      await api.send('POST', configMaps, {
        body: { metadata: { name, labels: { a: 'b' } }, data: { k: randomBytes(3_000).toString('base64') } },
      });
    }
    const unitsOf = async (query: string, names: readonly string[]) => {
      readUnits = 0;
      expect(namesIn((await api.send('GET', `${configMaps}?${query}`)).body), query).toEqual(names);
      return readUnits;
    };
    const all = await unitsOf('labelSelector=a%3Db', namesIn((await api.send('GET', configMaps)).body));
    const one = await unitsOf('fieldSelector=metadata.name%3Dc7', ['c7']);
    expect(one).toBeLessThan(all / 2);
    await unitsOf('fieldSelector=metadata.name%3Dc7&labelSelector=a%3Dc', []);
    await unitsOf('fieldSelector=metadata.name%3Dabsent', []);
    expect(namesIn((await api.send('GET', '/api/v1/configmaps?fieldSelector=metadata.name%3Dc7')).body)).toEqual([
      'c7',
    ]);
  });

  it.each([
    'fieldSelector=spec.colour%3Dred',
    'labelSelector=a%20b',
    'limit=many',
    'continue=nonsense',
    'includeObject=All',
  ])('refuses %s', async (query) => {
    expect(await apiInMemory().send('GET', `${NODES}?${query}`)).toMatchObject({
      code: 400,
      body: { reason: 'BadRequest' },
    });
  });

  it('finds the pods of a node, and of events what they are about', async () => {
    const api = apiInMemory();
    for (const [name, nodeName] of [
      ['p', 'a'],
      ['q', 'b'],
      ['r', 'a'],
    ] as const) {
      await api.send('POST', podsIn('default'), { body: pod(name, { spec: { nodeName } }) });
    }
    await api.send('PATCH', `${podsIn('default')}/r/status`, {
      body: { status: { ...READY, phase: 'Failed' } },
      contentType: 'application/merge-patch+json',
    });
    const query = 'fieldSelector=spec.nodeName%3Da,status.phase!%3DFailed';
    expect(namesIn((await api.send('GET', `/api/v1/pods?${query}`)).body)).toEqual(['p']);
    const event = {
      metadata: { name: 'e1', namespace: 'default' },
      involvedObject: { kind: 'Node', name: 'a' },
      reason: 'X',
      lastTimestamp: '2026-01-01T00:00:00Z',
    };
    expect((await api.send('POST', '/api/v1/namespaces/default/events', { body: event })).code).toBe(201);
    const about = async (path: string, field: string) =>
      namesIn((await api.send('GET', `${path}?fieldSelector=${field}.name%3Da,${field}.namespace%3D`)).body);
    expect(await about('/api/v1/events', 'involvedObject')).toEqual(['e1']);
    expect(await about('/apis/events.k8s.io/v1/events', 'regarding')).toEqual(['e1']);
  });
});

describe('pages', () => {
  it('follow each other by name: a deletion between them skips nothing', async () => {
    const api = await withNodes(['a', 'b', 'c', 'd', 'e']);
    const seen: string[] = [];
    let token = '';
    do {
      const { body } = await api.send('GET', `${NODES}?limit=2&continue=${token}`);
      seen.push(...namesIn(body));
      for (const name of namesIn(body)) await api.send('DELETE', `${NODES}/${name}`);
      token = body.metadata.continue ?? '';
    } while (token !== '');
    expect(seen).toEqual(['a', 'b', 'c', 'd', 'e']);
  });

  it('count matches, not reads', async () => {
    const api = await withNodes(['a', 'b', 'c', 'd', 'e']);
    const first = await api.send('GET', `${NODES}?limit=2&labelSelector=zone%3Deven`);
    expect(namesIn(first.body)).toEqual(['a', 'c']);
    const second = await api.send(
      'GET',
      `${NODES}?limit=2&labelSelector=zone%3Deven&continue=${first.body.metadata.continue}`,
    );
    expect(namesIn(second.body)).toEqual(['e']);
    expect(second.body.metadata.resourceVersion).toBe(first.body.metadata.resourceVersion);
  });

  it('of few matches need few reads', async () => {
    let readUnits = 0;
    const api = apiInMemory({
      items: memoryItemStore({
        onConsumed: (units) => {
          readUnits += units.readUnits;
        },
      }),
    });
    const maps = '/api/v1/namespaces/default/configmaps';
    for (let index = 0; index < 64; index += 1) {
      await api.send('POST', maps, {
        body: { metadata: { name: `c${index}`, labels: { last: String(index === 63) } } },
      });
    }
    const unitsOf = async (limit: number) => {
      readUnits = 0;
      const { body } = await api.send('GET', `${maps}?limit=${limit}&labelSelector=last%3Dtrue`);
      expect(namesIn(body)).toEqual(['c63']);
      return readUnits;
    };
    expect(await unitsOf(1)).toBeLessThan(5 * (await unitsOf(64)));
  });

  it('follow no position that is no key of the store', async () => {
    const api = apiInMemory();
    for (const after of ['', 'x'.repeat(1_025), '\u20ac'.repeat(342)]) {
      const token = Buffer.from(JSON.stringify({ v: 1, rv: '1', after, atMs: api.nowMs() })).toString('base64url');
      expect(await api.send('GET', `${NODES}?continue=${token}`)).toMatchObject({
        code: 400,
        body: { message: 'continue key is not valid' },
      });
    }
  });

  it('expire', async () => {
    const api = await withNodes(['a', 'b', 'c']);
    const { body } = await api.send('GET', `${NODES}?limit=1`);
    api.advance(CONTINUE_SECONDS_MAX * 1_000 + 1);
    expect(await api.send('GET', `${NODES}?limit=1&continue=${body.metadata.continue}`)).toMatchObject({
      code: 410,
      body: { reason: 'Expired' },
    });
  });
});

describe('the form of an answer', () => {
  it('is a table for those who ask, with metadata, objects or nothing beside the cells', async () => {
    const api = await withNodes(['a']);
    const { body } = await api.send('GET', NODES, { accept: TABLE });
    expect(body).toMatchObject({ kind: 'Table', apiVersion: 'meta.k8s.io/v1' });
    expect(body.columnDefinitions[0]).toMatchObject({ name: 'Name', format: 'name' });
    expect(body.rows[0].cells.slice(0, 2)).toEqual(['a', 'Unknown,SchedulingDisabled']);
    expect(body.rows[0].object).toMatchObject({ kind: 'PartialObjectMetadata', metadata: { name: 'a' } });
    expect(body.rows[0].object.metadata.managedFields).toBeUndefined();
    const whole = await api.send('GET', `${NODES}?includeObject=Object`, { accept: TABLE });
    expect(whole.body.rows[0].object).toMatchObject({ kind: 'Node', spec: { unschedulable: true } });
    const bare = await api.send('GET', `${NODES}/a?includeObject=None`, { accept: TABLE });
    expect(bare.body.rows[0].object).toBeUndefined();
  });

  it('is metadata alone for those who ask', async () => {
    const api = await withNodes(['a']);
    const accept = (kind: string) => `application/json;as=${kind};g=meta.k8s.io;v=v1`;
    const list = await api.send('GET', NODES, { accept: accept('PartialObjectMetadataList') });
    expect(list.body).toMatchObject({ kind: 'PartialObjectMetadataList', items: [{ metadata: { name: 'a' } }] });
    expect(list.body.items[0].spec).toBeUndefined();
    const one = await api.send('GET', `${NODES}/a`, { accept: accept('PartialObjectMetadata') });
    expect(one.body).toMatchObject({ kind: 'PartialObjectMetadata', metadata: { name: 'a' } });
  });

  it('is JSON even for those who would rather have protobuf', async () => {
    const api = await withNodes(['a']);
    const answer = await api.send('GET', `${NODES}/a`, { accept: 'application/vnd.kubernetes.protobuf, */*' });
    expect(answer).toMatchObject({
      code: 200,
      body: { kind: 'Node' },
      headers: { 'content-type': 'application/json' },
    });
  });
});

describe('large answers', () => {
  /** Quotes and backslashes double when the platform encodes the text once more. */
  const filling = '"\\'.repeat(22_000);
  const many = async (count: number): Promise<ApiInMemory> => {
    const api = apiInMemory();
    for (let index = 0; index < count; index += 1) {
      const metadata = { annotations: { filling } };
      const { code } = await api.send('POST', NODES, {
        body: node(`n${String(index).padStart(3, '0')}`, { metadata }),
      });
      expect(code).toBe(201);
    }
    return api;
  };
  const encoded = (answer: { bytes: Uint8Array; text: string }) => Buffer.byteLength(JSON.stringify(answer.text));

  it('are cut into pages that fit, and the pages hold everything once', async () => {
    const api = apiInMemory();
    for (let index = 0; index < 45; index += 1) {
      // 100,000 characters of three bytes each.
      const metadata = { annotations: { filling: '\u20ac'.repeat(70_000) } };
      const name = `n${String(index).padStart(3, '0')}`;
      expect((await api.send('POST', NODES, { body: node(name, { metadata }) })).code).toBe(201);
    }
    const seen: string[] = [];
    let token = '';
    let pages = 0;
    do {
      const answer = await api.send('GET', `${NODES}?continue=${token}`);
      expect(encoded(answer)).toBeLessThanOrEqual(RESPONSE_BYTES_MAX);
      seen.push(...namesIn(answer.body));
      token = answer.body.metadata.continue ?? '';
      pages += 1;
    } while (token !== '' && pages < 20);
    expect(pages).toBeGreaterThan(1);
    expect(seen).toHaveLength(45);
    expect(new Set(seen).size).toBe(45);
    // What was deleted does not fit either.
    const deleted = await api.send('DELETE', NODES);
    expect(encoded(deleted)).toBeLessThanOrEqual(RESPONSE_BYTES_MAX);
    expect([deleted.code, namesIn(deleted.body).slice(0, 2)]).toEqual([200, ['n000', 'n001']]);
    expect((await api.send('GET', NODES)).body.items).toEqual([]);
  });

  it('go compressed and whole to those who accept it', async () => {
    const api = await many(60);
    const answer = await api.send('GET', NODES, { headers: { 'accept-encoding': 'deflate, gzip;q=0.8' } });
    expect(answer.headers).toMatchObject({ 'content-encoding': 'gzip', vary: 'Accept-Encoding' });
    expect(answer.bytes.byteLength).toBeLessThan(1_000_000);
    const body = JSON.parse(gunzipSync(answer.bytes).toString('utf8'));
    expect(body.items).toHaveLength(60);
    const plain = await api.send('GET', NODES, { headers: { 'accept-encoding': 'gzip;q=0' } });
    expect(plain.headers['content-encoding']).toBeUndefined();
    expect(encoded(plain)).toBeLessThanOrEqual(RESPONSE_BYTES_MAX);
  });
});

describe('kinds that are not kept', () => {
  it.each(['/apis/apiregistration.k8s.io/v1/apiservices'])(
    '%s are there and empty, and cannot be written',
    async (path) => {
      const api = apiInMemory();
      expect(await api.send('GET', path)).toMatchObject({
        code: 200,
        body: { kind: expect.stringMatching(/List$/), items: [], metadata: { resourceVersion: expect.any(String) } },
      });
      const isWatched = !path.endsWith('componentstatuses');
      expect((await api.send('GET', `${path}?watch=1&timeoutSeconds=1`)).code).toBe(isWatched ? 200 : 405);
      expect((await api.send('GET', `${path}/x`)).code).toBe(404);
      expect((await api.send('POST', path, { body: { metadata: { name: 'x' } } })).code).toBe(405);
      expect((await api.send('DELETE', `${path}/x`)).code).toBe(405);
    },
  );
});

describe('a name that no object can have', () => {
  const LONG = 'a'.repeat(2_100);
  const DECISIONS = '/apis/nodekeeper.dev/v1alpha1/decisions';
  const POD_PATH = `${encodeURIComponent('/')}p`;

  it.each([
    ['name of a Node', `${NODES}?fieldSelector=metadata.name%3D${LONG}`],
    ['name of 254 characters', `${NODES}?fieldSelector=metadata.name%3D${'a'.repeat(254)}`],
    ['name of a pod', `/api/v1/namespaces/default/pods?fieldSelector=metadata.name%3D${LONG}`],
    ['node of pods', `/api/v1/pods?fieldSelector=spec.nodeName%3D${LONG}`],
    ['node of decisions', `${DECISIONS}?fieldSelector=node%3D${LONG}`],
    ['zone of decisions', `${DECISIONS}?fieldSelector=zone%3D${LONG}`],
    ['namespace of decisions', `${DECISIONS}?fieldSelector=pod%3D${LONG}${POD_PATH}`],
    ['pod of decisions', `${DECISIONS}?fieldSelector=about.kind%3DPod,about.namespace%3Ddefault,about.name%3D${LONG}`],
  ])('lists nothing for a %s that is too long', async (_what, path) => {
    expect(await apiInMemory().send('GET', path)).toMatchObject({ code: 200, body: { items: [] } });
  });

  it.each(['kube-node-lease', 'default'])('is watched in %s without an event', async (namespace) => {
    const path = `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases?watch=1&timeoutSeconds=1`;
    const { code, text } = await apiInMemory().send('GET', `${path}&fieldSelector=metadata.name%3D${LONG}`);
    expect([code, text]).toEqual([200, '']);
  });

  it.each(['Pod', 'Node'])('is that of no %s for a token', async (kind) => {
    const spec = { boundObjectRef: { apiVersion: 'v1', kind, name: LONG } };
    const path = '/api/v1/namespaces/default/serviceaccounts/default/token';
    expect((await apiInMemory().send('POST', path, { body: { spec } })).code).toBe(404);
  });
});

it('a list is the JSON of it, and a long one is written in several turns of the event loop', async () => {
  const list = (count: number) => ({ kind: 'NodeList', items: Array(count).fill({ text: 'x'.repeat(10_000) }) });
  for (const [count, least] of [
    [0, 0],
    [2, 0],
    [100, 3],
  ] as const) {
    let turns = 0;
    let isOver = false;
    const onTurn = (): void => {
      turns += 1;
      if (!isOver) setImmediate(onTurn);
    };
    setImmediate(onTurn);
    const answer = await jsonList(200, list(count), { warning: 'w' });
    isOver = true;
    expect(answer.body === JSON.stringify(list(count))).toBe(true);
    expect(answer.headers).toMatchObject({ 'content-type': 'application/json', warning: 'w' });
    expect(turns).toBeGreaterThanOrEqual(least);
  }
});

it('no more of a list is written when its client has left', async () => {
  const items = Array.from({ length: 20 }, () => ({ text: 'x'.repeat(100_000) }));
  const left = new AbortController();
  setImmediate(() => left.abort());
  await expect(jsonList(200, { items }, {}, left.signal)).rejects.toThrow('the client has left');
});

it('a page ends by the lengths that the storage has read, and no object is written to count it', async () => {
  const item = (name: string) => ({
    metadata: { name },
    toJSON: () => {
      throw new Error('written');
    },
  });
  const storage = {
    listVersion: async () => '1',
    list: async () => ({ items: [item('a'), item('b'), item('c')], lengths: [10, 10, 10] }),
  } as unknown as ResourceStorage;
  const nothing = { matches: () => true } as unknown as FieldSelector & LabelSelector;
  const page = await listObjects(storage, nodes, {
    namespace: '',
    limit: 0,
    charactersMax: 15,
    continueToken: '',
    labels: nothing,
    fields: { ...nothing, exact: () => undefined },
    nowMs: 0,
  });
  expect(page.items.map(({ metadata }) => metadata.name)).toEqual(['a', 'b']);
});
