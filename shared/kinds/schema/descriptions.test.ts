import { describe, expect, it } from 'vitest';
import type { Schema, StructSchema } from '../../kubernetes/schema/schema.ts';
import { KINDS } from './kinds.ts';

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
  it.each(KINDS.map((schema) => [schema.name, schema] as const))('describes every field of %s', (_, schema) => {
    for (const struct of structsOf(schema, new Map()).values()) {
      expect(struct.description, struct.name).not.toBe('');
      for (const [name, { description }] of Object.entries(struct.fields)) {
        expect(description, `${struct.name}.${name}`).toMatch(/\S.*\.$/);
      }
    }
  });
});
