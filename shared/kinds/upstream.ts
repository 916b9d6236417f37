/** Schemas and protobuf messages of Kubernetes' own kinds. Only the API loads them. */

import { type ProtobufTable, protobufTable } from '../kubernetes/protobuf-table.ts';
import { embedded } from '../kubernetes/schema.ts';
import { type SchemaTable, schemaTable } from '../kubernetes/schema-table.ts';
import { typeTable } from '../kubernetes/type-table.ts';
import { DEFINITION_TYPES } from './customresourcedefinitions/messages.ts';
import { TYPE_TABLE } from './generated/type-table.ts';

const TYPES = typeTable(TYPE_TABLE);

export const upstream: SchemaTable = schemaTable(TYPES);
export const messages: ProtobufTable = protobufTable({
  find: (name) => TYPES.find(name) ?? DEFINITION_TYPES.find(name),
});

/** The `metadata` field of a kind. */
export const metadata = embedded(upstream.struct('meta/v1.ObjectMeta'), '');
