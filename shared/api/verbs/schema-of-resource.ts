import type { ResourceDescriptor } from '../../kube/descriptor.ts';
import { schemaOf } from '../../kube/schema/kinds.ts';
import type { StructSchema } from '../../kube/schema/schema.ts';
import { apiVersionOf } from '../request/call.ts';

/** The schema of the objects of a resource. @throws Error for a kind without a schema, a fault of ours */
export function schemaFor(descriptor: ResourceDescriptor): StructSchema {
  const schema = schemaOf(apiVersionOf(descriptor), descriptor.kind);
  if (schema === undefined) throw new Error(`no schema for ${apiVersionOf(descriptor)} ${descriptor.kind}`);
  return schema;
}
