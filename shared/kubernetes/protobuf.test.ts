import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ALL_SCHEMAS } from '../../test/support/all-schemas.ts';
import { envelope as body, field, MAGIC, number, protobufBody } from '../../test/support/protobuf-body.ts';
import { TYPE_TABLE } from '../kinds/generated/type-table.ts';
import { messages } from '../kinds/messages.ts';
import { isProtobuf } from './http.ts';
import { decodeProtobuf } from './protobuf.ts';
import type { ProtoField, ProtoMessage } from './protobuf-table.ts';
import type { Schema, StructSchema } from './schema.ts';

const { messageNamed, messageOfKind } = messages;

const decoded = (bytes: Uint8Array) => {
  const result = decodeProtobuf(messages, bytes);
  return result.kind === 'decoded' ? result.object : result;
};

describe('decodeProtobuf', () => {
  it('reads DeleteOptions with preconditions and dry run', () => {
    const raw = [
      number(1, 0),
      field(2, field(1, 'u-1'), field(2, '42')),
      field(4, 'Background'),
      field(5, 'All'),
      number(99, 7),
    ];
    expect(decoded(body('v1', 'DeleteOptions', ...raw))).toEqual({
      apiVersion: 'v1',
      kind: 'DeleteOptions',
      gracePeriodSeconds: 0,
      preconditions: { uid: 'u-1', resourceVersion: '42' },
      propagationPolicy: 'Background',
      dryRun: ['All'],
    });
  });

  it('reads DeleteOptions in the group of what is deleted', () => {
    expect(decoded(body('policy/v1', 'DeleteOptions', number(1, 30)))).toMatchObject({ gracePeriodSeconds: 30 });
  });

  it('reads reviews', () => {
    expect(
      decoded(
        body(
          'authorization.k8s.io/v1',
          'SelfSubjectAccessReview',
          field(1),
          field(2, field(1, field(1, 'default'), field(2, 'get'), field(3, ''), field(5, 'nodes'), field(6, 'status'))),
        ),
      ),
    ).toEqual({
      apiVersion: 'authorization.k8s.io/v1',
      kind: 'SelfSubjectAccessReview',
      metadata: {},
      spec: {
        resourceAttributes: { namespace: 'default', verb: 'get', group: '', resource: 'nodes', subresource: 'status' },
      },
    });
    expect(
      decoded(body('authorization.k8s.io/v1', 'SelfSubjectRulesReview', field(2, field(1, 'kube-system')))),
    ).toMatchObject({ spec: { namespace: 'kube-system' } });
    expect(decoded(body('authentication.k8s.io/v1', 'SelfSubjectReview'))).toEqual({
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'SelfSubjectReview',
    });
  });

  it('reads a namespace with labels; an unset time is null', () => {
    const labels = [field(11, field(1, 'a'), field(2, '1')), field(11, field(1, '__proto__'))];
    const object = decoded(
      body('v1', 'Namespace', field(1, field(1, 'team'), field(8), ...labels), field(2), field(3)),
    );
    expect(object).toMatchObject({ metadata: { name: 'team', creationTimestamp: null }, spec: {}, status: {} });
    expect(JSON.stringify(object)).toContain('"labels":{"a":"1","__proto__":""}');
  });

  it('reads the lease a kubelet renews, to the microsecond', () => {
    const renewed = field(4, number(1, 1_795_176_000), number(2, 123_456_789));
    const raw = field(2, field(1, 'node-1'), number(2, 40), renewed, number(5, -1));
    expect(decoded(body('coordination.k8s.io/v1', 'Lease', raw))).toMatchObject({
      spec: {
        holderIdentity: 'node-1',
        leaseDurationSeconds: 40,
        renewTime: '2026-11-20T12:00:00.123456Z',
        leaseTransitions: -1,
      },
    });
  });

  it('reads the node a kubelet registers', () => {
    const raw = [
      field(2, field(5, field(1, 'k'), field(2, ''), field(3, 'NoExecute'), field(4, number(1, 1_795_176_000)))),
      field(
        3,
        field(1, field(1, 'cpu'), field(2, field(1, '4'))),
        field(4, field(1, 'Ready'), field(2, 'True'), field(3), field(5, 'r')),
        field(6, field(1, number(1, 10_250))),
        field(7, field(1, 'm-1')),
        field(8, field(1, 'app:1'), field(1, 'app@sha256:0'), number(2, 1)),
      ),
    ];
    expect(decoded(body('v1', 'Node', ...raw))).toMatchObject({
      spec: { taints: [{ key: 'k', value: '', effect: 'NoExecute', timeAdded: '2026-11-20T12:00:00Z' }] },
      status: {
        capacity: { cpu: '4' },
        conditions: [{ type: 'Ready', status: 'True', lastHeartbeatTime: null, reason: 'r' }],
        daemonEndpoints: { kubeletEndpoint: { Port: 10_250 } },
        nodeInfo: { machineID: 'm-1' },
        images: [{ names: ['app:1', 'app@sha256:0'], sizeBytes: 1 }],
      },
    });
  });

  it('reads the bytes of a Secret as base64', () => {
    const raw = field(2, field(1, 'key'), field(2, Buffer.from([0, 255])));
    expect(decoded(body('v1', 'Secret', raw))).toMatchObject({ data: { key: 'AP8=' } });
  });

  it('reads inlined messages into the object around them', () => {
    const volume = field(1, field(1, 'v'), field(2, field(6, field(1, 's'))));
    const ephemeral = field(34, field(1, field(1, 'debugger'), field(2, 'image')), field(2, 'app'));
    expect(decoded(body('v1', 'Pod', field(2, volume, ephemeral)))).toMatchObject({
      spec: {
        volumes: [{ name: 'v', secret: { secretName: 's' } }],
        ephemeralContainers: [{ name: 'debugger', image: 'image', targetContainerName: 'app' }],
      },
    });
  });

  it('reads a list of numbers in one field or in several', () => {
    const exitCodes = (...values: Uint8Array[]) =>
      body('batch/v1', 'Job', field(2, field(11, field(1, field(1, 'FailJob'), field(2, ...values)))));
    const expected = { spec: { podFailurePolicy: { rules: [{ onExitCodes: { values: [1, 300] } }] } } };
    expect(decoded(exitCodes(number(3, 1), number(3, 300)))).toMatchObject(expected);
    expect(decoded(exitCodes(field(3, Buffer.from([0x01, 0xac, 0x02]))))).toMatchObject(expected);
  });

  it('uses apiVersion and kind of the path when the envelope names none', () => {
    const bytes = body('', '', field(1, field(1, 'n')));
    expect(decodeProtobuf(messages, bytes, { apiVersion: 'v1', kind: 'Namespace' })).toEqual({
      kind: 'decoded',
      object: { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'n' } },
    });
  });

  it('quotes the start of a body that is no protobuf, as upstream', () => {
    expect(decodeProtobuf(messages, Buffer.from('{}'), { apiVersion: 'v1', kind: 'Namespace' })).toEqual({
      kind: 'malformed',
      message:
        'the object provided is unrecognized (must be of type Namespace): provided data does not appear to be a protobuf message, expected prefix [107 56 115 0] (7b7d)',
    });
  });

  it('says that other kinds are read as JSON only', () => {
    expect(decodeProtobuf(messages, body('nodekeeper.dev/v1alpha1', 'Decision'))).toMatchObject({
      kind: 'unsupported',
    });
    expect(decodeProtobuf(messages, body('v1', '../v1.Pod'))).toMatchObject({ kind: 'unsupported' });
    expect(decodeProtobuf(messages, MAGIC)).toMatchObject({ kind: 'unsupported' });
  });

  it.each([
    ['no magic', Buffer.from('{"kind":"Node"}')],
    ['nothing', Buffer.alloc(0)],
    ['a length beyond the body', Buffer.concat([MAGIC, Buffer.from([0x0a, 0x7f, 0x01])])],
    ['a number without end', Buffer.concat([MAGIC, Buffer.alloc(11, 0xff)])],
    ['a group', Buffer.concat([MAGIC, Buffer.from([0x0b])])],
    ['field number zero', Buffer.concat([MAGIC, Buffer.from([0x02, 0x00])])],
    ['text that is not UTF-8', Buffer.concat([MAGIC, field(1, field(1, Buffer.from([0xff])))])],
    ['a number for a message', body('v1', 'Namespace', number(1, 1))],
    ['a message for a number', body('v1', 'DeleteOptions', field(1, 'x'))],
    ['a time out of range', body('v1', 'Namespace', field(1, field(8, number(1, 2n ** 62n))))],
    ['a compressed body', Buffer.concat([MAGIC, field(1, field(1, 'v1'), field(2, 'Namespace')), field(3, 'gzip')])],
  ])('calls %s malformed', (_case, bytes) => {
    expect(decodeProtobuf(messages, bytes)).toMatchObject({ kind: 'malformed' });
  });

  it('calls a schema that nests deeper than JSON may malformed', () => {
    let schema: Uint8Array = field(5, 'object');
    for (let level = 0; level < 1_000; level += 1) schema = field(28, schema);
    const version = field(7, field(4, field(1, schema)));
    const bytes = body('apiextensions.k8s.io/v1', 'CustomResourceDefinition', field(2, version));
    expect(decodeProtobuf(messages, bytes)).toMatchObject({ kind: 'malformed' });
  });

  it('never throws, whatever the bytes', () => {
    const frame = (raw: Uint8Array) => body('v1', 'Node', raw);
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 64 }), (bytes) => {
        for (const given of [bytes, Buffer.concat([MAGIC, bytes]), frame(bytes)]) {
          expect(decodeProtobuf(messages, given).kind).toBeTypeOf('string');
        }
      }),
      { numRuns: 1_000 },
    );
  });

  it('knows its own envelope', () => {
    expect(isProtobuf(MAGIC)).toBe(true);
    expect(isProtobuf(Buffer.from('k8s'))).toBe(false);
  });
});

/** A value of every field of a message, each different from its empty value. */
function sample(message: ProtoMessage): Record<string, unknown> {
  const object: Record<string, unknown> = {};
  for (const { name, type, shape } of message.values()) {
    if (name === '' && 'message' in type) Object.assign(object, sample(messageNamed(type.message)));
    else if (shape === 'list') object[name] = [sampleOf(type), sampleOf(type)];
    else if (shape === 'map') object[name] = { one: sampleOf(type), two: sampleOf(type) };
    else object[name] = sampleOf(type);
  }
  return object;
}

function sampleOf(type: ProtoField['type']): unknown {
  if ('message' in type) return sample(messageNamed(type.message));
  const samples = {
    string: 'tëxt',
    bool: true,
    int: -1_234_567_890_123,
    double: 0.5,
    bytes: 'AP8=',
    time: '2026-11-20T12:00:00Z',
    microTime: '2026-11-20T12:00:00.123456Z',
    quantity: '500m',
    intOrString: '25%',
    json: { 'f:metadata': {} },
    strings: ['a', 'b'],
  };
  return samples[type.scalar];
}

/** More of them: `ROUND_TRIPS=100000 npx vitest run shared/kubernetes/protobuf.test.ts`. */
const ROUND_TRIPS = Number(process.env['ROUND_TRIPS'] ?? 1_000);
const LENGTH_MAX = 3;

/** A message with a random part of its fields, lists and maps of random lengths. */
function randomMessage(message: ProtoMessage, random: () => number): Record<string, unknown> {
  const object: Record<string, unknown> = {};
  const count = (): number => 1 + Math.floor(random() * LENGTH_MAX);
  const several = (type: ProtoField['type']) => Array.from({ length: count() }, () => randomValue(type, random));
  for (const { name, type, shape } of message.values()) {
    if (name === '' && 'message' in type) Object.assign(object, randomMessage(messageNamed(type.message), random));
    else if (random() < 0.4) continue;
    else if (shape === 'list') object[name] = several(type);
    else if (shape === 'map')
      object[name] = Object.fromEntries(several(type).map((value, index) => [`k${index}`, value]));
    else object[name] = randomValue(type, random);
  }
  return object;
}

function randomValue(type: ProtoField['type'], random: () => number): unknown {
  if ('message' in type) return randomMessage(messageNamed(type.message), random);
  const below = (limit: number): number => Math.floor(random() * limit);
  const text = (): string => ['a', 'é', '名', '\u{1f600}', '"', 'z'.repeat(1 + below(200))][below(6)] as string;
  const time = (): string => new Date(1 + below(4_000_000_000) * 1_000).toISOString();
  const values: Readonly<Record<string, () => unknown>> = {
    string: text,
    bool: () => true,
    int: () => (random() < 0.5 ? 1 : -1) * (1 + below(2 ** (1 + below(52)))),
    bytes: () => Buffer.from(text()).toString('base64'),
    time: () => time().replace(/\.\d+/, ''),
    microTime: () => time().replace(/\.\d+/, `.${String(below(1_000_000)).padStart(6, '0')}`),
    quantity: () => `${1 + below(1_000)}${['', 'm', 'Ki', 'Gi', 'e3'][below(5)]}`,
    intOrString: () => (random() < 0.5 ? 1 + below(65_535) : `${below(100)}%`),
    json: () => ({ [text()]: { n: below(9), list: [text(), null, false] } }),
    strings: () => Array.from({ length: 1 + below(LENGTH_MAX) }, text),
  };
  return values[type.scalar]?.();
}

/** mulberry32 */
function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

describe('the table of messages', () => {
  const kinds = ALL_SCHEMAS.flatMap((schema) => schema.gvks.map((gvk) => ({ schema, gvk }))).filter(
    // A schema has schemas within (functions/api/custom-resources.test.ts).
    ({ gvk }) => gvk.group !== 'apiextensions.k8s.io',
  );
  const served = kinds.flatMap(({ schema, gvk }) => {
    const apiVersion = gvk.group === '' ? gvk.version : `${gvk.group}/${gvk.version}`;
    const message = messageOfKind(apiVersion, gvk.kind);
    return message === undefined ? [] : [{ apiVersion, kind: gvk.kind, message, schema }];
  });

  it('has no message that contains itself, so the nesting of a body is bounded', () => {
    const depthOf = (name: string, outer: readonly string[]): number => {
      if (outer.includes(name)) throw new Error(`${name} contains itself`);
      const inner = [...messageNamed(name).values()].map(({ type }) =>
        'message' in type ? depthOf(type.message, [...outer, name]) : 0,
      );
      return 1 + Math.max(0, ...inner);
    };
    const names = [...TYPE_TABLE.matchAll(/^(\S+):/gm)].map(([, name = '']) => name);
    expect(names.length).toBeGreaterThan(300);
    expect(Math.max(...names.map((name) => depthOf(name, [])))).toBeLessThanOrEqual(40);
  });

  it.each(served)('carries every field of $apiVersion $kind there and back', ({ apiVersion, kind, message }) => {
    const object = { apiVersion, kind, ...sample(message) };
    expect(decoded(protobufBody(object))).toEqual(object);
  });

  it(`carries ${ROUND_TRIPS} random objects of every kind in turn there and back`, { timeout: 600_000 }, () => {
    for (let round = 0; round < ROUND_TRIPS; round += 1) {
      const { apiVersion, kind, message } = served[round % served.length]!;
      const object = { ...randomMessage(message, seeded(round)), apiVersion, kind };
      const again = decoded(protobufBody(object));
      if (!isDeepStrictEqual(again, object)) expect(again, `round ${round}, ${kind}`).toEqual(object);
    }
  });

  it('has every kind with a schema, except our own, Status and the metrics', () => {
    const names = kinds
      .filter(({ schema }) => !served.some((each) => each.schema === schema))
      .map(({ gvk }) => `${gvk.group}/${gvk.kind}`);
    expect(names.filter((name) => !/^(nodekeeper.dev|metrics.k8s.io)\//.test(name))).toEqual(['/Status']);
  });

  it.each(served)('agrees with the schema of $apiVersion $kind', ({ message, schema }) => {
    expect(differences(schema, message, '')).toEqual([]);
  });
});

/** What the schema has and the message has not, or has with another type. */
function differences(schema: StructSchema, message: ProtoMessage, path: string): string[] {
  const fields = new Map<string, ProtoField>();
  const collect = (of: ProtoMessage): void => {
    for (const each of of.values()) {
      if (each.name === '' && 'message' in each.type) collect(messageNamed(each.type.message));
      else fields.set(each.name, each);
    }
  };
  collect(message);
  return Object.entries(schema.fields).flatMap(([name, { schema: inner }]) => {
    if (schema.gvks.length > 0 && (name === 'apiVersion' || name === 'kind')) return [];
    const known = fields.get(name);
    if (known === undefined) return [`${path}${name}: no field`];
    const shape = inner.kind === 'list' ? 'list' : inner.kind === 'map' ? 'map' : 'single';
    // A field of any type may be a list on the wire.
    if (shape !== known.shape && inner.kind !== 'any') return [`${path}${name}: ${shape}, ${known.shape}`];
    const item = inner.kind === 'list' ? inner.items : inner.kind === 'map' ? inner.values : inner;
    return itemDifferences(item, known.type, `${path}${name}`);
  });
}

const WIRE_KINDS: Readonly<Record<string, string>> = {
  string: 'string',
  boolean: 'bool',
  integer: 'int',
  time: 'time',
  microTime: 'microTime',
  quantity: 'quantity',
  intOrString: 'intOrString',
};

function itemDifferences(schema: Schema, type: ProtoField['type'], path: string): string[] {
  if (schema.kind === 'any') return [];
  if (schema.kind === 'struct') {
    return 'message' in type
      ? differences(schema, messageNamed(type.message), `${path}.`)
      : [`${path}: message, ${type.scalar}`];
  }
  if ('message' in type) return [`${path}: ${schema.kind}, ${type.message}`];
  if (schema.kind === 'list') return type.scalar === 'strings' ? [] : [`${path}: strings, ${type.scalar}`];
  const isBytes = schema.kind === 'string' && schema.format === 'byte';
  const expected = isBytes ? 'bytes' : WIRE_KINDS[schema.kind];
  return expected === type.scalar ? [] : [`${path}: ${schema.kind}, ${type.scalar}`];
}
