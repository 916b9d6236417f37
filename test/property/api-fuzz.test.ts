/**
 * Valid requests with one invalid part: whatever a client sends, the answer is no server fault, and
 * only the named object changes.
 */

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isJsonObject } from '../../shared/kubernetes/json.ts';
import { apiVersionOf } from '../../shared/kubernetes/normal-form.ts';
import { APPLY, type ApiInMemory, apiInMemory, JSON_PATCH, MERGE, STRATEGIC } from '../support/api-in-memory.ts';
import { APPLICATION_OBJECTS } from '../support/application-objects.ts';
import { findDescriptor } from '../support/find-descriptor.ts';

const RUNS = Number(process.env['NODEKEEPER_FUZZ_RUNS'] ?? 250);
const TIMEOUT_MS = 30_000 + RUNS * 40;

interface Kind {
  readonly path: string;
  readonly object: (name: string) => Record<string, unknown>;
  readonly subresources: readonly string[];
}

const podSpec = {
  containers: [
    {
      name: 'main',
      image: 'registry.example/app:1',
      env: [{ name: 'A', value: 'b' }],
      ports: [{ containerPort: 80, protocol: 'TCP' }],
      resources: { requests: { cpu: '100m' }, limits: { memory: '1Gi' } },
      volumeMounts: [{ name: 'data', mountPath: '/data' }],
    },
  ],
  volumes: [{ name: 'data', emptyDir: {} }],
  tolerations: [{ key: 'k', operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 3 }],
  nodeName: 'bystander',
  terminationGracePeriodSeconds: 5,
};
const meta = (name: string, namespace?: string) => ({
  name,
  ...(namespace === undefined ? {} : { namespace }),
  labels: { app: name },
  annotations: { note: 'text' },
});
const NAMESPACED = '/namespaces/default';

/** The kinds of applications. */
const APPLICATION_KINDS: Readonly<Record<string, Kind>> = Object.fromEntries(
  Object.entries(APPLICATION_OBJECTS).flatMap(([resource, object]) => {
    const descriptor = findDescriptor(resource);
    if (descriptor === undefined) return [];
    const { group, version, kind, namespaced, subresources } = descriptor;
    const apiVersion = apiVersionOf({ group, version });
    const path = `${group === '' ? '/api' : '/apis'}/${apiVersion}${namespaced ? NAMESPACED : ''}/${resource}`;
    const made: Kind = {
      path,
      object: (name) => ({ apiVersion, kind, ...object, metadata: meta(name) }),
      subresources: subresources.map(({ name }) => name),
    };
    return [[kind, made]];
  }),
);

const KINDS: Readonly<Record<string, Kind>> = {
  ...APPLICATION_KINDS,
  Node: {
    path: '/api/v1/nodes',
    object: (name) => ({
      apiVersion: 'v1',
      kind: 'Node',
      metadata: { ...meta(name), finalizers: ['example.org/hold'] },
      spec: { podCIDR: '10.0.0.0/24', taints: [{ key: 'k', value: 'v', effect: 'NoSchedule' }], unschedulable: true },
      status: {
        conditions: [{ type: 'Ready', status: 'True' }],
        capacity: { cpu: '4' },
        addresses: [{ type: 'InternalIP', address: '192.0.2.1' }],
      },
    }),
    subresources: ['status'],
  },
  Pod: {
    path: `/api/v1${NAMESPACED}/pods`,
    object: (name) => ({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: meta(name, 'default'),
      spec: podSpec,
      status: { phase: 'Running' },
    }),
    subresources: ['status', 'eviction', 'binding'],
  },
  Lease: {
    path: '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases',
    object: (name) => ({
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      metadata: meta(name, 'kube-node-lease'),
      spec: { holderIdentity: name, leaseDurationSeconds: 40, renewTime: '2026-01-01T00:00:00.000000Z' },
    }),
    subresources: [],
  },
  OtherLease: {
    path: `/apis/coordination.k8s.io/v1${NAMESPACED}/leases`,
    object: (name) => ({ metadata: meta(name), spec: { holderIdentity: name, leaseTransitions: 1 } }),
    subresources: [],
  },
  Event: {
    path: `/api/v1${NAMESPACED}/events`,
    object: (name) => ({
      apiVersion: 'v1',
      kind: 'Event',
      metadata: meta(name, 'default'),
      involvedObject: { kind: 'Node', name: 'n', namespace: '' },
      reason: 'R',
      message: 'm',
      count: 1,
      lastTimestamp: '2026-01-01T00:00:00Z',
    }),
    subresources: [],
  },
  EventV1: {
    path: `/apis/events.k8s.io/v1${NAMESPACED}/events`,
    object: (name) => ({
      apiVersion: 'events.k8s.io/v1',
      kind: 'Event',
      metadata: { ...meta(name, 'default'), name: `${name}-new` },
      regarding: { kind: 'Node', name: 'n' },
      reason: 'R',
      action: 'A',
      type: 'Normal',
      reportingController: 'example.org/c',
      reportingInstance: 'i',
      eventTime: '2026-01-01T00:00:00.000000Z',
    }),
    subresources: [],
  },
  Namespace: {
    path: '/api/v1/namespaces',
    object: (name) => ({
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: meta(name),
      spec: { finalizers: ['kubernetes'] },
    }),
    subresources: ['status', 'finalize'],
  },
  PodDisruptionBudget: {
    path: `/apis/policy/v1${NAMESPACED}/poddisruptionbudgets`,
    object: (name) => ({
      apiVersion: 'policy/v1',
      kind: 'PodDisruptionBudget',
      metadata: meta(name),
      spec: {
        minAvailable: '50%',
        selector: { matchLabels: { app: name }, matchExpressions: [{ key: 'a', operator: 'DoesNotExist' }] },
      },
    }),
    subresources: ['status'],
  },
  PriorityClass: {
    path: '/apis/scheduling.k8s.io/v1/priorityclasses',
    object: (name) => ({ metadata: meta(name), value: 5, globalDefault: false, preemptionPolicy: 'Never' }),
    subresources: [],
  },
  VolumeAttachment: {
    path: '/apis/storage.k8s.io/v1/volumeattachments',
    object: (name) => ({
      metadata: meta(name),
      spec: { attacher: 'd', nodeName: 'n', source: { persistentVolumeName: 'v' } },
    }),
    subresources: ['status'],
  },
  CSINode: {
    path: '/apis/storage.k8s.io/v1/csinodes',
    object: (name) => ({
      metadata: meta(name),
      spec: { drivers: [{ name: 'd', nodeID: 'n', topologyKeys: ['t'], allocatable: { count: 3 } }] },
    }),
    subresources: [],
  },
  DaemonSet: {
    path: `/apis/apps/v1${NAMESPACED}/daemonsets`,
    object: (name) => ({
      metadata: meta(name),
      spec: {
        selector: { matchLabels: { a: 'b' } },
        template: { metadata: { labels: { a: 'b' } }, spec: podSpec },
      },
    }),
    subresources: ['status'],
  },
};

/** Every position in a value, as keys and indices. */
function placesIn(value: unknown, at: readonly (string | number)[] = []): (readonly (string | number)[])[] {
  const below = Array.isArray(value)
    ? value.flatMap((item, index) => placesIn(item, [...at, index]))
    : isJsonObject(value)
      ? Object.keys(value).flatMap((key) => placesIn(value[key], [...at, key]))
      : [];
  return [at, ...below];
}

function changed(value: unknown, at: readonly (string | number)[], change: (old: unknown) => unknown): unknown {
  const [head, ...rest] = at;
  if (head === undefined) return change(value);
  if (Array.isArray(value)) return value.map((item, index) => (index === head ? changed(item, rest, change) : item));
  const entries = Object.entries(value as Record<string, unknown>);
  const mapped = entries.map(([key, item]) => [key, key === head ? changed(item, rest, change) : item] as const);
  return Object.fromEntries(mapped.filter(([, item]) => item !== undefined));
}

/** A text that is inserted into the body unchanged: numbers that JSON.stringify cannot write. */
const literal = (text: string): string => `@literal ${text}@`;
const withLiterals = (body: string): string => body.replace(/"@literal ([^"@]*)@"/g, '$1');

const EXTREME_NUMBERS: readonly unknown[] = [
  literal('9223372036854775807'),
  literal('-9223372036854775808'),
  literal('9223372036854775809'),
  literal('18446744073709551616'),
  literal('1e400'),
  literal('-1e400'),
  literal('-0'),
  literal('5e-324'),
  2 ** 53 + 2,
  -(2 ** 53),
  2 ** 31 - 1,
  2 ** 31,
  -(2 ** 31),
  1e10,
  1e11,
  1e12,
  1e13,
  8.64e15,
  1e17,
  1e21,
  -1e13,
  -1e300,
];
const EXTREME_TIMES: readonly string[] = [
  '0000-01-01T00:00:00Z',
  '0000-01-01T00:00:00+23:59',
  '0001-01-01T00:00:00Z',
  '0069-12-31T23:59:59Z',
  '1969-12-31T23:59:59.999999Z',
  '9999-12-31T23:59:59Z',
  '9999-12-31T23:59:59.999999999Z',
  '9999-12-31T23:59:59-23:59',
  '2016-12-31T23:59:60Z',
  '2026-02-30T00:00:00Z',
  '2026-01-01T00:00:00+24:00',
  '2026-01-01T00:00:00+99:99',
  '+010000-01-01T00:00:00Z',
  '-000001-12-31T00:01:00Z',
];
const ODD_NAMES: readonly string[] = [
  '__proto__',
  'constructor',
  'prototype',
  'hasOwnProperty',
  'toString',
  'valueOf',
  'length',
  '..',
  '%2e%2e',
  '1',
  '0x1',
  '-',
  'Ünode',
];

const junk = fc.oneof(
  fc.constantFrom<unknown>(
    null,
    true,
    false,
    0,
    -1,
    1.5,
    1e300,
    2 ** 53,
    '',
    ' ',
    'x',
    'a/b/c',
    '\u0000',
    '\ud800',
    '50%',
    '-5%',
  ),
  fc.constantFrom<unknown>(
    [],
    {},
    [null],
    [[]],
    { '': '' },
    { $patch: 'delete' },
    { $patch: 'replace' },
    { $retainKeys: ['a'] },
  ),
  fc.constantFrom<unknown>(
    '9999-99-99T99:99:99Z',
    '2026-01-01T00:00:00Z',
    'NaN',
    '1e999999',
    'target',
    'bystander',
    'x'.repeat(300),
  ),
  fc.constantFrom<unknown>(
    JSON.parse('{"__proto__":{"polluted":true}}'),
    { constructor: { prototype: 1 } },
    { toString: 1 },
  ),
  fc.constantFrom<unknown>(...EXTREME_NUMBERS),
  fc.constantFrom<unknown>(...EXTREME_TIMES),
  fc.constantFrom<unknown>(...ODD_NAMES, ...ODD_NAMES.map((name) => ({ [name]: name }))),
  fc.jsonValue({ maxDepth: 2 }),
);

interface Mutation {
  readonly at: number;
  /** Where the mutation applies; anywhere when there is no such place. */
  readonly among?: 'numbersAndTimes';
  readonly how: 'replace' | 'remove' | 'add' | 'double';
  readonly with: unknown;
}

function valueAt(value: unknown, at: readonly (string | number)[]): unknown {
  return at.reduce<unknown>((holder, key) => (holder as Record<string | number, unknown>)[key], value);
}

function placesFor(value: unknown, { among }: Mutation): (readonly (string | number)[])[] {
  const all = placesIn(value);
  if (among === undefined) return all;
  const fitting = all.filter((at) => {
    const found = valueAt(value, at);
    return typeof found === 'number' || (typeof found === 'string' && /^\d{4}-\d\d-\d\dT/.test(found));
  });
  return fitting.length === 0 ? all : fitting;
}

function mutated(value: unknown, mutations: readonly Mutation[]): unknown {
  return mutations.reduce<unknown>((current, mutation) => {
    const places = placesFor(current, mutation);
    const at = places[mutation.at % places.length] ?? [];
    return changed(current, at, (old) => {
      switch (mutation.how) {
        case 'remove':
          return at.length === 0 ? {} : undefined;
        case 'double':
          return Array.isArray(old) ? [...old, ...old] : [old, old];
        case 'add':
          return isJsonObject(old) ? { ...old, extra: mutation.with } : mutation.with;
        default:
          return mutation.with;
      }
    });
  }, value);
}

const pointer = (at: readonly (string | number)[]): string =>
  at.map((part) => `/${String(part).replaceAll('~', '~0').replaceAll('/', '~1')}`).join('');

const mutation: fc.Arbitrary<Mutation> = fc.record({
  at: fc.nat(200),
  how: fc.constantFrom('replace', 'replace', 'remove', 'add', 'double'),
  with: junk,
});

const GRACE_QUERIES = [
  '1e13',
  '1000000000000',
  '9223372036854775807',
  '-9223372036854775808',
  '9223372036854775808',
  '',
  '0.5',
].map((seconds) => `gracePeriodSeconds=${seconds}`);

const QUERIES = [
  '',
  'fieldValidation=Strict',
  'fieldValidation=Ignore&dryRun=All',
  'fieldManager=m',
  'fieldManager=m&force=true',
  'dryRun=Never',
  'gracePeriodSeconds=-1',
  'pretty=true&timeout=5s',
  ...GRACE_QUERIES,
  'force=True',
];

const READS_MAX = 16;

const request = fc.record({
  kind: fc.constantFrom(...Object.keys(KINDS)),
  name: fc.constant<'target' | 'fresh'>('target'),
  verb: fc.constantFrom('create', 'update', MERGE, STRATEGIC, JSON_PATCH, APPLY, 'delete', 'evict', 'bind', 'read'),
  subresource: fc.nat(READS_MAX),
  mutations: fc.array(mutation, { minLength: 1, maxLength: 3 }),
  query: fc.constantFrom(...QUERIES),
  contentType: fc.constantFrom('application/json', 'application/json', 'application/json', '', 'application/yaml'),
  /** Whether the body is broken as text, at this share of its length. */
  cut: fc.option(fc.double({ min: 0, max: 1, noNaN: true }), { freq: 12, nil: undefined }),
});
type FuzzRequest = typeof request extends fc.Arbitrary<infer T> ? T : never;

/** Numbers and times in fields that later become times: a pod that is deleted, an event. */
const extremeRequest: fc.Arbitrary<FuzzRequest> = fc.record({
  kind: fc.constantFrom('Pod', 'Pod', 'Lease', 'Event', 'Node', 'PriorityClass', 'CSINode'),
  name: fc.constantFrom<'target' | 'fresh'>('target', 'fresh'),
  verb: fc.constantFrom<FuzzRequest['verb']>('create', 'update', MERGE, STRATEGIC, APPLY, 'delete', 'delete', 'evict'),
  subresource: fc.nat(READS_MAX),
  mutations: fc.array(
    fc.record({
      at: fc.nat(200),
      among: fc.constant<'numbersAndTimes'>('numbersAndTimes'),
      how: fc.constant<'replace'>('replace'),
      with: fc.oneof(fc.constantFrom(...EXTREME_NUMBERS), fc.constantFrom<unknown>(...EXTREME_TIMES)),
    }),
    { minLength: 0, maxLength: 2 },
  ),
  query: fc.constantFrom('', '', 'fieldManager=m&force=true', ...GRACE_QUERIES),
  contentType: fc.constant('application/json'),
  cut: fc.constant(undefined),
});

const READS = [
  'limit=-1',
  'limit=1',
  'continue=e30',
  'labelSelector=((',
  'labelSelector=a in (b',
  'fieldSelector=a=b',
  'resourceVersion=x',
  'watch=1&timeoutSeconds=1',
  'watch=1&resourceVersion=1&timeoutSeconds=1',
  'watch=1&timeoutSeconds=x',
  'watch=True&timeoutSeconds=1&allowWatchBookmarks=TRUE',
  'watch=1&timeoutSeconds=-9223372036854775808',
  'watch=1&timeoutSeconds=9223372036854775807',
  'watch=1&timeoutSeconds=1&resourceVersion=18446744073709551615',
  'watch=1&timeoutSeconds=1&resourceVersion=18446744073709551616',
  'limit=9223372036854775807',
  'limit=9223372036854775808',
];

function sent(given: FuzzRequest): { method: string; path: string; body?: unknown; contentType?: string } {
  const kind = KINDS[given.kind]!;
  const object = kind.object(given.name);
  const name = (object['metadata'] as { name: string }).name;
  const subresource = kind.subresources[given.subresource];
  const below = `${kind.path}/${name}${subresource === undefined ? '' : `/${subresource}`}?${given.query}`;
  const target = mutated(object, given.mutations);
  switch (given.verb) {
    case 'create':
      return { method: 'POST', path: `${kind.path}?${given.query}`, body: target, contentType: given.contentType };
    case 'update':
      return { method: 'PUT', path: below, body: target, contentType: given.contentType };
    case 'delete': {
      const options = {
        kind: 'DeleteOptions',
        apiVersion: 'v1',
        gracePeriodSeconds: 1,
        preconditions: { uid: 'x', resourceVersion: '1' },
        dryRun: ['All'],
      };
      return { method: 'DELETE', path: below, body: mutated(options, given.mutations), contentType: given.contentType };
    }
    case 'evict': {
      const eviction = {
        kind: 'Eviction',
        apiVersion: 'policy/v1',
        metadata: { name: given.name },
        deleteOptions: { gracePeriodSeconds: 0 },
      };
      return {
        method: 'POST',
        path: `${KINDS['Pod']!.path}/${given.name}/eviction?${given.query}`,
        body: mutated(eviction, given.mutations),
      };
    }
    case 'bind': {
      const binding = {
        kind: 'Binding',
        apiVersion: 'v1',
        metadata: { name: 'target' },
        target: { kind: 'Node', name: 'n' },
      };
      return {
        method: 'POST',
        path: `${KINDS['Pod']!.path}/target/binding?${given.query}`,
        body: mutated(binding, given.mutations),
      };
    }
    case 'read': {
      const query = READS[given.subresource % READS.length] ?? '';
      return { method: 'GET', path: `${kind.path}?${encodeURI(query)}` };
    }
    case JSON_PATCH: {
      const places = placesIn(object);
      const operations = given.mutations.map((each) => ({
        op: { replace: 'replace', remove: 'remove', add: 'add', double: 'copy' }[each.how],
        path: pointer(places[each.at % places.length] ?? []),
        from: '/metadata/labels',
        value: each.with,
      }));
      return { method: 'PATCH', path: below, body: operations, contentType: JSON_PATCH };
    }
    default:
      return { method: 'PATCH', path: below, body: target, contentType: given.verb };
  }
}

const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{6})?Z$/;
const TIME_FIELD = /(?:Time|Timestamp)$/;

/** Parts of an answer that a client in Go could not read: a time outside four-digit years, a number beyond int64. */
function unreadableIn(value: unknown, at = ''): string[] {
  if (typeof value === 'number')
    return BigInt(Math.trunc(value)) === BigInt.asIntN(64, BigInt(value)) ? [] : [`${at}: ${value}`];
  if (Array.isArray(value)) return value.flatMap((item, index) => unreadableIn(item, `${at}[${index}]`));
  if (!isJsonObject(value)) return [];
  return Object.entries(value).flatMap(([key, item]) => {
    const isTime = TIME_FIELD.test(key) && typeof item === 'string' && !/(?:labels|annotations)$/.test(at);
    if (isTime && !TIME.test(item)) return [`${at}.${key}: ${item}`];
    return unreadableIn(item, `${at}.${key}`);
  });
}

/** Kinds that every run has: requests about pods are sent whatever the kind. */
const ALWAYS = ['Node', 'Pod'];
const stored = async (api: ApiInMemory, kinds: readonly Kind[], name: string) =>
  Promise.all(
    kinds.map(async (kind) => {
      const object = kind.object(name)['metadata'] as { name: string };
      return (await api.send('GET', `${kind.path}/${object.name}`)).text;
    }),
  );

describe('the API under malformed requests', () => {
  it(
    'never answers with a fault of its own, and never changes another object',
    async () => {
      await fc.assert(
        fc.asyncProperty(
          fc.array(fc.oneof(request, extremeRequest), { minLength: 1, maxLength: 4 }),
          async (requests) => {
            const api = apiInMemory();
            const named = new Set([...ALWAYS, ...requests.map(({ kind }) => kind)]);
            const kinds = [...named].map((name) => KINDS[name] as Kind);
            for (const kind of kinds) {
              for (const name of ['bystander', 'target']) {
                const created = await api.send('POST', kind.path, { body: kind.object(name) });
                expect(created).toMatchObject({ code: 201 });
              }
            }
            const before = await stored(api, kinds, 'bystander');
            for (const given of requests) {
              const { method, path, body, contentType } = sent(given);
              const text = body === undefined ? '' : withLiterals(JSON.stringify(body));
              const cut = given.cut === undefined ? text : text.slice(0, Math.floor(given.cut * text.length));
              const answer = await api.send(method, path, {
                ...(body === undefined ? {} : { body: cut }),
                ...(contentType === undefined || contentType === '' ? {} : { contentType }),
              });
              expect(api.faults).toEqual([]);
              expect(answer.code, answer.text).toBeLessThan(500);
              if (answer.body !== undefined) expect(unreadableIn(answer.body)).toEqual([]);
              if (answer.code >= 400) expect(answer.body).toMatchObject({ kind: 'Status', code: answer.code });
            }
            expect(await stored(api, kinds, 'bystander')).toEqual(before);
            for (const text of await stored(api, kinds, 'target')) expect(unreadableIn(JSON.parse(text))).toEqual([]);
            expect(({} as Record<string, unknown>)['polluted']).toBeUndefined();
          },
        ),
        { numRuns: RUNS },
      );
    },
    TIMEOUT_MS,
  );
});
