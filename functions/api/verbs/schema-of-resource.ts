import type { ResourceDescriptor } from '../../../shared/kinds/descriptor.ts';
import { schemaOf } from '../../../shared/kinds/schema/kinds.ts';
import { apiVersionOf } from '../../../shared/kubernetes/api-version.ts';
import type { StructSchema } from '../../../shared/kubernetes/schema/schema.ts';

/** The schema of the objects of a resource. @throws Error for a kind without a schema, a fault of ours */
export function schemaFor(descriptor: ResourceDescriptor): StructSchema {
  const schema = schemaOf(apiVersionOf(descriptor), descriptor.kind);
  if (schema === undefined) throw new Error(`no schema for ${apiVersionOf(descriptor)} ${descriptor.kind}`);
  return schema;
}
