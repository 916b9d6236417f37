import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { upstream } from '../../kinds/upstream.ts';
import { decodeStrict } from '../decode.ts';
import { isJsonObject, type JsonObject } from '../json.ts';
import { int32, type StructSchema } from '../schema.ts';
import { type ApplyResult, applyServerSide } from './apply.ts';
import { readManagedFields, trackUpdate } from './managed-fields.ts';

const node = upstream.struct('core/v1.Node');
const pod = upstream.struct('core/v1.Pod');

const by = (manager: string, time = '2026-11-20T12:00:00Z', subresource = '') => ({
  manager,
  apiVersion: 'v1',
  subresource,
  time,
});

interface Options {
  readonly force?: boolean;
  readonly schema?: StructSchema;
  readonly time?: string;
}

const apply = (manager: string, live: JsonObject | undefined, applied: unknown, options: Options = {}): ApplyResult =>
  applyServerSide({
    schema: options.schema ?? node,
    live,
    applied,
    writer: by(manager, options.time),
    force: options.force === true,
  });

/** The object after an apply, as it would be stored. */
const stored = (result: ApplyResult, schema: StructSchema = node): JsonObject => {
  if (result.kind !== 'applied') throw new Error(JSON.stringify(result));
  return decodeStrict(schema, result.object).value;
};

const update = (manager: string, live: JsonObject, change: JsonObject): JsonObject => {
  const next = decodeStrict(node, { ...live, ...change }).value;
  const managedFields = trackUpdate({ schema: node, live, next, writer: by(manager) });
  return { ...next, metadata: { ...(next['metadata'] as JsonObject), managedFields } };
};

const labelled = (labels?: JsonObject): JsonObject => ({
  apiVersion: 'v1',
  kind: 'Node',
  metadata: { name: 'kw-1', ...(labels === undefined ? {} : { labels }) },
});

const labelsOf = (object: JsonObject): unknown => (object['metadata'] as JsonObject)['labels'];
const managersOf = (object: JsonObject): string[] =>
  (readManagedFields((object['metadata'] as JsonObject)['managedFields']) ?? []).map(({ manager }) => manager);

describe('applyServerSide', () => {
  it('removes a field that is no longer applied when no one else owns it; shared fields stay', () => {
    let live = stored(apply('alpha', undefined, labelled({ shared: 'x', mine: '1' })));
    live = stored(apply('beta', live, labelled({ shared: 'x' })));
    expect(labelsOf(live)).toEqual({ shared: 'x', mine: '1' });
    live = stored(apply('alpha', live, labelled()));
    expect(labelsOf(live)).toEqual({ shared: 'x' });
    expect(managersOf(live)).toEqual(['beta']);
    live = stored(apply('beta', live, labelled()));
    expect(labelsOf(live)).toBeUndefined();
    expect((live['metadata'] as JsonObject)['managedFields']).toBeUndefined();
  });

  it('assigns all that an object without managedFields has to one manager', () => {
    const live = labelled({ zone: 'x' });
    expect(apply('alpha', live, labelled({ zone: 'y' }))).toMatchObject({
      kind: 'conflict',
      message: 'Apply failed with 1 conflict: conflict with "before-first-apply" using v1: .metadata.labels.zone',
    });
    expect(managersOf(stored(apply('alpha', live, labelled({ zone: 'x' }))))).toEqual(['alpha', 'before-first-apply']);
  });

  describe('by kubectl, of an object that it applied by itself before', () => {
    const LAST = 'kubectl.kubernetes.io/last-applied-configuration';
    const appliedByClient = (labels: JsonObject, last: unknown) => ({
      ...labelled(labels),
      metadata: { name: 'kw-1', labels, annotations: { [LAST]: JSON.stringify(last) } },
    });

    it('takes over what has the values of that configuration, and no other value', () => {
      const live = appliedByClient({ zone: 'x', rack: '2' }, labelled({ zone: 'x', rack: '1' }));
      const next = labelled({ zone: 'y' });
      expect(apply('kubectl', live, next)).toMatchObject({ kind: 'applied' });
      expect(apply('other', live, next)).toMatchObject({ kind: 'conflict' });
      const both = apply('kubectl', live, labelled({ zone: 'y', rack: '3' }));
      expect(both).toMatchObject({ kind: 'conflict', causes: [{ field: '.metadata.labels.rack' }] });
      const otherVersion = { ...labelled({ zone: 'x' }), apiVersion: 'v2' };
      expect(apply('kubectl', appliedByClient({ zone: 'x' }, otherVersion), next)).toMatchObject({ kind: 'conflict' });
      expect(apply('kubectl', appliedByClient({ zone: 'x' }, 'text'), next)).toMatchObject({ kind: 'conflict' });
    });

    it('writes the configuration into the annotation, for the next client-side apply', () => {
      const live = appliedByClient({ zone: 'x' }, labelled({ zone: 'x' }));
      const next = labelled({ zone: 'y' });
      const lastOf = (manager: string) => {
        const { metadata } = stored(apply(manager, live, next, { force: true })) as {
          metadata: { annotations: Record<string, string> };
        };
        return JSON.parse(metadata.annotations[LAST] ?? '');
      };
      expect(lastOf('kubectl')).toEqual(next);
      expect(lastOf('other')).toEqual(labelled({ zone: 'x' }));
    });
  });

  it('leaves fields without an applier unchanged', () => {
    const live = decodeStrict(node, { ...labelled({ other: 'kept' }), spec: { podCIDR: '10.1.0.0/24' } }).value;
    const after = stored(apply('alpha', live, labelled({ a: '1' })));
    expect(labelsOf(after)).toEqual({ other: 'kept', a: '1' });
    expect(after['spec']).toEqual({ podCIDR: '10.1.0.0/24' });
  });

  it('refuses to change what another manager owns, in the words kubectl shows', () => {
    const live = stored(apply('alpha', undefined, labelled({ zone: 'a', rack: 'r1' })));
    expect(apply('beta', live, labelled({ zone: 'b' }))).toEqual({
      kind: 'conflict',
      message: 'Apply failed with 1 conflict: conflict with "alpha": .metadata.labels.zone',
      causes: [{ reason: 'FieldManagerConflict', message: 'conflict with "alpha"', field: '.metadata.labels.zone' }],
    });
    const edited = update('kubectl-edit', live, { spec: { unschedulable: true } });
    const result = apply('beta', edited, { ...labelled({ zone: 'b', rack: 'r2' }), spec: { unschedulable: false } });
    expect(result).toMatchObject({
      kind: 'conflict',
      message: [
        'Apply failed with 3 conflicts: conflicts with "alpha":',
        '- .metadata.labels.rack',
        '- .metadata.labels.zone',
        'conflicts with "kubectl-edit" using v1:',
        '- .spec.unschedulable',
      ].join('\n'),
    });
  });

  it('takes over a field by force, and its owner loses it', () => {
    const live = stored(apply('alpha', undefined, labelled({ zone: 'a' })));
    const after = stored(apply('beta', live, labelled({ zone: 'b' }), { force: true }));
    expect(labelsOf(after)).toEqual({ zone: 'b' });
    expect(managersOf(after)).toEqual(['beta']);
    expect(labelsOf(stored(apply('alpha', after, labelled())))).toEqual({ zone: 'b' });
  });

  it('lets a manager change what it owns', () => {
    const live = stored(apply('alpha', undefined, labelled({ zone: 'a' })));
    expect(labelsOf(stored(apply('alpha', live, labelled({ zone: 'b' }))))).toEqual({ zone: 'b' });
  });

  it('owns taints as one value', () => {
    const tainted = (...keys: string[]) => ({
      ...labelled(),
      spec: { taints: keys.map((key) => ({ key, effect: 'NoSchedule' })) },
    });
    const live = stored(apply('alpha', undefined, tainted('a', 'b')));
    expect(apply('beta', live, tainted('c'))).toMatchObject({ kind: 'conflict', causes: [{ field: '.spec.taints' }] });
    expect(stored(apply('alpha', live, tainted('b')))).toMatchObject(tainted('b'));
  });

  it('lists as many conflicts as an answer may have', () => {
    const integers = { kind: 'map', values: int32('').schema, atomic: false } as const;
    const spec = { ...int32(''), schema: { kind: 'map', values: integers, atomic: false } as const };
    const schema: StructSchema = { ...node, fields: { spec } };
    const valued = (value: number) => ({
      spec: { ['k'.repeat(10_000)]: Object.fromEntries(Array.from({ length: 1_000 }, (_, i) => [`m${i}`, value])) },
    });
    const live = stored(apply('alpha', undefined, valued(1), { schema }), schema);
    const refused = apply('beta', live, valued(2), { schema });
    expect(refused).toMatchObject({
      kind: 'conflict',
      message: expect.stringMatching(/^Apply failed with 1000 conflicts: .*\nand 994 more, which are not listed$/s),
    });
    expect(JSON.stringify(refused).length).toBeLessThan(200_000);
  });

  it('removes an item with what others changed in it, unless they own the item', () => {
    const named = (...names: string[]): JsonObject => ({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'p' },
      spec: { containers: names.map((name) => ({ name, image: 'i' })) },
    });
    const containersOf = (object: JsonObject) =>
      ((object['spec'] as JsonObject)['containers'] as JsonObject[]).map(({ name }) => name);
    const live = stored(apply('alpha', undefined, named('a', 'b'), { schema: pod }), pod);
    const [first, second] = (live['spec'] as JsonObject)['containers'] as JsonObject[];
    const next = { ...live, spec: { containers: [{ ...first, workingDir: '/w' }, second] } };
    const managedFields = trackUpdate({ schema: pod, live, next, writer: by('editor') });
    const edited = { ...next, metadata: { ...(live['metadata'] as JsonObject), managedFields } };
    expect(containersOf(stored(apply('alpha', edited, named('b'), { schema: pod }), pod))).toEqual(['b']);
    const shared = stored(apply('beta', live, named('a'), { schema: pod }), pod);
    expect(containersOf(stored(apply('alpha', shared, named('b'), { schema: pod }), pod)).sort()).toEqual(['a', 'b']);
  });

  it('owns items of a keyed list one by one', () => {
    const conditions = (...items: JsonObject[]) => ({ ...labelled(), status: { conditions: items } });
    const live = stored(apply('agent', undefined, conditions({ type: 'Ready', status: 'True' })));
    const both = stored(apply('npd', live, conditions({ type: 'Disk', status: 'False' })));
    expect((both['status'] as JsonObject)['conditions']).toMatchObject([{ type: 'Ready' }, { type: 'Disk' }]);
    expect(apply('npd', both, conditions({ type: 'Ready', status: 'False' }))).toMatchObject({
      causes: [{ field: '.status.conditions[type="Ready"].status' }],
    });
    const gone = stored(apply('agent', both, conditions()));
    expect((gone['status'] as JsonObject)['conditions']).toMatchObject([{ type: 'Disk' }]);
  });

  it('keeps an item another manager owns part of, with its key', () => {
    const withContainer = (container: JsonObject) => ({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'p' },
      spec: { containers: [{ name: 'a', ...container }] },
    });
    const live = stored(apply('alpha', undefined, withContainer({ image: 'x' }), { schema: pod }), pod);
    const both = stored(apply('beta', live, withContainer({ workingDir: '/w' }), { schema: pod }), pod);
    const left = stored(apply('alpha', both, { kind: 'Pod', metadata: { name: 'p' } }, { schema: pod }), pod);
    expect((left['spec'] as JsonObject)['containers']).toEqual([{ name: 'a', workingDir: '/w', resources: {} }]);
  });

  it('identifies ports by number and protocol, TCP if left out', () => {
    const ports = (...items: JsonObject[]) => ({
      metadata: { name: 'p' },
      spec: { containers: [{ name: 'a', ports: items }] },
    });
    const udp = { containerPort: 53, protocol: 'UDP' };
    const live = stored(
      apply('alpha', undefined, ports({ containerPort: 53, protocol: 'TCP' }, udp), { schema: pod }),
      pod,
    );
    const after = stored(apply('alpha', live, ports({ containerPort: 53, name: 'dns' }), { schema: pod }), pod);
    expect((after['spec'] as JsonObject)['containers']).toMatchObject([
      { ports: [{ containerPort: 53, protocol: 'TCP', name: 'dns' }] },
    ]);
  });

  it('merges finalizers as a set', () => {
    const held = (...finalizers: string[]) => ({ ...labelled(), metadata: { name: 'kw-1', finalizers } });
    const live = stored(apply('alpha', undefined, held('example.org/a')));
    const both = stored(apply('beta', live, held('example.org/b', 'example.org/a')));
    expect((both['metadata'] as JsonObject)['finalizers']).toEqual(['example.org/b', 'example.org/a']);
    const after = stored(apply('beta', both, held()));
    expect((after['metadata'] as JsonObject)['finalizers']).toEqual(['example.org/a']);
  });

  it('changes nothing when applied again, not even the time', () => {
    const config = { ...labelled({ zone: 'a' }), spec: { taints: [{ key: 'k', effect: 'NoExecute' }] } };
    const live = stored(apply('alpha', undefined, config));
    expect(stored(apply('alpha', live, config, { time: '2026-11-20T13:00:00Z' }))).toEqual(live);
  });

  it('does not touch or own what the request ignores', () => {
    const live = decodeStrict(node, { ...labelled(), status: { phase: 'Old' } }).value;
    const result = applyServerSide({
      schema: node,
      live,
      applied: { ...labelled({ a: '1' }), status: { phase: 'New' } },
      writer: by('alpha'),
      force: false,
      ignored: [['status']],
    });
    const after = stored(result);
    expect((after['status'] as JsonObject)['phase']).toBe('Old');
    expect(JSON.stringify((after['metadata'] as JsonObject)['managedFields'])).not.toContain('f:status');
  });

  it('names unknown fields, which it leaves out', () => {
    const result = apply('alpha', undefined, { ...labelled(), spec: { x: 1 } });
    expect(result).toMatchObject({ kind: 'applied', unknownFields: ['spec.x'], object: { spec: {} } });
  });

  it.each([
    ['a list', []],
    ['managed fields', { metadata: { managedFields: [{ manager: 'x' }] } }],
    ['a wrong type', { spec: { unschedulable: 'yes' } }],
    ['an item without key', { status: { conditions: [{ status: 'True' }] } }],
    ['a key that stands twice', { metadata: { finalizers: ['a', 'a'] } }],
  ])('calls %s malformed', (_case, applied) => {
    expect(apply('alpha', undefined, applied)).toMatchObject({ kind: 'malformed' });
  });

  it('copes with a live list in which a key stands twice', () => {
    const addresses = [
      { type: 'InternalIP', address: '192.0.2.1' },
      { type: 'InternalIP', address: '2001:db8::1' },
    ];
    const live = update('kubelet', decodeStrict(node, labelled()).value, { status: { addresses } });
    const after = stored(apply('alpha', live, labelled({ a: '1' })));
    expect((after['status'] as JsonObject)['addresses']).toEqual(addresses);
  });

  const config = fc.record(
    {
      labels: fc.dictionary(fc.constantFrom('a', 'b', 'c', '__proto__'), fc.constantFrom('1', '2')),
      finalizers: fc.uniqueArray(fc.constantFrom('x', 'y', 'z')),
      conditions: fc.uniqueArray(
        fc.record({ type: fc.constantFrom('R', 'D'), status: fc.constantFrom('True', 'False') }),
        { selector: ({ type }) => type },
      ),
      taints: fc.array(fc.record({ key: fc.constantFrom('k', 'l'), effect: fc.constant('NoSchedule') }), {
        maxLength: 2,
      }),
    },
    { requiredKeys: [] },
  );
  const asNode = ({ labels, finalizers, conditions, taints }: JsonObject) =>
    JSON.parse(
      JSON.stringify({ metadata: { name: 'n', labels, finalizers }, spec: { taints }, status: { conditions } }),
    ) as JsonObject;
  const turns = fc.array(fc.tuple(fc.constantFrom('alpha', 'beta', 'gamma'), config), { minLength: 1, maxLength: 6 });

  it('leaves each field with an owner, holds what was applied last, and touches no input', () => {
    fc.assert(
      fc.property(turns, (steps) => {
        let live: JsonObject | undefined;
        for (const [manager, fields] of steps) {
          const applied = asNode(fields);
          const before = JSON.stringify([live, applied]);
          const result = apply(manager, live, applied, { force: true });
          expect(JSON.stringify([live, applied])).toBe(before);
          live = stored(result);
          expect(contains(live, decodeStrict(node, applied, { sparse: true }).value)).toBe(true);
          expect(stored(apply(manager, live, applied))).toEqual(live);
        }
        for (const manager of ['alpha', 'beta', 'gamma'])
          live = stored(apply(manager, live, { metadata: { name: 'n' } }));
        expect(live).toEqual(decodeStrict(node, { metadata: { name: 'n' } }).value);
      }),
      { numRuns: 300 },
    );
  });

  it('never throws, whatever is applied', () => {
    const key = fc.constantFrom(
      'metadata',
      'labels',
      'managedFields',
      'spec',
      'taints',
      'status',
      'conditions',
      'type',
      '__proto__',
    );
    const { value } = fc.letrec((tie) => ({
      value: fc.oneof(
        { depthSize: 'large' },
        fc.constantFrom<unknown>(null, 'x', 1, true),
        fc.array(tie('value'), { maxLength: 3 }),
        fc.dictionary(key, tie('value'), { maxKeys: 4 }),
      ),
    }));
    const live = stored(apply('alpha', undefined, labelled({ a: '1' })));
    fc.assert(
      fc.property(value, (applied) => {
        expect(apply('beta', live, JSON.parse(JSON.stringify(applied))).kind).toBeTypeOf('string');
      }),
      { numRuns: 300 },
    );
  });
});

/** Whether one object holds all of another; lists by content. */
function contains(whole: unknown, part: unknown): boolean {
  if (Array.isArray(part)) {
    return (
      part.length === 0 || (Array.isArray(whole) && part.every((item) => whole.some((other) => contains(other, item))))
    );
  }
  if (!isJsonObject(part)) return whole === part;
  return Object.keys(part).every((key) => {
    const inner = part[key];
    if (isJsonObject(inner) && Object.keys(inner).length === 0) return true;
    return (isJsonObject(whole) && contains(whole[key], inner)) || (Array.isArray(inner) && inner.length === 0);
  });
}
