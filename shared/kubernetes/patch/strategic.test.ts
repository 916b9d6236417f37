import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { upstream } from '../../kinds/upstream.ts';
import type { JsonObject } from '../json.ts';
import { keyedList, type StructSchema, struct, text, textMap } from '../schema.ts';
import { mergeValue } from './patch.ts';
import { applyStrategicMergePatch } from './strategic.ts';

const node = upstream.struct('core/v1.Node');
const pod = upstream.struct('core/v1.Pod');
const podDisruptionBudget = upstream.struct('policy/v1.PodDisruptionBudget');

const volume = struct('test.v1.Volume', '', { name: text(''), emptyDir: textMap(''), hostPath: textMap('') });
const workload: StructSchema = struct('test.v1.Workload', '', {
  volumes: keyedList(volume, '', { mergeKey: 'name', retainKeys: true }),
});

const patched = (target: JsonObject, patch: unknown, schema: StructSchema = node) => {
  const result = applyStrategicMergePatch(target, patch, schema);
  return result.kind === 'patched' ? result.object : result;
};

const ready = { type: 'Ready', status: 'True', reason: 'KubeletReady' };
const disk = { type: 'DiskPressure', status: 'False' };

describe('applyStrategicMergePatch', () => {
  it('replaces taints', () => {
    expect(patched({ spec: { taints: [{ key: 'a' }, { key: 'b' }] } }, { spec: { taints: [{ key: 'c' }] } })).toEqual({
      spec: { taints: [{ key: 'c' }] },
    });
  });

  it('removes what is patched to null', () => {
    expect(patched({ spec: { taints: [{ key: 'a' }], unschedulable: true } }, { spec: { taints: null } })).toEqual({
      spec: { unschedulable: true },
    });
  });

  it('merges conditions by type and appends new ones', () => {
    expect(
      patched(
        { status: { conditions: [disk, ready] } },
        {
          status: {
            conditions: [
              { type: 'Ready', status: 'False' },
              { type: 'New', status: 'True', reason: null },
            ],
          },
        },
      ),
    ).toEqual({ status: { conditions: [disk, { ...ready, status: 'False' }, { type: 'New', status: 'True' }] } });
  });

  it('deletes an item on request, and ignores an absent one', () => {
    const patch = {
      status: {
        conditions: [
          { type: 'Ready', $patch: 'delete' },
          { type: 'None', $patch: 'delete' },
        ],
      },
    };
    expect(patched({ status: { conditions: [disk, ready] } }, patch)).toEqual({ status: { conditions: [disk] } });
    expect(patched({ status: {} }, patch)).toEqual({ status: { conditions: [] } });
  });

  it('replaces a list of addresses in which a type stands twice, as a kubelet asks', () => {
    const addresses = [
      { type: 'InternalIP', address: '192.0.2.1' },
      { type: 'InternalIP', address: '2001:db8::1' },
    ];
    const patch = { status: { addresses: [...addresses, { $patch: 'replace' }] } };
    expect(patched({ status: { addresses: [{ type: 'Hostname', address: 'h' }] } }, patch)).toEqual({
      status: { addresses },
    });
  });

  it('replaces or empties an object on $patch', () => {
    const target = { metadata: { labels: { a: '1', b: '2' }, annotations: { x: 'y' } } };
    const patch = { metadata: { labels: { $patch: 'replace', only: 'this' }, annotations: { $patch: 'delete' } } };
    expect(patched(target, patch)).toEqual({ metadata: { labels: { only: 'this' }, annotations: {} } });
  });

  it('merges primitive sets, and removes values from them', () => {
    const target = { metadata: { finalizers: ['a', 'b'] } };
    expect(patched(target, { metadata: { finalizers: ['b', 'c'] } })).toEqual({
      metadata: { finalizers: ['a', 'b', 'c'] },
    });
    expect(
      patched(target, {
        metadata: {
          '$deleteFromPrimitiveList/finalizers': ['a'],
          '$setElementOrder/finalizers': ['c', 'b'],
          finalizers: ['c'],
        },
      }),
    ).toEqual({ metadata: { finalizers: ['c', 'b'] } });
  });

  it('orders merged items as asked and keeps unnamed ones in their place', () => {
    const typed = (...types: string[]) => types.map((type) => ({ type }));
    const patch = {
      status: { '$setElementOrder/conditions': typed('C', 'B', 'A'), conditions: [{ type: 'B', status: 'True' }] },
    };
    expect(patched({ status: { conditions: typed('A', 'X', 'C') } }, patch)).toEqual({
      status: { conditions: [{ type: 'C' }, { type: 'X' }, { type: 'B', status: 'True' }, { type: 'A' }] },
    });
  });

  it('merges containers, their variables and ports, but not their command or their tolerations', () => {
    const target = {
      spec: {
        containers: [
          { name: 'a', command: ['x', 'y'], env: [{ name: 'E', value: '1' }], ports: [{ containerPort: 80 }] },
          { name: 'b' },
        ],
        tolerations: [{ key: 'k' }],
      },
    };
    const patch = {
      spec: {
        containers: [
          { name: 'a', command: ['z'], env: [{ name: 'F', value: '2' }], ports: [{ containerPort: 80, name: 'http' }] },
        ],
        tolerations: [{ key: 'l' }],
      },
    };
    expect(patched(target, patch, pod)).toEqual({
      spec: {
        containers: [
          {
            name: 'a',
            command: ['z'],
            env: [
              { name: 'E', value: '1' },
              { name: 'F', value: '2' },
            ],
            ports: [{ containerPort: 80, name: 'http' }],
          },
          { name: 'b' },
        ],
        tolerations: [{ key: 'l' }],
      },
    });
  });

  it('replaces the selector of a budget', () => {
    const target = { spec: { selector: { matchLabels: { a: '1' } }, minAvailable: 1 } };
    const patch = { spec: { selector: { matchLabels: { b: '2' } } } };
    expect(patched(target, patch, podDisruptionBudget)).toEqual({
      spec: { selector: { matchLabels: { b: '2' } }, minAvailable: 1 },
    });
  });

  it('clears members that $retainKeys does not list', () => {
    const target = { volumes: [{ name: 'v', hostPath: { path: '/x' } }] };
    const patch = (retained: string[]) => ({
      volumes: [{ name: 'v', emptyDir: {}, $retainKeys: retained }],
    });
    expect(patched(target, patch(['name', 'emptyDir']), workload)).toEqual({ volumes: [{ name: 'v', emptyDir: {} }] });
    expect(patched(target, patch(['name']), workload)).toMatchObject({ kind: 'malformed' });
  });

  it('never stores a directive, also where there was nothing to merge with', () => {
    const patch = {
      spec: { $patch: 'merge', taints: [{ $patch: 'delete', key: 'a' }, { key: 'b' }, { $patch: 'replace' }] },
      metadata: { labels: { $retainKeys: ['a'], a: '1', b: null }, '$setElementOrder/ownerReferences': [] },
      status: { conditions: [{ type: 'Ready', $patch: 'merge', status: 'True' }] },
    };
    expect(patched({}, patch)).toEqual({
      spec: { taints: [{ key: 'b' }] },
      metadata: { labels: { a: '1' } },
      status: { conditions: [{ type: 'Ready', status: 'True' }] },
    });
  });

  it.each([
    [null],
    [[]],
    [{ spec: { $patch: 'scramble' } }],
    [{ status: { conditions: [{ status: 'True' }] } }],
    [{ status: { conditions: ['Ready'] } }],
    [{ metadata: { '$setElementOrder/finalizers': 'a' } }],
  ])('calls %j malformed', (patch) => {
    expect(applyStrategicMergePatch({ status: {}, spec: {} }, patch, node)).toMatchObject({ kind: 'malformed' });
  });

  it('keeps a __proto__ member as data', () => {
    const result = patched(
      { metadata: {} },
      JSON.parse('{"metadata":{"__proto__":{"polluted":1}},"__proto__":{"p":1}}'),
    );
    expect(JSON.stringify(result)).toBe('{"metadata":{"__proto__":{"polluted":1}},"__proto__":{"p":1}}');
    expect(({} as JsonObject)['polluted'] ?? ({} as JsonObject)['p']).toBeUndefined();
  });

  it('merges ten thousand items', () => {
    const conditions = Array.from({ length: 10_000 }, (_, index) => ({ type: `t${index}`, status: 'True' }));
    const started = performance.now();
    patched({ status: { conditions } }, { status: { conditions: conditions.toReversed() } });
    expect(performance.now() - started).toBeLessThan(2_000);
  });

  const key = fc.constantFrom(
    ...['metadata', 'spec', 'status', 'taints', 'conditions', 'addresses', 'finalizers', 'ownerReferences', 'labels'],
    ...['type', 'uid', '$patch', '$retainKeys', '$setElementOrder/conditions', '$deleteFromPrimitiveList/finalizers'],
    ...['__proto__', 'constructor', 'a'],
  );
  const scalar = fc.constantFrom<unknown>(null, true, 1, '', 'Ready', 'delete', 'replace', 'merge', 'a');
  const { value: random } = fc.letrec((tie) => ({
    value: fc.oneof(
      { depthSize: 'large' },
      scalar,
      fc.array(tie('value'), { maxLength: 4 }),
      fc.dictionary(key, tie('value'), { maxKeys: 4 }),
    ),
  }));
  const json = random.map((value) => JSON.parse(JSON.stringify(value ?? null)) as unknown);

  it('never throws and never changes its inputs', () => {
    fc.assert(
      fc.property(fc.dictionary(key, json), json, (target, patch) => {
        const before = JSON.stringify([target, patch]);
        const result = applyStrategicMergePatch(target, patch, node);
        expect(['patched', 'malformed']).toContain(result.kind);
        expect(JSON.stringify([target, patch])).toBe(before);
      }),
      { numRuns: 500 },
    );
  });

  it('is a merge patch where the schema is unknown, no directive is used and no list holds a null', () => {
    const plain = fc
      .dictionary(fc.string(), fc.jsonValue())
      .map((value) => JSON.parse(unlistNulls(value)) as JsonObject);
    fc.assert(
      fc.property(plain, plain, (target, patch) => {
        const result = applyStrategicMergePatch(target, patch, undefined);
        expect(JSON.stringify(result)).toBe(JSON.stringify({ kind: 'patched', object: mergeValue(target, patch) }));
      }),
    );
  });
});

/** JSON of the value, without what lists with a null hold: in a list, null means "leave out" to a strategic patch. */
function unlistNulls(value: unknown): string {
  return JSON.stringify(value, (_key, member: unknown) =>
    Array.isArray(member) && /null/.test(JSON.stringify(member)) ? [] : member,
  );
}
