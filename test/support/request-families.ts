/**
 * Requests that can be made as long as one likes: for every list and map in the schema of a kind, one that repeats it,
 * with each verb, in each format. Nothing here knows a rule of a kind. Most of these requests are refused.
 */

import { LEASE_BATCH_API_VERSION, LEASE_BATCH_KIND, LEASE_BATCHES_PATH } from '../../shared/fleet/nodes/lease-batch.ts';
import { SILENT_MACHINES_ANNOTATION } from '../../shared/fleet/silent-machines.ts';
import type { ResourceDescriptor } from '../../shared/kinds/descriptor.ts';
import { messages } from '../../shared/kinds/messages.ts';
import { schemaOf } from '../../shared/kinds/schemas.ts';
import type { Field, ListSchema, MapSchema, Schema, StructSchema } from '../../shared/kubernetes/schema.ts';
import { CHANGE_READS } from '../../shared/watches/change-read.ts';
import { APPLY, JSON_PATCH, MERGE, type Send, STRATEGIC } from './api-in-memory.ts';
import { APPLICATION_OBJECTS } from './application-objects.ts';
import { PROTOBUF, protobufBody } from './protobuf-body.ts';

export interface Request extends Send {
  readonly method: string;
  readonly path: string;
}

export interface Family {
  readonly name: string;
  /** What to send at about this many bytes. The last one is measured; those before it prepare the store. */
  requests(bytes: number): readonly Request[];
  /** Served by the heartbeat function with so many Leases. Absent: by the API. */
  readonly leases?: number;
  /** Smallest and largest size, where a limit does not permit those of the law. */
  readonly bytes?: readonly [least: number, most: number];
  /** The measured request is sent so often: the time of a short one cannot be measured. Absent: once. */
  readonly times?: number;
}

type Json = Record<string, unknown>;
type Repeated = ListSchema | MapSchema;
/** From the object to the list or map; `0` stands for an item on the way. */
interface Place {
  readonly steps: readonly { readonly key: string; readonly schema: Schema }[];
  readonly repeated: Repeated;
}
/** Whether items have only what they need or every plain field, and whether they differ. */
interface Style {
  readonly name: string;
  readonly full: boolean;
  readonly distinct: boolean;
}

const DEPTH_MAX = 9;
const STYLES: readonly Style[] = [
  { name: 'different items', full: false, distinct: true },
  { name: 'different full items', full: true, distinct: true },
  { name: 'equal full items', full: true, distinct: false },
];
const CONTAINERS = [{ name: 'main', image: 'registry.example/app:1' }];
/** Valid objects of kinds that application-objects.ts does not have. */
const OBJECTS: Readonly<Record<string, Json>> = {
  ...APPLICATION_OBJECTS,
  daemonsets: APPLICATION_OBJECTS['deployments'] as Json,
  pods: { spec: { containers: CONTAINERS } },
  poddisruptionbudgets: { spec: { minAvailable: 1, selector: { matchLabels: { app: 'a' } } } },
  priorityclasses: { value: 5 },
  volumeattachments: { spec: { attacher: 'd', nodeName: 'n', source: { persistentVolumeName: 'v' } } },
  csinodes: { spec: { drivers: [{ name: 'd', nodeID: 'n' }] } },
};

function placesIn(schema: Schema, steps: Place['steps'] = []): readonly Place[] {
  const below = (key: string, next: Schema) => placesIn(next, [...steps, { key, schema: next }]);
  if (steps.length > DEPTH_MAX) return [];
  if (schema.kind === 'struct') {
    return Object.entries(schema.fields).flatMap(([key, field]) =>
      key === 'managedFields' ? [] : below(key, field.schema),
    );
  }
  if (schema.kind === 'list') return [{ steps, repeated: schema }, ...below('0', schema.items)];
  if (schema.kind === 'map') return [{ steps, repeated: schema }, ...below('k', schema.values)];
  return [];
}

function plainValue(schema: Schema, key: string, index: number): unknown {
  switch (schema.kind) {
    case 'struct':
      return itemsOf(schema, false)(index);
    case 'map':
      return {};
    case 'list':
      return [];
    case 'boolean':
      return true;
    case 'integer':
    case 'number':
      return index + 1;
    case 'time':
      return '2026-01-01T00:00:00Z';
    case 'microTime':
      return '2026-01-01T00:00:00.000000Z';
    case 'quantity':
      return String(index + 1);
    case 'intOrString':
      return index;
    case 'any':
      return index;
    case 'string':
      if (schema.values?.[0] !== undefined) return schema.values[0];
      if (/cidr/i.test(key)) return `10.${index >> 8}.${index & 255}.0/24`;
      if (/^(ip|address|.*IPs?)$/.test(key)) return `10.${index >> 16}.${(index >> 8) & 255}.${index & 255}`;
      return `v${index}`;
  }
}

const isPlain = ({ schema }: Field): boolean => !['struct', 'list', 'map'].includes(schema.kind);

/** Items that differ by their index. */
function itemsOf(schema: Schema, full: boolean, key = '', keys: readonly string[] = []): (index: number) => unknown {
  if (schema.kind !== 'struct') return (index) => plainValue(schema, key, index);
  const fields = Object.entries(schema.fields);
  const needed = fields.filter(([name, field]) => field.required || keys.includes(name) || (full && isPlain(field)));
  const chosen = needed.length > 0 ? needed : fields.filter(([, field]) => isPlain(field)).slice(0, 1);
  return (index) => Object.fromEntries(chosen.map(([name, field]) => [name, plainValue(field.schema, name, index)]));
}

interface Repetition {
  readonly entries: readonly (readonly [string, unknown])[];
  readonly value: unknown;
}

function repetition({ steps, repeated }: Place, bytes: number, { full, distinct }: Style): Repetition {
  const name = steps.at(-1)?.key ?? '';
  const entries: [string, unknown][] = [];
  const items = repeated.kind === 'list' ? repeated.items : repeated.values;
  const keys = repeated.kind === 'list' ? [...repeated.mapKeys, repeated.mergeKey ?? ''] : [];
  const itemAt = itemsOf(items, full, name, keys);
  let item = itemAt(0);
  let length = JSON.stringify(item).length;
  for (let left = bytes, index = 0; left > 0; index += 1) {
    if (distinct && index > 0) {
      item = itemAt(index);
      length = JSON.stringify(item).length;
    }
    const key = `k${index}`;
    entries.push([key, item]);
    left -= length + 1 + (repeated.kind === 'map' ? key.length + 3 : 0);
  }
  return {
    entries,
    value: repeated.kind === 'list' ? entries.map(([, item]) => item) : Object.fromEntries(entries),
  };
}

/** The object with a value at the place; what is missing on the way is made as small as it may be. */
function placed(object: Json, { steps }: Place, value: unknown): Json {
  const copy = structuredClone(object);
  let at: Json = copy;
  for (const [depth, { key, schema }] of steps.entries()) {
    if (depth === steps.length - 1) {
      at[key] = value;
      break;
    }
    at[key] ??= schema.kind === 'struct' ? itemsOf(schema, false)(0) : plainValue(schema, key, 0);
    at = at[key] as Json;
  }
  return copy;
}

/** Block style, the one that people write. */
function yaml(value: unknown, indent = ''): string {
  if (typeof value !== 'object' || value === null) return ` ${JSON.stringify(value)}\n`;
  const lines = Array.isArray(value)
    ? value.map((item) => `${indent}-${yaml(item, `${indent}  `)}`)
    : Object.entries(value).map(([key, item]) => `${indent}${JSON.stringify(key)}:${yaml(item, `${indent}  `)}`);
  return lines.length === 0 ? (Array.isArray(value) ? ' []\n' : ' {}\n') : `\n${lines.join('')}`;
}

interface Target {
  readonly descriptor: ResourceDescriptor;
  readonly schema: StructSchema;
  readonly collection: string;
  readonly base: Json;
}

function targetOf(descriptor: ResourceDescriptor): Target | undefined {
  const { group, version, kind, namespaced, resource } = descriptor;
  const apiVersion = group === '' ? version : `${group}/${version}`;
  const schema = schemaOf(apiVersion, kind);
  if (schema === undefined) return undefined;
  const namespace = namespaced ? `/namespaces/${resource === 'leases' ? 'kube-node-lease' : 'default'}` : '';
  return {
    descriptor,
    schema,
    collection: `${group === '' ? '/api' : '/apis'}/${apiVersion}${namespace}/${resource}`,
    base: { apiVersion, kind, ...OBJECTS[resource], metadata: { name: 'x' } },
  };
}

type Maker = (target: Target, place: Place, repeats: Repetition) => readonly Request[];

const created =
  (contentType: string, written: (object: Json) => unknown): Maker =>
  ({ collection, base }, place, { value }) => [
    { method: 'POST', path: collection, body: written(placed(base, place, value)), contentType },
  ];
/** A write over the same object, stored before if it is valid, and otherwise over the smallest one. */
const over =
  (method: string, contentType: string, query: string, bodyOf: (object: Json, part: Json) => unknown): Maker =>
  ({ collection, base, descriptor }, place, { value }) => {
    const object = placed(base, place, value);
    const part = placed({ apiVersion: base['apiVersion'], kind: base['kind'], metadata: { name: 'x' } }, place, value);
    const isStatus = place.steps[0]?.key === 'status' && descriptor.subresources.some(({ name }) => name === 'status');
    const path = `${collection}/x${isStatus ? '/status' : ''}`;
    return [
      { method: 'POST', path: collection, body: base, contentType: 'application/json' },
      { method: 'PUT', path, body: object, contentType: 'application/json' },
      { method, path: `${path}${query}`, body: bodyOf(object, part), contentType },
    ];
  };
const byOperations: Maker = ({ collection, base }, place, { entries }) => {
  const at = `/${place.steps.map(({ key }) => key).join('/')}`;
  const isList = place.repeated.kind === 'list';
  return [
    { method: 'POST', path: collection, body: placed(base, place, isList ? [] : {}), contentType: 'application/json' },
    {
      method: 'PATCH',
      path: `${collection}/x`,
      contentType: JSON_PATCH,
      body: entries.map(([key, value]) => ({ op: 'add', path: `${at}/${isList ? '-' : key}`, value })),
    },
  ];
};
const deleted: Maker = ({ collection, base }, place, { value }) => [
  { method: 'POST', path: collection, body: base, contentType: 'application/json' },
  { method: 'DELETE', path: `${collection}/x`, body: placed(base, place, value), contentType: 'application/json' },
];

const WRITES: Readonly<Record<string, Maker>> = {
  'PUT in JSON': over('PUT', 'application/json', '', (object) => object),
  'merge patch': over('PATCH', MERGE, '', (_, part) => part),
  'strategic merge patch': over('PATCH', STRATEGIC, '', (_, part) => part),
  'apply in YAML': over('PATCH', APPLY, '?fieldManager=m&force=true', (_, part) => yaml(part)),
  'apply in JSON': over('PATCH', APPLY, '?fieldManager=m', (_, part) => part),
  'JSON patch': byOperations,
  'POST in YAML': created('application/yaml', yaml),
  'POST in protobuf': created(PROTOBUF, (object) => protobufBody(object)),
  'PUT with strict fields': over('PUT', 'application/json', '?fieldValidation=Strict', (object) => object),
  DELETE: deleted,
};

const STATUS_WRITES = ['PUT in JSON', 'merge patch', 'strategic merge patch', 'apply in JSON', 'JSON patch'];

/**
 * One family for each list and map of the kind: verb, format and style of item change from one to the next. Lists near
 * the top are also created with each style of item, and the metadata of ConfigMaps is written in every way.
 */
function bodyFamilies(target: Target): readonly Family[] {
  const { resource } = target.descriptor;
  const hasMessage =
    messages.messageOfKind(String(target.base['apiVersion']), String(target.base['kind'])) !== undefined;
  const post = created('application/json', (object) => object);
  const writes = Object.entries({ 'POST in JSON': post, ...WRITES }).filter(
    ([name]) => hasMessage || name !== 'POST in protobuf',
  );
  const family = ([write, maker]: readonly [string, Maker], place: Place, style: Style): Family => ({
    name: `${resource}: ${write}, ${place.steps.map(({ key }) => key).join('.')}, ${style.name}`,
    requests: (bytes) => maker(target, place, repetition(place, bytes, style)),
  });
  return placesIn(target.schema).flatMap((place, index) => {
    const isMetadata = place.steps[0]?.key === 'metadata';
    // Every kind has these lists; templates of pods are the same in each kind.
    if (isMetadata && resource !== 'configmaps' && resource !== 'pods' && index % 3 !== resource.length % 3) return [];
    const isTemplate = place.steps.some(({ key }) => key === 'template');
    if (isTemplate && index % 13 !== resource.length % 13) return [];
    const write = writes[(index * 3 + resource.length) % writes.length];
    const style = STYLES[index % STYLES.length];
    if (write === undefined || style === undefined) return [];
    if (isMetadata && resource === 'configmaps') {
      return writes.flatMap((each) => STYLES.map((how) => family(each, place, how)));
    }
    const styles = isTemplate || isMetadata || place.steps.length > 4 ? [] : STYLES;
    // Machines write the status of Nodes and pods all the time.
    if (place.steps[0]?.key === 'status' && (resource === 'nodes' || resource === 'pods')) {
      return STATUS_WRITES.flatMap((name) => family([name, WRITES[name] as Maker], place, style));
    }
    return [family(write, place, style), ...styles.map((how) => family(['POST in JSON', post], place, how))];
  });
}

const repeatText = (bytes: number, part: (index: number) => string, separator: string): string => {
  const parts: string[] = [];
  for (let left = bytes, index = 0; left > 0; index += 1) {
    parts.push(part(index));
    left -= (parts.at(-1)?.length ?? 0) + separator.length;
  }
  return parts.join(separator);
};

const QUERIES: Readonly<Record<string, (bytes: number) => string>> = {
  'labels that must be equal': (bytes) => `labelSelector=${repeatText(bytes, (i) => `k${i}%3Dv`, ',')}`,
  'one label many times': (bytes) => `labelSelector=${repeatText(bytes, () => 'k0%3Dv', ',')}`,
  'a set of values': (bytes) => `labelSelector=k0 in (${repeatText(bytes, (i) => `v${i}`, ',')})`,
  'sets of no values': (bytes) => `labelSelector=${repeatText(bytes, (i) => `k${i} notin (a,b)`, ',')}`,
  'absent labels': (bytes) => `labelSelector=${repeatText(bytes, (i) => `!a${i}`, ',')}`,
  'spaces in a selector': (bytes) => `labelSelector=a${' '.repeat(bytes)}b`,
  'open brackets': (bytes) => `labelSelector=${'('.repeat(bytes)}`,
  'fields that must be equal': (bytes) => `fieldSelector=${repeatText(bytes, () => 'metadata.name%3Dx', ',')}`,
  'unknown fields': (bytes) => `fieldSelector=${repeatText(bytes, (i) => `f${i}!%3Dx`, ',')}`,
  'escapes in a field': (bytes) => `fieldSelector=metadata.name%3D${'\\,'.repeat(bytes / 2)}`,
  'a continue token': (bytes) => `limit=1&continue=${'eyJ2'.repeat(bytes / 4)}`,
  'a resource version': (bytes) => `resourceVersion=${'1'.repeat(bytes)}`,
  'a limit': (bytes) => `limit=${'9'.repeat(bytes)}`,
  'unknown options': (bytes) => repeatText(bytes, (i) => `o${i}=1`, '&'),
  'one option many times': (bytes) => repeatText(bytes, () => 'dryRun=All', '&'),
};

/** Selectors and options of a list and of a deletion of many. */
function queryFamilies({ descriptor, collection, base }: Target): readonly Family[] {
  const { resource } = descriptor;
  const isSampled = resource !== 'pods' && resource !== 'nodes' && resource !== 'leases';
  return Object.entries(QUERIES).flatMap(([name, queryOf], index) =>
    (isSampled && index % 8 !== resource.length % 8 ? [] : ['GET', 'DELETE']).map((method) => ({
      name: `${descriptor.resource}: ${method} by query, ${name}`,
      requests: (bytes) => {
        const labels = Object.fromEntries(Array.from({ length: Math.min(bytes / 8, 5_000) }, (_, i) => [`k${i}`, 'v']));
        const stored = { ...base, metadata: { name: 'x', labels } };
        return [
          { method: 'POST', path: collection, body: stored, contentType: 'application/json' },
          { method, path: `${collection}?${queryOf(bytes)}` },
        ];
      },
    })),
  );
}

const HEADERS: Readonly<Record<string, (bytes: number) => Readonly<Record<string, string>>>> = {
  'ranges to accept': (bytes) => ({ accept: repeatText(bytes, (i) => `a/b${i};q=0.5`, ',') }),
  'parameters to accept': (bytes) => ({ accept: `application/json;${repeatText(bytes, (i) => `p${i}=1`, ';')}` }),
  'spaces to accept': (bytes) => ({ accept: `a${' '.repeat(bytes)}b` }),
  'parameters of a type': (bytes) => ({ 'content-type': `application/json;${repeatText(bytes, () => 'a=b', ';')}` }),
  'a user agent': (bytes) => ({ 'user-agent': 'a/'.repeat(bytes / 2) }),
  'a bearer token': (bytes) => ({ authorization: `Bearer ${'a.'.repeat(bytes / 2)}` }),
  preferences: (bytes) => ({ prefer: repeatText(bytes, (i) => `p${i}`, ',') }),
  'encodings to accept': (bytes) => ({ 'accept-encoding': repeatText(bytes, (i) => `e${i};q=0.1`, ', ') }),
};
const PATHS: Readonly<Record<string, (bytes: number) => string>> = {
  'a long name': (bytes) => `/api/v1/nodes/${'a'.repeat(bytes)}`,
  'many parts': (bytes) => `/api/v1/nodes${'/a'.repeat(bytes / 2)}`,
  'many slashes': (bytes) => `/${'/'.repeat(bytes)}`,
  'many dots': (bytes) => `/api/v1/nodes/${'a.'.repeat(bytes / 2)}`,
  'many escapes': (bytes) => `/api/v1/nodes/${'%61'.repeat(bytes / 3)}`,
};
const BODIES: Readonly<Record<string, (bytes: number) => string>> = {
  'nested lists': (bytes) => `{"a":${'['.repeat(bytes / 2)}${']'.repeat(bytes / 2)}}`,
  'nested objects': (bytes) => `${'{"a":'.repeat(bytes / 6)}1${'}'.repeat(bytes / 6)}`,
  'one key many times': (bytes) => `{${repeatText(bytes, () => '"a":1', ',')}}`,
  'unknown keys': (bytes) => `{${repeatText(bytes, (i) => `"u${i}":1`, ',')}}`,
  'no JSON': (bytes) => '{'.repeat(bytes),
  'a long text': (bytes) => `{"a":"${'\\u0061'.repeat(bytes / 6)}"}`,
  'a long number': (bytes) => `{"a":${'1'.repeat(bytes)}}`,
  spaces: (bytes) => `{${' '.repeat(bytes)}}`,
};

const belowLongKey = (bytes: number): string => `{"${'k'.repeat(bytes)}":{${repeatText(bytes, () => '"a":1', ',')}}}`;

function wireFamilies(): readonly Family[] {
  const node = { apiVersion: 'v1', kind: 'Node', metadata: { name: 'x' } };
  const at = { method: 'POST', path: '/api/v1/nodes' };
  return [
    ...Object.entries(HEADERS).map(([name, headersOf]) => ({
      name: `header: ${name}`,
      requests: (bytes: number) => [{ ...at, body: node, headers: headersOf(bytes) }],
    })),
    ...Object.entries(PATHS).map(([name, pathOf]) => ({
      name: `path: ${name}`,
      requests: (bytes: number) => [{ method: 'GET', path: pathOf(bytes) }],
    })),
    ...Object.entries(BODIES).flatMap(([name, textOf]) =>
      ['application/json', 'application/yaml', PROTOBUF].map((contentType) => ({
        name: `body: ${name}, ${contentType}`,
        requests: (bytes: number) => [{ ...at, body: textOf(bytes), contentType }],
      })),
    ),
    {
      name: 'body: one key many times below a long key',
      requests: (bytes) => [{ ...at, body: belowLongKey(bytes / 2), contentType: 'application/json' }],
      // Of a shorter body, the time to copy paths is too short to compare.
      bytes: [96_000, 384_000],
    },
    ...Object.entries(BODIES).flatMap(([name, textOf]) =>
      [MERGE, STRATEGIC, JSON_PATCH, APPLY].map((contentType) => ({
        name: `patch: ${name}, ${contentType}`,
        requests: (bytes: number) => [
          { ...at, body: node, contentType: 'application/json' },
          { method: 'PATCH', path: '/api/v1/nodes/x?fieldManager=m', body: textOf(bytes), contentType },
        ],
      })),
    ),
  ];
}

const LEASES = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases';
/** A heartbeat has at most 8 KB. */
const SMALL = { leases: 1, bytes: [1_900, 7_600], times: 20 } as const;
const BEATS: Readonly<Record<string, Maker>> = {
  'PUT in JSON': beatOf('PUT', 'application/json', (object) => object),
  'PUT in protobuf': beatOf('PUT', PROTOBUF, (object) => protobufBody(object)),
  'PUT with strict fields': beatOf('PUT', 'application/json', (object) => object, '?fieldValidation=Strict'),
  'merge patch': beatOf('PATCH', MERGE, (_, part) => part),
  'strategic merge patch': beatOf('PATCH', STRATEGIC, (_, part) => part),
  'JSON patch': (_, place, { entries }) => [
    {
      ...{ method: 'PATCH', path: `${LEASES}/n0`, contentType: JSON_PATCH },
      body: entries.map(([key, value]) => ({
        op: 'add',
        path: `/${place.steps.map((step) => step.key).join('/')}/${place.repeated.kind === 'list' ? '-' : key}`,
        value,
      })),
    },
  ],
};

function beatOf(method: string, contentType: string, bodyOf: (object: Json, part: Json) => unknown, query = ''): Maker {
  return ({ base }, place, { value }) => {
    const metadata = { name: 'n0', namespace: 'kube-node-lease' };
    const object = placed({ ...base, metadata: { ...metadata, resourceVersion: '1' } }, place, value);
    const part = placed({ metadata }, place, value);
    return [{ method, path: `${LEASES}/n0${query}`, body: bodyOf(object, part), contentType }];
  };
}

/** Bodies of one heartbeat: each list and map of a Lease, each odd text and header, in each way to write it. */
function heartbeatFamilies(target: Target): readonly Family[] {
  const places = placesIn(target.schema);
  const odd = Object.entries(BODIES).flatMap(([name, textOf]) =>
    ['application/json', PROTOBUF, MERGE, STRATEGIC, JSON_PATCH].map((contentType) => ({
      ...SMALL,
      name: `heartbeat: ${name}, ${contentType}`,
      requests: (bytes: number) => [
        {
          method: contentType === 'application/json' || contentType === PROTOBUF ? 'PUT' : 'PATCH',
          ...{ path: `${LEASES}/n0`, body: textOf(bytes), contentType },
        },
      ],
    })),
  );
  const wire = Object.entries(HEADERS).map(([name, headersOf]) => ({
    ...{ leases: 1, name: `heartbeat: header, ${name}` },
    requests: (bytes: number) => [
      { method: 'PATCH', path: `${LEASES}/n0`, body: { spec: {} }, contentType: MERGE, headers: headersOf(bytes) },
    ],
  }));
  const bodies = Object.entries(BEATS).flatMap(([write, maker]) =>
    places.flatMap((place) =>
      STYLES.map((style) => ({
        ...SMALL,
        name: `heartbeat: ${write}, ${place.steps.map(({ key }) => key).join('.')}, ${style.name}`,
        requests: (bytes: number) => maker(target, place, repetition(place, bytes, style)),
      })),
    ),
  );
  return [...bodies, ...odd, ...wire];
}

/** An item has 640 bytes: a batch of 100 is sixteen times one of 6. */
const ITEM_BYTES = 640;
const beatItem = (index: number, body: unknown, more: object = {}): object => ({
  ...{ method: 'PATCH', path: `${LEASES}/n${index}`, token: `n${index}` },
  body: typeof body === 'string' ? body : JSON.stringify(body),
  ...more,
});
const padded = (index: number): unknown => ({
  spec: {},
  metadata: { annotations: { a: `${index}`.padEnd(400, 'x') } },
});
const ITEMS: Readonly<Record<string, (index: number) => unknown>> = {
  'of different nodes': (index) => beatItem(index, padded(index)),
  'of one node': () => beatItem(0, padded(0)),
  'whole Leases': (index) =>
    beatItem(
      index,
      { metadata: { name: `n${index}`, namespace: 'kube-node-lease' }, ...(padded(index) as Json) },
      { method: 'PUT' },
    ),
  'with refused tokens': (index) => beatItem(index, padded(index), { token: 'unknown' }),
  'with tokens of others': (index) => beatItem(index, padded(index), { token: 'n0' }),
  'of nodes that do not exist': (index) => beatItem(index + 1_000, padded(index), { token: 'n0' }),
  'with owners': (index) =>
    beatItem(index, {
      metadata: { ownerReferences: Array.from({ length: 6 }, (_, owner) => ({ uid: `${owner}`, controller: true })) },
    }),
  'with unknown fields': (index) => beatItem(index, `{"spec":{${repeatText(400, (i) => `"u${i}":1`, ',')}}}`),
  'with broken bodies': (index) => beatItem(index, '{'.repeat(400)),
  'with nested bodies': (index) => beatItem(index, '{"a":'.repeat(100)),
  'with long paths': (index) => beatItem(index, '{}', { path: `${LEASES}/${'a.'.repeat(250)}` }),
  'with long methods': (index) => beatItem(index, '{}', { method: 'A'.repeat(500) }),
  'that are texts': () => 'x'.repeat(600),
  'that are lists': () => Array.from({ length: 200 }, () => 1),
  'with unknown members': (index) =>
    beatItem(index, '{}', Object.fromEntries(Array.from({ length: 50 }, (_, i) => [`u${i}`, 1]))),
};

/** Batches of a relay. */
function batchFamilies(): readonly Family[] {
  const to = { method: 'POST', path: LEASE_BATCHES_PATH, contentType: 'application/json' };
  const batchOf = (items: readonly unknown[]) => ({
    apiVersion: LEASE_BATCH_API_VERSION,
    kind: LEASE_BATCH_KIND,
    items,
  });
  return [
    ...Object.entries(ITEMS).map(([name, itemOf]) => ({
      ...{ leases: 100, name: `batch: heartbeats ${name}` },
      requests: (bytes: number) => [
        { ...to, body: batchOf(Array.from({ length: Math.round(bytes / ITEM_BYTES) }, (_, index) => itemOf(index))) },
      ],
    })),
    ...Object.entries(BODIES).map(([name, textOf]) => ({
      ...{ leases: 1, name: `batch: ${name}` },
      requests: (bytes: number) => [{ ...to, body: textOf(bytes) }],
    })),
  ];
}

const CHANGE_READ_RESOURCES: Readonly<Record<string, (index: number) => unknown>> = {
  'of unknown resources': (index) => ({ group: '', resource: `r${index}`, after: '1' }),
  'of one resource': () => ({ group: '', resource: 'pods', after: '1' }),
  'of unknown groups': (index) => ({ group: `g${index}.example`, resource: 'pods', after: '1' }),
  'with malformed versions': (index) => ({ group: '', resource: 'pods', after: `x${index}` }),
  'with long versions': () => ({ group: '', resource: 'pods', after: '9'.repeat(500) }),
  'with unknown fields': (index) => ({ group: '', resource: 'pods', after: '1', [`u${index}`]: [index] }),
  'that are texts': () => 'x'.repeat(100),
};

/** Of many resources, and of changes after malformed versions. A request may name 100 resources. */
function changeReadFamilies(): readonly Family[] {
  const { group, version, resource, kind } = CHANGE_READS;
  const path = `/apis/${group}/${version}/${resource}`;
  const to = { method: 'POST', path, contentType: 'application/json' };
  const bodies = Object.entries(CHANGE_READ_RESOURCES).map(([name, resourceOf]) => ({
    name: `change read: ${name}`,
    requests(bytes: number) {
      const count = Math.ceil(bytes / JSON.stringify(resourceOf(0)).length);
      const resources = Array.from({ length: count }, (_, index) => resourceOf(index));
      return [{ ...to, body: { apiVersion: `${group}/${version}`, kind, spec: { resources } } }];
    },
  }));
  const odd = Object.entries(BODIES).map(([name, textOf]) => ({
    name: `change read: ${name}`,
    requests: (bytes: number) => [{ ...to, body: textOf(bytes) }],
  }));
  return [...bodies, ...odd];
}

/** Reports of silent machines in a heartbeat. */
const REPORTS: Readonly<Record<string, (bytes: number) => string>> = {
  'many names': (bytes) => `hub ${repeatText(bytes, (index) => `n${index}`, ',')}`,
  'one name many times': (bytes) => `hub ${repeatText(bytes, () => 'n1', ',')}`,
  commas: (bytes) => `machine ${','.repeat(bytes)}`,
  'a long name': (bytes) => `machine ${'a-'.repeat(bytes / 2)}`,
  dots: (bytes) => `machine ${'a.'.repeat(bytes / 2)}b`,
  spaces: (bytes) => `hub${' '.repeat(bytes)}`,
};

const reportFamilies = (): readonly Family[] =>
  Object.entries(REPORTS).map(([name, textOf]) => ({
    ...SMALL,
    name: `heartbeat: report of silent machines, ${name}`,
    requests: (bytes) => [
      {
        ...{ method: 'PATCH', path: `${LEASES}/n0`, contentType: MERGE },
        body: { metadata: { annotations: { [SILENT_MACHINES_ANNOTATION]: textOf(bytes) } }, spec: {} },
      },
    ],
  }));

/** Every family of requests to these kinds. */
export function requestFamilies(kinds: readonly ResourceDescriptor[]): readonly Family[] {
  const targets = kinds.flatMap((each) => targetOf(each) ?? []);
  return [
    ...targets.flatMap((target) => [...bodyFamilies(target), ...queryFamilies(target)]),
    ...targets.filter(({ descriptor }) => descriptor.resource === 'leases').flatMap(heartbeatFamilies),
    ...reportFamilies(),
    ...batchFamilies(),
    ...changeReadFamilies(),
    ...wireFamilies(),
  ];
}
