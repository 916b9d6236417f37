/** Types and schemas of Kubernetes' own kinds. Only the API loads them. */

import { embedded } from '../kubernetes/schema.ts';
import { type SchemaTable, schemaTable, typeTable } from '../kubernetes/type-table.ts';
import { TYPE_TABLE } from './generated/type-table.ts';

export const TYPES = typeTable(TYPE_TABLE);

export const upstream: SchemaTable = schemaTable(TYPES);

/** The `metadata` field of a kind. */
export const metadata = embedded(upstream.struct('meta/v1.ObjectMeta'), '');
