import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { upstream } from '../../kinds/upstream.ts';
import { decodeStrict } from '../decode.ts';
import { type JsonObject, jsonEqual } from '../json.ts';
import { changesOf, difference, EMPTY_FIELD_SET, type FieldSet, fieldSetOf, isEmptySet } from './field-set.ts';

const schema = upstream.struct('core/v1.Pod');

const few = (...values: string[]) => fc.constantFrom(...values);
const texts = fc.dictionary(few('a', 'b', '__proto__'), few('', '1', '2'), { maxKeys: 2 });
const containers = fc.uniqueArray(
  fc.record({
    name: few('', 'one'),
    image: few('', 'x', 'y'),
    resources: fc.record({ limits: fc.dictionary(few('cpu', 'memory'), few('0', '1')) }, { requiredKeys: [] }),
    // Two of one name make a list that is owned as one value.
    env: fc.array(fc.record({ name: few('A', 'B'), value: few('', 'v') }), { maxLength: 2 }),
  }),
  { maxLength: 2, selector: ({ name }) => name },
);
const pods = fc
  .record(
    {
      metadata: fc.record({ labels: texts, annotations: texts, finalizers: fc.uniqueArray(few('x', 'y')) }),
      spec: fc.record({ containers, nodeSelector: texts, hostNetwork: fc.boolean(), securityContext: fc.constant({}) }),
      status: fc.record({ phase: few('', 'Running'), message: few('', 'm') }),
    },
    { requiredKeys: ['metadata'] },
  )
  .map((pod) => decodeStrict(schema, JSON.parse(JSON.stringify(pod)) as JsonObject).value);
const ignoring = fc.constantFrom<(readonly string[])[]>(
  [],
  [['status']],
  [['metadata', 'labels']],
  [['spec', 'containers']],
);

/** By whole sets, with the values in them. */
function changedBetween(before: FieldSet, after: FieldSet): FieldSet {
  const children = new Map<string, FieldSet>();
  for (const [key, child] of after.children) {
    const changed = changedBetween(before.children.get(key) ?? EMPTY_FIELD_SET, child);
    if (!isEmptySet(changed)) children.set(key, changed);
  }
  return { owned: after.owned && !(before.owned && jsonEqual(before.value, after.value)), children };
}

describe('the changes between two objects', () => {
  it('are those between their whole sets of fields, although equal members are not looked into', () => {
    fc.assert(
      fc.property(pods, pods, ignoring, (before, after, ignored) => {
        const sets = [fieldSetOf(schema, before, ignored), fieldSetOf(schema, after, ignored)] as const;
        expect(changesOf(schema, before, after, ignored)).toEqual({
          changed: changedBetween(...sets),
          removed: difference(...sets),
        });
      }),
      { numRuns: 1_000 },
    );
  });
});
