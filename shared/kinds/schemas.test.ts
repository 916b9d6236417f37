import { readdirSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { ALL_SCHEMAS } from '../../test/support/all-schemas.ts';
import type { Schema, StructSchema } from '../kubernetes/schema.ts';
import { describe as textOf } from './descriptions/describe.ts';
import { upstream } from './upstream.ts';

/** Structs that a kind consists of, each once. */
function structsOf(schema: Schema, found: Map<string, StructSchema>): Map<string, StructSchema> {
  if (schema.kind === 'list') return structsOf(schema.items, found);
  if (schema.kind === 'map') return structsOf(schema.values, found);
  if (schema.kind !== 'struct' || found.has(schema.name)) return found;
  found.set(schema.name, schema);
  for (const field of Object.values(schema.fields)) structsOf(field.schema, found);
  return found;
}

describe('kubectl explain', () => {
  it.each(ALL_SCHEMAS.map((schema) => [schema.name, schema] as const))('describes every field of %s', (_, schema) => {
    for (const struct of structsOf(schema, new Map()).values()) {
      expect(struct.description || textOf(struct.name), struct.name).not.toBe('');
      for (const [name, { description }] of Object.entries(struct.fields)) {
        expect(description || textOf(struct.name, name), `${struct.name}.${name}`).toMatch(/\S.*\.$/);
      }
    }
  });

  it('has texts for types and fields of the table alone', async () => {
    const folder = new URL('./descriptions/', import.meta.url);
    const modules = await Promise.all(readdirSync(folder).map((file) => import(new URL(file, folder).href)));
    const texts = modules.flatMap((each: Record<string, object>) =>
      Object.values(each).flatMap((value) => Object.entries(value).filter(([type]) => type.includes('/'))),
    );
    expect(texts.length).toBeGreaterThan(300);
    for (const [type, fields] of texts) {
      const known = Object.keys(upstream.struct(type).fields);
      expect(
        Object.keys(fields).filter((field) => field !== '' && !known.includes(field)),
        type,
      ).toEqual([]);
    }
  });

  it('describes a beta version and an ephemeral container as their twins', () => {
    expect(textOf('io.k8s.api.policy.v1beta1.Eviction')).toBe(textOf('io.k8s.api.policy.v1.Eviction'));
    expect(textOf('io.k8s.api.core.v1.EphemeralContainer', 'tty')).toBe(textOf('io.k8s.api.core.v1.Container', 'tty'));
  });
});
