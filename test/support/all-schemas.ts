import { TYPE_TABLE } from '../../shared/kinds/generated/type-table.ts';
import { resources } from '../../shared/kinds/registry.ts';
import { schemaOf } from '../../shared/kinds/schemas.ts';
import { upstream } from '../../shared/kinds/upstream.ts';
import { apiVersionOf } from '../../shared/kubernetes/normal-form.ts';
import type { StructSchema } from '../../shared/kubernetes/schema.ts';

/** Every kind that has a schema. */
export const ALL_SCHEMAS: readonly StructSchema[] = [
  ...new Set([
    ...[...TYPE_TABLE.matchAll(/^(\S+): kind/gm)].map(([, name = '']) => upstream.struct(name)),
    ...resources.flatMap((resource) => schemaOf(apiVersionOf(resource), resource.kind) ?? []),
  ]),
];
