import { expect, it } from 'vitest';
import type { Field } from './schema.ts';
import { schemaTable, typeTable } from './type-table.ts';

const TABLE = `
core/v1.Cloth: atomic, 1 weave string default(silk)
core/v1.Flag: kind, 1 metadata+ meta/v1.ObjectMeta, 2 = Cloth, 3 hue+! $Hue, 4 raised? time, 5 size int64,
 6 cloths *Cloth map(weave/dye) retain(weave), 7 names *string set merge, 8 sizes %quantity atomic, 9 extra %strings,
 10 lining Cloth granular, 11 edge Cloth patch(replace), 12 maker $types.UID
core/v1.Hue: string Red|
 deep blue
meta/v1.ObjectMeta: 1 name string
meta/v1.Status: kind, 1 code int32
raising/v1.Flag: kind raising.example.com, 1 data bytes
`;

const schemas = schemaTable(typeTable(TABLE));
const field = (name: string): Field | undefined => schemas.kind('v1', 'Flag')?.fields[name];

it('makes the schema of a kind, with the fields of inlined types', () => {
  const flag = schemas.kind('v1', 'Flag');
  expect(flag).toMatchObject({
    name: 'io.k8s.api.core.v1.Flag',
    atomic: false,
    gvks: [{ group: '', version: 'v1', kind: 'Flag' }],
  });
  expect(Object.keys(flag?.fields ?? {}).slice(0, 5)).toEqual(['apiVersion', 'kind', 'metadata', 'weave', 'hue']);
});

it('reads presence, types, list types, patch strategies and defaults', () => {
  expect(field('weave')).toMatchObject({ presence: 'optional', defaultText: 'silk' });
  expect(field('hue')).toMatchObject({
    ...{ presence: 'always', required: true },
    schema: { kind: 'string', goType: 'v1.Hue', values: ['Red', 'deep blue'] },
  });
  expect(field('raised')).toMatchObject({ presence: 'pointer', required: false, schema: { kind: 'time' } });
  expect(field('size')?.schema).toEqual({ kind: 'integer', format: 'int64' });
  expect(field('cloths')?.schema).toMatchObject({
    ...{ kind: 'list', listType: 'map', mapKeys: ['weave', 'dye'] },
    ...{ patchStrategy: 'merge,retainKeys', mergeKey: 'weave', items: { atomic: true } },
  });
  expect(field('names')?.schema).toMatchObject({ listType: 'set', patchStrategy: 'merge', mergeKey: undefined });
  expect(field('sizes')?.schema).toEqual({ kind: 'map', values: { kind: 'quantity' }, atomic: true });
  expect(field('extra')?.schema).toMatchObject({ values: { kind: 'list', patchStrategy: 'replace' } });
  expect(field('lining')?.schema).toMatchObject({ name: 'io.k8s.api.core.v1.Cloth', atomic: false });
  expect(field('edge')?.schema).toMatchObject({ atomic: true, patchStrategy: 'replace' });
  expect(field('maker')?.schema).toEqual({ kind: 'string', goType: 'types.UID' });
});

it('finds kinds by the full name of their group, and those of every group in the core group', () => {
  expect(schemas.kind('raising.example.com/v1', 'Flag')?.name).toBe('io.k8s.api.raising.v1.Flag');
  expect(schemas.kind('raising.other.com/v1', 'Flag')).toBeUndefined();
  expect(schemas.kind('v1', 'Status')?.name).toBe('io.k8s.apimachinery.pkg.apis.meta.v1.Status');
  expect(schemas.kind('v1', 'Cloth')).toBeUndefined();
});
